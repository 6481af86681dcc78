// Actions on several sources at once.
import { invalidate, post, type API } from "../../data";
import { Button, plural, showToast } from "../../ui";
import { sourcesAt } from "./paths";

type Props = {
  /** The ids of the selected sources. */
  picked: string[];
  shown: API.Source[];
  pick: (ids: string[]) => void;
  remove: () => void;
};

/** What can be done with the sources that are selected. */
export function SelectedSources({ picked, shown, pick, remove }: Props) {
  const readAgain = async () => {
    const { changed } = await post(sourcesAt("change"), { ids: picked, reindex: true });
    pick([]);
    invalidate(sourcesAt());
    const skipped = picked.length - changed.length;
    showToast(
      `${plural(changed.length, "source")} being read again${skipped ? `; ${skipped} already in progress` : ""}`,
    );
  };
  const all = picked.length === shown.length;
  return (
    <div class="row bulk" role="group" aria-label="Selected sources">
      <label class="row nowrap grow">
        <input
          type="checkbox"
          aria-label="Select all on this page"
          checked={all}
          ref={(box) => {
            if (box) box.indeterminate = !all;
          }}
          onChange={() => pick(all ? [] : shown.map(({ id }) => id))}
        />
        {picked.length} of {shown.length} selected
      </label>
      <Button icon="RefreshCw" onClick={readAgain}>
        Read again
      </Button>
      <Button kind="danger" icon="Trash2" onClick={remove}>
        Delete
      </Button>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={() => pick([])} />
    </div>
  );
}
