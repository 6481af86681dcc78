// Dialogs: what is asked before something is done, and what is shown once.
import { button, copyable, fresh, h } from "./dom.js";
import { field } from "./form.js";

/** Where dialogs are, under the styles of the earlier pages. */
function layer() {
  let el = document.querySelector("body > .old");
  if (!el) document.body.append(el = h("div", { class: "old" }));
  return el;
}

/** Opens a dialog; build gets a function that closes it. */
export function dialog(title, build) {
  const close = () => box.close();
  const id = fresh("d");
  const box = h("dialog", { "aria-labelledby": id, close: () => {
    box.remove();
  } }, h("h2", { id }, title));
  box.append(...[build(close)].flat());
  layer().append(box);
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

/** Shows a secret that nobody can read again, until the reader has it. Returns the dialog. */
export function showOnce(title, text, secret) {
  const box = dialog(title, (close) => [h("p", {}, text), copyable(secret),
    h("div", { class: "row" }, h("button", { type: "button", class: "main", click: close }, "I have it"))]);
  box.addEventListener("cancel", (event) => event.preventDefault()); // Escape would lose it
  return box;
}

/** A button that asks first, since what it does cannot be undone. */
export const ask = (label, title, text, run, word) =>
  h("button", { type: "button", class: "danger", click: () => confirm(title, text, label, run, word) }, label);
