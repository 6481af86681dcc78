// Asks a person to take over a session.
import { useState } from "preact/hooks";

import { post } from "../../data";
import { CopyButton, FormDialog, openDialog, Dialog, Segments, TextArea, TextField } from "../../ui";
import { at, type Takeover } from "./data";

type Props = {
  id: string;
  close: () => void;
  begin: (takeover: Takeover) => Promise<void>;
  reload: () => Promise<void>;
};

/** The dialog that asks who takes over a session, and for how long. */
export function TakeoverDialog({ id, close, begin, reload }: Props) {
  const [who, setWho] = useState("me");
  const run = async ({ reason, minutes }: { reason: string; minutes: string }) => {
    const takeover = await post(at(id, "takeover"), { reason, timeout: Math.round(Number(minutes) * 60) });
    if (who === "me") return begin(takeover);
    await reload();
    openDialog((closeLink) => <LinkDialog link={takeover.takeover_url!} close={closeLink} />);
  };
  return (
    <FormDialog
      title="Take over"
      action={who === "me" ? "Take over" : "Create a link"}
      close={close}
      initial={{ reason: "", minutes: "15" }}
      run={run}
    >
      {(form) => (
        <>
          <Segments
            label="Who"
            value={who}
            onChange={setWho}
            options={[
              ["me", "Me, here"],
              ["other", "Someone else, by link"],
            ]}
          />
          <p class="muted">Scripts cannot act in the session until it is handed back or the time is over.</p>
          {who === "other" && (
            <TextArea label="What needs doing" rows={2} placeholder="Please sign in." {...form.text("reason")} />
          )}
          <TextField
            label="Minutes"
            type="number"
            hint="60 at most."
            {...form.text("minutes")}
            error={form.issue("timeout")}
          />
        </>
      )}
    </FormDialog>
  );
}

function LinkDialog({ link, close }: { link: string; close: () => void }) {
  return (
    <Dialog title="Send this link" close={close}>
      <p>Anyone who opens it controls the session until they hand it back or time runs out.</p>
      <div class="row copy nowrap">
        <code class="grow record-value">{link}</code>
        <CopyButton text={link} />
      </div>
    </Dialog>
  );
}
