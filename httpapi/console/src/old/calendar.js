// The calendar: what is to come, and tasks to make and change.
import { download, get, post, put, remove } from "./api.js";
import { confirm, dialog } from "./dialog.js";
import { badge, button, h, pager, table, tell, when } from "./dom.js";
import { form } from "./form.js";
import { fromLocal, localInput } from "./schedules.js";

const day = 86400000;
const ranges = [["7", "the next 7 days"], ["31", "the next 31 days"], ["366", "the next year"], ["", "all tasks"]];

export async function calendar(page, context) {
  const { at, may, signal } = context;
  const shown = h("div");
  const range = h("select", { "aria-label": "Show" }, ranges.map(([value, text]) => h("option", { value }, text)));
  range.value = "31";
  let offset = 0;
  const load = async () => {
    const now = Date.now();
    const query = range.value ? { start: new Date(now).toISOString(), end: new Date(now + Number(range.value) * day).toISOString() } : { sort: "start_time", order: "desc" };
    const found = await get(at("calendar"), { ...query, limit: 50, offset }, signal);
    shown.replaceChildren(table([
      ["When", (t) => [when(t.start_time), h("small", {}, "until ", when(t.end_time, t.start_time))]],
      ["Task", (t) => [h("strong", {}, h("bdi", {}, t.title)), t.description && h("small", {}, t.description)]],
      ["Again", (t) => (t.recurrence === "none" ? "" : recurs(t))], ["Status", (t) => badge(t.status)],
      ["", (t) => may && [button("Edit", async () => edit(await get(at("calendar", t.id)), context, load)),
        h("button", { type: "button", class: "danger", click: () => confirm(`Delete ${t.title}?`,
          t.recurrence === "none" ? "The task is deleted." : "The task is deleted with all its occurrences.", "Delete",
          async () => { await remove(at("calendar", t.id)); await load(); }) }, "Delete")], "actions"],
    ], found.tasks, range.value ? `Nothing is planned for ${ranges.find(([v]) => v === range.value)[1]}.` : "No tasks yet. A task has a time, and may start a workflow then."),
    found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  range.addEventListener("input", () => { offset = 0; load().catch(tell); });
  page.append(h("h1", { tabindex: -1 }, "Calendar"), h("div", { class: "row" }, range, h("span", { class: "grow" }),
    button("Export .ics", () => download("GET", at("calendar.ics"))),
    may && button("New task", () => edit(null, context, load), { class: "main" })), shown);
  await load();
}

const week = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const dayName = (d, recurrence) => (recurrence === "weekly" ? week[d % 7] : d === -1 ? "last" : String(d));
const dayNames = (t) => t.recurrence_days.map((d) => dayName(d, t.recurrence)).join(", ");
const recurs = (t) => (t.recurrence_days.length ? `${t.recurrence} on ${dayNames(t)}` : t.recurrence);

/** Days as they are typed: names of the week, or numbers of the month. */
function days(text, recurrence) {
  return text.split(",").map((d) => d.trim()).filter(Boolean).map((d) => {
    const named = week.findIndex((name) => recurrence === "weekly" && d.length > 1 && name.toLowerCase().startsWith(d.toLowerCase()));
    const n = named >= 0 ? named : d === "last" ? -1 : Number(d);
    if (!Number.isInteger(n)) throw Object.assign(new Error(`${d} is no day`), { details: { field: "recurrence_days", issue: `has ${d}, which is no day` } });
    return n;
  });
}

async function edit(now, { at, signal }, done) {
  const { workflows } = await get(at("workflows"), { limit: 200 }, signal);
  const again = (v) => v.recurrence !== "none";
  const soon = new Date(Math.ceil(Date.now() / 3600000) * 3600000);
  dialog(now ? now.title : "New task", (close) => form([
    { name: "title", label: "Title", value: now?.title, required: true },
    { name: "workflow_id", label: "Starts a workflow", type: "select", value: now?.workflow_id, options: [["", "none"], ...workflows.map((w) => [w.id, w.name])] },
    { name: "start_time", label: "Begins", type: "datetime-local", required: true, value: localInput(now?.start_time ?? soon), hint: "By this device's clock." },
    { name: "end_time", label: "Ends", type: "datetime-local", value: localInput(now?.end_time), hint: "An hour later without a time." },
    { name: "recurrence", label: "Again", type: "select", value: now?.recurrence, options: ["none", "daily", "weekly", "monthly"] },
    { name: "recurrence_days", label: "On days", value: now ? dayNames(now) : "",
      when: (v) => ["weekly", "monthly"].includes(v.recurrence), hint: "Monday, Thursday; of a month 1, 15, last. The first day's own without any." },
    { name: "timezone", label: "Time zone", value: now?.timezone, when: again, placeholder: "Europe/Berlin",
      hint: "Occurrences keep the time of day on its clocks; the agent's own without one." },
    { name: "recurrence_end", label: "Until", type: "date", value: localInput(now?.recurrence_end).slice(0, 10), when: again },
    { name: "recurrence_count", label: "How many times", type: "number", min: 1, max: 1000, value: now?.recurrence_count || "", when: again,
      hint: "Without a limit when empty." },
    { name: "status", label: "Status", type: "select", value: now?.status, when: () => Boolean(now),
      options: ["pending", "completed", "failed", "cancelled", ...(now?.status === "running" ? ["running"] : [])] },
    { name: "description", label: "Description", type: "textarea", rows: 2, value: now?.description },
  ], { submit: now ? "Save" : "Make", cancel: close, wide: true, run: async (v) => {
    const body = { ...v, start_time: fromLocal(v.start_time), end_time: v.end_time ? fromLocal(v.end_time) : undefined, timezone: v.timezone || undefined };
    if (now && body.status === now.status) delete body.status;
    if (again(v)) Object.assign(body, { recurrence_days: days(v.recurrence_days ?? "", v.recurrence), recurrence_end: v.recurrence_end || null,
      recurrence_count: v.recurrence_count ? Number(v.recurrence_count) : null });
    await (now ? put(at("calendar", now.id), body) : post(at("calendar"), body));
    close();
    await done();
  } })).classList.add("large");
}
