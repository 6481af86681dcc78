// Schedules: the list, and one with its runs.
import { get, post, put, remove } from "./api.js";
import { ask, dialog, showOnce } from "./dialog.js";
import { badge, button, crumb, follower, h, pager, pretty, refill, settled, span, table, when } from "./dom.js";
import { form, object } from "./form.js";

/** A link to an execution, where there is one. */
const executionLink = (to, id) => (id ? h("a", { href: to("workflows", "executions", id) }, "execution") : "");

export async function schedules(page, context) {
  const [id] = context.rest;
  return id ? schedule(page, context, id) : list(page, context);
}

/** When it runs, in words. */
function timing(s) {
  if (s.type === "cron") return [h("code", {}, s.cron_expression), " ", h("small", {}, s.timezone)];
  return s.type === "delayed" ? `once, ${span(s.delay_seconds * 1000)} after it was made` : "once";
}

const calls = { workflow: "a workflow", agent: "the agent, with a prompt", webhook: "a webhook", source: "a source, to read it again", tool: "a tool" };

/** What it calls: a workflow by its name, with a way to it. */
function called(s, names, to) {
  if (s.callback_type === "agent") return "the agent";
  if (s.callback_type !== "workflow") return h("bdi", {}, `${s.callback_type} ${s.callback_id}`);
  return h("a", { href: to("workflows", s.callback_id) }, h("bdi", {}, names.get(s.callback_id) ?? "a workflow"));
}

