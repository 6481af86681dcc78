import { mayEdit } from "../../data";
import { Button } from "../../ui";
import { type PageForm, Unsaved } from "../../parts/pageform";

/** The last row of a form of settings, for those who may save it. */
export function SaveRow({ form }: { form: PageForm }) {
  if (!mayEdit.value) return null;
  return (
    <div class="row end">
      <Unsaved form={form} audit="settings updated" />
      <Button kind="primary" submit>
        Save
      </Button>
    </div>
  );
}
