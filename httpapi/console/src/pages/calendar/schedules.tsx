// The list of schedules.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  go,
  href,
  invalidate,
  mayEdit,
  onChange,
  path,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../../data";
import {
  Badge,
  Button,
  deleteLater,
  Empty,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  SearchField,
  Table,
  tell,
  When,
  type MenuItem,
  type Sorting,
} from "../../ui";
import { writeTime } from "../../parts/zone";
import { useZone } from "./data";
import { ScheduleForm } from "./later";
import { calls, schedulesAt, titleOf, toSchedule } from "./words";

const statuses: [string, string][] = [
  ["", "Any status"],
  ["active", "Active"],
  ["paused", "Paused"],
  ["completed", "Completed"],
];

const lists = [
  ["workflow", "workflows"],
  ["tool", "tools"],
  ["source", "sources"],
] as const;

/** The names of what schedules call, by id; only lists that are needed are asked for. */
export function useNames(schedules: Pick<API.Schedule, "callback_type">[] | undefined): Map<string, string> {
  const found = lists
    .map(
      ([type, kind]) =>
        useQuery(schedules?.some((s) => s.callback_type === type) ? path("agents", agentId.value, kind) : null, {
          limit: 200,
        }).data.value,
    )
    .map((list) => (list ? (Object.values(list).find(Array.isArray) as { id: string; name: string }[]) : []));
  return new Map(found.flat().map((r) => [r.id, r.name]));
}

/** What a schedule calls, by its name. */
export function Called({ s, names }: { s: API.Schedule; names: Map<string, string> }) {
  if (s.callback_type === "agent")
    return (
      <span class="muted prompt">
        The agent: <bdi>{String(s.payload.prompt ?? "")}</bdi>
      </span>
    );
  if (s.callback_type === "webhook") return <bdi>{s.callback_id}</bdi>;
  const section = { workflow: "workflows", source: "knowledge", tool: "tools" }[s.callback_type as "tool"];
  const name = <Name>{names.get(s.callback_id) ?? titleOf(calls, s.callback_type)}</Name>;
  return section ? <a href={href(agentId.value, section, s.callback_id)}>{name}</a> : name;
}

/** Changes whether a schedule runs, runs it, or removes it. */
export function scheduleActions(
  s: API.Schedule,
  zone: string,
  reload: () => Promise<void>,
  hide: (on: boolean) => void,
): MenuItem[] {
  const off = { disabled: !mayEdit.value, reason: mayEdit.value ? undefined : "You have read-only access." };
  const copy = {
    ...s,
    name: `${s.name} (copy)`,
    status: undefined,
    id: undefined,
    next_run: s.type === "once" ? (s.next_run ?? new Date(Date.now() + 3_600_000).toISOString()) : undefined,
  };
  return [
    { label: "Run now", icon: "Play", ...off, run: () => runNow(s, reload) },
    {
      label: "Edit",
      icon: "Pencil",
      ...off,
      run: () => {
        openDialog((close) => <ScheduleForm schedule={s} zone={zone} close={close} made={() => void reload()} />);
      },
    },
    {
      label: "Duplicate",
      icon: "Copy",
      ...off,
      run: async () => {
        const made = await post(schedulesAt(), copy);
        go(toSchedule(made.id));
      },
    },
    s.status === "active"
      ? { label: "Pause", icon: "Pause", ...off, run: () => setStatus(s, "paused", reload) }
      : {
          label: s.status === "paused" ? "Resume" : "Make active",
          icon: "Play",
          ...off,
          run: () => setStatus(s, "active", reload),
        },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      ...off,
      run: () => {
        hide(true);
        deleteLater(
          `${s.name} deleted`,
          () => remove(schedulesAt(s.id)).then(reload),
          () => hide(false),
        );
      },
    },
  ];
}

/** Runs a schedule at once, whatever its times. */
export async function runNow(s: API.Schedule, reload: () => Promise<void>) {
  await post(schedulesAt(s.id, "run"));
  tell(`${s.name} runs`);
  invalidate(`${schedulesAt()}?`); // lists
  await reload();
}

export async function setStatus(s: API.Schedule, status: string, reload: () => Promise<void>) {
  try {
    await put(schedulesAt(s.id), { status });
    tell(status === "paused" ? "It is paused" : "Active", () => {
      void put(schedulesAt(s.id), { status: s.status }).then(reload, tell);
    });
  } catch (error) {
    tell(error);
  }
  invalidate(`${schedulesAt()}?`);
  await reload();
}

