// Keys of the whole console: Ctrl+K finds, g and a letter goes, / searches, ? lists them.
import { href, rememberedAgent, route } from "../data";
import { openDialog, showToast } from "../ui";
import { loadPalette, paletteOpen } from "./lazy";
import { sections } from "./sections";

const goTime = 1200;
let chordUntil = 0;

const typing = (el: Element | null) =>
  el instanceof HTMLElement && (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

/** Registers the keys of all pages. */
export function startKeys() {
  addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault();
      paletteOpen.value = !paletteOpen.value;
      return;
    }
    if (
      e.defaultPrevented ||
      e.ctrlKey ||
      e.metaKey ||
      e.altKey ||
      typing(document.activeElement) ||
      document.querySelector("dialog[open]")
    )
      return;
    if (Date.now() < chordUntil) {
      chordUntil = 0;
      const found = sections.find((s) => s.key === e.key);
      if (found) {
        e.preventDefault();
        location.hash = href(route.value.agent || rememberedAgent(), found.id);
      }
      return;
    }
    if (e.key === "g") chordUntil = Date.now() + goTime;
    else if (e.key === "?")
      void loadPalette().then(
        ({ KeyList }) => openDialog((close) => <KeyList sections={sections} close={close} />),
        showToast,
      );
    else if (e.key === "/") {
      const search = document.querySelector<HTMLElement>("#main [data-search]");
      if (search) {
        e.preventDefault();
        search.focus();
      }
    }
  });
}
