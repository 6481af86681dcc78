// Keys of a page.
import { useLayoutEffect, useRef } from "preact/hooks";

import { showToast } from "../ui";

/** Calls what belongs to a key, while nothing is being typed and no dialog is open. */
export function useKeys(keys: Record<string, (() => unknown) | false>) {
  const last = useRef(keys);
  last.current = keys;
  useLayoutEffect(() => {
    // before the first key, which may come within the same frame
    const press = (e: KeyboardEvent) => {
      const run = last.current[e.key];
      if (
        !run ||
        e.defaultPrevented ||
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        (e.target as Element).closest?.("input,textarea,select,[contenteditable]") ||
        document.querySelector("dialog[open]")
      )
        return;
      e.preventDefault();
      void (async () => run())().catch(showToast);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
