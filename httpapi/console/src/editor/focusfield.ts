// Moves the focus to a field of the node's panel.

const retryDelay = 50; // milliseconds
const maxTries = 20;

/** Focuses a code editor, which may still be loading. */
function focusCode(host: Element, tries = maxTries) {
  const content = [host, ...host.querySelectorAll("*")]
    .map((element) => element.shadowRoot?.querySelector<HTMLElement>("[contenteditable]"))
    .find(Boolean);
  if (content) content.focus();
  else if (tries) setTimeout(() => focusCode(host, tries - 1), retryDelay);
}

/** Opens the folded parts of the panel that contain an element. */
function unfold(element: Element) {
  let details = element.closest("details");
  while (details) {
    details.open = true;
    details = details.parentElement?.closest("details") ?? null;
  }
}

/** Focuses the control of a field by its path; if it has none, that of the nearest field that contains it. */
export function focusField(panel: HTMLElement | null, field: string) {
  let path = field.replace(/^data\.?/, "");
  while (panel && path) {
    const frame = panel.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
    if (frame) {
      unfold(frame);
      const code = frame.querySelector(".code-editor");
      if (code) focusCode(code);
      else frame.querySelector<HTMLElement>("textarea, input, select, button")?.focus();
      frame.scrollIntoView({ block: "center" });
      return;
    }
    path = path.replace(/(^|\.|\[)[^.[]*$/, "");
  }
  panel?.querySelector<HTMLElement>(".panel-body :is(textarea, input, select)")?.focus();
}
