// The form of a task.
import type { ComponentChildren } from "preact";

import { invalidate, post, put, type API } from "../../data";
import { FormDialog, SelectField, TextArea, TextField, type FormState } from "../../ui";
import { PickField } from "../../parts/pick";
import { DateTimeField, momentOf } from "../../parts/timefield";
import { wallTimeOf, zones } from "../../parts/zone";
import type { Task } from "./data";
import { askScope, changeOccurrences, movedTimes, type Scope } from "./occurrence";
import { tasksAt, weekdays } from "./labels";

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

/** The values of the form for a task, or for one of its occurrences; start is the wall time of a new task. */
function valuesOf(task: API.Task | undefined, occurrence: Task | undefined, zone: string, start: string): TaskValues {
  const timezone = task?.timezone ?? zone;
  const shown = occurrence ?? task;
  return {
    title: shown?.title ?? "",
    description: shown?.description ?? "",
    start_time: shown ? wallTimeOf(shown.start_time, timezone) : start,
    end_time: shown ? wallTimeOf(shown.end_time, timezone) : "",
    timezone,
    recurrence: task?.recurrence ?? "none",
    recurrence_days: task?.recurrence_days ?? [],
    recurrence_end: task?.recurrence_end ? wallTimeOf(task.recurrence_end, timezone).slice(0, 10) : "",
    recurrence_count: task?.recurrence_count ? String(task.recurrence_count) : "",
    workflow_id: task?.workflow_id ?? "",
    status: task?.status ?? "pending",
  };
}

/** The body of the request for the values of the form. */
function bodyOf(values: TaskValues, task: API.Task | undefined, zone: string): API.TaskChange {
  const { title, description, timezone, recurrence, recurrence_days, workflow_id, status } = values;
  const recurs = recurrence !== "none";
  const body: API.TaskChange = {
    title,
    description,
    start_time: momentOf("start_time", values.start_time, timezone || zone),
    end_time: momentOf("end_time", values.end_time, timezone || zone),
    timezone: timezone || undefined,
    recurrence,
    workflow_id,
    recurrence_days: ["weekly", "monthly"].includes(recurrence) ? recurrence_days : [],
    recurrence_end: recurs ? values.recurrence_end || null : null,
    recurrence_count: recurs && values.recurrence_count ? Number(values.recurrence_count) : null,
  };
  if (task && status !== task.status) body.status = status;
  return body;
}

/** The names of the values that differ. */
const changedFields = (values: TaskValues, initial: TaskValues) =>
  (Object.keys(initial) as (keyof TaskValues)[]).filter(
    (name) => JSON.stringify(values[name]) !== JSON.stringify(initial[name]),
  );

type TaskFormProps = {
  /** The task to change; without one a new one is created. */
  task?: API.Task;
  /** The occurrence that was opened. */
  one?: Task;
  zone: string;
  /** The wall time at which a new task begins. */
  start?: string;
  top?: ComponentChildren;
  close: () => void;
  saved?: (scope?: Scope) => void;
};

