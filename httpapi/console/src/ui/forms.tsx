// A dialog with a form whose errors stand at their fields.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { ApiError } from "../data/api";
import { Button } from "./button";
import { tell } from "./feedback";
import { Dialog } from "./overlay";

/** The values of a form by the names of its fields; what a field holds is its own affair. */
export type Values = Record<string, any>;

export type FormState = {
  values: Values;
  /** The value of a field and what sets it, with its issue, to be spread into the field. */
  text: (name: string) => { value: string; onInput: (v: string) => void; error?: string };
  choice: (name: string) => { value: string; onChange: (v: string) => void; error?: string };
  set: (name: string, value: unknown) => void;
  issue: (name: string) => string | undefined;
};

/** Holds the values of a form and the issues that the service found in them. */
export function useForm(initial: Values): FormState & { setIssues: (i: Record<string, string>) => void; issues: Record<string, string> } {
  const [values, setValues] = useState(initial);
  const [issues, setIssues] = useState<Record<string, string>>({});
  const set = (name: string, value: unknown) => { // what was said of it is no longer so
    setValues((v) => ({ ...v, [name]: value }));
    setIssues((all) => (Object.keys(all).length ? Object.fromEntries(Object.entries(all).filter(([field]) => field !== name && field.split(".").at(-1) !== name)) : all));
  };
  const issue = (name: string) => issues[name] ?? issues[name.split(".").at(-1)!];
  return {
    values, set, issues, setIssues, issue,
    text: (name) => ({ value: values[name] ?? "", onInput: (v) => set(name, v), error: issue(name) }),
    choice: (name) => ({ value: values[name] ?? "", onChange: (v) => set(name, v), error: issue(name) }),
  };
}

/** A dialog that sends a form. What run throws about fields is shown at them, anything else below. */
export function FormDialog({ title, close, action, initial, run, children, wide, ready }: {
  title: string; close: () => void; action: string; initial: Values; wide?: boolean;
  /** Reports whether the form may be sent. */
  ready?: (values: Values) => boolean;
  run: (values: Values) => Promise<unknown>; children: (form: FormState) => ComponentChildren;
}) {
  const form = useForm(initial);
  const [busy, setBusy] = useState(false);
  const shown = Object.keys(form.values);
  const others = Object.entries(form.issues).filter(([field]) => !shown.includes(field) && !shown.includes(field.split(".").at(-1)!));
  const submit = async () => {
    setBusy(true);
    form.setIssues({});
    try {
      await run(form.values);
      close();
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      if (Object.keys(issues).length) form.setIssues(issues); else tell(error);
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} close={close} wide={wide}>
      <form class="stack" noValidate onSubmit={(e) => { e.preventDefault(); if (!busy && ready?.(form.values) !== false) void submit(); }}>
        {children(form)}
        {others.map(([field, issue]) => <p class="issue" role="alert"><code>{field}</code>: {issue}</p>)}
        <div class="row end"><Button onClick={close}>Cancel</Button><Button kind="primary" submit disabled={busy || ready?.(form.values) === false}>{action}</Button></div>
      </form>
    </Dialog>
  );
}
