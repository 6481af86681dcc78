// Toasts: passing notices, and deletions that can be undone meanwhile.
import { signal } from "@preact/signals";

import { OfflineError } from "../data/api";

type Toast = { id: number; text: string; error?: Error; undo?: () => void; topic?: string };

/** The toasts that are shown. */
export const toasts = signal<Toast[]>([]);
let nextToast = 1;

/** Shows a passing notice: a text or an error. It replaces the one that is shown of the same topic. */
export function showToast(content: unknown, undo?: () => void, topic?: string) {
  const what = typeof content === "string" || content instanceof Error ? content : new Error(String(content));
  if (what instanceof Error && what.name === "AbortError") return;
  if (what instanceof OfflineError) return; // the banner above the page says it
  const id = nextToast++;
  toasts.value = [
    ...toasts.value.filter((t) => !topic || t.topic !== topic).slice(-4),
    {
      id,
      text: what instanceof Error ? what.message : what,
      error: what instanceof Error ? what : undefined,
      undo,
      topic,
    },
  ];
  setTimeout(() => dismiss(id), undo ? 8000 : what instanceof Error ? 12_000 : 4000);
}

/** Takes a toast away. */
export const dismiss = (id: number) => {
  toasts.value = toasts.value.filter((t) => t.id !== id);
};

/** Deletes after 8 seconds in which it can be undone; leaving the page deletes at once. */
export function deleteLater(text: string, run: () => Promise<unknown>, restore: () => void) {
  let done = false;
  const finish = () => {
    if (done) return;
    done = true;
    removeEventListener("pagehide", finish);
    run().catch((error) => {
      restore();
      showToast(error);
    });
  };
  const timer = setTimeout(finish, 8000);
  addEventListener("pagehide", finish);
  showToast(text, () => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    removeEventListener("pagehide", finish);
    restore();
  });
}