export function ScheduleList({ add }: { add: () => void }) {
  const { query } = route.value;
  const zone = useZone();
  const [search, status, offset] = [
    query.get("search") ?? "",
    query.get("status") ?? "",
    Number(query.get("offset")) || 0,
  ];
  const sorting: Sorting = {
    by: query.get("sort") ?? "created_at",
    order: (query.get("order") ?? "desc") as Sorting["order"],
  };
  const found = useQuery(schedulesAt(), { search, status, limit: 50, offset, sort: sorting.by, order: sorting.order });
  const names = useNames(found.data.value?.schedules);
  const [hidden, setHidden] = useState<string[]>([]);
  const may = mayEdit.value;
  useEffect(() => {
    const off = onChange("schedule", (c) => {
      const known = found.data.value?.schedules.some((s) => s.id === c.id);
      const { row } = c;
      if (c.op === "update" && known && row)
        found.set((d) => ({ ...d, schedules: d.schedules.map((s) => (s.id === c.id ? row : s)) }));
      else found.soon();
    });
    const runs = onChange("run", (c) => {
      const { row } = c;
      if (row)
        found.set((d) => ({
          ...d,
          schedules: d.schedules.map((s) =>
            s.id === c.schedule_id && (!s.newest_run || s.newest_run.id <= c.id) ? { ...s, newest_run: row } : s,
          ),
        }));
    });
    return () => {
      off();
      runs();
    };
  }, [found]);
  return (
    <>
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
          {statuses.map(([v, t]) => (
            <option value={v} selected={v === status}>
              {t}
            </option>
          ))}
        </select>
      </div>
      <Load of={found} lines={6}>
        {({ schedules, meta }) => {
          const rows = schedules.filter((s) => !hidden.includes(s.id));
          if (!rows.length && (search || status))
            return (
              <Empty icon="Search" title="No schedules match">
                Try different words or another status.
              </Empty>
            );
          if (!rows.length)
            return (
              <Empty
                icon="CalendarClock"
                title="No schedules yet"
                action={
                  may && (
                    <Button kind="primary" icon="Plus" onClick={add}>
                      New schedule
                    </Button>
                  )
                }
              >
                A schedule starts a workflow, prompts the agent or calls a tool at set times.
              </Empty>
            );
          const toggle = (s: API.Schedule) => (
            <input
              class="workflow-switch"
              type="checkbox"
              role="switch"
              aria-label={`${s.name} is active`}
              checked={s.status === "active"}
              disabled={!may}
              onChange={(e) => {
                e.currentTarget.checked = s.status === "active";
                void setStatus(s, s.status === "active" ? "paused" : "active", found.reload);
              }}
            />
          );
          return (
            <>
              <div class="schedules">
                <Table
                  rows={rows}
                  keyOf={(s) => s.id}
                  open={(s) => toSchedule(s.id)}
                  sorting={sorting}
                  onSort={(s) => setQuery({ sort: s.by, order: s.order, offset: null })}
                  columns={[
                    {
                      title: "Name",
                      class: "title",
                      sort: "name",
                      cell: (s) => (
                        <span class="row nowrap">
                          {toggle(s)}
                          <a href={toSchedule(s.id)}>
                            <Name>{s.name}</Name>
                          </a>
                        </span>
                      ),
                    },
                    {
                      title: "Runs",
                      cell: (s) => (
                        <span>
                          {s.words || <code>{s.cron_expression}</code>}
                          {s.type === "once" && s.next_run && <>, {writeTime(s.next_run, s.timezone)}</>}
                          {s.type === "cron" && s.timezone !== zone && <small class="muted"> {s.timezone}</small>}
                        </span>
                      ),
                    },
                    { title: "Calls", cell: (s) => <Called s={s} names={names} /> },
                    {
                      title: "Next run",
                      sort: "next_run",
                      class: "time",
                      cell: (s) =>
                        s.next_run ? (
                          <When time={s.next_run} />
                        ) : (
                          <span class="muted">{s.status === "paused" ? "paused" : "none"}</span>
                        ),
                    },
                    {
                      title: "Last run",
                      sort: "last_run",
                      cell: (s) =>
                        s.newest_run ? (
                          <span title={s.newest_run.error}>
                            <Badge>{s.newest_run.status}</Badge>{" "}
                            <span class="muted small">
                              <When time={s.newest_run.executed_at ?? s.newest_run.scheduled_for} />
                            </span>
                          </span>
                        ) : (
                          <span class="muted">never</span>
                        ),
                    },
                    {
                      title: "",
                      class: "actions",
                      cell: (s) => (
                        <Menu
                          label={`Actions for ${s.name}`}
                          items={scheduleActions(s, zone, found.reload, (on) =>
                            setHidden((h) => (on ? [...h, s.id] : h.filter((x) => x !== s.id))),
                          )}
                        />
                      ),
                    },
                  ]}
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
