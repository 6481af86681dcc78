// Dates and times, of a time zone or of this device. All that the console shows are written
// here, with 24 hours. A wall time is written as fields of type datetime-local have it: 2027-01-04T09:00.

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string | undefined, options: Intl.DateTimeFormatOptions, locale?: string) {
  const key = JSON.stringify([zone, options, locale]);
  let found = formats.get(key);
  if (!found) {
    try {
      found = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone, hourCycle: "h23" });
    } catch {
      found = new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC", hourCycle: "h23" });
    }
    formats.set(key, found);
  }
  return found;
}

/** What a zone's clocks show at a moment. */
export function wallTimeOf(time: string | number | Date, zone: string): string {
  const parts = format(
    zone,
    { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" },
    "en-US",
  ).formatToParts(new Date(time));
  const of = Object.fromEntries(parts.map((p) => [p.type, p.value]));
  return `${of.year.padStart(4, "0")}-${of.month}-${of.day}T${of.hour}:${of.minute}`;
}

const utc = (wall: string) => Date.parse(`${wall.slice(0, 16)}:00Z`);

/** When a zone's clocks show a wall time; one that they skip is moved by what is skipped. */
export function instantOf(wall: string, zone: string): Date {
  const shown = utc(wall);
  const offset = (at: number) => utc(wallTimeOf(at, zone)) - at;
  const before = offset(shown - 15 * 3_600_000);
  const after = offset(shown + 15 * 3_600_000);
  const at = shown - before;
  if (before !== after && offset(at) !== before && offset(shown - after) === after) return new Date(shown - after);
  return new Date(at);
}

/** A date some days later: 2027-01-31 and 1 make 2027-02-01. */
export const addDays = (date: string, days: number) =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);

/** The same day of a month some months later, or its last. */
export function addMonths(date: string, months: number) {
  const [year, month, day] = date.split("-").map(Number);
  const last = new Date(Date.UTC(year, month + months, 0)).getUTCDate();
  return new Date(Date.UTC(year, month - 1 + months, Math.min(day, last))).toISOString().slice(0, 10);
}

/** How many days a date is after the first day of its week, which is a Monday. */
export const sinceMonday = (date: string) => (new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7;

/** A date as people write it. */
export const writeDate = (date: string, options: Intl.DateTimeFormatOptions) =>
  format("UTC", options).format(new Date(`${date}T00:00:00Z`));

/** Options of writeTime. */
export type TimeOptions = Omit<Intl.DateTimeFormatOptions, "hour12" | "hourCycle" | "timeZone">;
export const mediumDate: TimeOptions = { dateStyle: "medium" };
export const fullDate: TimeOptions = { dateStyle: "full" };
export const mediumTime: TimeOptions = { dateStyle: "medium", timeStyle: "short" };
export const secondTime: TimeOptions = { dateStyle: "medium", timeStyle: "medium" };
export const fullTime: TimeOptions = { dateStyle: "full", timeStyle: "long" };
export const clockTime: TimeOptions = { timeStyle: "medium" };

/** A moment as the clocks of a zone, or else of this device, show it. */
export const writeTime = (
  time: string | number | Date,
  zone?: string,
  options: TimeOptions = {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  },
) => format(zone, options).format(new Date(time));

/** A moment as a visitor of a site writes it: by the clocks of the device, with the hours of the language. */
export const writeForVisitor = (time: string, locale: string | undefined, options: TimeOptions) =>
  new Intl.DateTimeFormat(locale, options).format(new Date(time));

/** The zone of this device; UTC where the browser does not know it. */
export const deviceZone = () =>
  Intl.DateTimeFormat().resolvedOptions().timeZone?.replace("Etc/Unknown", "UTC") ?? "UTC";

/** Time zones to choose from. */
export const zones = (): string[] => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];
