// The dialog that opens a browser session.
import { ApiError, post, session } from "../../data";
import { FormDialog, SelectField, Switch, TextField, showToast, type FormState } from "../../ui";
import { at, loadError, toAddress, type Session } from "./data";

const initialValues = {
  url: "",
  size: "1280x720",
  "viewport.width": "1280",
  "viewport.height": "720",
  locale: "",
  timezone: "",
  user_agent: "",
  dialogs: "accept",
  persist: false,
  window: false,
  cdp: false,
  "proxy.server": "",
  "proxy.username": "",
  "proxy.password": "",
};

type Values = typeof initialValues;

const customSize = "own";
const sizes: [string, string][] = [
  ["1280x720", "Laptop, 1280 × 720"],
  ["1920x1080", "Desktop, 1920 × 1080"],
  ["820x1180", "Tablet, 820 × 1180"],
  ["390x844", "Phone, 390 × 844"],
  [customSize, "Another size"],
];

/** The body of the request for the values of the form. */
function sessionOf(values: Values) {
  const [width, height] =
    values.size === customSize ? [values["viewport.width"], values["viewport.height"]] : values.size.split("x");
  const server = values["proxy.server"].trim();
  return {
    viewport: { width: Number(width), height: Number(height) },
    locale: values.locale.trim(),
    timezone: values.timezone.trim(),
    user_agent: values.user_agent.trim(),
    dialogs: values.dialogs,
    persist: values.persist,
    headless: !values.window,
    cdp: values.cdp,
    ...(server && { proxy: { server, username: values["proxy.username"], password: values["proxy.password"] } }),
  };
}

type Props = {
  close: () => void;
  opened: (session: Session) => void;
  /** Is called with the service's message when Chromium is not installed. */
  missing: (text: string) => void;
};

/** The dialog that opens a session. */
export function OpenSessionForm({ close, opened, missing }: Props) {
  const run = async (values: Values) => {
    let created: Session;
    try {
      created = await post(at(), sessionOf(values));
    } catch (error) {
      const notInstalled = error instanceof ApiError && error.message.includes("satchel browser install");
      if (!notInstalled) throw error;
      missing(error.message.replace(/;.*/, "."));
      close();
      return;
    }
    const url = values.url.trim();
    if (url)
      await post(at(created.id, "execute"), { action: "navigate", url: toAddress(url) }).catch((error) =>
        showToast(loadError(error)),
      );
    opened(created);
  };
  return (
    <FormDialog title="Open session" action="Open" close={close} run={run} initial={initialValues}>
      {(form) => (
        <>
          <TextField
            label="Address"
            placeholder="example.com"
            autoFocus
            hint="The first page to open."
            {...form.text("url")}
          />
          <div class="row">
            <SelectField label="Size" options={sizes} {...form.choice("size")} />
            {form.values.size === customSize && (
              <>
                <TextField label="Width" type="number" {...form.text("viewport.width")} />
                <TextField label="Height" type="number" {...form.text("viewport.height")} />
              </>
            )}
          </div>
          <Switch
            label="Keep cookies and logins"
            hint="for the next session opened with this option"
            checked={form.values.persist}
            onChange={(on) => form.set("persist", on)}
          />
          <details>
            <summary>More options</summary>
            <div class="stack">
              <MoreOptions form={form} />
            </div>
          </details>
        </>
      )}
    </FormDialog>
  );
}

type FormProps = { form: FormState<Values> };

function MoreOptions({ form }: FormProps) {
  return (
    <>
      <div class="row">
        <TextField label="Language" placeholder="en-GB" {...form.text("locale")} />
        <TextField label="Time zone" placeholder="Europe/Berlin" {...form.text("timezone")} />
      </div>
      <TextField label="User agent" placeholder="Chromium's own" {...form.text("user_agent")} />
      <SelectField
        label="Page dialogs"
        hint="How alert, confirm and prompt are answered."
        options={[
          ["accept", "Accepted"],
          ["dismiss", "Dismissed"],
        ]}
        {...form.choice("dialogs")}
      />
      <ScriptAccess form={form} />
      <Switch
        label="With a window"
        hint="some sites refuse browsers without one"
        checked={form.values.window}
        onChange={(on) => form.set("window", on)}
      />
      <TextField label="Proxy" placeholder="http://proxy.example.com:3128" {...form.text("proxy.server")} />
      {form.values["proxy.server"] && (
        <div class="row">
          <TextField label="Proxy user" {...form.text("proxy.username")} />
          <TextField label="Proxy password" type="password" {...form.text("proxy.password")} />
        </div>
      )}
    </>
  );
}

/** Whether scripts may control the session by the DevTools protocol. */
function ScriptAccess({ form }: FormProps) {
  const allowed = (session.value?.limits.cdp_sessions ?? 0) > 0;
  const issue = form.issue("cdp");
  return (
    <>
      <Switch
        label="For Playwright or Puppeteer"
        hint={
          allowed
            ? "scripts can use it too"
            : "not allowed on this server: its operator starts it with --allow-cdp 2, or sets SATCHEL_ALLOW_CDP"
        }
        disabled={!allowed}
        checked={form.values.cdp}
        onChange={(on) => form.set("cdp", on)}
      />
      {issue && (
        <p class="issue" role="alert">
          Scripts: {issue}
        </p>
      )}
    </>
  );
}
