// Browser sessions: the list, and one to steer, watch and hand over.
import { get, post, remove } from "./api.js";
import { ask, dialog } from "./dialog.js";
import { badge, button, copyable, crumb, follower, h, pager, table, tell, when } from "./dom.js";
import { form } from "./form.js";

export async function sessions(page, context) {
  const [id] = context.rest;
  return id ? session(page, context, id) : list(page, context);
}

const over = (s) => ["closed", "error"].includes(s.status);

async function list(page, { at, to, may, signal }) {
  const shown = h("div");
  let offset = 0;
  const load = async () => {
    const found = await get(at("browser"), { limit: 25, offset }, signal);
    shown.replaceChildren(table([
      ["Opened", (s) => h("a", { href: to("browser", s.id) }, when(s.created_at))], ["Status", (s) => [badge(s.status), s.error && h("small", { class: "wrong" }, s.error)]],
      ["Size", (s) => `${s.viewport.width} × ${s.viewport.height}`], ["Last used", (s) => when(s.last_activity)],
      ["", (s) => may && !over(s) && close(at, s, load), "actions"],
    ], found.sessions, "No browser is open. Open a session, and go to an address with it."), h("div", { class: "row" },
      found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "", button("Refresh", load, { class: "quiet" })));
  };
  page.append(h("h1", { tabindex: -1 }, "Browser"), h("div", { class: "row" }, h("span", { class: "grow" }),
    may && h("button", { type: "button", class: "main", click: () => open(at, to) }, "Open a session")), shown);
  await load();
}

const close = (at, s, done) => ask("Close", "Close this session?",
  s.persist ? "Its tabs are closed; its cookies are kept for the next one." : "Its tabs are closed, and its cookies are forgotten.",
  async () => { await remove(at("browser"), { id: s.id }); await done(); });

function open(at, to) {
  dialog("Open a session", (shut) => form([
    { name: "url", label: "Address", placeholder: "example.com", hint: "Where to go at first." },
    { name: "viewport.width", label: "Width", type: "number", min: 100, max: 4096, value: 1280 },
    { name: "viewport.height", label: "Height", type: "number", min: 100, max: 4096, value: 720 },
    { name: "locale", label: "Language", placeholder: "en-GB" }, { name: "timezone", label: "Time zone", placeholder: "Europe/Berlin" },
    { name: "persist", label: "Keep cookies for the next such session", type: "checkbox" },
  ], { submit: "Open", cancel: shut, wide: true, run: async (v) => {
    const made = await post(at("browser"), { viewport: { width: Number(v["viewport.width"]), height: Number(v["viewport.height"]) }, locale: v.locale,
      timezone: v.timezone, persist: v.persist });
    shut();
    if (v.url.trim()) await post(at("browser", made.id, "execute"), { action: "navigate", url: address(v.url) }).catch(tell);
    location.hash = to("browser", made.id);
  } }));
}

/** What people type into an address bar, as an address. */
const address = (typed) => {
  const text = typed.trim();
  const whole = /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[^/]*:\d+(\/|$)/.test(text); // and no localhost:8080
  return whole ? text : ["https:", "", text].join("/");
};

