// Gateways: the list, one to make by its platform, and one to check and change.
import { get, post, put, remove } from "./api.js";
import { ask, dialog, showOnce } from "./dialog.js";
import { badge, button, copyable, crumb, h, pager, table, tell, when } from "./dom.js";
import { form, object } from "./form.js";

const secret = (name, label, more) => ({ name, label, type: "password", ...more });
const text = (name, label, more) => ({ name, label, ...more });
const twilio = [text("accountSid", "Account SID", { required: true }), secret("authToken", "Auth token", { required: true }),
  text("phoneNumber", "Phone number", { required: true, hint: "Yours at Twilio, such as +15550001111." })];
const from = [text("fromAddress", "From: address", { required: true, type: "email" }), text("fromName", "From: name")];
const base = text("apiBaseUrl", "Address of the platform's API", { hint: "Only where it is not the platform's own." });

/** What each platform is called, what type its gateways are of, and the config that they need. */
const platforms = {
  telegram: ["Telegram", "chatbot_a", [secret("botToken", "Bot token", { required: true, hint: "From @BotFather." }),
    secret("webhookSecret", "Webhook secret", { hint: "One is made without it." }), base]],
  slack: ["Slack", "team_chat", [secret("botToken", "Bot user OAuth token", { required: true }), secret("signingSecret", "Signing secret", { required: true }), base]],
  discord: ["Discord", "community_chat", [secret("botToken", "Bot token", { required: true }), text("applicationId", "Application id", { required: true }),
    text("publicKey", "Public key", { required: true }), base]],
  twilio: ["SMS by Twilio", "sms", [...twilio, base]],
  whatsapp: ["WhatsApp by Twilio", "chatbot_b", [...twilio, base]],
  smtp: ["Email by SMTP", "email", [text("smtpHost", "Server", { required: true, placeholder: "mail.example.com" }),
    text("smtpPort", "Port", { type: "number", min: 1, max: 65535, placeholder: "587" }),
    text("smtpTls", "Encryption", { type: "select", options: ["starttls", "tls", "none"] }), text("smtpUsername", "User name"), secret("smtpPassword", "Password"), ...from]],
  resend: ["Email by Resend", "email", [secret("apiKey", "API key", { required: true }), ...from,
    secret("webhookSecret", "Webhook signing secret", { hint: "For emails that arrive." }), base]],
  webhook: ["Custom webhook", "webhook", [text("url", "Address", { type: "url", required: true, hint: "Messages of the agent are posted there." }),
    secret("secret", "Secret", { hint: "One is made without it." }),
    text("headers", "Headers", { type: "textarea", code: true, rows: 2, hint: "A JSON object; they go along with each message." })]],
};

/** The platform behind a gateway. Only email has two; which one it is, its configured fields tell. */
const platformOf = (g) => platforms[g.type === "email" ? (g.configured_fields.some((f) => f.startsWith("smtp")) ? "smtp" : "resend")
  : Object.keys(platforms).find((name) => platforms[name][1] === g.type)];

export async function gateways(page, context) {
  const [id] = context.rest;
  return id ? gateway(page, context, id) : list(page, context);
}

