// Single occurrences of recurring tasks: which of them a change is for, and what it
// means for the others.
import { useState } from "preact/hooks";

import { get, put, remove, type API, type Address } from "../../data";
import { Button, deleteLater, Dialog, openDialog, showToast } from "../../ui";
import { addDays, instantOf, wallTimeOf } from "../../parts/zone";
import type { Days, Task } from "./data";
import { tasksAt } from "./labels";

export type Scope = "this" | "following" | "all";

const scopes: [Scope, string][] = [
  ["this", "This event"],
  ["following", "This and following events"],
  ["all", "All events"],
];

/** Asks which occurrences a change is for; undefined is none. */
export function askScope(
  title: string,
  action: string,
  only: Scope[] = ["this", "following", "all"],
): Promise<Scope | undefined> {
  return new Promise((resolve) => {
    openDialog((close) => (
      <ScopeDialog
        title={title}
        action={action}
        only={only}
        done={(scope) => {
          close();
          resolve(scope);
        }}
      />
    ));
  });
}

function ScopeDialog({
  title,
  action,
  only,
  done,
}: {
  title: string;
  action: string;
  only: Scope[];
  done: (scope?: Scope) => void;
}) {
  const [scope, setScope] = useState(only[0]);
  return (
    <Dialog title={title} close={() => done()}>
      <form
        class="stack"
        onSubmit={(e) => {
          e.preventDefault();
          done(scope);
        }}
      >
        <fieldset class="scopes">
          <legend class="hidden">{title}</legend>
          {scopes
            .filter(([s]) => only.includes(s))
            .map(([s, label]) => (
              <label key={s} class="row nowrap">
                <input
                  type="radio"
                  name="scope"
                  autoFocus={s === scope}
                  checked={s === scope}
                  onChange={() => setScope(s)}
                />{" "}
                {label}
              </label>
            ))}
        </fieldset>
        <div class="row end">
          <Button onClick={() => done()}>Cancel</Button>
          <Button kind={action === "Delete" ? "danger" : "primary"} submit>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The address of an occurrence, for a change of it or of it and all later ones. */
export const occurrenceAt = (t: Task, scope: Scope = "this") =>
  tasksAt(t.id, "occurrences", (t.original_start ?? t.start_time).replace(/[-:]|\.\d+/g, "")) +
  (scope === "following" ? "?scope=following" : "");

const weekday = (date: string) => new Date(`${date}T00:00:00Z`).getUTCDay();

/** The days of a recurrence when an occurrence goes from one date to another. */
function movedDays(t: API.Task, from: string, to: string): number[] {
  const swap = (a: number, b: number) =>
    [...new Set(t.recurrence_days.map((d) => (d === a ? b : d)))].sort((x, y) => x - y);
  if (t.recurrence === "weekly") return swap(weekday(from), weekday(to));
  const [day, last] = [Number(from.slice(8)), addDays(from, 1).endsWith("-01")];
  return swap(last && !t.recurrence_days.includes(day) ? -1 : day, Number(to.slice(8)));
}

/** Reports whether the first occurrence is on the same day of the recurrence as one on another date. */
const movesFirst = (t: API.Task, first: string, date: string) =>
  t.recurrence === "weekly" ? weekday(first) === weekday(date) : first.slice(8) === date.slice(8);

/** What all occurrences of a task, or with following all from this one on, become when this one is at another time. */
export function movedTimes(task: API.Task, t: Task, start: Date, end: Date, scope: Scope): API.TaskChange {
  const [from, to] = [wallTimeOf(t.start_time, task.timezone), wallTimeOf(start, task.timezone)];
  const by = Math.round((Date.parse(to.slice(0, 10)) - Date.parse(from.slice(0, 10))) / 86_400_000);
  const days =
    by && task.recurrence_days.length ? { recurrence_days: movedDays(task, from.slice(0, 10), to.slice(0, 10)) } : {};
  const lasts = end.getTime() - start.getTime();
  let first = start;
  if (scope === "all") {
    const begins = wallTimeOf(task.start_time, task.timezone).slice(0, 10);
    const movesTogether = task.recurrence_days.length < 2 || movesFirst(task, begins, from.slice(0, 10));
    first = instantOf(`${movesTogether ? addDays(begins, by) : begins}T${to.slice(11)}`, task.timezone);
  }
  return { start_time: first.toISOString(), end_time: new Date(first.getTime() + lasts).toISOString(), ...days };
}

const timing = [
  "start_time",
  "end_time",
  "recurrence_days",
  "recurrence_end",
  "recurrence_count",
  "exceptions",
] as const;

/** Changes a task where the person said; what it answers takes the change back. */
export async function changeOccurrences(
  t: Task,
  task: API.Task,
  scope: Scope,
  change: API.TaskChange,
): Promise<() => Promise<unknown>> {
  const before = Object.fromEntries(timing.map((f) => [f, task[f]]));
  if (scope === "this") {
    await put(occurrenceAt(t), change);
    return () =>
      put(occurrenceAt(t), {
        title: t.title,
        description: t.description,
        start_time: t.start_time,
        end_time: t.end_time,
      });
  }
  const made = await (scope === "all"
    ? put(tasksAt(t.id), change)
    : put(occurrenceAt(t, scope) as Address<"agents/*/calendar/*/occurrences/*">, change));
  return async () => {
    if (made.id !== t.id) await remove(tasksAt(made.id));
    await put(tasksAt(t.id), before);
  };
}

/** Asks which occurrences to delete, and deletes them; it can be undone. */
export async function deleteOccurrences(days: Days, t: Task, close: () => void) {
  const scope = await askScope("Delete recurring task", "Delete");
  if (!scope) return;
  const isDeleted = (x: Task) =>
    x.id === t.id &&
    (scope === "all" ||
      (scope === "this"
        ? x.original_start === t.original_start
        : Date.parse(x.original_start!) >= Date.parse(t.original_start!)));
  const hidden = days.data.value?.tasks.filter(isDeleted) ?? [];
  days.set((d) => ({ ...d, tasks: d.tasks.filter((x) => !isDeleted(x)) }));
  close();
  const run = () => (scope === "all" ? remove(tasksAt(t.id)) : remove(occurrenceAt(t, scope)));
  deleteLater(
    scope === "this"
      ? `${t.title} deleted`
      : scope === "following"
        ? `${t.title} and all that follow deleted`
        : `All occurrences of ${t.title} deleted`,
    run,
    () => days.set((d) => ({ ...d, tasks: [...d.tasks, ...hidden] })),
  );
}

/** Moves an occurrence, or more of them, to another time. */
export async function moveOccurrences(days: Days, t: Task, start: Date, where: string) {
  const scope = await askScope("Move recurring task", "Move");
  if (!scope) return;
  const end = new Date(start.getTime() + Date.parse(t.end_time) - Date.parse(t.start_time));
  try {
    const task: API.Task = await get(tasksAt(t.id));
    const undo = await changeOccurrences(
      t,
      task,
      scope,
      scope === "this"
        ? { start_time: start.toISOString(), end_time: end.toISOString() }
        : movedTimes(task, t, start, end, scope),
    );
    showToast(
      scope === "this"
        ? `${t.title} moved to ${where}`
        : scope === "following"
          ? `${t.title} and all that follow moved`
          : `All occurrences of ${t.title} moved`,
      () => {
        void undo().then(days.reload, showToast);
      },
    );
  } catch (error) {
    showToast(error);
  }
  await days.reload();
}
