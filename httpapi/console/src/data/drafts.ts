// Text that was typed and not sent yet, which survives a reload or a crash.
import { signal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

const prefix = "satchel.draft.";
const keepDays = 30;

/** Returns a text that is stored in this browser under a name until it is empty. */
export function useDraft(name: string): Signal<string> {
  return useMemo(() => {
    const draft = signal(read(name));
    draft.subscribe((text) => write(name, text)); // also when its field is gone
    return draft;
  }, [name]);
}

function read(name: string): string {
  try {
    return JSON.parse(localStorage.getItem(prefix + name) ?? "null")?.text ?? "";
  } catch {
    return "";
  }
}

function write(name: string, text: string) {
  try {
    if (text) localStorage.setItem(prefix + name, JSON.stringify({ text, at: Date.now() }));
    else localStorage.removeItem(prefix + name);
  } catch {
    /* the storage is full or closed: the text stays on the page */
  }
}

/** Removes drafts that have not changed for a month. */
export function expireDrafts() {
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(prefix)) continue;
    try {
      if (Date.now() - JSON.parse(localStorage.getItem(name)!).at > keepDays * 86_400_000)
        localStorage.removeItem(name);
    } catch {
      localStorage.removeItem(name);
    }
  }
}
