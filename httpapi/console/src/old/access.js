// Access: who may use an agent, and the keys by which programs do.
import { strangersText } from "../data";
import { get, key, path, post, remove } from "./api.js";
import { ask, dialog, showOnce } from "./dialog.js";
import { badge, h, pager, table, when } from "./dom.js";
import { form } from "./form.js";

const roles = [["viewer", "viewer: reads"], ["admin", "admin: works with it"], ["owner", "owner: also gives others roles, and deletes it"]];

export async function keys(page, { signal, refresh }) {
  const shown = h("div");
  let offset = 0;
  const { open, default_role: role } = await get("version", {}, signal);
  const { meta } = await get("keys", { limit: 1 }, signal);
  const first = open && !meta.total;
  const without = open && !first ? "" : strangersText(role);
  const load = async () => {
    const found = await get("keys", { limit: 25, offset }, signal);
    shown.replaceChildren(table([
      ["Name", (k) => h("bdi", {}, k.name)], ["Key", (k) => h("code", {}, `${k.prefix}…`)], ["Role", (k) => badge(k.role)],
      ["Agents", (k) => (k.agents.includes("*") ? "all" : k.agents.join(", "))],
      ["Made", (k) => when(k.created_at)], ["Ends", (k) => when(k.expires_at)],
      ["", (k) => ask("Revoke", `Revoke ${k.name}?`, "Whoever uses this key, or a key that was made with it, is refused from now on. This cannot be undone.",
        async () => { await remove(path("keys", k.id)); await load(); }, k.name), "actions"],
    ], found.keys, first ? "No keys yet." : "There are no keys that you may see."), found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  page.append(h("p", { class: "crumb" }, h("a", { href: "#/" }, "All agents")), h("h1", { tabindex: -1 }, "API keys"),
    first ? h("div", { class: "card warn" }, h("p", {}, h("strong", {}, "This server is open: everyone who reaches it acts as owner.")), h("p", {}, closing), h("p", {}, without)) : h("p", { class: "hint" }, without),
    h("div", { class: "row" }, h("span", { class: "grow" }), h("button", { type: "button", class: "main", click: () => create(first, without, refresh) },
      first ? "Make the first key" : "New key")), shown);
  await load();
}

const closing = "The first key closes it at once and for good: from then on every program needs a key or an identity, this console too, "
  + "and revoking all keys does not open it again. (A server that was started with --no-auth stays open.)";

async function create(first, without, refresh) {
  const { agents } = await get("agents", { limit: 200 });
  dialog(first ? "Make the first key" : "New key", (close) => [first ? h("div", { class: "card warn" }, h("p", {}, closing), h("p", {}, without)) : h("p", { class: "hint" }, without), form([
    { name: "name", label: "Name", required: true, value: first ? "console" : "", hint: "What the key is for." },
    { name: "role", label: "Role", type: "select", options: roles, value: first ? "owner" : "viewer",
      hint: first ? "A key of an owner for all agents can make other keys; without one, only the server's operator can." : undefined },
    { name: "agents", label: "Agents", type: "select", options: [["*", "all agents"], ...agents.map((a) => [a.id, a.name])] },
    { name: "expires_at", label: "Ends", type: "datetime-local", hint: "Never, without a time." },
    ...(first ? [{ name: "sure", label: "I know that this closes the server for good", type: "checkbox", required: true }] : []),
  ], { submit: first ? "Close the server and make the key" : "Make the key", cancel: close, run: async (v) => {
    const made = await post("keys", { name: v.name, role: v.role, agents: [v.agents], expires_at: v.expires_at ? new Date(v.expires_at).toISOString() : undefined });
    if (first) key.set(made.key); // else this tab would be shut out
    close();
    showOnce("The key", `It is shown only now. Keep it where secrets are kept.${first ? " This tab uses it until the tab is closed." : ""}`, made.key)
      .addEventListener("close", refresh);
  } })].flat());
}