async function list(page, { at, to, may, signal }) {
  const shown = h("div");
  let offset = 0;
  const load = async () => {
    const found = await get(at("gateways"), { limit: 25, offset }, signal);
    shown.replaceChildren(table([
      ["Name", (g) => h("a", { href: to("gateways", g.id) }, h("bdi", {}, g.name))], ["Platform", (g) => platformOf(g)[0]],
      ["Status", (g) => [badge(g.status), g.is_default && badge("default"), g.status === "error" && h("small", { class: "wrong" }, g.last_error)]],
      ["Events today", (g) => g.events_today.toLocaleString(), "number"], ["Last event", (g) => when(g.last_event_at)],
    ], found.gateways, "No gateways yet. Connect a platform, and people can write to the agent there."),
    found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  page.append(h("h1", { tabindex: -1 }, "Channels"), h("div", { class: "row" }, h("span", { class: "grow" }),
    may && h("button", { type: "button", class: "main", click: () => choose(at, to) }, "Connect a platform")), shown);
  await load();
}

function choose(at, to) {
  const box = dialog("Connect a platform", (close) => [
    h("ul", { class: "cards small" }, Object.entries(platforms).map(([name, [title]]) => h("li", {},
      h("button", { type: "button", click: () => { box.close(); create(name, at, to); } }, title)))),
    h("div", { class: "row" }, h("button", { type: "button", click: close }, "Cancel"))]);
}

const inConfig = (fields, more = () => ({})) => fields.map((f) => ({ ...f, name: `config.${f.name}`, ...more(f) }));

/** The values of a form as a config; what is empty is left out. */
function configOf(values) {
  const config = {};
  for (const [name, value] of Object.entries(values)) {
    const field = name.replace("config.", "");
    if (field === name || value === "") continue;
    config[field] = field === "smtpPort" ? Number(value) : field === "headers" ? object(value, name) : value;
  }
  return config;
}

function create(name, at, to) {
  const [title, , fields] = platforms[name];
  dialog(title, (close) => form([text("name", "Name", { required: true, value: title }), ...inConfig(fields)],
    { submit: "Connect", cancel: close, wide: true, run: async (values) => {
    const made = await post(at("gateways"), { type: name, name: values.name, config: configOf(values) });
    close();
    location.hash = to("gateways", made.id);
    showOnce("Webhook secret", "It signs and checks what goes over the gateway's webhook, and is shown only now.", made.webhook_secret);
  } })).classList.add("large");
}

async function gateway(page, { at, to, may, signal }, id) {
  const shown = h("div");
  const outcome = h("div", { class: "outcome", "aria-live": "polite" });
  const load = async () => {
    const g = await get(at("gateways", id), {}, signal);
    const [title, , fields] = platformOf(g);
    shown.replaceChildren(h("h1", { tabindex: -1 }, h("bdi", {}, g.name), " ", badge(g.status), " ", g.is_default ? badge("default") : ""),
      may ? h("div", { class: "row" },
        button("Verify", async () => { outcome.replaceChildren(verified(await post(at("gateways", id, "verify")))); await load(); }, { class: "main" }),
        g.configured_fields.some((f) => f.startsWith("smtp")) ? "" : h("button", { type: "button", click: () => register(at, id, outcome, load) }, "Register webhook"),
        !g.is_default && button("Make default", async () => { await put(at("gateways", id), { is_default: true }); await load(); }),
        ask("Delete", `Delete ${g.name}?`, "The gateway is deleted with its credentials; its conversations stay.",
          async () => { await remove(at("gateways", id)); location.hash = to("gateways"); })) : "",
      outcome,
      g.last_error ? h("p", { class: "wrong" }, "Last error, ", when(g.last_error_at), ": ", h("bdi", {}, g.last_error)) : "",
      h("dl", { class: "about" }, [["Platform", title], ["Events", `${g.event_count.toLocaleString()}, ${g.events_today.toLocaleString()} today`],
        ["Last event", when(g.last_event_at)],
        ["Set", g.configured_fields.map((f) => badge(f))]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("h2", {}, "Webhook"), copyable(new URL(g.webhook_url, document.baseURI).href), h("p", { class: "hint" }, "The platform posts what happens there to this address."),
      h("h2", {}, "Name and credentials"), h("p", { class: "hint" }, "Credentials are sealed and never shown again. After a change the gateway is to be verified."),
      form([text("name", "Name", { required: true, value: g.name }), ...inConfig(fields, (f) => {
        const set = g.configured_fields.includes(f.name);
        return { required: f.required && !set, options: f.options && ["", ...f.options], hint: set ? "Set. Leave it empty to keep it." : f.hint };
      })], { submit: "Save", wide: true, locked: !may, run: async (values) => {
        const config = configOf(values);
        await put(at("gateways", id), Object.keys(config).length ? { name: values.name, config } : { name: values.name });
        tell("Saved.");
        outcome.replaceChildren();
        await load();
      } }));
  };
  page.append(crumb(to("gateways"), "All gateways"), shown);
  await load();
}

/** What the platform told when it was asked. */
function verified(answer) {
  if (!answer.success) return h("div", { class: "card bad" }, h("p", {}, "It was not verified."), h("p", {}, h("bdi", {}, answer.error)));
  return h("div", { class: "card" }, h("p", {}, "The platform knows it:"), h("dl", { class: "about" },
    Object.entries(answer.info ?? {}).map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, typeof value === "object" ? JSON.stringify(value) : String(value)))])));
}

function register(at, id, outcome, done) {
  dialog("Register webhook", (close) => [h("p", {}, "The platform is told to post to this server. It must reach it: by a public address."),
    form([text("baseUrl", "Public address of this server", { type: "url", hint: "The one it was started with, without an address here." })],
      { submit: "Register", cancel: close, run: async (values) => {
      const answer = await post(at("gateways", id, "webhook", "register"), values.baseUrl ? values : {});
      close();
      outcome.replaceChildren(h("div", { class: answer.success ? "card" : "card bad" }, h("p", {}, answer.success ? "Registered." : answer.error),
        answer.webhookUrl && copyable(answer.webhookUrl), answer.instructions && h("p", { class: "text" }, answer.instructions)));
      await done();
    } })]);
}
