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
import { Badge, Button, deleteLater, Drawer, Load, Name, openDialog, showToast } from "../../ui";
import { writeTime, type TimeOptions } from "../../parts/zone";
import type { Days, Task } from "./data";
import { deleteOccurrences, occurrenceAt } from "./occurrence";
import { TaskForm } from "./lazy";
import { recurs, tasksAt } from "./labels";

type DrawerProps = {
  id: string;
  /** The original start of the occurrence that was opened. */
  start?: string;
  zone: string;
  days: Days;
};

/** A task in a drawer. */
export function TaskDrawer({ id, start, zone, days }: DrawerProps) {
  const found = useQuery<API.Task>(tasksAt(id));
  useEffect(
    () =>
      onChange("task", (change) => {
        if (change.id === id && change.op === "update") void found.reload();
      }),
    [found],
  );
  const close = () => {
    const query = new URLSearchParams(route.value.query);
    query.delete("at");
    go(`${href(agentId.value, "calendar")}${query.size ? `?${query}` : ""}`);
  };
  const reload = () => {
    void found.reload();
    void days.reload();
  };
  const title = found.data.value ? occurrenceOf(found.data.value, start, days).title : "Task";
  return (
    <Drawer title={<Name>{title}</Name>} close={close} addressed>
      <Load of={found}>
        {(task) => (
          <TaskView
            task={task}
            occurrence={occurrenceOf(task, start, days)}
            zone={zone}
            days={days}
            reload={reload}
            close={close}
          />
        )}
      </Load>
    </Drawer>
  );
}

/**
 * The occurrence with an original start: as the calendar lists it, or computed from the task where the calendar doesn't
 * show that day. Of a task that does not recur it is the task.
 */
function occurrenceOf(task: API.Task, start: string | undefined, days: Days): Task {
  if (task.recurrence === "none" || !start || Number.isNaN(Date.parse(start))) return task;
  const listed = days.data.value?.tasks.find((other) => other.id === task.id && other.original_start === start);
  if (listed) return listed;
  const exception = task.exceptions.find(({ original_start }) => original_start === start);
  const duration = Date.parse(task.end_time) - Date.parse(task.start_time);
  return {
    ...task,
    title: exception?.title ?? task.title,
    description: exception?.description ?? task.description,
    original_start: start,
    start_time: exception?.start_time ?? start,
    end_time: exception?.end_time ?? new Date(Date.parse(start) + duration).toISOString(),
    status: exception?.cancelled ? "cancelled" : task.status,
  };
}

type Props = {
  task: API.Task;
  /** The occurrence that is shown; of a task that does not recur, the task. */
  occurrence: Task;
  zone: string;
  days: Days;
  reload: () => void;
  close: () => void;
};

/** Reports whether the shown occurrence is one of several. */
const isSingle = (task: API.Task, occurrence: Task) =>
  occurrence.original_start !== undefined && task.recurrence !== "none";

/** Reports whether an occurrence of a recurring task was moved. */
const isMoved = (task: API.Task, occurrence: Task) =>
  isSingle(task, occurrence) && occurrence.start_time !== occurrence.original_start;

function TaskView(props: Props) {
  const { task, occurrence, zone } = props;
  return (
    <div class="stack">
      <Times occurrence={occurrence} zone={zone} />
      <p class="row">
        <Badge>{occurrence.status}</Badge>
        {occurrence.recurrence !== "none" && <span class="muted">{recurs(task)}</span>}
      </p>
      {isMoved(task, occurrence) && (
        <p class="muted small">Moved from {writeTime(occurrence.original_start!, zone)}.</p>
      )}
      {occurrence.description && (
        <p class="notes-text">
          <bdi>{occurrence.description}</bdi>
        </p>
      )}
      <Facts task={task} occurrence={occurrence} zone={zone} />
      {mayEdit.value && <TaskActions {...props} />}
    </div>
  );
}

const clock: TimeOptions = { hour: "2-digit", minute: "2-digit" };

