// Secrets: typed once, replaced, and never shown again.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { focusAppeared } from "./addrow";
import { Button, CopyButton } from "./button";
import { Dialog, openDialog } from "./overlay";

/** A secret that is set or replaced. One that is stored is only said to be there. */
export function SecretField({
  label,
  stored,
  value,
  onInput,
  hint,
  error,
  disabled,
  required,
}: {
  label: string;
  stored?: boolean;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  error?: string;
  disabled?: boolean;
  required?: boolean;
}) {
  const id = useId();
  const [open, setOpen] = useState(false);
  const shown = !stored || open || Boolean(error) || value !== "";
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {shown ? (
        <div class="row nowrap">
          <input
            id={id}
            class="grow"
            type="password"
            autocomplete="off"
            value={value}
            required={required && !stored}
            disabled={disabled}
            ref={open ? focusAppeared : undefined}
            placeholder={stored ? "New value" : undefined}
            aria-invalid={Boolean(error)}
            aria-describedby={error ? `${id}-issue` : undefined}
            onInput={(e) => onInput(e.currentTarget.value)}
          />
          {stored && (
            <Button
              kind="quiet"
              onClick={() => {
                onInput("");
                setOpen(false);
              }}
            >
              Keep
            </Button>
          )}
        </div>
      ) : (
        <div class="row nowrap secret-set">
          <input id={id} class="grow" value="••••••••••••" readOnly disabled aria-label={`${label} is set`} />
          <Button disabled={disabled} onClick={() => setOpen(true)}>
            Replace
          </Button>
        </div>
      )}
      {error ? (
        <small class="issue" id={`${id}-issue`} role="alert">
          {error}
        </small>
      ) : (
        hint && <small class="muted">{hint}</small>
      )}
    </div>
  );
}

/** A text to take along, such as an address. */
export function CopyField({ label, text }: { label: string; text: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="row nowrap copy-field">
        <input id={id} class="grow code" readOnly value={text} onFocus={(e) => e.currentTarget.select()} />
        <CopyButton text={text} />
      </div>
    </div>
  );
}

/** Shows a secret that nobody can read again, until the person has it. */
export function showOnce(title: string, text: ComponentChildren, secret: string): Promise<void> {
  return new Promise((done) => {
    openDialog((close) => (
      <Dialog
        title={title}
        close={() => {
          close();
          done();
        }}
        persistent
      >
        <p>{text}</p>
        <CopyField label="Secret" text={secret} />
        <div class="row end">
          <Button
            kind="primary"
            onClick={() => {
              close();
              done();
            }}
          >
            Done
          </Button>
        </div>
      </Dialog>
    ));
  });
}