async function list(page, context) {
  const { at, to, may, signal } = context;
  const shown = h("div");
  const search = h("input", { type: "search", placeholder: "Name", "aria-label": "Search schedules" });
  let offset = 0;
  const load = async () => {
    const found = await get(at("schedules"), { search: search.value, limit: 25, offset }, signal);
    const names = found.schedules.length ? new Map(await choices(context, "workflows")) : new Map();
    shown.replaceChildren(table([
      ["Name", (s) => h("a", { href: to("schedules", s.id) }, h("bdi", {}, s.name))], ["Status", (s) => badge(s.status)], ["Runs", timing],
      ["Calls", (s) => called(s, names, to)],
      ["Next run", (s) => (s.next_run ? when(s.next_run) : "none")], ["Last run", (s) => when(s.last_run)],
    ], found.schedules, search.value ? "No schedule is called that." : "No schedules yet. Make one, to have something done by the clock."),
    found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  search.addEventListener("input", settled(() => { offset = 0; return load(); }));
  page.append(h("h1", { tabindex: -1 }, "Schedules"), h("div", { class: "row" }, search, h("span", { class: "grow" }),
    may && h("button", { type: "button", class: "main", click: () => edit(null, context, (made) => { location.hash = to("schedules", made.id); }) }, "New schedule")), shown);
  await load();
}

async function schedule(page, context, id) {
  const { at, to, may, signal } = context;
  const shown = h("div");
  const load = async () => {
    const [now, names] = await Promise.all([get(at("schedules", id), {}, signal), choices(context, "workflows").then((all) => new Map(all))]);
    const change = (values) => async () => { await put(at("schedules", id), values); await load(); };
    refill(shown, h("h1", { tabindex: -1 }, h("bdi", {}, now.name), " ", badge(now.status)),
      may ? h("div", { class: "row" },
        button("Run now", async () => { await post(at("schedules", id, "run")); await load(); }, { class: "main" }),
        h("button", { type: "button", click: () => edit(now, context, load) }, "Edit"),
        now.status === "active" && button("Pause", change({ status: "paused" })), now.status === "paused" && button("Resume", change({ status: "active" })),
        ask("Delete", `Delete ${now.name}?`, "The schedule is deleted with its runs.", async () => { await remove(at("schedules", id)); location.hash = to("schedules"); })) : "",
      h("dl", { class: "about" }, [["Runs", timing(now)], ["Next run", now.next_run ? when(now.next_run) : "none"], ["Calls", called(now, names, to)],
        ["Payload", h("code", {}, JSON.stringify(now.payload))],
        ["Missed runs", misfires.find(([name]) => name === now.misfire_policy)?.[1]], ["While one goes on", overlaps.find(([name]) => name === now.overlap)?.[1]]]
        .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("h2", {}, "Runs"), table([
        ["For", (r) => when(r.scheduled_for)], ["Status", (r) => [badge(r.status), r.error && h("small", { class: "wrong" }, r.error)]],
        ["Started", (r) => (r.executed_at ? when(r.executed_at) : "not")], ["Took", (r) => (r.executed_at && r.status !== "running" ? span(r.duration_ms) : "")],
        ["", (r) => executionLink(to, r.execution_id)],
      ], now.executions, "It has not run yet."), h("div", { class: "row" }, button("Refresh", load, { class: "quiet" })));
    look(now.executions.some((r) => r.status === "running"));
  };
  const look = follower(load, signal);
  page.append(crumb(to("schedules"), "All schedules"), shown);
  await load();
}

const intervals = [["*/5 * * * *", "5 minutes"], ["*/10 * * * *", "10 minutes"], ["*/15 * * * *", "15 minutes"], ["*/30 * * * *", "30 minutes"], ["0 * * * *", "hour"],
  ["0 */2 * * *", "2 hours"], ["0 */6 * * *", "6 hours"], ["0 */12 * * *", "12 hours"], ["0 0 * * *", "day, at midnight"], ["0 9 * * *", "day, at nine"],
  ["0 9 * * MON-FRI", "working day, at nine"], ["0 9 * * MON", "Monday, at nine"], ["0 9 1 * *", "first of the month, at nine"]];
const misfires = [["run_once", "one run stands for all"], ["skip", "are given up"], ["run_all", "are all made up for"]];
const overlaps = [["skip", "another is left out"], ["queue", "another waits"], ["allow", "another runs beside it"]];

/** A moment as an input for local times takes it, and back. */
export const localInput = (time) => {
  if (!time) return "";
  const date = new Date(time);
  return new Date(date - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
};
export const fromLocal = (text) => (text ? new Date(text).toISOString() : null);

/** The ids and names of what there is of a kind, for a field to choose from. */
async function choices({ at, signal }, kind) {
  const found = await get(at(kind), { limit: 200 }, signal);
  return found[kind].map((one) => [one.id, one.name]);
}

async function edit(now, context, done) {
  const { at } = context;
  const [workflows, sources, tools] = await Promise.all(["workflows", "sources", "tools"].map((kind) => choices(context, kind)));
  const is = (field, ...values) => (v) => values.includes(v[field]);
  const timed = !now ? "interval" : now.type === "cron" ? (intervals.some(([cron]) => cron === now.cron_expression) ? "interval" : "cron") : now.type;
  const pick = (kind, label, options) => ({ name: kind, label, type: "select", required: true, when: is("callback_type", kind),
    value: now?.callback_type === kind ? now.callback_id : undefined,
    options, hint: options.length ? undefined : "There is none yet." });
  dialog(now ? now.name : "New schedule", (close) => form([
    { name: "name", label: "Name", value: now?.name, required: true },
    { name: "timing", label: "Runs", type: "select", value: timed, options: [["interval", "every …"], ["cron", "by a cron expression"], ["once", "once, at a time"],
      ["delayed", "once, after a delay"]] },
    { name: "interval", label: "Every", type: "select", options: intervals, value: timed === "interval" ? now?.cron_expression ?? "0 9 * * *" : undefined,
      when: is("timing", "interval") },
    { name: "cron_expression", label: "Cron expression", code: true, value: now?.cron_expression, placeholder: "0 9 * * MON-FRI", required: true,
      when: is("timing", "cron"), hint: "Minute, hour, day of the month, month, day of the week." },
    { name: "next_run", label: "At", type: "datetime-local", value: localInput(now?.next_run), required: now?.type !== "once", when: is("timing", "once"),
      hint: "By this device's clock." },
    { name: "delay_seconds", label: "After seconds", type: "number", min: 1, max: 31536000, value: now?.delay_seconds || 3600, required: true, when: is("timing", "delayed") },
    { name: "timezone", label: "Time zone", value: now?.timezone, when: is("timing", "interval", "cron"), placeholder: "Europe/Berlin",
      hint: "Its clocks count; the agent's own without one." },
    { name: "callback_type", label: "Calls", type: "select", value: now?.callback_type, options: Object.entries(calls) },
    pick("workflow", "Workflow", workflows), pick("source", "Source", sources), pick("tool", "Tool", tools),
    { name: "url", label: "Address", type: "url", value: now?.callback_type === "webhook" ? now.callback_id : "", required: true, when: is("callback_type", "webhook"),
      hint: "Gets a signed POST." },
    { name: "prompt", label: "Prompt", type: "textarea", value: now?.callback_type === "agent" ? now.payload.prompt : "", required: true, when: is("callback_type", "agent") },
    { name: "payload", label: "Payload", type: "textarea", code: true, value: pretty(now?.payload ?? {}), when: (v) => v.callback_type !== "agent",
      hint: "A JSON object that goes along." },
    { name: "misfire_policy", label: "Runs that were missed", type: "select", value: now?.misfire_policy, options: misfires },
    { name: "overlap", label: "While one goes on", type: "select", value: now?.overlap, options: overlaps },
  ], { submit: now ? "Save" : "Make", cancel: close, wide: true, run: async (v) => {
    const body = change(v, now);
    const made = await named(now ? put(at("schedules", now.id), body) : post(at("schedules"), body), v);
    close();
    if (made.secret) showOnce("Secret of the webhook", "It signs the calls, and is shown only now.", made.secret);
    await done(made);
  } })).classList.add("large");
}

/** What the form says, as the service takes it. */
function change(v, now) {
  const payload = v.callback_type === "agent" ? { ...(now?.callback_type === "agent" ? now.payload : {}), prompt: v.prompt } : object(v.payload, "payload");
  return { name: v.name, type: v.timing === "interval" ? "cron" : v.timing, cron_expression: v.interval ?? v.cron_expression, next_run: v.next_run ? fromLocal(v.next_run) : undefined,
    delay_seconds: v.delay_seconds && Number(v.delay_seconds), timezone: v.timezone || undefined, callback_type: v.callback_type,
    callback_id: v.workflow ?? v.source ?? v.tool ?? v.url, payload, misfire_policy: v.misfire_policy, overlap: v.overlap };
}

/** Complaints about callback_id belong to the field that gave it. */
async function named(answer, v) {
  try { return await answer; } catch (error) {
    const field = v.callback_type === "webhook" ? "url" : v.callback_type;
    const ours = { callback_id: field, "payload.prompt": "prompt", cron_expression: v.interval ? "interval" : "cron_expression" };
    const rename = (i) => ({ ...i, field: ours[i.field] ?? i.field });
    if (error.details?.errors) error.details.errors = error.details.errors.map(rename);
    else if (error.details?.field) error.details = { issue: error.message, ...rename(error.details) };
    throw error;
  }
}