function Times({ occurrence: { start_time, end_time }, zone }: Pick<Props, "occurrence" | "zone">) {
  const dateOf = (time: string) => writeTime(time, zone, { dateStyle: "short" });
  const endFormat: TimeOptions =
    dateOf(start_time) === dateOf(end_time) ? clock : { day: "numeric", month: "long", ...clock };
  return (
    <p>
      {writeTime(start_time, zone, { weekday: "long", day: "numeric", month: "long", year: "numeric" })}
      <br />
      {writeTime(start_time, zone, clock)} – {writeTime(end_time, zone, endFormat)}
    </p>
  );
}

function Facts({ task, occurrence, zone }: Pick<Props, "task" | "occurrence" | "zone">) {
  const { workflow_id, timezone } = occurrence;
  const workflow = useQuery<API.Workflow>(workflow_id ? path("agents", agentId.value, "workflows", workflow_id) : null);
  return (
    <dl class="facts-list">
      {workflow_id && (
        <>
          <dt>Starts</dt>
          <dd>
            <a href={href(agentId.value, "workflows", workflow_id)}>
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
      {timezone !== zone && (
        <>
          <dt>Time zone</dt>
          <dd>{timezone}</dd>
        </>
      )}
    </dl>
  );
}

/** Deletes a task that is shown as a whole; it can be undone. */
function deleteTask(days: Days, { id, title }: Task) {
  const deleted = days.data.value?.tasks.filter((task) => task.id === id) ?? [];
  days.set((shown) => ({ ...shown, tasks: shown.tasks.filter((task) => task.id !== id) }));
  deleteLater(
    `${title} deleted`,
    () => remove(tasksAt(id)),
    () => days.set((shown) => ({ ...shown, tasks: [...shown.tasks, ...deleted] })),
  );
}

function TaskActions({ task, occurrence, zone, days, reload, close }: Props) {
  const single = isSingle(task, occurrence);
  const moved = isMoved(task, occurrence);
  const cancelled =
    single && task.exceptions.some((e) => e.cancelled && e.original_start === occurrence.original_start);
  const restore = async () => {
    try {
      await put(occurrenceAt(occurrence), moved ? { start_time: null } : {});
      reload();
    } catch (error) {
      showToast(error);
    }
  };
  const edit = () => {
    openDialog((closeForm) => (
      <TaskForm
        task={task}
        one={single ? occurrence : undefined}
        zone={zone}
        close={closeForm}
        saved={(scope) => {
          reload();
          if (!scope) setQuery({ at: null });
          else if (scope !== "this") close();
        }}
      />
    ));
  };
  const drop = () => {
    if (single) {
      void deleteOccurrences(days, occurrence, close);
      return;
    }
    close();
    deleteTask(days, occurrence);
  };
  if (cancelled)
    return (
      <div class="row">
        <Button icon="Undo2" onClick={restore}>
          Restore
        </Button>
      </div>
    );
  return (
    <div class="row">
      <Button icon="Pencil" onClick={edit}>
        Edit
      </Button>
      {moved && occurrence.status === "pending" && (
        <Button icon="Undo2" onClick={restore}>
          Move back
        </Button>
      )}
      <StatusActions task={task} single={single} reload={reload} />
      <Button kind="danger" icon="Trash2" onClick={drop}>
        {single || occurrence.recurrence === "none" ? "Delete" : "Delete all"}
      </Button>
    </div>
  );
}

/** Changes the status of a task; single: one occurrence of several is shown. */
function StatusActions({ task, single, reload }: { task: API.Task; single: boolean; reload: () => void }) {
  const set = async (status: Task["status"]) => {
    await put(tasksAt(task.id), { status });
    reload();
  };
  const pending = !single && task.status === "pending";
  return (
    <>
      {pending && !task.workflow_id && (
        <Button icon="Check" onClick={() => set("completed")}>
          Done
        </Button>
      )}
      {pending && <Button onClick={() => set("cancelled")}>Cancel task</Button>}
      {["cancelled", "completed", "failed"].includes(task.status) && (
        <Button onClick={() => set("pending")}>Reopen</Button>
      )}
    </>
  );
}
