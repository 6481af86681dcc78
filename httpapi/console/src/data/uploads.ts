// The files that are being sent, which every page shows.
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

/** How many things run, as the tray counts them. */
export const running = signal(0);

let next = 1;

/** A number for a file. */
export const uploadId = () => next++;
