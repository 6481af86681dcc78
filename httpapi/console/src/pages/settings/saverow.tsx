import { mayEdit } from "../../data";
import { Button, type FormControl, Unsaved } from "../../ui";

/** The last row of a form of settings, for those who may save it. */
export function SaveRow({ form }: { form: FormControl }) {
  if (!mayEdit.value) return null;
  return (
    <div class="row end">
      <Unsaved form={form} />
      <Button kind="primary" submit>
        Save
      </Button>
    </div>
  );
}
