import type { ComponentChildren } from "preact";

import { invalidate, post, put, type API } from "../../data";
import { FormDialog, SelectField, TextArea, TextField, type FormState } from "../../ui";
import { PickField } from "../../parts/pick";
import { instantOf, wallOf, zones } from "../../parts/zone";
import type { Task } from "./data";
import { askScope, changeOccurrences, movedTimes, type Scope } from "./occurrence";
import { tasksAt, weekdays } from "./words";

const recurrences: [string, string][] = [
  ["none", "Once"],
  ["daily", "Every day"],
  ["weekly", "Every week"],
  ["monthly", "Every month"],
];
const statuses: [string, string][] = [
  ["pending", "Pending"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
];

type TaskValues = {
  title: string;
  description: string;
  start_time: string;
  end_time: string;
  timezone: string;
  recurrence: API.Task["recurrence"];
  recurrence_days: number[];
  recurrence_end: string;
  recurrence_count: string;
  workflow_id: string;
  status: API.Task["status"];
};

/** Makes a task that begins at a wall time, or changes one; one is the occurrence that was opened. */
export function TaskForm({
  task,
  one,
  zone,
  start = "",
  top,
  close,
  saved,
}: {
  task?: API.Task;
  one?: Task;
  zone: string;
  start?: string;
  top?: ComponentChildren;
  close: () => void;
  saved?: (scope?: Scope) => void;
}) {
  const home = task?.timezone ?? zone;
  const shown = one ?? task;
  const initial: TaskValues = {
    title: shown?.title ?? "",
    description: shown?.description ?? "",
    start_time: shown ? wallOf(shown.start_time, home) : start,
    end_time: shown ? wallOf(shown.end_time, home) : "",
    timezone: home,
    recurrence: task?.recurrence ?? "none",
    recurrence_days: task?.recurrence_days ?? [],
    recurrence_end: task?.recurrence_end ? wallOf(task.recurrence_end, home).slice(0, 10) : "",
    recurrence_count: task?.recurrence_count ? String(task.recurrence_count) : "",
    workflow_id: task?.workflow_id ?? "",
    status: task?.status ?? "pending",
  };
  const run = async (v: TaskValues) => {
    const at = (wall: string) => (wall ? instantOf(wall, v.timezone || zone).toISOString() : undefined);
    const again = v.recurrence !== "none";
    const body: API.TaskChange = {
      title: v.title,
      description: v.description,
      start_time: at(v.start_time),
      end_time: at(v.end_time),
      timezone: v.timezone || undefined,
      recurrence: v.recurrence,
      workflow_id: v.workflow_id,
      recurrence_days: ["weekly", "monthly"].includes(v.recurrence) ? v.recurrence_days : [],
      recurrence_end: again ? v.recurrence_end || null : null,
      recurrence_count: again && v.recurrence_count ? Number(v.recurrence_count) : null,
    };
    if (task && v.status !== task.status) body.status = v.status;
    const scope =
      task && one
        ? await saveOccurrences(
            one,
            task,
            body,
            (Object.keys(initial) as (keyof typeof initial)[]).filter(
              (f) => JSON.stringify(v[f]) !== JSON.stringify(initial[f]),
            ),
          )
        : undefined;
    if (!one) await (task ? put(tasksAt(task.id), body) : post(tasksAt(), body));
    invalidate(tasksAt());
    saved?.(scope);
  };
  return (
    <FormDialog
      title={task ? "Edit task" : "New task"}
      close={close}
      action={task ? "Save" : "Create"}
      initial={initial}
      run={run}
    >
      {(f) => (
        <>
          {top}
          <TextField label="Title" required autoFocus {...f.text("title")} />
          <div class="row">
            <TextField
              label="Begins"
              type="datetime-local"
              required
              {...f.text("start_time")}
              onInput={(start) => begin(f, start)}
            />
            <TextField
              label="Ends"
              type="datetime-local"
              hint={task ? undefined : "Empty: one hour later."}
              {...f.text("end_time")}
            />
          </div>
          <Repeats f={f} />
          <PickField
            label="Starts a workflow"
            kind="workflows"
            none="None"
            value={f.values.workflow_id}
            onChange={(id) => f.set("workflow_id", id)}
            error={f.issue("workflow_id")}
          />
          <TextArea label="Description" rows={2} {...f.text("description")} />
          <TextField
            label="Time zone"
            list={zones()}
            hint="The times above are in this zone."
            {...f.text("timezone")}
          />
          {task && (
            <SelectField
              label="Status"
              options={task.status === "running" ? [["running", "Running"], ...statuses] : statuses}
              {...f.choice("status")}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}

const timeFields = ["start_time", "end_time"];

/** Saves the fields of a form that changed, for the occurrences that the person chooses. */
async function saveOccurrences(one: Task, task: API.Task, body: API.TaskChange, changed: string[]): Promise<Scope> {
  if (!changed.length) return "this";
  const own = changed.every((f) => ["title", "description", ...timeFields].includes(f));
  const scope = await askScope(
    "Edit recurring task",
    "Save",
    changed.includes("status") ? ["all"] : own ? ["this", "following", "all"] : ["following", "all"],
  );
  if (!scope) throw new DOMException("not saved", "AbortError");
  const change: API.TaskChange = Object.fromEntries(Object.entries(body).filter(([f]) => changed.includes(f)));
  if (changed.includes("recurrence")) change.recurrence_days = body.recurrence_days;
  const times = changed.some((f) => timeFields.includes(f)) || changed.includes("timezone");
  if (times && scope === "this") Object.assign(change, { start_time: body.start_time, end_time: body.end_time });
  else if (times)
    Object.assign(change, {
      ...movedTimes(
        task,
        one,
        new Date(body.start_time!),
        new Date(body.end_time ?? Date.parse(body.start_time!) + 3_600_000),
        scope,
      ),
      ...(change.recurrence_days && { recurrence_days: change.recurrence_days }),
    });
  await changeOccurrences(one, task, scope, change);
  return scope;
}

/** Moves the beginning, and the end along with it. */
function begin(f: FormState<TaskValues>, start: string) {
  const { start_time: was, end_time: end } = f.values;
  const moved = Date.parse(`${start}Z`) - Date.parse(`${was}Z`);
  if (end && moved) f.set("end_time", new Date(Date.parse(`${end}Z`) + moved).toISOString().slice(0, 16));
  f.set("start_time", start);
}

/** How often a task takes place. */
function Repeats({ f }: { f: FormState<TaskValues> }) {
  const often = f.values.recurrence;
  const days = f.values.recurrence_days;
  const turn = (d: number) => f.set("recurrence_days", days.includes(d) ? days.filter((x) => x !== d) : [...days, d]);
  return (
    <>
      <div class="row">
        <SelectField
          label="Repeats"
          options={recurrences}
          value={often}
          error={f.issue("recurrence")}
          onChange={(v) => {
            f.set("recurrence", v as TaskValues["recurrence"]);
            f.set("recurrence_days", []);
          }}
        />
        {often !== "none" && (
          <>
            <TextField label="Until" type="date" {...f.text("recurrence_end")} />
            <TextField label="How many times" type="number" placeholder="no limit" {...f.text("recurrence_count")} />
          </>
        )}
      </div>
      {often === "weekly" && (
        <DayButtons
          label="On"
          days={[1, 2, 3, 4, 5, 6, 0].map((d) => [d, weekdays[d].slice(0, 2), weekdays[d]])}
          chosen={days}
          turn={turn}
          hint="Empty: the day it starts."
        />
      )}
      {often === "monthly" && (
        <DayButtons
          label="On the days"
          days={[
            ...Array.from({ length: 31 }, (_, i): [number, string, string] => [i + 1, String(i + 1), `Day ${i + 1}`]),
            [-1, "last", "The last day"],
          ]}
          chosen={days}
          turn={turn}
          hint="Empty: the day it starts."
        />
      )}
      {f.issue("recurrence_days") && (
        <p class="issue" role="alert">
          {f.issue("recurrence_days")}
        </p>
      )}
    </>
  );
}

/** Days to choose from: number, short and whole name. */
export function DayButtons({
  label,
  days,
  chosen,
  turn,
  hint,
}: {
  label: string;
  days: [number, string, string][];
  chosen: number[];
  turn: (d: number) => void;
  hint?: string;
}) {
  return (
    <fieldset class="field day-buttons">
      <legend>{label}</legend>
      <div>
        {days.map(([d, short, whole]) => (
          <button
            key={d}
            type="button"
            class="button"
            aria-label={whole}
            aria-pressed={chosen.includes(d)}
            onClick={() => turn(d)}
          >
            {short}
          </button>
        ))}
      </div>
      {hint && <small class="muted">{hint}</small>}
    </fieldset>
  );
}
