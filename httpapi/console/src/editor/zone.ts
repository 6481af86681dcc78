import { signal } from "@preact/signals";

/** The agent's time zone, by whose clocks templates write dates. */
export const zone = signal("UTC");
