// Rules that repeat, as a form has them, and the cron expressions that they are.

export type Rule = {
  unit: "minutes" | "hours" | "day" | "workdays" | "week" | "month";
  every: number;
  minute: number;
  time: string;
  days: number[];
  day: number;
};

export const usualRule: Rule = { unit: "day", every: 15, minute: 0, time: "09:00", days: [1], day: 1 };

/** Reports whether a rule is for a time of day. */
export const hasTime = ({ unit }: Rule) => unit !== "minutes" && unit !== "hours";

/** The steps that divide an hour and a day. */
export const minuteSteps = [1, 2, 5, 10, 15, 20, 30];
export const hourSteps = [1, 2, 3, 4, 6, 8, 12];

/** The cron expression of a rule. */
export function cronOf(r: Rule): string {
  const [hour, minute] = r.time.split(":").map(Number);
  const step = (n: number) => (n === 1 ? "*" : `*/${n}`);
  switch (r.unit) {
    case "minutes":
      return `${step(r.every)} * * * *`;
    case "hours":
      return `${r.minute} ${step(r.every)} * * *`;
    case "day":
      return `${minute} ${hour} * * *`;
    case "workdays":
      return `${minute} ${hour} * * MON-FRI`;
    case "week":
      return `${minute} ${hour} * * ${[...r.days].sort().join(",") || "1"}`;
    case "month":
      return `${minute} ${hour} ${r.day} * *`;
  }
}

const names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const number = (text: string, max: number) =>
  /^\d{1,2}$/.test(text) && Number(text) <= max ? Number(text) : undefined;

/** The rule of a cron expression; undefined when the form has none for it. */
export function ruleOf(cron: string): Rule | undefined {
  const [m, h, d, month, w, ...more] = cron.trim().toUpperCase().split(/\s+/);
  if (w === undefined || more.length || month !== "*") return;
  const step = (text: string, steps: number[]) => (text === "*" ? 1 : steps.find((n) => text === `*/${n}`));
  const everyDay = d === "*" && w === "*";
  if (everyDay && h === "*" && step(m, minuteSteps))
    return { ...usualRule, unit: "minutes", every: step(m, minuteSteps)! };
  const minute = number(m, 59);
  if (minute === undefined) return;
  if (everyDay && step(h, hourSteps)) return { ...usualRule, unit: "hours", every: step(h, hourSteps)!, minute };
  const hour = number(h, 23);
  if (hour === undefined) return;
  const rule = { ...usualRule, time: `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}` };
  if (everyDay) return { ...rule, unit: "day" };
  if (d === "*" && ["MON-FRI", "1-5"].includes(w)) return { ...rule, unit: "workdays" };
  if (d === "*") {
    const days = w
      .split(",")
      .map((x) => (names.includes(x) ? names.indexOf(x) : number(x, 7)))
      .map((x) => (x === 7 ? 0 : x));
    return days.some((x) => x === undefined)
      ? undefined
      : { ...rule, unit: "week", days: [...new Set(days as number[])] };
  }
  const day = number(d, 31);
  return w === "*" && day ? { ...rule, unit: "month", day } : undefined;
}
