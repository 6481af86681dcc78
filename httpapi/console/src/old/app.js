// The frame around the views: addresses, the agent's menu, the API key.
import { get, key, path } from "./api.js";
import { dialog } from "./dialog.js";
import { badge, failure, h, tell } from "./dom.js";
import { form } from "./form.js";
import { agentList, overview } from "./agents.js";
import { knowledge } from "./knowledge.js";
import { contacts } from "./contacts.js";
import { conversations } from "./conversations.js";
import { workflows } from "./workflows.js";
import { schedules } from "./schedules.js";
import { calendar } from "./calendar.js";
import { gateways } from "./gateways.js";
import { webhooks } from "./webhooks.js";
import { sessions } from "./sessions.js";
import { tools } from "./tools.js";
import { sql } from "./sql.js";
import { settings } from "./settings.js";
import { keys, people, strangers } from "./access.js";
import { logs } from "./logs.js";

const sections = {
  overview: ["Overview", overview], knowledge: ["Knowledge", knowledge], contacts: ["Contacts", contacts], conversations: ["Conversations", conversations],
  workflows: ["Workflows", workflows], schedules: ["Schedules", schedules], calendar: ["Calendar", calendar], gateways: ["Gateways", gateways],
  webhooks: ["Webhooks", webhooks], browser: ["Browser", sessions], tools: ["Tools", tools], sql: ["SQL", sql], settings: ["Settings", settings],
  access: ["Access", people], logs: ["Logs", logs],
};

const main = document.getElementById("main");
const side = document.getElementById("side");
let leaving = new AbortController();

/** Where the address points: #/, #/keys or #/agents/ID/SECTION/REST. */
function place() {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  try {
    const [kind, id, section = "overview", ...rest] = parts.map(decodeURIComponent);
    if (kind === "keys") return { page: "keys" };
    return id ? { id, section: Object.hasOwn(sections, section) ? section : "overview", rest } : {};
  } catch {
    return {};
  }
}

/** Shows what the address points to. Views write into an element of their own,
 * so one that is late writes where nobody looks. */
async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { id, section, rest, page: own } = place();
  const page = h("div", { class: "page" });
  let agent;
  try {
    if (!id) {
      side.hidden = true;
      document.title = own === "keys" ? "API keys · Satchel" : "Satchel";
      await (own === "keys" ? keys(page, { signal, refresh }) : agentList(page));
    } else {
      agent = await get(path("agents", id), {}, signal);
      const [title, view] = sections[section];
      document.title = `${title} · ${agent.name} · Satchel`;
      menu(agent, section);
      await view(page, { agent, rest, signal, at: (...more) => path("agents", agent.id, ...more),
        to: (...more) => `#/${path("agents", agent.id, ...more)}`, may: agent.role !== "viewer", again: show });
    }
  } catch (error) {
    if (signal.aborted) return;
    side.hidden = !agent;
    page.replaceChildren(failure(error, show), h("p", {}, [401, 403].includes(error.status) && "If this server asks for an API key, give one with the button above. ",
      id && !agent && h("a", { href: "#/" }, "All agents")));
  }
  if (!signal.aborted) main.replaceChildren(page);
}

/** What has to do with access is asked for again. */
async function refresh() {
  refreshKey();
  await Promise.all([mode(), show()]);
}

function menu(agent, current) {
  side.hidden = false;
  side.replaceChildren(h("a", { href: "#/", class: "up" }, "All agents"),
    h("p", { class: "name" }, agent.name, " ", agent.status !== "active" && badge(agent.status)),
    h("ul", {}, Object.entries(sections).map(([name, [title]]) => h("li", {},
      h("a", { href: `#/${path("agents", agent.id, name)}`, "aria-current": name === current ? "page" : undefined }, title)))));
  side.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

async function mode() {
  const version = await get("version");
  const shown = document.getElementById("mode");
  shown.hidden = !version.open;
  shown.textContent = "open";
  shown.title = "There is no access control: everyone who reaches this server acts as owner.";
  document.querySelector(".brand").title = `Satchel ${version.version}`;
}

async function askKey() {
  const { open, default_role: role } = await get("version");
  dialog("API key", (close) => [
    h("p", {}, "Sent with every request of this tab, and forgotten when the tab is closed."),
    h("p", { class: "hint" }, open ? "This server is open: no key is needed." : strangers(role)),
    form([{ name: "key", label: "Key", type: "password", value: key.get(), placeholder: "satchel_…" }], {
      submit: "Use it", cancel: close,
      run: async (values) => { key.set(values.key.trim()); close(); await refresh(); },
    })]);
}

function refreshKey() {
  document.getElementById("key").textContent = key.get() ? "API key ✓" : "API key";
}

document.getElementById("key").addEventListener("click", () => askKey().catch(tell));
addEventListener("hashchange", () => show().then(() => main.querySelector("h1")?.focus()));
refreshKey();
mode().catch(tell);
show();
