// The fields of a template's form.
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { agentId, type API, get, path, uploads } from "../data";
import { uploadFiles } from "../parts/upload";
import { type InputType, SelectField, TextField, type Values } from "../ui";

type Field = API.Field;
/** A field of a template: a value, or a gateway with fields of its own. */
export type TemplateField = API.Value;

type Issues = Record<string, string>;
type Option = [value: string, label: string];

type FieldProps<F = Field> = {
  field: F;
  value: unknown;
  set: (value: unknown) => void;
  error?: string;
};

/** Returns the initial values of a form. A gateway is a new one until the existing ones are loaded. */
export function emptyValues(fields: TemplateField[]): Values {
  const initialized = fields.filter((field) => field.default !== undefined || field.type === "gateway");
  return Object.fromEntries(initialized.map((field) => [field.name, field.default ?? {}]));
}

type TemplateFieldsProps = {
  fields: TemplateField[];
  values: Values;
  issues: Issues;
  set: (name: string, value: unknown) => void;
};

/** The fields of a template's form. */
export function TemplateFields({ fields, values, issues, set }: TemplateFieldsProps) {
  return fields.map((field) => {
    const props = {
      field,
      value: values[field.name],
      set: (value: unknown) => set(field.name, value),
      error: issues[`values.${field.name}`],
    };
    if (field.type === "gateway") return <GatewayField key={field.name} {...props} issues={issues} />;
    if (field.type === "source") return <SourceField key={field.name} {...props} />;
    return <PlainField key={field.name} {...props} />;
  });
}

const optionNames: Record<string, string> = { resend: "Resend", smtp: "SMTP" };
const inputTypes: Record<string, InputType> = { secret: "password", number: "number", email: "email", url: "url" };

function PlainField({ field, value, set, error }: FieldProps) {
  const label = field.optional ? `${field.title} (optional)` : field.title;
  if (field.type === "choice") {
    const none: Option[] = field.default === undefined ? [["", "–"]] : [];
    return (
      <SelectField
        label={label}
        value={String(value ?? "")}
        error={error}
        hint={field.description}
        options={[...none, ...field.options!.map((option): Option => [option, optionNames[option] ?? option])]}
        onChange={set}
      />
    );
  }
  const hint = field.type === "cron" ? "Minute, hour, day of the month, month, day of the week." : field.description;
  const onInput = (text: string) => {
    if (text === "") set(undefined);
    else set(field.type === "number" ? Number(text) : text);
  };
  return (
    <TextField
      label={label}
      type={inputTypes[field.type] ?? "text"}
      value={value === undefined ? "" : String(value)}
      error={error}
      hint={hint || undefined}
      placeholder={field.type === "url" ? "https://" : undefined}
      onInput={onInput}
    />
  );
}

/** The fields of email gateways that only one provider has. */
const providerFields: Record<string, string[]> = {
  resend: ["apiKey", "webhookSecret"],
  smtp: ["smtpHost", "smtpPort", "smtpUsername", "smtpPassword", "smtpTls"],
};

/** Returns the fields of a new gateway without those of other providers. */
function configFields({ gateway, fields }: TemplateField, provider = "resend"): Field[] {
  if (gateway !== "email") return fields ?? [];
  const hidden = Object.entries(providerFields).flatMap(([name, names]) => (name === provider ? [] : names));
  return (fields ?? []).filter((field) => !hidden.includes(field.name));
}

const isEmptyObject = (value: unknown) => typeof value === "object" && !Object.keys(value ?? {}).length;

/** An existing gateway, or the settings of a new one. */
function GatewayField({ field, value, set, error, issues }: FieldProps<TemplateField> & { issues: Issues }) {
  const [gateways, setGateways] = useState<API.Gateway[]>([]);
  const current = useRef(value);
  current.current = value;
  useEffect(() => {
    get(path("agents", agentId.value, "gateways"), { type: field.gateway, limit: 200 }).then(
      (list) => {
        setGateways(list.gateways);
        if (list.gateways.length && isEmptyObject(current.current)) set(list.gateways[0].id);
      },
      () => {
        /* a new one can be created */
      },
    );
  }, []);
  const config = typeof value === "object" ? (value as Record<string, string | undefined>) : undefined;
  const labelOf = ({ name, status }: API.Gateway) => (status === "active" ? name : `${name} (${status})`);
  return (
    <fieldset class="template-gateway stack">
      <legend>{field.title}</legend>
      {field.description && <p class="muted small">{field.description}</p>}
      {gateways.length > 0 && (
        <SelectField
          label="Which"
          value={config ? "" : String(value ?? "")}
          error={config ? undefined : error}
          options={[...gateways.map((gateway): Option => [gateway.id, labelOf(gateway)]), ["", "A new one…"]]}
          onChange={(id) => set(id || {})}
        />
      )}
      {config &&
        configFields(field, config.provider).map((part) => (
          <PlainField
            key={part.name}
            field={part}
            value={config[part.name] ?? part.default}
            error={issues[`values.${field.name}.${part.name}`]}
            set={(changed) => set({ ...config, [part.name]: changed })}
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

/** Uploads a file; returns the id of its source, unless it failed. */
async function uploadSource(file: File): Promise<string | undefined> {
  const lastId = Math.max(0, ...uploads.value.map((upload) => upload.id));
  await uploadFiles([file]);
  return uploads.value.find((upload) => upload.id > lastId && upload.name === file.name)?.source;
}

/** An existing source, or a file that is uploaded as one. */
function SourceField({ field, value, set, error }: FieldProps) {
  const [sources, setSources] = useState<API.Source[]>([]);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const load = () =>
    get(path("agents", agentId.value, "sources"), { limit: 200 }).then(
      (list) => setSources(list.sources),
      () => {
        /* a file can be uploaded */
      },
    );
  useEffect(() => {
    void load();
  }, []);
  const upload = async (file?: File) => {
    if (!file) return;
    setBusy(true);
    const source = await uploadSource(file);
    await load();
    setBusy(false);
    if (source) set(source);
  };
  return (
    <div
      class={error ? "field wrong" : "field"}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void upload(event.dataTransfer?.files[0]);
      }}
    >
      <label for={id}>{field.title}</label>
      <div class="row nowrap">
        <select
          id={id}
          class="grow"
          aria-invalid={Boolean(error)}
          value={String(value ?? "")}
          onChange={(event) => set(event.currentTarget.value || undefined)}
        >
          <option value="" selected={!value}>
            {sources.length ? "Choose a source" : "No source yet"}
          </option>
          {sources.map((source) => (
            <option value={source.id} selected={source.id === value}>
              {source.name}
            </option>
          ))}
        </select>
        <UploadButton title={field.title} busy={busy} upload={upload} />
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

type UploadButtonProps = { title: string; busy: boolean; upload: (file?: File) => Promise<void> };

function UploadButton({ title, busy, upload }: UploadButtonProps) {
  return (
    <label class="button">
      {busy ? "Storing…" : "Upload a file"}
      <input
        type="file"
        class="hidden"
        aria-label={`Upload a file as ${title}`}
        disabled={busy}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = ""; // so that the same file can be chosen again
          void upload(file);
        }}
      />
    </label>
  );
}
