// Canned replies: what people answer again and again, by a word behind "!".
import { useState } from "preact/hooks";

import { type API, path, post, put, remove, useQuery } from "../../data";
import { Button, deleteLater, Dialog, FormDialog, Load, openDialog, TextArea, TextField } from "../../ui";

const at = <const M extends string[]>(id: string, ...more: M) => path("agents", id, "replies", ...more);

/** Lists the canned replies, to be written and changed; text is what a new one begins with. */
export function Replies({ id, text = "", close }: { id: string; text?: string; close: () => void }) {
  const found = useQuery(at(id), { limit: 200 });
  const [hidden, setHidden] = useState<string[]>([]);
  const edit = (r?: API.CannedReply) => {
    openDialog((shut) => <Edit id={id} reply={r} text={text} close={shut} done={found.reload} />);
  };
  const drop = (r: API.CannedReply) => {
    setHidden((h) => [...h, r.id]);
    deleteLater(
      `!${r.shortcut} deleted`,
      async () => {
        await remove(at(id, r.id));
        await found.reload();
      },
      () => setHidden((h) => h.filter((x) => x !== r.id)),
    );
  };
  return (
    <Dialog title="Canned replies" close={close}>
      <Load of={found} lines={3}>
        {({ replies }) => {
          const shown = replies.filter((r) => !hidden.includes(r.id));
          return shown.length ? (
            <ul class="plain">
              {shown.map((r) => (
                <li key={r.id} class="row nowrap">
                  <div class="grow">
                    <strong>
                      !<bdi>{r.shortcut}</bdi>
                    </strong>
                    <p class="muted small clip">
                      <bdi>{r.text}</bdi>
                    </p>
                  </div>
                  <Button kind="quiet" icon="Pencil" label={`Edit !${r.shortcut}`} onClick={() => edit(r)} />
                  <Button kind="quiet" icon="Trash2" label={`Delete !${r.shortcut}`} onClick={() => drop(r)} />
                </li>
              ))}
            </ul>
          ) : (
            <p class="muted">
              Answers you give often. In a reply, type <kbd>!</kbd> and the shortcut of one to insert it.
            </p>
          );
        }}
      </Load>
      <div class="row end">
        <Button kind="primary" icon="Plus" onClick={() => edit()}>
          New canned reply
        </Button>
      </div>
    </Dialog>
  );
}

function Edit({
  id,
  reply,
  text,
  close,
  done,
}: {
  id: string;
  reply?: API.CannedReply;
  text: string;
  close: () => void;
  done: () => Promise<void>;
}) {
  const save = async ({ shortcut, text }: { shortcut?: string; text?: string }) => {
    await (reply ? put(at(id, reply.id), { shortcut, text }) : post(at(id), { shortcut, text }));
    await done();
  };
  return (
    <FormDialog
      title={reply ? "Edit the canned reply" : "New canned reply"}
      close={close}
      action="Save"
      run={save}
      initial={{ shortcut: reply?.shortcut ?? "", text: reply?.text ?? text }}
      ready={(v) => Boolean(v.shortcut.trim() && v.text.trim())}
    >
      {(f) => (
        <>
          <TextField label="Shortcut" hint="Without spaces, such as hours." autoFocus {...f.text("shortcut")} />
          <TextArea label="Text" rows={4} {...f.text("text")} />
        </>
      )}
    </FormDialog>
  );
}