async function session(page, { at, to, may, signal }, id) {
  const head = h("div");
  const tabs = h("div");
  const shot = h("div", { class: "shot" });
  const handed = h("div", { class: "handed" });
  let now;

  const load = async () => {
    now = await get(at("browser", id), {}, signal);
    const view = over(now) ? null : await get(at("browser", id, "live-view"), {}, signal);
    head.replaceChildren(h("h1", { tabindex: -1 }, "Session ", badge(now.status)), h("div", { class: "row" },
      view && h("a", { class: "button main", href: view.url, target: "_blank", rel: "noopener noreferrer" }, may ? "Live view" : "Watch"),
      view && may && h("button", { type: "button", click: () => handOver(at, id, hand, load) }, "Hand over"),
      view && may && close(at, now, () => { location.hash = to("browser"); }), h("button", { type: "button", class: "quiet", click: () => refresh().catch(tell) }, "Refresh")),
    now.error ? h("p", { class: "wrong" }, now.error) : "",
    h("p", { class: "hint" }, `${now.viewport.width} × ${now.viewport.height}, opened `, when(now.created_at), over(now) ? [", closed ", when(now.closed_at)] : ""));
    bar.hidden = over(now) || !may;
    tabs.replaceChildren(...(now.tabs.length ? [h("h2", {}, "Tabs"), table([
      ["Title", (t) => [h("bdi", {}, t.title || "Untitled"), " ", t.active && badge("active")]], ["Address", (t) => h("bdi", {}, t.url)],
    ], now.tabs, "")] : []));
    if (over(now)) shot.replaceChildren();
  };
  const hand = takeover(at, id, handed, () => refresh(), signal);
  const act = async (action) => {
    await post(at("browser", id, "execute"), action, signal);
    await refresh();
  };
  const refresh = async () => {
    await load();
    await look();
  };
  const look = async () => {
    if (over(now) || !may || now.status === "takeover") return;
    const { result } = await post(at("browser", id, "execute"), { action: "screenshot", format: "jpeg" }, signal);
    if (result.image?.startsWith("data:image/")) shot.replaceChildren(h("img", { src: result.image, alt: "What the active tab shows" }));
  };
  const url = h("input", { type: "text", inputmode: "url", "aria-label": "Address", placeholder: "example.com", autocomplete: "off", spellcheck: "false", required: true,
    class: "grow" });
  const bar = h("form", { class: "row bar", submit: (event) => { event.preventDefault(); act({ action: "navigate", url: address(url.value) }).catch(tell); } },
    url, h("button", { class: "main" }, "Go"), button("Back", () => act({ action: "back" })), button("Reload", () => act({ action: "reload" })));
  page.append(crumb(to("browser"), "All sessions"), head, handed, bar, shot, tabs);
  await load();
  if (!over(now) && may) openTakeover(at, id, signal).then((t) => { if (t) hand(t); }).catch(() => {});
  look().catch(() => {}); // the picture may come later, or not
}

function handOver(at, id, shown, done) {
  dialog("Hand over to a person", (shut) => [
    h("p", {}, "Whoever opens the link controls the session until they give it back or the time is over. Meanwhile scripted actions rest."),
    form([{ name: "reason", label: "What the person is to do", type: "textarea", rows: 2, placeholder: "Please sign in." },
      { name: "timeout", label: "For seconds", type: "number", min: 1, max: 3600, value: 300 }], { submit: "Make a link", cancel: shut, run: async (v) => {
      const made = await post(at("browser", id, "takeover"), { reason: v.reason, timeout: Number(v.timeout) });
      shut();
      shown(made);
      await done();
    } })]);
}

/** The takeover that somebody asked for before and that is not over. */
async function openTakeover(at, id, signal) {
  const query = "SELECT id FROM takeovers WHERE session_id = ? AND status IN ('pending', 'active')";
  const { rows: [row] } = await post(at("sql", "execute"), { query, params: [id] }, signal);
  return row && get(at("browser", id, "takeover", row[0]), {}, signal);
}

/** Shows the takeover that it is given, with its link, and follows it until it is over. */
function takeover(at, id, handed, done, signal) {
  let t;
  const open = () => ["pending", "active"].includes(t.status);
  const look = async () => {
    const was = t.status;
    t = await get(at("browser", id, "takeover", t.takeover_id), {}, signal);
    follow(open());
    if (t.status === was) return;
    draw();
    await done();
  };
  const follow = follower(look, signal);
  const draw = () => handed.replaceChildren(h("div", { class: "card" },
    h("div", { class: "row" }, h("strong", {}, "Handed over"), badge(t.status), t.reason && h("span", { class: "text" }, h("bdi", {}, t.reason))),
    open() ? [copyable(t.takeover_url), h("p", { class: "hint" }, "Ends ", when(t.expires_at), " at the latest.")] : "",
    h("div", { class: "row" }, open() && h("a", { class: "button", href: t.takeover_url, target: "_blank", rel: "noopener noreferrer" }, "Open it here"),
      open() && button("Call it off", async () => { await remove(at("browser", id, "takeover", t.takeover_id)); await look(); }, { class: "danger" }),
      !open() && h("button", { type: "button", click: () => handed.replaceChildren() }, "Done"))));
  return (made) => { t = made; draw(); follow(open()); };
}
