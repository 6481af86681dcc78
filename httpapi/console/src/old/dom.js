// Elements out of data. Data only ever becomes text nodes, plain attributes
// and values of inputs, so nothing that a user wrote can become markup.

import { tell } from "../ui";

export { tell };

/** Makes an element. Props that are functions listen to the event of their name. */
export function h(name, props = {}, ...children) {
  const el = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false || key === "value") continue;
    if (typeof value === "function") el.addEventListener(key, value);
    else el.setAttribute(key, value === true ? "" : String(value));
  }
  el.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
  if (props.value !== undefined && props.value !== null) el.value = props.value;
  return el;
}

let ids = 0;

/** An id that no other element of the page has. */
export const fresh = (prefix) => `${prefix}${++ids}`;

/** A button that does something that takes time: it rests meanwhile, and failures are told. */
export function button(label, run, props = {}) {
  return h("button", { type: "button", ...props, click: async ({ currentTarget: self }) => {
    self.disabled = true;
    try { await run(); } catch (error) { tell(error); }
    self.disabled = false;
  } }, label);
}

const trace = (error) => error.code && h("small", {}, [error.code, error.requestId].filter(Boolean).join(" · "));

/** An error that fills a page, with a way to try again. */
export function failure(error, again) {
  return h("div", { class: "card bad", role: "alert" }, h("p", {}, error.message), h("p", {}, trace(error)), again && button("Try again", again));
}

/** JSON for a person to read. */
export const pretty = (value) => JSON.stringify(value, null, 2);

/** A text to take along, such as an address, with a button that copies it. */
export function copyable(text, label = "Copy") {
  const code = h("code", {}, text);
  return h("div", { class: "copy" }, code, button(label, async () => {
    getSelection().selectAllChildren(code); // over plain HTTP from elsewhere there is no clipboard, but Ctrl+C
    if (!navigator.clipboard) return;
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  }));
}

/** A table; a column is [heading, function of a row, class]. On a phone each row becomes a card. */
export function table(columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title]) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([title, cell, kind]) => h("td", { "data-label": title, class: kind }, h("div", {}, cell(row)))))))));
}

/** Buttons to go through the pages of a list. */
export function pager(meta, go) {
  const last = meta.offset + meta.limit;
  if (meta.total <= meta.limit && meta.offset === 0) return h("p", { class: "pager" }, `${meta.total} in all`);
  return h("p", { class: "pager" },
    button("Back", () => go(Math.max(0, meta.offset - meta.limit)), { disabled: meta.offset === 0 }),
    h("span", {}, `${Math.min(meta.offset + 1, meta.total)}–${Math.min(last, meta.total)} of ${meta.total}`),
    button("Next", () => go(last), { disabled: last >= meta.total }));
}

/** The way back to the list that a record is in. */
export const crumb = (href, text) => h("p", { class: "crumb" }, h("a", { href }, text));

/** A time span in milliseconds, as people say it. */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1).replace(".0", "")} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.round(ms / 1000);
  const parts = units.map(([name, seconds]) => { const n = Math.floor(left / seconds); left -= n * seconds; return n && `${n} ${name}`; });
  const first = parts.findIndex(Boolean);
  return parts.slice(first, first + 2).filter(Boolean).join(" ");
}

/** A moment in the reader's own way of writing it; of the same day as another, only its time. */
export function when(time, beside) {
  if (!time) return "never";
  const date = new Date(time);
  const sameDay = beside && date.toDateString() === new Date(beside).toDateString();
  return h("time", { datetime: time, title: time }, date.toLocaleString(undefined, { dateStyle: sameDay ? undefined : "medium", timeStyle: "short" }));
}

export const badge = (text) => h("span", { class: `badge ${String(text).replace(/[^a-z]/g, "")}` }, text);

export function size(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let n = 0;
  for (; bytes >= 1024 && n < 3; n++) bytes /= 1024;
  return `${bytes < 10 && n > 0 ? bytes.toFixed(1) : Math.round(bytes)} ${units[n]}`;
}

/** Puts new children into an element whose old ones may hold the focus: the same place of the new ones gets it. */
export function refill(el, ...children) {
  const places = () => [...el.querySelectorAll("a, button, input, select")];
  const focused = places().indexOf(document.activeElement);
  el.replaceChildren(...children);
  places()[focused]?.focus();
}

/** Looks again, less and less often, while what load shows goes on: what it returns is to be told so each time. */
export function follower(load, signal) {
  let timer;
  let wait = 1000;
  signal.addEventListener("abort", () => clearTimeout(timer));
  const follow = (goesOn) => {
    clearTimeout(timer);
    wait = goesOn ? Math.min(wait * 1.5, 20000) : 1000;
    if (goesOn && !signal.aborted) timer = setTimeout(() => load().catch(() => follow(true)), document.hidden ? 20000 : wait);
  };
  return follow;
}

/** Calls run a while after the last call. */
export function settled(run, wait = 300) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(() => Promise.resolve(run()).catch(tell), wait); };
}
