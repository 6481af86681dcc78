// One task, beside the calendar.
import { useEffect } from "preact/hooks";

import { agentId, go, href, mayEdit, onChange, path, put, remove, route, useQuery } from "../../data";
import { Badge, Button, deleteLater, Drawer, Load, Name, openDialog } from "../../ui";
import { writeTime } from "../../parts/zone";
import type { Days } from "./data";
import { TaskForm } from "./taskform";
import { recurs, tasksAt } from "./words";

/** A task in the drawer; start is that of the occurrence that was opened. */
export function TaskDrawer({ id, start, zone, days }: { id: string; start?: string; zone: string; days: Days }) {
  const found = useQuery(tasksAt(id));
  useEffect(() => onChange("task", (c) => { if (c.id === id && c.op === "update") void found.reload(); }), [found]);
  const close = () => {
    const query = new URLSearchParams(route.value.query);
    query.delete("at");
    go(`${href(agentId.value, "calendar")}${query.size ? `?${query}` : ""}`);
  };
  return (
    <Drawer title={<Name>{found.data.value?.title ?? "Task"}</Name>} close={close} addressed>
      <Load of={found}>{(t: any) => <Facts t={t} start={start} zone={zone} days={days} reload={() => { void found.reload(); void days.reload(); }} close={close} />}</Load>
    </Drawer>
  );
}

const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

function Facts({ t, start, zone, days, reload, close }: { t: any; start?: string; zone: string; days: Days; reload: () => void; close: () => void }) {
  const workflow = useQuery(t.workflow_id ? path("agents", agentId.value, "workflows", t.workflow_id) : null);
  const begins = start && t.recurrence !== "none" && !Number.isNaN(Date.parse(start)) ? new Date(start) : new Date(t.start_time);
  const ends = new Date(begins.getTime() + Date.parse(t.end_time) - Date.parse(t.start_time));
  const mine = days.data.value?.tasks.find((x) => x.id === t.id && x.start_time === start);
  const status = mine?.status ?? t.status;
  const sameDay = writeTime(begins, zone, { dateStyle: "short" }) === writeTime(ends, zone, { dateStyle: "short" });
  const set = (s: string) => async () => { await put(tasksAt(t.id), { status: s }); reload(); };
  const drop = () => {
    const tasks = days.data.value?.tasks.filter((x) => x.id === t.id) ?? [];
    days.set((d) => ({ ...d, tasks: d.tasks.filter((x) => x.id !== t.id) }));
    close();
    deleteLater(`${t.title} deleted`, () => remove(tasksAt(t.id)), () => days.set((d) => ({ ...d, tasks: [...d.tasks, ...tasks] })));
  };
  return (
    <div class="stack">
      <p>{writeTime(begins, zone, { weekday: "long", day: "numeric", month: "long", year: "numeric" })}<br />{writeTime(begins, zone, clock)} – {writeTime(ends, zone, sameDay ? clock : { day: "numeric", month: "long", ...clock })}</p>
      <p class="row"><Badge>{status}</Badge>{t.recurrence !== "none" && <span class="muted">{recurs(t)}</span>}</p>
      {t.description && <p class="notes-text"><bdi>{t.description}</bdi></p>}
      <dl class="facts-list">
        {t.workflow_id && <><dt>Starts</dt><dd><a href={href(agentId.value, "workflows", t.workflow_id)}><Name>{workflow.data.value?.name ?? "a workflow"}</Name></a></dd></>}
        <dt>Next</dt><dd>{t.next_run ? writeTime(t.next_run, zone) : "not again"}</dd>
        {t.timezone !== zone && <><dt>Kept in</dt><dd>{t.timezone}</dd></>}
      </dl>
      {mayEdit.value && (
        <div class="row">
          <Button icon="Pencil" onClick={() => { openDialog((done) => <TaskForm task={t} zone={zone} close={done} saved={reload} />); }}>Edit</Button>
          {t.recurrence === "none" && !t.workflow_id && t.status === "pending" && <Button icon="Check" onClick={set("completed")}>Done</Button>}
          {t.status === "pending" && <Button onClick={set("cancelled")}>Cancel the task</Button>}
          {["cancelled", "completed", "failed"].includes(t.status) && <Button onClick={set("pending")}>Open again</Button>}
          <Button kind="danger" icon="Trash2" onClick={drop}>{t.recurrence === "none" ? "Delete" : "Delete all of them"}</Button>
        </div>
      )}
    </div>
  );
}
