// Moving tasks to another day or time by dragging them.
import { put, type API } from "../../data";
import { showToast } from "../../ui";
import { instantOf, wallTimeOf, writeDate } from "../../parts/zone";
import type { Days, Task } from "./data";
import { moveOccurrences } from "./occurrence";
import { tasksAt } from "./labels";

/** Reports whether a task can be dragged to another day. */
export const movable = (t?: Task) =>
  t !== undefined && (t.recurrence === "none" ? t.status !== "running" : t.status === "pending");

/**
 * Moves a task to another date, and a time if one is given, at once; it can be undone. Of one that recurs it asks
 * which.
 */
export async function moveTask(days: Days, t: Task, zone: string, date: string, minute?: number) {
  const was = wallTimeOf(t.start_time, zone);
  const time =
    minute === undefined
      ? was.slice(11)
      : `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
  if (`${date}T${time}` === was) return;
  const start = instantOf(`${date}T${time}`, zone);
  const where = writeDate(date, { weekday: "long", day: "numeric", month: "long" });
  if (t.recurrence !== "none") return moveOccurrences(days, t, start, where);
  const end = new Date(start.getTime() + Date.parse(t.end_time) - Date.parse(t.start_time));
  const show = (change: Partial<Task>) =>
    days.set((d) => ({ ...d, tasks: d.tasks.map((x) => (x.id === t.id ? { ...x, ...change } : x)) }));
  const store = async (change: API.TaskChange) => {
    try {
      await put(tasksAt(t.id), change);
    } catch (error) {
      showToast(error);
    }
    await days.reload();
  };
  show({ start_time: start.toISOString(), end_time: end.toISOString() });
  showToast(`${t.title} moved to ${where}`, () => {
    show({ start_time: t.start_time, end_time: t.end_time });
    void store({ start_time: t.start_time, end_time: t.end_time, status: t.status });
  });
  await store({ start_time: start.toISOString() });
}
