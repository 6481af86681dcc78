// The form of a website's widget, for whichever page connects channels.
import { useState } from "preact/hooks";

import { ApiError, mayEdit, path, post, put, type API } from "../../data";
import { Button, CopyButton, Dialog, openDialog, SelectField, tell, TextArea, TextField, useForm } from "../../ui";

/** What the service uses where the config has nothing. */
export const usual = {
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

const asks: [string, string][] = [
  ["offline", "When nobody can answer"],
  ["always", "Before the first message"],
  ["never", "Never"],
];

const texts = ["title", "greeting", "color", "askEmail", "hours", "offlineMessage"] as const;
const numbers = ["messagesPerMinute", "messagesPerDay", "maxFiles", "maxFileSize"] as const;

/** The values of the form, all of them as text. */
export type WidgetValues = Record<
  (typeof texts)[number] | (typeof numbers)[number] | "name" | "allowedOrigins" | "files" | "fileTypes" | "secret",
  string
>;

/** The config that the values of the form stand for. */
function configOf(values: WidgetValues) {
  const config: Record<string, unknown> = { allowedOrigins: values.allowedOrigins.split(/[\s,]+/).filter(Boolean) };
  for (const name of texts) config[name] = values[name] === "" ? null : values[name];
  for (const name of numbers) config[name] = values[name] === "" ? null : Number(values[name]);
  config.files = values.files === "true";
  config.fileTypes = values.fileTypes.split(/[\s,]+/).filter(Boolean);
  if (values.secret) config.secret = values.secret;
  return config;
}

type Props = {
  /** The agent. */
  id: string;
  /** The gateway to change; without one a new one is made. */
  gateway?: API.Gateway;
  /** What GET …/widget answers of it. */
  options?: API.WidgetDetails;
  done: (gateway: string) => Promise<unknown> | unknown;
  /** Hears of each change, for a preview. */
  onLook?: (values: WidgetValues) => void;
};

/** Makes or changes a widget, and has it verified at once. */
export function WidgetForm({ id, gateway, options, done, onLook }: Props) {
  const given = { ...usual, ...options?.config };
  const form = useForm<WidgetValues>({
    title: given.title,
    greeting: given.greeting,
    color: given.color,
    askEmail: given.askEmail,
    hours: given.hours,
    offlineMessage: given.offlineMessage,
    name: gateway?.name ?? "Website",
    allowedOrigins: (options?.config.allowedOrigins ?? []).join("\n"),
    messagesPerMinute: String(given.messagesPerMinute),
    messagesPerDay: String(given.messagesPerDay),
    files: String(given.files),
    fileTypes: (given.fileTypes ?? []).join(" "),
    maxFiles: String(given.maxFiles),
    maxFileSize: String(given.maxFileSize),
    secret: "",
  });
  const [busy, setBusy] = useState(false);
  const locked = !mayEdit.value;
  const set = (name: keyof WidgetValues, value: string) => {
    form.set(name, value);
    onLook?.({ ...form.values, [name]: value });
  };
  const text = (name: keyof WidgetValues) => ({
    ...form.text(name),
    disabled: locked,
    onInput: (v: string) => set(name, v),
  });
  const save = async () => {
    setBusy(true);
    form.setIssues({});
    const at = <const M extends string[]>(...more: M) => path("agents", id, "gateways", ...more);
    try {
      const body = { name: form.values.name, config: configOf(form.values) };
      const saved = gateway ? await put(at(gateway.id), body) : await post(at(), { type: "web", ...body });
      const verified = await post(at(saved.id, "verify"));
      if (!verified.success) throw new Error(verified.error);
      const secret = "webhook_secret" in saved ? String(saved.webhook_secret ?? "") : "";
      if (secret && !form.values.secret) openDialog((close) => <Secret secret={secret} close={close} />);
      else tell("Saved. Pages show it within a minute.");
      form.set("secret", "");
      await done(saved.id);
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
      else tell(error);
    }
    setBusy(false);
  };
  const issue = (name: string) => form.issues[`config.${name}`] ?? form.issues[name];
  return (
    <form
      class="card stack"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void save();
      }}
    >
      <TextField label="Name" required hint="Only you see this." {...text("name")} />
      <TextArea
        label="Websites"
        rows={2}
        placeholder="https://shop.example.com"
        hint="Sites that may show the widget, one per line. Without any, it isn't shown."
        {...text("allowedOrigins")}
        error={issue("allowedOrigins")}
      />
      <h2>How it looks</h2>
      <div class="widget-pair">
        <TextField label="Title" placeholder={usual.title} {...text("title")} error={issue("title")} />
        <div class={issue("color") ? "field wrong" : "field"}>
          <label for="widget-color">Color</label>
          <div class="widget-color">
            <input
              type="color"
              aria-label="Choose a color"
              value={/^#[0-9a-f]{6}$/i.test(form.values.color) ? form.values.color : usual.color}
              disabled={locked}
              onInput={(e) => set("color", e.currentTarget.value)}
            />
            <input
              id="widget-color"
              type="text"
              value={form.values.color}
              disabled={locked}
              onInput={(e) => set("color", e.currentTarget.value)}
            />
          </div>
          {issue("color") && (
            <small class="issue" role="alert">
              {issue("color")}
            </small>
          )}
        </div>
      </div>
      <TextArea
        label="Greeting"
        rows={2}
        placeholder={usual.greeting}
        {...text("greeting")}
        error={issue("greeting")}
      />
      <h2>When nobody answers</h2>
      <TextField
        label="Opening hours"
        placeholder="Mon-Fri 09:00-17:00, Sat 10:00-14:00"
        hint="In the agent's time zone. The bot answers at any time. Empty: people are available at any time."
        {...text("hours")}
        error={issue("hours")}
      />
      <TextArea
        label="Offline message"
        rows={2}
        placeholder={usual.offlineMessage}
        {...text("offlineMessage")}
        error={issue("offlineMessage")}
      />
      <SelectField
        label="Ask visitors for their email"
        options={asks}
        disabled={locked}
        value={form.values.askEmail}
        onChange={(v) => set("askEmail", v)}
      />
      <h2>Files from visitors</h2>
      <SelectField
        label="Visitors can send files"
        options={[
          ["true", "Yes"],
          ["false", "No"],
        ]}
        disabled={locked}
        value={form.values.files}
        onChange={(v) => set("files", v)}
      />
      {form.values.files === "true" && (
        <>
          <div class="widget-pair">
            <TextField label="Files per message" type="number" {...text("maxFiles")} error={issue("maxFiles")} />
            <TextField
              label="Size of a file in MB"
              type="number"
              hint="At most 20."
              {...text("maxFileSize")}
              error={issue("maxFileSize")}
            />
          </div>
          <TextField
            label="Types of files"
            placeholder="pdf png jpg"
            hint="Extensions of file names. Empty: the usual pictures, recordings, documents, tables and archives."
            {...text("fileTypes")}
            error={issue("fileTypes")}
          />
        </>
      )}
      <details>
        <summary>Limits and signed-in users</summary>
        <div class="stack">
          <div class="widget-pair">
            <TextField
              label="Messages per minute and visitor"
              type="number"
              {...text("messagesPerMinute")}
              error={issue("messagesPerMinute")}
            />
            <TextField
              label="Messages per day, all visitors"
              type="number"
              hint="Limits what the language model can cost."
              {...text("messagesPerDay")}
              error={issue("messagesPerDay")}
            />
          </div>
          <TextField
            label="Secret"
            type="password"
            placeholder={gateway ? "Saved; enter a new one to replace it" : "Empty: one is generated"}
            hint="Your server signs user IDs with it, so that signed-in users are recognized here."
            {...text("secret")}
            error={issue("secret")}
          />
        </div>
      </details>
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
