// The uploads of this tab, which every page shows.
import { signal } from "@preact/signals";

/** A file that is being uploaded. */
export type Upload = {
  id: number;
  name: string;
  agent: string;
  state: "waiting" | "sending" | "stored" | "failed";
  share: number;
  error?: string;
  source?: string;
};

/** The files of this tab, newest first. */
export const uploads = signal<Upload[]>([]);

/** The number of uploads, sources and executions that are running. */
export const running = signal(0);

let next = 1;

/** Returns a number for a new upload. */
export const uploadId = () => next++;
