// The fields of a template's form.
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { agentId, type API, get, path, uploads } from "../data";
import { Button, SelectField, TextField, type InputType, type Values } from "../ui";
import { uploadFiles } from "../parts/upload";

type Field = API.Field;
export type TemplateField = API.Value;

type Issues = Record<string, string>;

/** The values that a form begins with; a gateway is a new one until those that are there are known. */
export function emptyValues(fields: TemplateField[]): Values {
  return Object.fromEntries(
    fields.filter((f) => f.default !== undefined || f.type === "gateway").map((f) => [f.name, f.default ?? {}]),
  );
}

export function TemplateFields({
  fields,
  values,
  issues,
  set,
}: {
  fields: TemplateField[];
  values: Values;
  issues: Issues;
  set: (name: string, value: unknown) => void;
}) {
  return (
    <>
      {fields.map((f) => {
        const props = {
          field: f,
          value: values[f.name],
          set: (v: unknown) => set(f.name, v),
          error: issues[`values.${f.name}`],
        };
        return f.type === "gateway" ? (
          <GatewayField key={f.name} {...props} issues={issues} />
        ) : f.type === "source" ? (
          <SourceField key={f.name} {...props} />
        ) : (
          <PlainField key={f.name} {...props} />
        );
      })}
    </>
  );
}

const optionNames: Record<string, string> = { resend: "Resend", smtp: "SMTP" };
const inputs: Record<string, InputType> = { secret: "password", number: "number", email: "email", url: "url" };

function PlainField({
  field,
  value,
  set,
  error,
}: {
  field: Field;
  value: unknown;
  set: (v: unknown) => void;
  error?: string;
}) {
  const label = field.optional ? `${field.title} (optional)` : field.title;
  if (field.type === "choice")
    return (
      <SelectField
        label={label}
        value={String(value ?? "")}
        error={error}
        hint={field.description}
        options={[
          ...(field.default === undefined ? [["", "–"] as [string, string]] : []),
          ...field.options!.map((o) => [o, optionNames[o] ?? o] as [string, string]),
        ]}
        onChange={set}
      />
    );
  const hint = field.type === "cron" ? "Minute, hour, day of the month, month, day of the week." : field.description;
  return (
    <TextField
      label={label}
      type={inputs[field.type] ?? "text"}
      value={value === undefined ? "" : String(value)}
      error={error}
      hint={hint || undefined}
      placeholder={field.type === "url" ? "https://" : undefined}
      onInput={(v) => set(v === "" ? undefined : field.type === "number" ? Number(v) : v)}
    />
  );
}

const emailFields: Record<string, string[]> = {
  resend: ["apiKey", "webhookSecret"],
  smtp: ["smtpHost", "smtpPort", "smtpUsername", "smtpPassword", "smtpTls"],
};

/** A gateway that is there, or a new one with what it needs. */
function GatewayField({
  field,
  value,
  set,
  error,
  issues,
}: {
  field: TemplateField;
  value: unknown;
  set: (v: unknown) => void;
  error?: string;
  issues: Issues;
}) {
  const [there, setThere] = useState<API.Gateway[]>([]);
  const current = useRef(value);
  current.current = value;
  useEffect(() => {
    get(path("agents", agentId.value, "gateways"), { type: field.gateway, limit: 200 }).then(
      (d) => {
        setThere(d.gateways);
        const untouched = typeof current.current === "object" && !Object.keys(current.current ?? {}).length;
        if (d.gateways.length && untouched) set(d.gateways[0].id);
      },
      () => {},
    );
  }, []);
  const config = typeof value === "object" ? (value as Record<string, string | undefined>) : undefined;
  const provider = config?.provider ?? "resend";
  const shown = (field.fields ?? []).filter(
    (f) =>
      field.gateway !== "email" ||
      !Object.entries(emailFields).some(([p, names]) => p !== provider && names.includes(f.name)),
  );
  return (
    <fieldset class="template-gateway stack">
      <legend>{field.title}</legend>
      {field.description && <p class="muted small">{field.description}</p>}
      {there.length > 0 && (
        <SelectField
          label="Which"
          value={config ? "" : String(value ?? "")}
          error={config ? undefined : error}
          options={[
            ...there.map(
              (g) => [g.id, `${g.name}${g.status === "active" ? "" : ` (${g.status})`}`] as [string, string],
            ),
            ["", "A new one…"],
          ]}
          onChange={(v) => set(v || {})}
        />
      )}
      {config &&
        shown.map((f) => (
          <PlainField
            key={f.name}
            field={f}
            value={config[f.name] ?? f.default}
            error={issues[`values.${field.name}.${f.name}`]}
            set={(v) => set({ ...config, [f.name]: v })}
          />
        ))}
      {error && config && (
        <p class="issue" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** A source that is there, or a file that becomes one at once. */
function SourceField({
  field,
  value,
  set,
  error,
}: {
  field: Field;
  value: unknown;
  set: (v: unknown) => void;
  error?: string;
}) {
  const [there, setThere] = useState<API.Source[]>([]);
  const [busy, setBusy] = useState("");
  const id = useId();
  const load = () =>
    get(path("agents", agentId.value, "sources"), { limit: 200 }).then(
      (d) => setThere(d.sources),
      () => {},
    );
  useEffect(() => {
    void load();
  }, []);
  const upload = async (file?: File) => {
    if (!file) return;
    setBusy(file.name);
    const before = Math.max(0, ...uploads.value.map((u) => u.id));
    await uploadFiles([file]);
    const mine = uploads.value.find((u) => u.id > before && u.name === file.name);
    await load();
    setBusy("");
    if (mine?.source) set(mine.source);
  };
  return (
    <div
      class={error ? "field wrong" : "field"}
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        void upload(e.dataTransfer?.files[0]);
      }}
    >
      <label for={id}>{field.title}</label>
      <div class="row nowrap">
        <select
          id={id}
          class="grow"
          aria-invalid={Boolean(error)}
          value={String(value ?? "")}
          onChange={(e) => set(e.currentTarget.value || undefined)}
        >
          <option value="" selected={!value}>
            {there.length ? "Choose a source" : "No source yet"}
          </option>
          {there.map((s) => (
            <option value={s.id} selected={s.id === value}>
              {s.name}
            </option>
          ))}
        </select>
        <label class="button">
          {busy ? "Storing…" : "Upload a file"}
          <input
            type="file"
            class="hidden"
            aria-label={`Upload a file as ${field.title}`}
            disabled={Boolean(busy)}
            onChange={(e) => {
              const f = e.currentTarget.files?.[0];
              e.currentTarget.value = "";
              void upload(f);
            }}
          />
        </label>
      </div>
      {error ? (
        <small class="issue" role="alert">
          {error}
        </small>
      ) : (
        <small class="muted">{field.description}</small>
      )}
    </div>
  );
}
