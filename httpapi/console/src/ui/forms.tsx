// A dialog with a form whose errors stand at their fields.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { ApiError } from "../data/api";
import { Button } from "./button";
import { showToast } from "./toast";
import { Dialog } from "./overlay";

/** Values by the names of fields that only the page that shows them knows. */
export type Values = Record<string, unknown>;

/** The values of a form, its issues, and what connects them with fields. */
export type FormState<V extends object> = {
  values: V;
  /** The value of a field and what sets it, with its issue, to be spread into the field. */
  text(name: keyof V & string): { value: string; onInput: (v: string) => void; error?: string };
  choice(name: keyof V & string): { value: string; onChange: (v: string) => void; error?: string };
  set<K extends keyof V & string>(name: K, value: V[K]): void;
  issue(name: string): string | undefined;
};

/** What setting a text field needs of a form, where a page adds to it. */
export type TextOf<V extends object> = (name: keyof V & string) => {
  value: string;
  onInput: (v: string) => void;
  error?: string;
  disabled?: boolean;
};

const asText = (v: unknown) => (v === undefined || v === null ? "" : String(v));

/** The issues that the service found in the values of a form, by field. */
export type FormIssues = {
  setIssues: (i: Record<string, string>) => void;
  issues: Record<string, string>;
};

/** Connects values, and what sets one of them, with fields and their issues. */
export function useFields<V extends object>(
  values: V,
  put: (name: string, value: unknown) => void,
): FormState<V> & FormIssues {
  const [issues, setIssues] = useState<Record<string, string>>({});
  const set = (name: string, value: unknown) => {
    put(name, value);
    // The issue of a field that changes may be resolved.
    setIssues((all) =>
      Object.keys(all).length
        ? Object.fromEntries(
            Object.entries(all).filter(([field]) => field !== name && field.split(".").at(-1) !== name),
          )
        : all,
    );
  };
  const issue = (name: string) => issues[name] ?? issues[name.split(".").at(-1)!];
  return {
    values,
    set,
    issues,
    setIssues,
    issue,
    text: (name) => ({ value: asText(values[name]), onInput: (v) => set(name, v), error: issue(name) }),
    choice: (name) => ({ value: asText(values[name]), onChange: (v) => set(name, v), error: issue(name) }),
  };
}

/** Holds the values of a form and the issues that the service found in them. */
export function useForm<V extends object>(initial: V) {
  const [values, setValues] = useState<V>(initial);
  return useFields(values, (name, value) => setValues((v) => ({ ...v, [name]: value })));
}

/** A dialog that sends a form. What run throws about fields is shown at them, anything else below. */
export function FormDialog<V extends object>({
  title,
  close,
  action,
  initial,
  run,
  children,
  wide,
  ready,
}: {
  title: string;
  close: () => void;
  action: string;
  initial: V;
  wide?: boolean;
  /** Reports whether the form may be sent, or what is missing, which stands beside the button. */
  ready?: (values: V) => boolean | string;
  run: (values: V) => Promise<unknown>;
  children: (form: FormState<V>) => ComponentChildren;
}) {
  const form = useForm(initial);
  const [busy, setBusy] = useState(false);
  const isReady = ready?.(form.values) ?? true;
  const shown = Object.keys(form.values);
  const others = Object.entries(form.issues).filter(
    ([field]) => !shown.includes(field) && !shown.includes(field.split(".").at(-1)!),
  );
  const submit = async () => {
    setBusy(true);
    form.setIssues({});
    try {
      await run(form.values);
      close();
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      if (Object.keys(issues).length) form.setIssues(issues);
      else showToast(error);
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} close={close} wide={wide} held={JSON.stringify(form.values) !== JSON.stringify(initial)}>
      <form
        class="stack"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy && isReady === true) void submit();
        }}
      >
        {children(form)}
        {others.map(([field, issue]) => (
          <p class="issue" role="alert">
            <code>{field}</code>: {issue}
          </p>
        ))}
        <div class="row end">
          {typeof isReady === "string" && <span class="muted small grow">{isReady}</span>}
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit disabled={busy || isReady !== true}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
