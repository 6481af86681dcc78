// What can be done with one schedule.
import { go, invalidate, mayEdit, post, put, remove, type API } from "../../data";
import { deleteLater, openDialog, showToast, type MenuItem } from "../../ui";
import { ScheduleForm } from "./lazy";
import { schedulesAt, toSchedule } from "./labels";

const hour = 3_600_000; // milliseconds

/** Runs a schedule at once, whatever its times. */
export async function runNow(schedule: API.Schedule, reload: () => Promise<void>) {
  await post(schedulesAt(schedule.id, "run"));
  showToast(`${schedule.name} runs`);
  invalidateLists();
  await reload();
}

/** Pauses or resumes a schedule; it can be undone. */
export async function setStatus({ id, status: previous }: API.Schedule, status: string, reload: () => Promise<void>) {
  try {
    await put(schedulesAt(id), { status });
    showToast(status === "paused" ? "It is paused" : "Active", () => {
      void put(schedulesAt(id), { status: previous }).then(reload, showToast);
    });
  } catch (error) {
    showToast(error);
  }
  invalidateLists();
  await reload();
}

const invalidateLists = () => invalidate(`${schedulesAt()}?`);

/** Opens the form of a schedule. */
export function openScheduleForm(schedule: API.Schedule, zone: string, reload: () => Promise<void>) {
  openDialog((close) => <ScheduleForm schedule={schedule} zone={zone} close={close} made={() => void reload()} />);
}

/** Creates a schedule like another one; one that runs once gets a time to come. */
async function duplicate(schedule: API.Schedule) {
  const time = schedule.next_run ?? new Date(Date.now() + hour).toISOString();
  const { id } = await post(schedulesAt(), {
    ...schedule,
    name: `${schedule.name} (copy)`,
    status: undefined,
    id: undefined,
    next_run: schedule.type === "once" ? time : undefined,
  });
  go(toSchedule(id));
}

function statusItem(schedule: API.Schedule, reload: () => Promise<void>): Exclude<MenuItem, "-"> {
  if (schedule.status === "active")
    return { label: "Pause", icon: "Pause", run: () => setStatus(schedule, "paused", reload) };
  const label = schedule.status === "paused" ? "Resume" : "Make active";
  return { label, icon: "Play", run: () => setStatus(schedule, "active", reload) };
}

/** The menu of a schedule; setShown hides it until its deletion can no longer be undone. */
export function scheduleActions(
  schedule: API.Schedule,
  zone: string,
  reload: () => Promise<void>,
  setShown: (shown: boolean) => void,
): MenuItem[] {
  const access = { disabled: !mayEdit.value, reason: mayEdit.value ? undefined : "You have read-only access." };
  const deleteSchedule = () => {
    setShown(false);
    deleteLater(
      `${schedule.name} deleted`,
      () => remove(schedulesAt(schedule.id)).then(reload),
      () => setShown(true),
    );
  };
  return [
    { label: "Run now", icon: "Play", ...access, run: () => runNow(schedule, reload) },
    { label: "Edit", icon: "Pencil", ...access, run: () => openScheduleForm(schedule, zone, reload) },
    { label: "Duplicate", icon: "Copy", ...access, run: () => duplicate(schedule) },
    { ...statusItem(schedule, reload), ...access },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, ...access, run: deleteSchedule },
  ];
}
