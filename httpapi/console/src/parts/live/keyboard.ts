// Keys and text of a person, as messages to a session.
import { type Live, mayControl, modifiersOf } from "./connection";

/** Writes a text at the cursor of the page. */
export function insertText(live: Live, text: string) {
  for (const part of text.match(/[\s\S]{1,4000}/gu) ?? []) live.send({ type: "insertText", text: part });
}

/** Presses a key and releases it. */
export function pressKey(live: Live, name: string) {
  for (const event of ["keyDown", "keyUp"]) live.send({ type: "keyEvent", event, key: name, code: name });
}

/** Sends a key, but those that the browser needs itself: Shift+Escape leaves the picture, and a paste event follows. */
export function sendKey(live: Live, event: "keyDown" | "keyUp", e: KeyboardEvent) {
  if (!mayControl(live) || e.isComposing || e.key === "Unidentified" || e.key === "Process") return;
  if (e.key === "Escape" && e.shiftKey) {
    if (event === "keyDown") (document.activeElement as HTMLElement | null)?.blur();
    return;
  }
  const command = e.ctrlKey || e.metaKey;
  if (command && e.key.toLowerCase() === "v") return;
  if (command && e.key.toLowerCase() === "c" && event === "keyDown")
    live.send({ type: "getSelectedText", pageId: live.shown() });
  e.preventDefault();
  e.stopPropagation();
  live.send({ type: "keyEvent", event, key: e.key, code: e.code, modifiers: modifiersOf(e) });
}

/** Writes the text of the clipboard. */
export function pasteText(live: Live, e: ClipboardEvent) {
  const text = e.clipboardData?.getData("text");
  if (text && mayControl(live)) insertText(live, text);
  e.preventDefault();
}
