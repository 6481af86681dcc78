// The date filter of templates.
import { zone } from "./index";

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const twoDigits = (value: number) => String(value).padStart(2, "0");

/** Returns by how many minutes a time zone is ahead of UTC at a time; 0 for an unknown time zone. */
function offsetOf(time: Date, timeZone: string): number {
  const options: Intl.DateTimeFormatOptions = {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  };
  try {
    const parts = new Intl.DateTimeFormat("en-US", options).formatToParts(time);
    const { year, month, day, hour, minute, second } = Object.fromEntries(
      parts.map((part) => [part.type, Number(part.value)]),
    );
    return Math.round((Date.UTC(year, month - 1, day, hour, minute, second) - time.getTime()) / 60_000);
  } catch {
    return 0;
  }
}

function offsetText(minutes: number, separator: string): string {
  const absolute = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${twoDigits(Math.trunc(absolute / 60))}${separator}${twoDigits(absolute % 60)}`;
}

/** Returns what the tokens of a format stand for at a time; offset is that of the time zone, in minutes. */
function tokensOf(time: Date, offset: number): Record<string, string | number> {
  const local = new Date(time.getTime() + offset * 60_000);
  const year = local.getUTCFullYear();
  const month = local.getUTCMonth();
  const day = local.getUTCDate();
  const weekday = local.getUTCDay();
  const hours = local.getUTCHours();
  const minutes = local.getUTCMinutes();
  const seconds = local.getUTCSeconds();
  return {
    YYYY: year,
    YY: twoDigits(year % 100),
    MMMM: months[month],
    MMM: months[month].slice(0, 3),
    MM: twoDigits(month + 1),
    M: month + 1,
    DD: twoDigits(day),
    D: day,
    dddd: days[weekday],
    ddd: days[weekday].slice(0, 3),
    d: weekday,
    HH: twoDigits(hours),
    H: hours,
    hh: twoDigits(hours % 12 || 12),
    h: hours % 12 || 12,
    mm: twoDigits(minutes),
    m: minutes,
    ss: twoDigits(seconds),
    s: seconds,
    SSS: String(local.getUTCMilliseconds()).padStart(3, "0"),
    A: hours < 12 ? "AM" : "PM",
    a: hours < 12 ? "am" : "pm",
    ZZ: offsetText(offset, ""),
    Z: offsetText(offset, ":"),
    X: Math.floor(time.getTime() / 1000),
    x: time.getTime(),
  };
}

/** Returns the time that a value stands for: text, or a number of seconds or milliseconds since 1970. */
function toTime(value: unknown): Date {
  if (typeof value !== "number") return new Date(String(value));
  return new Date(Math.abs(value) < 1e11 ? value * 1000 : value);
}

const token = /\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|d|HH|H|hh|h|mm|m|ss|s|SSS|A|a|ZZ|Z|X|x/g;

/** Formats a time in the agent's time zone; other values stay as they are. */
export function formatDate(value: unknown, format: string): unknown {
  const time = toTime(value);
  if (Number.isNaN(time.getTime())) return value;
  const tokens = tokensOf(time, offsetOf(time, zone.value));
  return format.replace(token, (name, literal?: string) => literal ?? String(tokens[name]));
}
