// The form of a website's widget, for whichever page connects channels.
import { useState } from "preact/hooks";

import { ApiError, mayEdit, path, post, put, type API } from "../../data";
import { Button, CopyButton, Dialog, openDialog, SelectField, showToast, TextArea, TextField, useForm } from "../../ui";

/** The values that the service uses for options that the config lacks. */
export const widgetDefaults = {
  title: "Ask us",
  greeting: "Hello! How can we help?",
  color: "#1f6f54",
  askEmail: "offline",
  offlineMessage: "Nobody can answer right now. Your messages are kept.",
  hours: "",
  messagesPerMinute: 10,
  messagesPerDay: 500,
  files: true,
  maxFiles: 5,
  maxFileSize: 10,
  fileTypes: [] as string[],
};

const emailPolicies: [string, string][] = [
  ["offline", "When nobody can answer"],
  ["always", "Before the first message"],
  ["never", "Never"],
];

const textOptions = ["title", "greeting", "color", "askEmail", "hours", "offlineMessage"] as const;
const numberOptions = ["messagesPerMinute", "messagesPerDay", "maxFiles", "maxFileSize"] as const;

/** The values of the form, all of them as text. */
export type WidgetValues = Record<
  | (typeof textOptions)[number]
  | (typeof numberOptions)[number]
  | "name"
  | "allowedOrigins"
  | "files"
  | "fileTypes"
  | "secret",
  string
>;

/** The config of a widget for the values of the form; null restores a default. */
function configOf(values: WidgetValues) {
  const config: Record<string, unknown> = { allowedOrigins: values.allowedOrigins.split(/[\s,]+/).filter(Boolean) };
  for (const name of textOptions) config[name] = values[name] === "" ? null : values[name];
  for (const name of numberOptions) config[name] = values[name] === "" ? null : Number(values[name]);
  config.files = values.files === "true";
  config.fileTypes = values.fileTypes.split(/[\s,]+/).filter(Boolean);
  if (values.secret) config.secret = values.secret;
  return config;
}

/** The values of the form for the config of a widget. */
function valuesOf(gateway?: API.Gateway, options?: API.WidgetDetails): WidgetValues {
  const config = { ...widgetDefaults, ...options?.config };
  return {
    title: config.title,
    greeting: config.greeting,
    color: config.color,
    askEmail: config.askEmail,
    hours: config.hours,
    offlineMessage: config.offlineMessage,
    name: gateway?.name ?? "Website",
    allowedOrigins: (options?.config.allowedOrigins ?? []).join("\n"),
    messagesPerMinute: String(config.messagesPerMinute),
    messagesPerDay: String(config.messagesPerDay),
    files: String(config.files),
    fileTypes: (config.fileTypes ?? []).join(" "),
    maxFiles: String(config.maxFiles),
    maxFileSize: String(config.maxFileSize),
    secret: "",
  };
}

type Props = {
  /** The agent. */
  id: string;
  /** The gateway to change; without one a new one is created. */
  gateway?: API.Gateway;
  /** The widget's options, as GET …/widget returns them. */
  options?: API.WidgetDetails;
  done: (gateway: string) => Promise<unknown> | unknown;
  /** Is called with the values after each change, for a preview. */
  onChange?: (values: WidgetValues) => void;
};

/** Creates or changes a widget, and has it verified at once. */
export function WidgetForm({ id, gateway, options, done, onChange }: Props) {
  const form = useForm(valuesOf(gateway, options));
  const [busy, setBusy] = useState(false);
  const locked = !mayEdit.value;
  const save = async () => {
    setBusy(true);
    form.setIssues({});
    try {
      const { name, secret: entered } = form.values;
      const saved = await saveWidget(id, gateway, { name, config: configOf(form.values) });
      if (saved.secret && !entered) openDialog((close) => <Secret secret={saved.secret} close={close} />);
      else showToast("Saved. Pages show it within a minute.");
      form.set("secret", "");
      await done(saved.id);
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
      else showToast(error);
    }
    setBusy(false);
  };
  const field: FieldProps = (name) => ({
    value: form.values[name],
    disabled: locked,
    error: form.issues[`config.${name}`] ?? form.issues[name],
    onInput: (value) => {
      form.set(name, value);
      onChange?.({ ...form.values, [name]: value });
    },
  });
  return (
    <form
      class="card stack"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void save();
      }}
    >
      <TextField label="Name" required hint="Only you see this." {...field("name")} />
      <TextArea
        label="Websites"
        rows={2}
        placeholder="https://shop.example.com"
        hint="Sites that may show the widget, one per line. Without any, it isn't shown."
        {...field("allowedOrigins")}
      />
      <Appearance field={field} />
      <Absence field={field} />
      <VisitorFiles field={field} />
      <LimitsAndUsers field={field} isNew={!gateway} />
      {!locked && (
        <div class="row end">
          <Button kind="primary" submit disabled={busy}>
            {gateway ? "Save" : "Create widget"}
          </Button>
        </div>
      )}
    </form>
  );
}

