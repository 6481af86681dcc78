import { mayEdit } from "../../data";
import { Button } from "../../ui";

/** The last row of a form of settings, for those who may save it. */
export function SaveRow() {
  if (!mayEdit.value) return null;
  return (
    <div class="row end">
      <Button kind="primary" submit>
        Save
      </Button>
    </div>
  );
}
