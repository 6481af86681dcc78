// The form of a channel: its name and what its platform asks for.
import { useState } from "preact/hooks";

import { ApiError, mayEdit, asError } from "../../data";
import { Button, ErrorCard, objectOf, PairsField, SecretField, SelectField, TextField, type Pair } from "../../ui";
import { usePageForm, Unsaved } from "../../parts/pageform";
import type { Platform, PlatformField } from "./platforms";

/** The values of the fields by their names: texts, and the rows of those of kind pairs. */
type ChannelValues = Record<string, string | Pair[]>;

const textIn = (v: string | Pair[] | undefined) => (typeof v === "string" ? v : "");
const pairsIn = (v: string | Pair[] | undefined) => (typeof v === "object" ? v : []);

/** The fields that were filled in, as the API takes them. */
function configOf(fields: PlatformField[], values: ChannelValues) {
  const config: Record<string, unknown> = {};
  for (const f of fields) {
    const value = values[f.name];
    if (f.kind === "pairs") {
      if (pairsIn(value).length) config[f.name] = objectOf(pairsIn(value));
      continue;
    }
    if (value === "" || value === undefined) continue;
    config[f.name] = f.kind === "number" ? Number(value) : value;
  }
  return config;
}

function Input({
  f,
  form,
  stored,
  disabled,
}: {
  f: PlatformField;
  form: ReturnType<typeof usePageForm<ChannelValues>>;
  stored: boolean;
  disabled: boolean;
}) {
  const error = form.issues[`config.${f.name}`] ?? form.issues[f.name];
  const hint = stored && f.kind !== "secret" ? "Saved and hidden. Type to replace it." : f.hint;
  const common = { label: f.label, disabled, error, hint };
  if (f.kind === "secret")
    return (
      <SecretField
        {...common}
        hint={f.hint}
        stored={stored}
        required={f.required}
        value={textIn(form.values[f.name])}
        onInput={(v) => form.set(f.name, v)}
      />
    );
  if (f.kind === "pairs")
    return <PairsField {...common} pairs={pairsIn(form.values[f.name])} onChange={(v) => form.set(f.name, v)} />;
  if (f.kind === "choice")
    return (
      <SelectField
        {...common}
        value={textIn(form.values[f.name])}
        onChange={(v) => form.set(f.name, v)}
        options={
          stored
            ? [["", "As it is"], ...f.options!.map(([v, t]): [string, string] => [v || "starttls", t])]
            : f.options!
        }
      />
    );
  return (
    <TextField
      {...common}
      type={f.kind ?? "text"}
      required={f.required && !stored}
      placeholder={stored ? "Set" : f.placeholder}
      value={textIn(form.values[f.name])}
      onInput={(v) => form.set(f.name, v)}
    />
  );
}

/**
 * The name and the credentials of a channel. save stores and verifies them; what it throws about fields is shown at
 * them.
 */
export function ChannelForm({
  platform,
  name,
  stored,
  action,
  cancel,
  save,
}: {
  platform: Platform;
  name: string;
  stored: string[];
  action: string;
  cancel?: () => void;
  save: (name: string, config: Record<string, unknown>) => Promise<unknown>;
}) {
  const empty = (): ChannelValues => ({
    name,
    ...Object.fromEntries(platform.fields.map((f) => [f.name, f.kind === "pairs" ? [] : ""])),
  });
  const secrets = platform.fields.filter((f) => f.kind === "secret").map((f) => f.name);
  const form = usePageForm<ChannelValues>(empty(), platform.id, secrets);
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Error>();
  const may = mayEdit.value;
  const known = ["name", ...platform.fields.map((f) => f.name)];
  const submit = async () => {
    const missing = platform.fields.filter((f) => f.required && !stored.includes(f.name) && !form.values[f.name]);
    if (missing.length)
      return form.setIssues(Object.fromEntries(missing.map((f) => [`config.${f.name}`, "is required"])));
    setBusy(true);
    setFailed(undefined);
    form.setIssues({});
    try {
      await save(textIn(form.values.name), configOf(platform.fields, form.values));
      form.reset();
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      if (!Object.keys(issues).some((i) => known.includes(i.replace(/^config\./, "")))) setFailed(asError(error));
    }
    setBusy(false);
  };
  const input = (f: PlatformField) => (
    <Input key={f.name} f={f} form={form} stored={stored.includes(f.name)} disabled={!may} />
  );
  const more = platform.fields.filter((f) => f.more);
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void submit();
      }}
    >
      <TextField label="Name" required disabled={!may} {...form.text("name")} />
      {platform.fields.filter((f) => !f.more).map(input)}
      {more.length > 0 && (
        <details open={more.some((f) => form.issues[`config.${f.name}`])}>
          <summary>More</summary>
          <div class="stack">{more.map(input)}</div>
        </details>
      )}
      {failed && <ErrorCard error={failed} />}
      {may && (
        <div class="row end">
          <Unsaved form={form} />
          {cancel && <Button onClick={cancel}>Cancel</Button>}
          <Button kind="primary" submit disabled={busy}>
            {busy ? "Verifying…" : action}
          </Button>
        </div>
      )}
    </form>
  );
}
