import { useState } from "preact/hooks";

import { post } from "../../data";
import { CopyButton, FormDialog, openDialog, Dialog, Segments, TextArea, TextField } from "../../ui";
import { at, type Takeover } from "./data";

/** Asks who takes a session over and for how long. */
export function HandOver({ id, close, begin, reload }: { id: string; close: () => void; begin: (t: Takeover) => Promise<void>; reload: () => Promise<void> }) {
  const [who, setWho] = useState("me");
  return (
    <FormDialog title="Take over" action={who === "me" ? "Take over" : "Create a link"} close={close} initial={{ reason: "", minutes: "15" }} run={async (v) => {
      const made: Takeover = await post(at(id, "takeover"), { reason: v.reason, timeout: Math.round(Number(v.minutes) * 60) });
      if (who === "me") return begin(made);
      await reload();
      openDialog((shut) => <Dialog title="Send this link" close={shut}><p>Whoever opens it controls the session until they give it back or the time is over.</p><div class="row copy nowrap"><code class="grow record-value">{made.takeover_url}</code><CopyButton text={made.takeover_url!} /></div></Dialog>);
    }}>
      {(f) => (
        <>
          <Segments label="Who" value={who} onChange={setWho} options={[["me", "Me, here"], ["other", "Somebody else, by a link"]]} />
          <p class="muted">Meanwhile scripted actions are refused; afterwards they go on.</p>
          <TextArea label="What is to be done" rows={2} placeholder="Please sign in." {...f.text("reason")} />
          <TextField label="Minutes" type="number" error={f.issue("timeout")} value={f.values.minutes} onInput={(v) => f.set("minutes", v)} hint="60 at most." />
        </>
      )}
    </FormDialog>
  );
}
