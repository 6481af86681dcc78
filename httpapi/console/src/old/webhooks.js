// Webhooks: who is told of events, and what became of each delivery.
import { get, post, put, remove } from "./api.js";
import { ask, dialog, showOnce } from "./dialog.js";
import { badge, button, crumb, follower, h, pager, refill, table, tell, when } from "./dom.js";
import { form } from "./form.js";

export async function webhooks(page, context) {
  const [id] = context.rest;
  return id ? webhook(page, context, id) : list(page, context);
}

async function list(page, context) {
  const { at, to, may, signal } = context;
  const shown = h("div");
  let offset = 0;
  const load = async () => {
    const found = await get(at("webhooks"), { limit: 25, offset }, signal);
    shown.replaceChildren(table([
      ["Address", (w) => h("a", { href: to("webhooks", w.id) }, w.url)], ["Events", (w) => w.events.join(", ")],
      ["Status", (w) => [badge(w.active ? "active" : "off"), w.failure_count > 0 && h("small", { class: "wrong" }, `${w.failure_count} failed in a row`)]],
      ["Last delivery", (w) => [when(w.last_delivery_at), w.last_status && h("small", {}, `status ${w.last_status}`)]],
    ], found.webhooks, "Nobody is told of events yet. Add an address, and events are posted there, signed."),
    found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  page.append(h("h1", { tabindex: -1 }, "Webhooks"), h("div", { class: "row" }, h("span", { class: "grow" }),
    may && h("button", { type: "button", class: "main", click: () => edit(null, at, (made) => {
      location.hash = to("webhooks", made.id);
      showOnce("Secret", "Deliveries are signed with it by Standard Webhooks. It is shown only now.", made.secret);
    }) }, "New webhook")), shown);
  await load();
}

function edit(now, at, done) {
  dialog(now ? "Webhook" : "New webhook", (close) => form([
    { name: "url", label: "Address", type: "url", value: now?.url, required: true },
    { name: "events", label: "Events", value: now?.events.join(", "), required: true, placeholder: "message.received, workflow.*",
      hint: "With commas between; * is all of them, workflow.* all of workflows." },
  ], { submit: now ? "Save" : "Add", cancel: close, run: async (v) => {
    const body = { url: v.url, events: v.events.split(",").map((e) => e.trim()).filter(Boolean) };
    const made = await (now ? put(at("webhooks", now.id), body) : post(at("webhooks"), body));
    close();
    await done(made);
  } }));
}

async function webhook(page, { at, to, may, signal }, id) {
  const head = h("div");
  const shown = h("div");
  const status = h("select", { "aria-label": "Status" }, [["", "every status"], ["pending", "pending"], ["delivered", "delivered"],
    ["failed", "failed"]].map(([v, t]) => h("option", { value: v }, t)));
  let offset = 0;
  const about = async () => {
    const w = await get(at("webhooks", id), {}, signal);
    head.replaceChildren(h("h1", { tabindex: -1 }, w.url, " ", badge(w.active ? "active" : "off")), may ? h("div", { class: "row" },
      button("Send a test", async () => {
        const d = await post(at("webhooks", id, "test"));
        tell(d.status === "delivered" ? `Delivered: the answer was ${d.response_status}.` : new Error(`It was not delivered: ${d.error}`));
        await Promise.all([about(), load()]);
      }, { class: "main" }),
      h("button", { type: "button", click: () => edit(w, at, about) }, "Edit"),
      button(w.active ? "Switch off" : "Switch on", async () => { await put(at("webhooks", id), { active: !w.active }); await about(); }),
      button("New secret", async () => { const r = await post(at("webhooks", id, "rotate")); showOnce("New secret",
        "The one before signs along for a day. This one is shown only now.", r.secret); }),
      ask("Delete", "Delete this webhook?", "Nothing is delivered to it any more; its deliveries are deleted.",
        async () => { await remove(at("webhooks", id)); location.hash = to("webhooks"); })) : "",
    h("p", { class: "hint" }, `Told of: ${w.events.join(", ")}`));
  };
  const load = async () => {
    const found = await get(at("webhooks", id, "deliveries"), { limit: 25, offset, status: status.value }, signal);
    refill(shown, table([
      ["When", (d) => when(d.created_at)], ["Event", (d) => d.event],
      ["Status", (d) => [badge(d.status), d.error && h("small", { class: "wrong" }, d.error), d.next_attempt_at && h("small", {}, "again ", when(d.next_attempt_at))]],
      ["Answer", (d) => [d.response_status, d.duration_ms !== null && h("small", {}, `${d.duration_ms} ms`)].filter(Boolean)], ["Tries", (d) => d.attempt, "number"],
      ["", (d) => may && d.status !== "pending" && button("Deliver again", async () => { await post(at("webhooks", id, "deliveries", d.id,
        "redeliver")); tell("It is on its way."); await load(); }), "actions"],
    ], found.deliveries, "Nothing was delivered yet."), h("div", { class: "row" },
      found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "", button("Refresh", load, { class: "quiet" })));
    look(found.deliveries.some((d) => d.status === "pending"));
  };
  const look = follower(load, signal);
  status.addEventListener("input", () => { offset = 0; load().catch(tell); });
  page.append(crumb(to("webhooks"), "All webhooks"), head, h("h2", {}, "Deliveries"), h("div", { class: "row" }, status), shown);
  await Promise.all([about(), load()]);
}
