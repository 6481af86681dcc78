// One task, beside the calendar.
import { useEffect } from "preact/hooks";

import {
  agentId,
  go,
  href,
  mayEdit,
  onChange,
  path,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../../data";
import { Badge, Button, deleteLater, Drawer, Load, Name, openDialog, tell } from "../../ui";
import { writeTime } from "../../parts/zone";
import type { Days, Task } from "./data";
import { deleteOccurrences, occurrenceAt } from "./occurrence";
import { TaskForm } from "./later";
import { recurs, tasksAt } from "./words";

/** A task in the drawer; start is the original one of the occurrence that was opened. */
export function TaskDrawer({ id, start, zone, days }: { id: string; start?: string; zone: string; days: Days }) {
  const found = useQuery<API.Task>(tasksAt(id));
  useEffect(
    () =>
      onChange("task", (c) => {
        if (c.id === id && c.op === "update") void found.reload();
      }),
    [found],
  );
  const close = () => {
    const query = new URLSearchParams(route.value.query);
    query.delete("at");
    go(`${href(agentId.value, "calendar")}${query.size ? `?${query}` : ""}`);
  };
  const one = found.data.value && shownOf(found.data.value, start, days);
  return (
    <Drawer title={<Name>{one?.title ?? "Task"}</Name>} close={close} addressed>
      <Load of={found}>
        {(task) => (
          <Facts
            task={task}
            t={shownOf(task, start, days)}
            zone={zone}
            days={days}
            reload={() => {
              void found.reload();
              void days.reload();
            }}
            close={close}
          />
        )}
      </Load>
    </Drawer>
  );
}

/** The occurrence of a task that was opened: as the calendar lists it, or made of the task where the calendar does not reach. */
function shownOf(task: API.Task, start: string | undefined, days: Days): Task {
  if (task.recurrence === "none" || !start || Number.isNaN(Date.parse(start))) return task;
  const listed = days.data.value?.tasks.find((x) => x.id === task.id && x.original_start === start);
  if (listed) return listed;
  const e = task.exceptions.find((x) => x.original_start === start);
  const end = new Date(Date.parse(start) + Date.parse(task.end_time) - Date.parse(task.start_time)).toISOString();
  return {
    ...task,
    title: e?.title ?? task.title,
    description: e?.description ?? task.description,
    original_start: start,
    start_time: e?.start_time ?? start,
    end_time: e?.end_time ?? end,
    status: e?.cancelled ? "cancelled" : task.status,
  };
}

const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

function Facts({
  task,
  t,
  zone,
  days,
  reload,
  close,
}: {
  task: API.Task;
  t: Task;
  zone: string;
  days: Days;
  reload: () => void;
  close: () => void;
}) {
  const workflow = useQuery<API.Workflow>(
    t.workflow_id ? path("agents", agentId.value, "workflows", t.workflow_id) : null,
  );
  const one = t.original_start !== undefined && task.recurrence !== "none";
  const moved = one && t.start_time !== t.original_start;
  const cancelled = one && task.exceptions.some((e) => e.cancelled && e.original_start === t.original_start);
  const sameDay =
    writeTime(t.start_time, zone, { dateStyle: "short" }) === writeTime(t.end_time, zone, { dateStyle: "short" });
  const set = (status: Task["status"]) => async () => {
    await put(tasksAt(t.id), { status });
    reload();
  };
  const restore = async () => {
    try {
      await put(occurrenceAt(t), moved ? { start_time: null } : {});
      reload();
    } catch (error) {
      tell(error);
    }
  };
  const drop = () => {
    if (one) return void deleteOccurrences(days, t, close);
    const tasks = days.data.value?.tasks.filter((x) => x.id === t.id) ?? [];
    days.set((d) => ({ ...d, tasks: d.tasks.filter((x) => x.id !== t.id) }));
    close();
    deleteLater(
      `${t.title} deleted`,
      () => remove(tasksAt(t.id)),
      () => days.set((d) => ({ ...d, tasks: [...d.tasks, ...tasks] })),
    );
  };
  return (
    <div class="stack">
      <p>
        {writeTime(t.start_time, zone, { weekday: "long", day: "numeric", month: "long", year: "numeric" })}
        <br />
        {writeTime(t.start_time, zone, clock)} –{" "}
        {writeTime(t.end_time, zone, sameDay ? clock : { day: "numeric", month: "long", ...clock })}
      </p>
      <p class="row">
        <Badge>{t.status}</Badge>
        {t.recurrence !== "none" && <span class="muted">{recurs(task)}</span>}
      </p>
      {moved && <p class="muted small">Moved from {writeTime(t.original_start!, zone)}.</p>}
      {t.description && (
        <p class="notes-text">
          <bdi>{t.description}</bdi>
        </p>
      )}
      <dl class="facts-list">
        {t.workflow_id && (
          <>
            <dt>Starts</dt>
            <dd>
              <a href={href(agentId.value, "workflows", t.workflow_id)}>
                <Name>{workflow.data.value?.name ?? "a workflow"}</Name>
              </a>
            </dd>
          </>
        )}
        {task.recurrence !== "none" && (
          <>
            <dt>Next</dt>
            <dd>{task.next_run ? writeTime(task.next_run, zone) : "None: it has ended"}</dd>
          </>
        )}
        {t.timezone !== zone && (
          <>
            <dt>Time zone</dt>
            <dd>{t.timezone}</dd>
          </>
        )}
      </dl>
      {mayEdit.value &&
        (cancelled ? (
          <div class="row">
            <Button icon="Undo2" onClick={restore}>
              Restore
            </Button>
          </div>
        ) : (
          <div class="row">
            <Button
              icon="Pencil"
              onClick={() => {
                openDialog((done) => (
                  <TaskForm
                    task={task}
                    one={one ? t : undefined}
                    zone={zone}
                    close={done}
                    saved={(scope) => {
                      reload();
                      if (!scope) setQuery({ at: null });
                      else if (scope !== "this") close();
                    }}
                  />
                ));
              }}
            >
              Edit
            </Button>
            {moved && t.status === "pending" && (
              <Button icon="Undo2" onClick={restore}>
                Move back
              </Button>
            )}
            {!one && !t.workflow_id && t.status === "pending" && (
              <Button icon="Check" onClick={set("completed")}>
                Done
              </Button>
            )}
            {!one && t.status === "pending" && <Button onClick={set("cancelled")}>Cancel task</Button>}
            {["cancelled", "completed", "failed"].includes(task.status) && (
              <Button onClick={set("pending")}>Reopen</Button>
            )}
            <Button kind="danger" icon="Trash2" onClick={drop}>
              {one || t.recurrence === "none" ? "Delete" : "Delete all"}
            </Button>
          </div>
        ))}
    </div>
  );
}
