//@ DateTime
// The common part of Luxon, in UTC or at a fixed offset.
class DateTime {
  #at;
  #offset;
  constructor(ms, offset = 0) {
    this.#at = ms;
    this.#offset = offset;
  }
  static now() {
    return new DateTime(Date.now());
  }
  static utc(...parts) {
    return parts.length ? DateTime.fromObject(DateTime.#named(parts)) : DateTime.now();
  }
  static local(...parts) {
    return DateTime.utc(...parts);
  }
  static #named([year, month = 1, day = 1, hour = 0, minute = 0, second = 0, millisecond = 0]) {
    return { year, month, day, hour, minute, second, millisecond };
  }
  static fromObject(o) {
    const now = new Date();
    return new DateTime(
      Date.UTC(
        o.year ?? now.getUTCFullYear(),
        (o.month ?? 1) - 1,
        o.day ?? 1,
        o.hour ?? 0,
        o.minute ?? 0,
        o.second ?? 0,
        o.millisecond ?? 0,
      ),
    );
  }
  static fromISO(text) {
    const s = String(text);
    const zone = /([+-])(\d\d):?(\d\d)$/.exec(s);
    const offset = zone && /T/.test(s) ? (zone[1] === "-" ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3])) : 0;
    return new DateTime(Date.parse(/T/.test(s) && !/(Z|[+-]\d\d:?\d\d)$/i.test(s) ? s + "Z" : s), offset);
  }
  static fromSQL(text) {
    return DateTime.fromISO(String(text).replace(" ", "T"));
  }
  static fromMillis(ms) {
    return new DateTime(Number(ms));
  }
  static fromSeconds(s) {
    return new DateTime(Number(s) * 1000);
  }
  static fromJSDate(date) {
    return new DateTime(date.getTime());
  }
  static fromFormat(text, format) {
    const names = [],
      tokens = {
        yyyy: "year",
        MM: "month",
        M: "month",
        LL: "month",
        L: "month",
        dd: "day",
        d: "day",
        HH: "hour",
        H: "hour",
        mm: "minute",
        m: "minute",
        ss: "second",
        s: "second",
        SSS: "millisecond",
      };
    const pattern = format.replace(/yyyy|SSS|MM?|LL?|dd?|HH?|mm?|ss?|'[^']*'|[^A-Za-z]/g, (t) => {
      if (t[0] === "'") return t.slice(1, -1);
      if (!tokens[t]) return "\\" + t;
      names.push(tokens[t]);
      return t.length === 1 ? "(\\d{1,2})" : `(\\d{${t.length}})`;
    });
    const found = new RegExp(`^${pattern}$`).exec(String(text));
    return found
      ? DateTime.fromObject(Object.fromEntries(names.map((name, i) => [name, Number(found[i + 1])])))
      : new DateTime(NaN);
  }
  static min(...all) {
    return all.reduce((a, b) => (b < a ? b : a));
  }
  static max(...all) {
    return all.reduce((a, b) => (b > a ? b : a));
  }
  get #date() {
    return new Date(this.#at + this.#offset * 60000);
  }
  get isValid() {
    return !Number.isNaN(this.#at);
  }
  get year() {
    return this.#date.getUTCFullYear();
  }
  get month() {
    return this.#date.getUTCMonth() + 1;
  }
  get day() {
    return this.#date.getUTCDate();
  }
  get hour() {
    return this.#date.getUTCHours();
  }
  get minute() {
    return this.#date.getUTCMinutes();
  }
  get second() {
    return this.#date.getUTCSeconds();
  }
  get millisecond() {
    return this.#date.getUTCMilliseconds();
  }
  get weekday() {
    return this.#date.getUTCDay() || 7;
  }
  get quarter() {
    return Math.ceil(this.month / 3);
  }
  get daysInMonth() {
    return new Date(Date.UTC(this.year, this.month, 0)).getUTCDate();
  }
  get isInLeapYear() {
    return new Date(Date.UTC(this.year, 2, 0)).getUTCDate() === 29;
  }
  get ordinal() {
    return Math.round((Date.UTC(this.year, this.month - 1, this.day) - Date.UTC(this.year, 0, 1)) / 86400000) + 1;
  }
  get weekNumber() {
    const thursday = new Date(Date.UTC(this.year, this.month - 1, this.day + 4 - this.weekday));
    return Math.ceil(((thursday - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / 86400000 + 1) / 7);
  }
  get monthLong() {
    return DateTime.#months[this.month - 1];
  }
  get monthShort() {
    return this.monthLong.slice(0, 3);
  }
  get weekdayLong() {
    return DateTime.#days[this.weekday - 1];
  }
  get weekdayShort() {
    return this.weekdayLong.slice(0, 3);
  }
  static #months = [
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
  static #days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
  static #units = { milliseconds: 1, seconds: 1000, minutes: 60000, hours: 3600000, days: 86400000, weeks: 604800000 };
  static #plural(unit) {
    return unit.endsWith("s") ? unit : unit + "s";
  }
  #with(parts) {
    return new DateTime(Date.UTC(...parts) - this.#offset * 60000, this.#offset);
  }
  #parts() {
    return [this.year, this.month - 1, this.day, this.hour, this.minute, this.second, this.millisecond];
  }
  plus(o, unit) {
    if (typeof o === "number") o = { [unit ?? "milliseconds"]: o };
    let out = this;
    for (const [name, n] of Object.entries(o ?? {})) {
      const u = DateTime.#plural(name),
        count = Number(n);
      if (u in DateTime.#units) {
        out = new DateTime(out.#at + count * DateTime.#units[u], out.#offset);
        continue;
      }
      const months = count * { months: 1, quarters: 3, years: 12 }[u];
      const [y, m, d, ...time] = out.#parts();
      const last = new Date(Date.UTC(y, m + months + 1, 0)).getUTCDate();
      out = out.#with([y, m + months, Math.min(d, last), ...time]);
    }
    return out;
  }
  minus(o, unit) {
    return typeof o === "number"
      ? this.plus(-o, unit)
      : this.plus(Object.fromEntries(Object.entries(o ?? {}).map(([name, n]) => [name, -n])));
  }
  startOf(unit) {
    const u = DateTime.#plural(unit),
      p = this.#parts();
    if (u === "weeks") return this.minus({ days: this.weekday - 1 }).startOf("day");
    if (u === "quarters") p[1] = (this.quarter - 1) * 3;
    const keep = { years: 1, quarters: 2, months: 2, days: 3, hours: 4, minutes: 5, seconds: 6 }[u];
    return this.#with(p.map((v, i) => (i < keep ? v : i === 2 ? 1 : 0)));
  }
  endOf(unit) {
    return this.startOf(unit)
      .plus({ [unit]: 1 })
      .minus({ milliseconds: 1 });
  }
  set(o) {
    return this.#with([
      o.year ?? this.year,
      (o.month ?? this.month) - 1,
      o.day ?? this.day,
      o.hour ?? this.hour,
      o.minute ?? this.minute,
      o.second ?? this.second,
      o.millisecond ?? this.millisecond,
    ]);
  }
  setZone() {
    return this;
  }
  setLocale() {
    return this;
  }
  toLocal() {
    return this;
  }
  toUTC() {
    return new DateTime(this.#at);
  }
  hasSame(other, unit) {
    return +this.startOf(unit) === +other.startOf(unit);
  }
  diff(other, units = "milliseconds") {
    const names = [units].flat().map(DateTime.#plural),
      out = {};
    let at = other,
      forward = this >= other ? 1 : -1;
    for (const name of names) {
      const size = DateTime.#units[name];
      if (size) {
        const n = (this - at) / size;
        out[name] = name === names.at(-1) ? n : Math.trunc(n);
        at = at.plus({ [name]: out[name] });
        continue;
      }
      let n = 0;
      while (forward > 0 ? at.plus({ [name]: n + 1 }) <= this : at.plus({ [name]: n - 1 }) >= this) n += forward;
      at = at.plus({ [name]: n });
      out[name] = n;
    }
    return {
      ...out,
      as: (name) => (this - other) / (DateTime.#units[DateTime.#plural(name)] ?? 2629746000),
      toObject: () => out,
      valueOf: () => this - other,
    };
  }
  diffNow(units) {
    return this.diff(DateTime.now(), units);
  }
  toMillis() {
    return this.#at;
  }
  toSeconds() {
    return this.#at / 1000;
  }
  toUnixInteger() {
    return Math.floor(this.#at / 1000);
  }
  toJSDate() {
    return new Date(this.#at);
  }
  valueOf() {
    return this.#at;
  }
  #zone(colon) {
    const n = Math.abs(this.#offset),
      two = (v) => String(v).padStart(2, "0");
    return (this.#offset < 0 ? "-" : "+") + two(Math.floor(n / 60)) + colon + two(n % 60);
  }
  toISO() {
    return this.#date.toISOString().slice(0, -1) + (this.#offset ? this.#zone(":") : "Z");
  }
  toISODate() {
    return this.toFormat("yyyy-MM-dd");
  }
  toISOTime() {
    return this.toISO().slice(11);
  }
  toSQLDate() {
    return this.toISODate();
  }
  toString() {
    return this.toISO();
  }
  toJSON() {
    return this.toISO();
  }
  format(format) {
    return this.toFormat(format ?? "yyyy-MM-dd");
  }
  toFormat(format) {
    const pad = (v, n) => String(v).padStart(n, "0"),
      hour = this.hour % 12 || 12;
    const tokens = {
      yyyy: () => pad(this.year, 4),
      yy: () => pad(this.year % 100, 2),
      y: () => this.year,
      MMMM: () => this.monthLong,
      MMM: () => this.monthShort,
      MM: () => pad(this.month, 2),
      M: () => this.month,
      LLLL: () => this.monthLong,
      LLL: () => this.monthShort,
      LL: () => pad(this.month, 2),
      L: () => this.month,
      dd: () => pad(this.day, 2),
      d: () => this.day,
      HH: () => pad(this.hour, 2),
      H: () => this.hour,
      hh: () => pad(hour, 2),
      h: () => hour,
      mm: () => pad(this.minute, 2),
      m: () => this.minute,
      ss: () => pad(this.second, 2),
      s: () => this.second,
      SSS: () => pad(this.millisecond, 3),
      a: () => (this.hour < 12 ? "AM" : "PM"),
      EEEE: () => this.weekdayLong,
      EEE: () => this.weekdayShort,
      E: () => this.weekday,
      cccc: () => this.weekdayLong,
      ccc: () => this.weekdayShort,
      c: () => this.weekday,
      ooo: () => pad(this.ordinal, 3),
      o: () => this.ordinal,
      W: () => this.weekNumber,
      WW: () => pad(this.weekNumber, 2),
      q: () => this.quarter,
      X: () => Math.floor(this.#at / 1000),
      x: () => this.#at,
      ZZZ: () => this.#zone(""),
      ZZ: () => this.#zone(":"),
      Z: () => this.#zone(":"),
      z: () => "UTC",
      S: () => this.millisecond,
      DD: () => `${this.monthShort} ${this.day}, ${this.year}`,
      D: () => `${this.month}/${this.day}/${this.year}`,
    };
    return String(format).replace(/'([^']*)'|([A-Za-z])\2*/g, (token, literal) =>
      literal !== undefined ? literal : tokens[token] ? String(tokens[token]()) : token,
    );
  }
}
//@ $date
// A value of n8n as a date.
const $date = (v) =>
  v instanceof DateTime
    ? v
    : v instanceof Date
      ? DateTime.fromJSDate(v)
      : typeof v === "number" || /^\d{10,}$/.test(String(v))
        ? Math.abs(v) < 1e11
          ? DateTime.fromSeconds(v)
          : DateTime.fromMillis(v)
        : /^\d{4}-\d\d-\d\d( \d|T|$)/.test(String(v))
          ? DateTime.fromISO(String(v).replace(" ", "T"))
          : DateTime.fromMillis(Date.parse(v));
