// Keys of the whole console: Ctrl+K finds, g and a letter goes, / searches, ? lists them.
import { href, rememberedAgent, route } from "../data";
import { Dialog, openDialog } from "../ui";
import { paletteOpen } from "./palette";
import { sections } from "./sections";

const goTime = 1200;
let goUntil = 0;

const typing = (el: Element | null) => el instanceof HTMLElement && (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

export function startKeys() {
  addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault();
      paletteOpen.value = !paletteOpen.value;
      return;
    }
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(document.activeElement) || document.querySelector("dialog[open]")) return;
    if (Date.now() < goUntil) {
      goUntil = 0;
      const found = sections.find((s) => s.key === e.key);
      if (found) {
        e.preventDefault();
        location.hash = href(route.value.agent || rememberedAgent(), found.id);
      }
      return;
    }
    if (e.key === "g") goUntil = Date.now() + goTime;
    else if (e.key === "?") openDialog((close) => <KeyList close={close} />);
    else if (e.key === "/") {
      const search = document.querySelector<HTMLElement>("#main [data-search]");
      if (search) { e.preventDefault(); search.focus(); }
    }
  });
}

function KeyList({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        <dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>Find pages, agents and records</dd>
        <dt><kbd>/</kbd></dt><dd>Search in this page</dd>
        <dt><kbd>Esc</kbd></dt><dd>Close what is open</dd>
        {sections.filter((s) => s.key).map((s) => <><dt><kbd>g</kbd> <kbd>{s.key}</kbd></dt><dd>{s.title}</dd></>)}
      </dl>
    </Dialog>
  );
}
