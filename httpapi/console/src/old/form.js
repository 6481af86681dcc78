// Fields and forms.
import { failure, fresh, h } from "./dom.js";

const inputs = {
  textarea: (f, props) => h("textarea", { rows: f.rows ?? 4, ...props, value: f.value }),
  select: (f, props) => h("select", { ...props, value: f.value },
    f.options.map((o) => (Array.isArray(o) ? h("option", { value: o[0] }, o[1]) : h("option", { value: o }, o)))),
  checkbox: (f, props) => h("input", { ...props, type: "checkbox", checked: f.value }),
};

/** A labelled input. Its element has .input, .read() and .complain(text). */
export function field(f) {
  const id = fresh("f");
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
