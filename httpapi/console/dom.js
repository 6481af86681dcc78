// Elements out of data. Data only ever becomes text nodes, plain attributes
// and values of inputs, so nothing that a user wrote can become markup.

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

/** A button that does something that takes time: it rests meanwhile, and failures are told. */
export function button(label, run, props = {}) {
  return h("button", { type: "button", ...props, click: async ({ currentTarget: self }) => {
    self.disabled = true;
    try { await run(); } catch (error) { tell(error); }
    self.disabled = false;
  } }, label);
}

/** Shows a passing notice: a text, or an error with its code and request. */
export function tell(what) {
  if (what?.name === "AbortError") return;
  const failed = what instanceof Error;
  const note = h("div", { class: failed ? "notice bad" : "notice" }, h("p", {}, failed ? what.message : what), failed && trace(what),
    h("button", { type: "button", class: "quiet", "aria-label": "Close", click: () => note.remove() }, "×"));
  const notices = document.getElementById("notices");
  (document.querySelector("dialog[open]:last-of-type") ?? document.body).append(notices); // what a dialog covers cannot be read
  notices.append(note);
  setTimeout(() => note.remove(), failed ? 12000 : 4000);
}

const trace = (error) => error.code && h("small", {}, [error.code, error.requestId].filter(Boolean).join(" · "));

/** An error that fills a page, with a way to try again. */
export function failure(error, again) {
  return h("div", { class: "card bad", role: "alert" }, h("p", {}, error.message), h("p", {}, trace(error)), again && button("Try again", again));
}

const inputs = {
  textarea: (f, props) => h("textarea", { rows: f.rows ?? 4, ...props, value: f.value }),
  select: (f, props) => h("select", { ...props, value: f.value },
    f.options.map((o) => (Array.isArray(o) ? h("option", { value: o[0] }, o[1]) : h("option", { value: o }, o)))),
  checkbox: (f, props) => h("input", { ...props, type: "checkbox", checked: f.value }),
};

let ids = 0;

/** A labelled input. Its element has .input, .read() and .complain(text). */
export function field(f) {
  const id = `f${++ids}`;
  const props = { id, name: f.name, required: f.required, placeholder: f.placeholder, "aria-describedby": `${id}n`,
    autocomplete: "off", spellcheck: f.type === "textarea" && !f.code ? undefined : "false",
    class: f.code && "code", min: f.min, max: f.max, step: f.step, multiple: f.multiple, accept: f.accept };
  const input = (inputs[f.type] ?? (() => h("input", { ...props, type: f.type ?? "text", value: f.value })))(f, props);
  const note = h("small", { id: `${id}n` }, f.hint ?? "");
  const el = h("div", { class: f.type === "checkbox" ? "field check" : "field" }, h("label", { for: id }, f.label), input, note);
  el.input = input;
  el.read = () => (f.type === "checkbox" ? input.checked : f.type === "file" ? input.files : input.value);
  el.complain = (text) => {
    note.textContent = text ?? f.hint ?? "";
    el.classList.toggle("wrong", Boolean(text));
    input.setAttribute("aria-invalid", Boolean(text));
  };
  return el;
}

/** What the service finds wrong, as {field, issue, node_id?}. */
export const issuesOf = (error) => error.details?.errors ?? (error.details?.field ? [{ issue: error.message, ...error.details }] : []);

/** A form of fields. run gets the values by name; what the service finds wrong is shown at its field, or at the
 * field that holds it: config.url at config. A field with when(values) is there only while that says so. One
 * that is locked only shows. */
export function form(fields, { submit, run, cancel, extra, wide, locked }) {
  const made = new Map(fields.map((f) => [f.name, field(f)]));
  const send = h("button", { class: "main" }, submit);
  const whole = h("div", { class: "whole" }); // what is wrong with no field of its own
  const values = () => Object.fromEntries([...made].filter(([, el]) => !el.hidden).map(([name, el]) => [name, el.read()]));
  const arrange = () => fields.filter((f) => f.when).forEach((f) => {
    const el = made.get(f.name);
    el.hidden = el.input.disabled = !f.when(values());
  });
  const complain = ({ field: name, issue }) => {
    const found = [...made].filter(([own, el]) => !el.hidden && (name === own || name.startsWith(`${own}.`) || name.startsWith(`${own}[`)))
      .sort(([a], [b]) => b.length - a.length)[0];
    found?.[1].complain(`${name.slice(found[0].length).replace(/^\./, "")} ${issue}`.trim());
    return found?.[1].input;
  };
  const el = h("form", { class: wide ? "wide" : undefined, input: arrange, submit: async (event) => {
    event.preventDefault();
    made.forEach((f) => f.complain());
    whole.replaceChildren();
    send.disabled = true;
    try {
      await run(values());
    } catch (error) {
      const shown = issuesOf(error).map(complain);
      if (!shown.length || shown.includes(undefined)) whole.replaceChildren(failure(error));
      shown.find(Boolean)?.focus();
    }
    send.disabled = false;
  } }, [...made.values()], whole, !locked && h("div", { class: "row" }, send, extra, cancel && h("button", { type: "button", click: cancel }, "Cancel")));
  if (locked) made.forEach(({ input }) => { input[input.localName === "textarea" ? "readOnly" : "disabled"] = true; });
  arrange();
  return el;
}

/** The JSON object that was typed into a field; with what is wrong with it at that field. */
export function object(text, name, empty = {}) {
  let value = empty;
  let issue = "must be a JSON object, in braces";
  try { if (text.trim()) value = JSON.parse(text); } catch (error) { issue = `is not JSON: ${error.message}`; value = undefined; }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw Object.assign(new Error(`${name} ${issue}`), { details: { field: name, issue } });
  return value;
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

/** Shows a secret that nobody can read again. */
export function showOnce(title, text, secret) {
  dialog(title, (close) => [h("p", {}, text), copyable(secret),
    h("div", { class: "row" }, h("button", { type: "button", class: "main", click: close }, "I have it"))]);
}

/** A button that asks first, since what it does cannot be undone. */
export const ask = (label, title, text, run, word) =>
  h("button", { type: "button", class: "danger", click: () => confirm(title, text, label, run, word) }, label);

/** Opens a dialog; build gets a function that closes it. */
export function dialog(title, build) {
  const close = () => box.close();
  const id = `d${++ids}`;
  const box = h("dialog", { "aria-labelledby": id, close: () => {
    if (box.querySelector("#notices")) document.body.append(document.getElementById("notices"));
    box.remove();
  } }, h("h2", { id }, title));
  box.append(...[build(close)].flat());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Asks before something that cannot be undone; with a word, the word must be typed. */
export function confirm(title, text, label, run, word) {
  dialog(title, (close) => {
    const typed = word && field({ name: "word", label: `Type ${word} to confirm` });
    const go = button(label, async () => { await run(); close(); }, { class: "danger", disabled: Boolean(word) });
    typed?.input.addEventListener("input", () => { go.disabled = typed.input.value !== word; });
    return [h("p", {}, text), typed, h("div", { class: "row" }, go, h("button", { type: "button", click: close }, "Cancel"))].filter(Boolean);
  });
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
  return (goesOn) => {
    clearTimeout(timer);
    wait = goesOn ? Math.min(wait * 1.5, 20000) : 1000;
    if (goesOn && !signal.aborted) timer = setTimeout(() => load().catch(() => {}), document.hidden ? 20000 : wait);
  };
}

/** Calls run a while after the last call. */
export function settled(run, wait = 300) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(() => Promise.resolve(run()).catch(tell), wait); };
}
