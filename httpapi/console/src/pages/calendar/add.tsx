import { useState } from "preact/hooks";

import { go } from "../../data";
import { Segments } from "../../ui";
import { addDays, wallTimeOf } from "../../parts/zone";
import { ScheduleForm } from "./scheduleform";
import { TaskForm } from "./taskform";
import { toSchedule } from "./labels";

export { ScheduleForm, TaskForm };

/** Makes a task or a schedule, at the time that was clicked if there is one. */
export function AddDialog({
  zone,
  date,
  minute,
  kind: first,
  close,
}: {
  zone: string;
  date?: string;
  minute?: number;
  kind: "task" | "schedule";
  close: () => void;
}) {
  const [kind, setKind] = useState(first);
  const top = (
    <Segments
      label="Add"
      value={kind}
      options={[
        ["task", "Task"],
        ["schedule", "Schedule"],
      ]}
      onChange={(k) => setKind(k as "task")}
    />
  );
  const at = startAt(zone, date, minute);
  if (kind === "task") return <TaskForm key="task" zone={zone} start={at} top={top} close={close} />;
  return (
    <ScheduleForm
      key="schedule"
      zone={zone}
      start={date ? at : undefined}
      top={top}
      close={close}
      made={(s) => {
        if (!date) go(toSchedule(s.id));
      }}
    />
  );
}

/** When what is added begins: at the time that was clicked, at nine of a day, or at the next full hour. */
function startAt(zone: string, date?: string, minute?: number) {
  const now = wallTimeOf(Date.now(), zone);
  const hour = Number(now.slice(11, 13)) + 1;
  const nextHour =
    hour > 23 ? `${addDays(now.slice(0, 10), 1)}T00:00` : `${now.slice(0, 10)}T${String(hour).padStart(2, "0")}:00`;
  if (!date) return nextHour;
  if (minute === undefined) return date === now.slice(0, 10) ? nextHour : `${date}T09:00`;
  return `${date}T${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
}
