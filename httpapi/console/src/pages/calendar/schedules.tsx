// The list of schedules.
import { useEffect, useState } from "preact/hooks";

import { mayEdit, onChange, route, setQuery, useQuery, type API, type Result } from "../../data";
import {
  Badge,
  Button,
  Empty,
  Load,
  Menu,
  Name,
  Pager,
  SearchField,
  Table,
  When,
  type Column,
  type Sorting,
} from "../../ui";
import { writeTime } from "../../parts/zone";
import { CallbackTarget, useNames } from "./callbacktarget";
import { useZone } from "./data";
import { scheduleActions, setStatus } from "./scheduleactions";
import { schedulesAt, toSchedule } from "./labels";

const statuses: [string, string][] = [
  ["", "Any status"],
  ["active", "Active"],
  ["paused", "Paused"],
  ["completed", "Completed"],
];

/** What the address asks for: which schedules, in which order, from which one on. */
function listOptions() {
  const { query } = route.value;
  const order = (query.get("order") ?? "desc") as Sorting["order"];
  const sorting: Sorting = { by: query.get("sort") ?? "created_at", order };
  return {
    search: query.get("search") ?? "",
    status: query.get("status") ?? "",
    offset: Number(query.get("offset")) || 0,
    sorting,
  };
}

/** Keeps the list current: schedules that it shows change in place, for others it is loaded again. */
function useChanges(found: Result<API.ScheduleList>) {
  useEffect(() => {
    const replace = (change: (schedule: API.ScheduleSummary) => API.ScheduleSummary) =>
      found.set((list) => ({ ...list, schedules: list.schedules.map(change) }));
    const unsubscribe = onChange("schedule", ({ id, op, row }) => {
      const listed = found.data.value?.schedules.some((schedule) => schedule.id === id);
      if (op === "update" && listed && row) replace((schedule) => (schedule.id === id ? row : schedule));
      else found.reloadThrottled();
    });
    const unsubscribeRuns = onChange("run", ({ id, schedule_id, row }) => {
      if (!row) return;
      replace((schedule) => {
        const newest = !schedule.newest_run || schedule.newest_run.id <= id;
        return schedule.id === schedule_id && newest ? { ...schedule, newest_run: row } : schedule;
      });
    });
    return () => {
      unsubscribe();
      unsubscribeRuns();
    };
  }, [found]);
}

/** The schedules that the address asks for. */
export function ScheduleList({ add }: { add: () => void }) {
  const { search, status, offset, sorting } = listOptions();
  const zone = useZone();
  const found = useQuery(schedulesAt(), { search, status, limit: 50, offset, sort: sorting.by, order: sorting.order });
  const names = useNames(found.data.value?.schedules);
  const [hidden, setHidden] = useState<string[]>([]);
  useChanges(found);
  const setShown = (id: string, shown: boolean) =>
    setHidden((ids) => (shown ? ids.filter((other) => other !== id) : [...ids, id]));
  const actionsColumn: Column<API.ScheduleSummary> = {
    title: "",
    class: "actions",
    cell: (schedule) => (
      <Menu
        label={`Actions for ${schedule.name}`}
        items={scheduleActions(schedule, zone, found.reload, (shown) => setShown(schedule.id, shown))}
      />
    ),
  };
  return (
    <>
      <Filters search={search} status={status} />
      <Load of={found} lines={6}>
        {({ schedules, meta }) => {
          const shown = schedules.filter(({ id }) => !hidden.includes(id));
          if (!shown.length) return <NoSchedules filtered={Boolean(search || status)} add={add} />;
          return (
            <>
              <div class="schedules">
                <Table
                  rows={shown}
                  keyOf={({ id }) => id}
                  open={({ id }) => toSchedule(id)}
                  sorting={sorting}
                  onSort={({ by, order }) => setQuery({ sort: by, order, offset: null })}
                  columns={[...columns(zone, names, found.reload), actionsColumn]}
                />
              </div>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </>
  );
}

function Filters({ search, status }: { search: string; status: string }) {
  return (
    <div class="row" role="search">
      <SearchField
        value={search}
        label="Search schedules"
        placeholder="Name"
        onInput={(text) => setQuery({ search: text, offset: null })}
      />
      <select
        aria-label="Status"
        value={status}
        onChange={(e) => setQuery({ status: e.currentTarget.value, offset: null })}
      >
        {statuses.map(([value, title]) => (
          <option value={value} selected={value === status}>
            {title}
          </option>
        ))}
      </select>
    </div>
  );
}

function NoSchedules({ filtered, add }: { filtered: boolean; add: () => void }) {
  if (filtered)
    return (
      <Empty icon="Search" title="No schedules match">
        Try different words or another status.
      </Empty>
    );
  const action = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={add}>
      New schedule
    </Button>
  );
  return (
    <Empty icon="CalendarClock" title="No schedules yet" action={action}>
      A schedule starts a workflow, prompts the agent or calls a tool at set times.
    </Empty>
  );
}

function columns(zone: string, names: Map<string, string>, reload: () => Promise<void>): Column<API.ScheduleSummary>[] {
  return [
    {
      title: "Name",
      class: "title",
      sort: "name",
      cell: (schedule) => (
        <span class="row nowrap">
          <ActiveSwitch schedule={schedule} reload={reload} />
          <a href={toSchedule(schedule.id)}>
            <Name>{schedule.name}</Name>
          </a>
        </span>
      ),
    },
    { title: "Runs", cell: (schedule) => <Times schedule={schedule} zone={zone} /> },
    { title: "Calls", cell: (schedule) => <CallbackTarget schedule={schedule} names={names} /> },
    { title: "Next run", sort: "next_run", class: "time", cell: (schedule) => <NextRun schedule={schedule} /> },
    { title: "Last run", sort: "last_run", cell: (schedule) => <LastRun schedule={schedule} /> },
  ];
}

type CellProps = { schedule: API.ScheduleSummary };

/** Pauses and resumes a schedule; it changes here when the service has stored it. */
function ActiveSwitch({ schedule, reload }: CellProps & { reload: () => Promise<void> }) {
  const active = schedule.status === "active";
  return (
    <input
      class="workflow-switch"
      type="checkbox"
      role="switch"
      aria-label={`${schedule.name} is active`}
      checked={active}
      disabled={!mayEdit.value}
      onChange={(e) => {
        e.currentTarget.checked = active;
        void setStatus(schedule, active ? "paused" : "active", reload);
      }}
    />
  );
}

/** When a schedule runs; a time zone is shown if it is not the agent's. */
function Times({ schedule, zone }: CellProps & { zone: string }) {
  const { words, cron_expression, type, next_run, timezone } = schedule;
  return (
    <span>
      {words || <code>{cron_expression}</code>}
      {type === "once" && next_run && <>, {writeTime(next_run, timezone)}</>}
      {type === "cron" && timezone !== zone && <small class="muted"> {timezone}</small>}
    </span>
  );
}

function NextRun({ schedule: { next_run, status } }: CellProps) {
  if (next_run) return <When time={next_run} />;
  return <span class="muted">{status === "paused" ? "paused" : "none"}</span>;
}

function LastRun({ schedule: { newest_run: run } }: CellProps) {
  if (!run) return <span class="muted">never</span>;
  return (
    <span title={run.error}>
      <Badge>{run.status}</Badge>{" "}
      <span class="muted small">
        <When time={run.executed_at ?? run.scheduled_for} />
      </span>
    </span>
  );
}
