// What the calendar says of tasks and schedules, and its addresses.
import { agentId, href, path, type API } from "../../data";
import { mediumDate, writeTime } from "../../parts/zone";

export const tasksAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "calendar", ...more);
export const schedulesAt = <const M extends string[]>(...more: M) =>
  path("agents", agentId.value, "schedules", ...more);
export const toTask = (id: string, start?: string) =>
  `${href(agentId.value, "calendar", "tasks", id)}${start ? `?at=${encodeURIComponent(start)}` : ""}`;
export const toSchedule = (id: string) => href(agentId.value, "calendar", "schedules", id);

export const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const list = (all: string[]) => (all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`);
const fromMonday = (days: number[]) => [...days].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7));
const ordinal = (n: number) =>
  n === -1 ? "last day" : `${n}${n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;

/** How a task recurs; "" for one that does not. */
export function recurs(
  t: Pick<API.Task, "recurrence" | "recurrence_days" | "recurrence_end" | "recurrence_count">,
): string {
  const days = t.recurrence_days;
  const often = {
    daily: "Every day",
    weekly: days.length ? `Every ${list(fromMonday(days).map((d) => weekdays[d]))}` : "Every week",
    monthly: days.length ? `On the ${list(days.map(ordinal))} of each month` : "Every month",
  }[t.recurrence as string];
  if (!often) return "";
  return [
    often,
    t.recurrence_count ? `${t.recurrence_count} times` : "",
    t.recurrence_end ? `until ${writeTime(t.recurrence_end, undefined, mediumDate)}` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

/** What a schedule calls, as people say it. */
export const calls: [string, string][] = [
  ["workflow", "A workflow"],
  ["agent", "The agent, with a prompt"],
  ["tool", "A tool"],
  ["source", "Refresh a source"],
  ["webhook", "A webhook"],
];
export const misfires: [string, string][] = [
  ["run_once", "Run once to catch up"],
  ["skip", "Skip them"],
  ["run_all", "Run each missed run"],
];
export const overlaps: [string, string][] = [
  ["skip", "Skip the new one"],
  ["queue", "Run it afterwards"],
  ["allow", "Run both"],
];
export const titleOf = (options: [string, string][], value: string) => options.find(([v]) => v === value)?.[1] ?? value;