/** Creates a task, or changes one. */
export function TaskForm({ task, one, zone, start = "", top, close, saved }: TaskFormProps) {
  const initial = valuesOf(task, one, zone, start);
  const run = async (values: TaskValues) => {
    const body = bodyOf(values, task, zone);
    let scope: Scope | undefined;
    if (task && one) scope = await saveOccurrences(one, task, body, changedFields(values, initial));
    else await (task ? put(tasksAt(task.id), body) : post(tasksAt(), body));
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
      {(form) => (
        <>
          {top}
          <TextField label="Title" required autoFocus {...form.text("title")} />
          <div class="row">
            <DateTimeField
              label="Begins"
              required
              {...form.text("start_time")}
              onInput={(time) => moveStart(form, time)}
            />
            <DateTimeField label="Ends" hint={task ? undefined : "Empty: one hour later."} {...form.text("end_time")} />
          </div>
          <Recurrence form={form} />
          <PickField
            label="Starts a workflow"
            kind="workflows"
            none="None"
            value={form.values.workflow_id}
            onChange={(id) => form.set("workflow_id", id)}
            error={form.issue("workflow_id")}
          />
          <TextArea label="Description" rows={2} {...form.text("description")} />
          <TextField
            label="Time zone"
            list={zones()}
            hint="The times above are in this zone."
            {...form.text("timezone")}
          />
          {task && (
            <SelectField
              label="Status"
              options={task.status === "running" ? [["running", "Running"], ...statuses] : statuses}
              {...form.choice("status")}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}

const timeFields = ["start_time", "end_time"];

const hour = 3_600_000; // milliseconds

/** The occurrences that a change of fields can be for. */
function scopesOf(changed: string[]): Scope[] {
  if (changed.includes("status")) return ["all"];
  const single = changed.every((field) => ["title", "description", ...timeFields].includes(field));
  return single ? ["this", "following", "all"] : ["following", "all"];
}

/** Saves the fields of a form that changed, for the occurrences that the person chooses. */
async function saveOccurrences(one: Task, task: API.Task, body: API.TaskChange, changed: string[]): Promise<Scope> {
  if (!changed.length) return "this";
  const scope = await askScope("Edit recurring task", "Save", scopesOf(changed));
  if (!scope) throw new DOMException("not saved", "AbortError");
  const change: API.TaskChange = Object.fromEntries(Object.entries(body).filter(([field]) => changed.includes(field)));
  if (changed.includes("recurrence")) change.recurrence_days = body.recurrence_days;
  if (changed.includes("timezone") || changed.some((field) => timeFields.includes(field)))
    Object.assign(
      change,
      timesOf(one, task, body, scope),
      change.recurrence_days && {
        recurrence_days: change.recurrence_days,
      },
    );
  await changeOccurrences(one, task, scope, change);
  return scope;
}

/** The change of times for occurrences. */
function timesOf(one: Task, task: API.Task, { start_time, end_time }: API.TaskChange, scope: Scope): API.TaskChange {
  if (scope === "this") return { start_time, end_time };
  const start = new Date(start_time!);
  const end = new Date(end_time ?? start.getTime() + hour);
  return movedTimes(task, one, start, end, scope);
}

/** Changes the start, and moves the end along with it. */
function moveStart(form: FormState<TaskValues>, start: string) {
  const { start_time: previous, end_time: end } = form.values;
  const difference = Date.parse(`${start}Z`) - Date.parse(`${previous}Z`);
  if (end && difference) form.set("end_time", new Date(Date.parse(`${end}Z`) + difference).toISOString().slice(0, 16));
  form.set("start_time", start);
}

const weekdayButtons = [1, 2, 3, 4, 5, 6, 0].map((day): DayButton => [day, weekdays[day].slice(0, 2), weekdays[day]]);
const monthDayButtons: DayButton[] = [
  ...Array.from({ length: 31 }, (_, i): DayButton => [i + 1, String(i + 1), `Day ${i + 1}`]),
  [-1, "last", "The last day"],
];

/** How often a task takes place. */
function Recurrence({ form }: { form: FormState<TaskValues> }) {
  const { recurrence, recurrence_days: days } = form.values;
  const toggle = (day: number) =>
    form.set("recurrence_days", days.includes(day) ? days.filter((other) => other !== day) : [...days, day]);
  const dayProps = { chosen: days, toggle, hint: "Empty: the day it starts." };
  const issue = form.issue("recurrence_days");
  return (
    <>
      <div class="row">
        <SelectField
          label="Repeats"
          options={recurrences}
          value={recurrence}
          error={form.issue("recurrence")}
          onChange={(chosen) => {
            form.set("recurrence", chosen as TaskValues["recurrence"]);
            form.set("recurrence_days", []);
          }}
        />
        {recurrence !== "none" && (
          <>
            <TextField label="Until" type="date" {...form.text("recurrence_end")} />
            <TextField label="How many times" type="number" placeholder="no limit" {...form.text("recurrence_count")} />
          </>
        )}
      </div>
      {recurrence === "weekly" && <DayButtons label="On" days={weekdayButtons} {...dayProps} />}
      {recurrence === "monthly" && <DayButtons label="On the days" days={monthDayButtons} {...dayProps} />}
      {issue && (
        <p class="issue" role="alert">
          {issue}
        </p>
      )}
    </>
  );
}

type DayButton = [day: number, short: string, name: string];

type DayButtonsProps = {
  label: string;
  days: DayButton[];
  chosen: number[];
  toggle: (day: number) => void;
  hint?: string;
};

/** Days to choose from. */
export function DayButtons({ label, days, chosen, toggle, hint }: DayButtonsProps) {
  return (
    <fieldset class="field day-buttons">
      <legend>{label}</legend>
      <div>
        {days.map(([day, short, name]) => (
          <button
            key={day}
            type="button"
            class="button"
            aria-label={name}
            aria-pressed={chosen.includes(day)}
            onClick={() => toggle(day)}
          >
            {short}
          </button>
        ))}
      </div>
      {hint && <small class="muted">{hint}</small>}
    </fieldset>
  );
}
