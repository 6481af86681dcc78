import { useState } from "preact/hooks";

import { key, session, anonymousAccessText, useKey } from "../data";
import { Button, Dialog, TextField } from "../ui";

function KeyForm({ done }: { done?: () => void }) {
  const [value, setValue] = useState(key.get());
  return (
    <form
      class="stack"
      onSubmit={async (e) => {
        e.preventDefault();
        await useKey(value.trim());
        done?.();
      }}
    >
      <TextField
        label="Key"
        type="password"
        value={value}
        onInput={setValue}
        placeholder="satchel_…"
        hint="Sent with every request from this tab, and forgotten when the tab closes."
      />
      <div class="row end">
        {key.get() && (
          <Button
            onClick={async () => {
              await useKey("");
              done?.();
            }}
          >
            Forget key
          </Button>
        )}
        {done && <Button onClick={done}>Cancel</Button>}
        <Button kind="primary" submit>
          Use it
        </Button>
      </div>
    </form>
  );
}

/** Asks for the API key of this tab. */
export function KeyDialog({ close }: { close: () => void }) {
  return (
    <Dialog title="API key" close={close}>
      <p class="muted">
        {session.value?.open
          ? "This server is open: no key is needed."
          : anonymousAccessText(session.value?.default_role)}
      </p>
      <KeyForm done={close} />
    </Dialog>
  );
}

/** Asks for a key in the place of a page. */
export function KeyCard({ error }: { error?: Error }) {
  return (
    <section class="card">
      <h2>API key</h2>
      <p>{error ? error.message : "If you have a key for it, enter it here."}</p>
      <KeyForm />
    </section>
  );
}
