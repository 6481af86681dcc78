// What the calendar shows of some days: tasks, and what schedules did and will do.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { agentId, get, onChange, onReset, path, useQuery, type API, asError } from "../../data";
import { addDays, wallTimeOf } from "../../parts/zone";
import { schedulesAt, tasksAt, toSchedule, toTask } from "./labels";

/** A task on a day of the calendar: one that does not recur, or one occurrence. */
export type Task = API.TaskOrOccurrence;

type Shown = { tasks: Task[]; days: API.ScheduleDay[] };

/** Something on a day of the calendar. */
export type Item = {
  key: string;
  date: string;
  /** Minutes of the day; those before and behind it are cut. */
  from: number;
  to: number;
  title: string;
  href: string;
  kind: "task" | "run";
  status: string;
  /** It began on an earlier day. */
  continued: boolean;
  note: string;
  /** How many runs there are, where there are several. */
  times: string;
  task?: Task;
};

/** The time zone of the agent, whose days the calendar shows. */
export function useZone(): string {
  const settings = useQuery<API.Settings>(path("agents", agentId.value, "settings"));
  return settings.data.value?.timezone ?? "UTC";
}

const maxTasks = 1000;

async function allTasks(from: string, to: string, abort: AbortSignal) {
  const found: Task[] = [];
  for (let total = 1; found.length < Math.min(total, maxTasks);) {
    const page: API.TaskList = await get(tasksAt(), { start: from, end: to, limit: 200, offset: found.length }, abort);
    total = page.meta.total;
    if (!page.tasks.length) break;
    found.push(...page.tasks);
  }
  return found;
}

/** The tasks and the days of schedules from one date to another, kept current. */
export function useDays(from: string, to: string) {
  const state = useMemo(
    () => ({
      data: signal<Shown | undefined>(undefined),
      error: signal<Error | undefined>(undefined),
      loading: signal(false),
    }),
    [agentId.value, from, to],
  );
  const load = useMemo(() => {
    let abort: AbortController | undefined;
    return Object.assign(
      async () => {
        abort?.abort();
        const controller = (abort = new AbortController());
        state.loading.value = true;
        try {
          const [tasks, { days }] = await Promise.all([
            allTasks(from, to, controller.signal),
            get(schedulesAt("days"), { start: from, end: to }, controller.signal) as Promise<API.ScheduleDayList>,
          ]);
          if (abort === controller) {
            state.data.value = { tasks, days };
            state.error.value = undefined;
          }
        } catch (error) {
          if (abort === controller && asError(error).name !== "AbortError") state.error.value = asError(error);
        }
        if (abort === controller) state.loading.value = false;
      },
      { stop: () => abort?.abort() },
    );
  }, [state]);
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const debouncedLoad = () => {
      clearTimeout(due);
      due = setTimeout(() => void load(), 500);
    };
    const unsubscribers = [
      onChange("task", debouncedLoad),
      onChange("schedule", debouncedLoad),
      onChange("run", debouncedLoad),
      onReset(debouncedLoad),
    ];
    void load();
    return () => {
      clearTimeout(due);
      unsubscribers.forEach((off) => off());
      load.stop();
    };
  }, [load]);
  return {
    ...state,
    reload: load,
    set: (change: (d: Shown) => Shown) => {
      if (!state.data.value) return;
      load.stop(); // its answer may be older than the change
      state.data.value = change(state.data.value);
    },
  };
}

export type Days = ReturnType<typeof useDays>;

/** Up to where the service counts the runs of a day that are to come. */
const maxPlanned = 50;

const minutes = (wall: string) => Number(wall.slice(11, 13)) * 60 + Number(wall.slice(14, 16));

/** The items of days by date, in order; tasks of several days are on each. */
export function itemsOf(data: Shown, zone: string, from: string, to: string): Map<string, Item[]> {
  const all = new Map<string, Item[]>();
  const add = (i: Item) => {
    if (i.date >= from && i.date <= to) all.set(i.date, [...(all.get(i.date) ?? []), i]);
  };
  for (const t of data.tasks) {
    const [start, end] = [wallTimeOf(t.start_time, zone), wallTimeOf(t.end_time, zone)];
    for (
      let date = start.slice(0, 10), n = 0;
      n < 62 && (n === 0 || date < end.slice(0, 10) || (date === end.slice(0, 10) && minutes(end) > 0));
      date = addDays(date, 1), n++
    ) {
      add({
        key: `${t.occurrence_id ?? t.id} ${date}`,
        date,
        from: n ? 0 : minutes(start),
        to: date === end.slice(0, 10) ? minutes(end) : 1440,
        title: t.title,
        href: toTask(t.id, t.original_start),
        kind: "task",
        status: t.status,
        continued: n > 0,
        note: "",
        times: "",
        task: t,
      });
    }
  }
  for (const d of data.days) {
    const n = d.runs + d.planned;
    const many = d.planned >= maxPlanned;
    const status = d.failed
      ? "failed"
      : d.running
        ? "running"
        : d.missed
          ? "missed"
          : d.planned
            ? "planned"
            : "success";
    add({
      key: `${d.schedule_id} ${d.date}`,
      date: d.date,
      from: minutes(wallTimeOf(d.first, zone)),
      to: minutes(wallTimeOf(d.first, zone)),
      title: d.name,
      href: toSchedule(d.schedule_id),
      kind: "run",
      status,
      continued: false,
      times: many ? `${maxPlanned}+` : n > 1 ? `×${n}` : "",
      note: [
        n > 1 ? `${many ? `${maxPlanned} or more` : n} runs` : "",
        d.failed ? `${d.failed} failed` : "",
        d.missed ? `${d.missed} missed` : "",
      ]
        .filter(Boolean)
        .join(", "),
    });
  }
  for (const list of all.values()) list.sort((a, b) => a.from - b.from || a.title.localeCompare(b.title));
  return all;
}
