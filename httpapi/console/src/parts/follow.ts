// Lists that grow while they are shown.
import { useEffect } from "preact/hooks";

import { onChange, onReset } from "../data";

/** Calls run soon after changes of records of a kind ("*": of any), at most twice a second, while on. */
export function useFollow(kind: string, run: () => unknown, on = true) {
  useEffect(() => {
    if (!on) return;
    let due: ReturnType<typeof setTimeout> | undefined;
    const throttledRun = () => {
      due ??= setTimeout(() => {
        due = undefined;
        void run();
      }, 500);
    };
    const unsubscribers = [onChange(kind, throttledRun), onReset(throttledRun)];
    return () => {
      clearTimeout(due);
      unsubscribers.forEach((off) => off());
    };
  }, [kind, run, on]);
}
