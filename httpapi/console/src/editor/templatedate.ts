// The date filter of templates.
import { wallTimeOf } from "../parts/zone";

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
const offsetOf = (time: number, timeZone: string) =>
  Date.parse(`${wallTimeOf(time, timeZone)}:00Z`) / 60_000 - Math.floor(time / 60_000);

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
    YYYY: String(year).padStart(4, "0"),
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

const iso = /^(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d(?:[.,]\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;
const mail =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) ([+-]\d{4}|[A-Z]{3,4})$/;

/**
 * Returns the milliseconds of a date and a time of day, with an offset or else by the clocks of a time zone; NaN for
 * what does not exist.
 */
function instant(date: string, clock: string, offset: string | undefined, timeZone: string): number {
  const wall = Date.parse(`${date}T${clock}Z`);
  if (!Number.isFinite(wall) || !new Date(wall).toISOString().startsWith(date)) return NaN;
  if (offset === undefined) return wall - offsetOf(wall - offsetOf(wall, timeZone) * 60_000, timeZone) * 60_000;
  const [, sign, hours, minutes] = /([+-])(\d\d):?(\d\d)/.exec(offset) ?? [];
  return sign ? wall - Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000 : wall;
}

/**
 * Returns the milliseconds that a value stands for: text, or a number of seconds or milliseconds since 1970; NaN for
 * others.
 */
function toTime(value: unknown, timeZone: string): number {
  if (typeof value === "number") return Math.trunc(Math.abs(value) < 1e11 ? value * 1000 : value);
  if (typeof value !== "string") return NaN;
  const text = value.trim();
  const found = iso.exec(text);
  if (found) {
    const [, date, mark, clock, seconds, offset] = found;
    if (mark === " " && offset && !seconds) return NaN;
    return instant(date, `${clock ?? "00:00"}${(seconds ?? ":00").replace(",", ".")}`, offset, timeZone);
  }
  const [, day, month, year, clock, offset] = mail.exec(text) ?? [];
  const number = months.findIndex((name) => name.slice(0, 3) === month) + 1;
  return number ? instant(`${year}-${twoDigits(number)}-${day}`, clock, offset, timeZone) : NaN;
}

const token = /\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|d|HH|H|hh|h|mm|m|ss|s|SSS|A|a|ZZ|Z|X|x/g;

/** Formats a time as the clocks of a time zone show it; undefined for what is not a date. */
export function formatDate(value: unknown, format: string, timeZone: string): string | undefined {
  const time = toTime(value, timeZone);
  const offset = Number.isFinite(time) && Math.abs(time) <= 1e15 ? offsetOf(time, timeZone) : 0;
  const year = new Date(time + offset * 60_000).getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) return undefined;
  const tokens = tokensOf(new Date(time), offset);
  return format.replace(token, (name, literal?: string) => literal ?? String(tokens[name]));
}
