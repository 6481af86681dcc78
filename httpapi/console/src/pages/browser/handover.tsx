import { useState } from "preact/hooks";

import { post } from "../../data";
import { CopyButton, FormDialog, openDialog, Dialog, Segments, TextArea, TextField } from "../../ui";
import { at, type Takeover } from "./data";

/** Asks who takes a session over and for how long. */
export function HandOver({
  id,
  close,
  begin,
  reload,
}: {
  id: string;
  close: () => void;
  begin: (t: Takeover) => Promise<void>;
  reload: () => Promise<void>;
}) {
  const [who, setWho] = useState("me");
  return (
    <FormDialog
      title="Take over"
      action={who === "me" ? "Take over" : "Create a link"}
      close={close}
      initial={{ reason: "", minutes: "15" }}
      run={async (v) => {
        const made: Takeover = await post(at(id, "takeover"), {
          reason: v.reason,
          timeout: Math.round(Number(v.minutes) * 60),
        });
        if (who === "me") return begin(made);
        await reload();
        openDialog((shut) => (
          <Dialog title="Send this link" close={shut}>
            <p>Anyone who opens it controls the session until they hand it back or time runs out.</p>
            <div class="row copy nowrap">
              <code class="grow record-value">{made.takeover_url}</code>
              <CopyButton text={made.takeover_url!} />
            </div>
          </Dialog>
        ));
      }}
    >
      {(f) => (
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
          <p class="muted">Scripted actions are refused until then.</p>
          <TextArea label="What needs doing" rows={2} placeholder="Please sign in." {...f.text("reason")} />
          <TextField
            label="Minutes"
            type="number"
            error={f.issue("timeout")}
            value={f.values.minutes}
            onInput={(v) => f.set("minutes", v)}
            hint="60 at most."
          />
        </>
      )}
    </FormDialog>
  );
}
