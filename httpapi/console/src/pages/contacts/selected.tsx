// Actions on several contacts at once.
import { post, type API } from "../../data";
import { Button, FormDialog, Menu, openDialog, plural, showToast, TextField } from "../../ui";
import { contactsAt } from "./paths";

type Props = {
  /** The ids of the selected contacts. */
  picked: string[];
  /** The contacts that are shown. */
  contacts: API.ContactSummary[];
  knownTags: string[];
  clear: () => void;
  reload: () => void;
  remove: () => void;
};

/** What can be done with the contacts that are selected. */
export function SelectedContacts({ picked, contacts, knownTags, clear, reload, remove }: Props) {
  const theirTags = new Set(contacts.filter(({ id }) => picked.includes(id)).flatMap(({ tags }) => tags));
  const changeTags = async (change: "add_tags" | "remove_tags", tag: string) => {
    const adds = change === "add_tags";
    const { changed } = await post(contactsAt("batch"), { ids: picked, [change]: [tag] });
    reload();
    const undo = () => {
      const body = { ids: changed, [adds ? "remove_tags" : "add_tags"]: [tag] };
      void post(contactsAt("batch"), body).then(reload, showToast);
    };
    const text = `${plural(changed.length, "contact")} ${adds ? "tagged" : "untagged"}: ${tag}`;
    showToast(text, changed.length ? undo : undefined);
  };
  const openTagDialog = () => {
    openDialog((close) => (
      <TagDialog count={picked.length} knownTags={knownTags} close={close} add={(tag) => changeTags("add_tags", tag)} />
    ));
  };
  return (
    <div class="row bulk" role="group" aria-label="Selected contacts">
      <span class="grow">{plural(picked.length, "contact")} selected</span>
      <Button icon="Tag" onClick={openTagDialog}>
        Add a tag
      </Button>
      <Menu
        label="Remove a tag"
        items={[...theirTags].sort().map((tag) => ({
          label: tag,
          icon: "Tag",
          run: () => changeTags("remove_tags", tag),
        }))}
      >
        {theirTags.size ? "Remove a tag" : "No tags to remove"}
      </Menu>
      <Button kind="danger" icon="Trash2" onClick={remove}>
        Delete
      </Button>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={clear} />
    </div>
  );
}

type TagDialogProps = { count: number; knownTags: string[]; close: () => void; add: (tag: string) => Promise<void> };

function TagDialog({ count, knownTags, close, add }: TagDialogProps) {
  const run = async ({ add_tags }: { add_tags: string }) => {
    const tag = add_tags.trim();
    if (!tag) throw new Error("Enter a tag.");
    await add(tag);
  };
  return (
    <FormDialog
      title={`Tag ${plural(count, "contact")}`}
      close={close}
      action="Tag"
      initial={{ add_tags: "" }}
      run={run}
    >
      {(form) => <TextField label="Tag" autoFocus required list={knownTags} {...form.text("add_tags")} />}
    </FormDialog>
  );
}
