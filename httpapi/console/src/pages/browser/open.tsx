import { ApiError, post, session } from "../../data";
import { FormDialog, SelectField, Switch, TextField, tell } from "../../ui";
import { at, toAddress, type Session } from "./data";

const initial = {
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

const sizes: [string, string][] = [
  ["1280x720", "Laptop, 1280 × 720"],
  ["1920x1080", "Desktop, 1920 × 1080"],
  ["820x1180", "Tablet, 820 × 1180"],
  ["390x844", "Phone, 390 × 844"],
  ["own", "Another size"],
];

/** Asks how a session is to be, and opens it. */
export function OpenSessionForm({
  close,
  made,
  missing,
}: {
  close: () => void;
  made: (s: Session) => void;
  missing: (text: string) => void;
}) {
  const scripts = (session.value?.limits.cdp_sessions ?? 0) > 0;
  const run = async (v: typeof initial) => {
    const [width, height] = v.size === "own" ? [v["viewport.width"], v["viewport.height"]] : v.size.split("x");
    let s: Session;
    try {
      s = await post(at(), {
        viewport: { width: Number(width), height: Number(height) },
        locale: v.locale.trim(),
        timezone: v.timezone.trim(),
        user_agent: v.user_agent.trim(),
        dialogs: v.dialogs,
        persist: v.persist,
        headless: !v.window,
        cdp: v.cdp,
        ...(v["proxy.server"].trim() && {
          proxy: { server: v["proxy.server"].trim(), username: v["proxy.username"], password: v["proxy.password"] },
        }),
      });
    } catch (error) {
      if (error instanceof ApiError && /satchel browser install/.test(error.message)) {
        missing(error.message.replace(/;.*/, "."));
        close();
        return;
      }
      throw error;
    }
    if (v.url.trim()) await post(at(s.id, "execute"), { action: "navigate", url: toAddress(v.url) }).catch(tell);
    made(s);
  };
  return (
    <FormDialog title="Open session" action="Open" close={close} run={run} initial={initial}>
      {(f) => (
        <>
          <TextField
            label="Address"
            placeholder="example.com"
            autoFocus
            hint="The first page to open."
            {...f.text("url")}
          />
          <div class="row">
            <SelectField label="Size" options={sizes} {...f.choice("size")} />
            {f.values.size === "own" && (
              <>
                <TextField label="Width" type="number" {...f.text("viewport.width")} />
                <TextField label="Height" type="number" {...f.text("viewport.height")} />
              </>
            )}
          </div>
          <Switch
            label="Keep cookies and logins"
            hint="for the next session that is opened so"
            checked={f.values.persist}
            onChange={(on) => f.set("persist", on)}
          />
          <details>
            <summary>More options</summary>
            <div class="stack">
              <div class="row">
                <TextField label="Language" placeholder="en-GB" {...f.text("locale")} />
                <TextField label="Time zone" placeholder="Europe/Berlin" {...f.text("timezone")} />
              </div>
              <TextField label="User agent" placeholder="Chromium's own" {...f.text("user_agent")} />
              <SelectField
                label="Page dialogs"
                hint="How alert, confirm and prompt are answered."
                options={[
                  ["accept", "Accepted"],
                  ["dismiss", "Dismissed"],
                ]}
                {...f.choice("dialogs")}
              />
              <Switch
                label="For Playwright or Puppeteer"
                hint={
                  scripts
                    ? "scripts can use it too"
                    : "not allowed on this server: its operator starts it with --allow-cdp 2, or sets SATCHEL_ALLOW_CDP"
                }
                disabled={!scripts}
                checked={f.values.cdp}
                onChange={(on) => f.set("cdp", on)}
              />
              {f.issue("cdp") && (
                <p class="issue" role="alert">
                  Scripts: {f.issue("cdp")}
                </p>
              )}
              <Switch
                label="With a window"
                hint="some sites refuse browsers without one"
                checked={f.values.window}
                onChange={(on) => f.set("window", on)}
              />
              <TextField label="Proxy" placeholder="http://proxy.example.com:3128" {...f.text("proxy.server")} />
              {f.values["proxy.server"] && (
                <div class="row">
                  <TextField label="Proxy user" {...f.text("proxy.username")} />
                  <TextField label="Proxy password" type="password" {...f.text("proxy.password")} />
                </div>
              )}
            </div>
          </details>
        </>
      )}
    </FormDialog>
  );
}