/** Stores a widget and has it verified; secret is the one that the service generated, if it did. */
async function saveWidget(agent: string, gateway: API.Gateway | undefined, body: { name: string; config: object }) {
  const gatewaysAt = <const M extends string[]>(...more: M) => path("agents", agent, "gateways", ...more);
  const saved = gateway ? await put(gatewaysAt(gateway.id), body) : await post(gatewaysAt(), { type: "web", ...body });
  const verified = await post(gatewaysAt(saved.id, "verify"));
  if (!verified.success) throw new Error(verified.error);
  return { id: saved.id, secret: "webhook_secret" in saved ? String(saved.webhook_secret ?? "") : "" };
}

/** The props of the field of a value. */
type FieldProps = (name: keyof WidgetValues) => {
  value: string;
  disabled: boolean;
  error?: string;
  onInput: (value: string) => void;
};

/** The props of a select for a value. */
function choice(field: FieldProps, name: keyof WidgetValues) {
  const { onInput, ...props } = field(name);
  return { ...props, onChange: onInput };
}

function Appearance({ field }: { field: FieldProps }) {
  return (
    <>
      <h2>How it looks</h2>
      <div class="widget-pair">
        <TextField label="Title" placeholder={widgetDefaults.title} {...field("title")} />
        <ColorField {...field("color")} />
      </div>
      <TextArea label="Greeting" rows={2} placeholder={widgetDefaults.greeting} {...field("greeting")} />
    </>
  );
}

/** A color as the widget shows it: the default for what is no color. */
export const toColor = (text = "") => (/^#[0-9a-f]{6}$/i.test(text) ? text : widgetDefaults.color);

function ColorField({ value, disabled, error, onInput }: ReturnType<FieldProps>) {
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for="widget-color">Color</label>
      <div class="widget-color">
        <input
          type="color"
          aria-label="Choose a color"
          value={toColor(value)}
          disabled={disabled}
          onInput={(e) => onInput(e.currentTarget.value)}
        />
        <input
          id="widget-color"
          type="text"
          value={value}
          disabled={disabled}
          onInput={(e) => onInput(e.currentTarget.value)}
        />
      </div>
      {error && (
        <small class="issue" role="alert">
          {error}
        </small>
      )}
    </div>
  );
}

/** What happens while nobody is available. */
function Absence({ field }: { field: FieldProps }) {
  return (
    <>
      <h2>When nobody answers</h2>
      <TextField
        label="Opening hours"
        placeholder="Mon-Fri 09:00-17:00, Sat 10:00-14:00"
        hint="In the agent's time zone. The bot answers at any time. Empty: people are available at any time."
        {...field("hours")}
      />
      <TextArea
        label="Offline message"
        rows={2}
        placeholder={widgetDefaults.offlineMessage}
        {...field("offlineMessage")}
      />
      <SelectField label="Ask visitors for their email" options={emailPolicies} {...choice(field, "askEmail")} />
    </>
  );
}

function VisitorFiles({ field }: { field: FieldProps }) {
  return (
    <>
      <h2>Files from visitors</h2>
      <SelectField
        label="Visitors can send files"
        options={[
          ["true", "Yes"],
          ["false", "No"],
        ]}
        {...choice(field, "files")}
      />
      {field("files").value === "true" && (
        <>
          <div class="widget-pair">
            <TextField label="Files per message" type="number" {...field("maxFiles")} />
            <TextField label="Size of a file in MB" type="number" hint="At most 20." {...field("maxFileSize")} />
          </div>
          <TextField
            label="Types of files"
            placeholder="pdf png jpg"
            hint="Extensions of file names. Empty: common types of images, recordings, documents, tables and archives."
            {...field("fileTypes")}
          />
        </>
      )}
    </>
  );
}

function LimitsAndUsers({ field, isNew }: { field: FieldProps; isNew: boolean }) {
  return (
    <details>
      <summary>Limits and signed-in users</summary>
      <div class="stack">
        <div class="widget-pair">
          <TextField label="Messages per minute and visitor" type="number" {...field("messagesPerMinute")} />
          <TextField
            label="Messages per day, all visitors"
            type="number"
            hint="Limits what the language model can cost."
            {...field("messagesPerDay")}
          />
        </div>
        <TextField
          label="Secret"
          type="password"
          placeholder={isNew ? "Empty: one is generated" : "Saved; enter a new one to replace it"}
          hint="Your server signs user IDs with it, so that signed-in users are recognized here."
          {...field("secret")}
        />
      </div>
    </details>
  );
}

/** Shows a generated secret once. */
function Secret({ secret, close }: { secret: string; close: () => void }) {
  return (
    <Dialog title="The widget is ready" close={close}>
      <div class="stack">
        <p>If visitors sign in on your site, your server signs their IDs with this secret. It's shown only once.</p>
        <p class="row nowrap">
          <code class="grow">{secret}</code>
          <CopyButton text={secret} />
        </p>
        <div class="row end">
          <Button kind="primary" onClick={close}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
