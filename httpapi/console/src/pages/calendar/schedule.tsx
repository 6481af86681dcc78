// One schedule: when it runs, what it calls, and how its runs ended.
import { useEffect } from "preact/hooks";

import { agentId, go, href, listHref, mayEdit, onChange, useQuery, type API } from "../../data";
import { Badge, Button, Empty, JsonTree, Load, Menu, Name, span, Table, When, type Column } from "../../ui";
import { writeTime } from "../../parts/zone";
import { CallbackTarget, useNames } from "./callbacktarget";
import { useZone } from "./data";
import { NextRuns } from "./nextruns";
import { openScheduleForm, runNow, scheduleActions, setStatus } from "./scheduleactions";
import { misfires, overlaps, schedulesAt, titleOf } from "./labels";

const reloadDelay = 300; // milliseconds

/** The most runs that the service returns with a schedule. */
const maxRuns = 100;

/** Loads a schedule, and loads it again after changes of it and its runs. */
function useSchedule(id: string) {
  const found = useQuery(schedulesAt(id));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const reloadLater = () => {
      clearTimeout(timer);
      timer = setTimeout(() => void found.reload(), reloadDelay);
    };
    const unsubscribe = [
      onChange("schedule", (change) => {
        if (change.id === id && change.op !== "delete") reloadLater();
      }),
      onChange("run", ({ schedule_id }) => {
        if (schedule_id === id) reloadLater();
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const stop of unsubscribe) stop();
    };
  }, [found]);
  return found;
}

/** The page of one schedule. */
export function ScheduleRecord({ id }: { id: string }) {
  const found = useSchedule(id);
  const names = useNames(found.data.value && [found.data.value]);
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "calendar", "schedules")}>Schedules</a>
      </p>
      <Load of={found} title="Schedule">
        {(schedule) => (
          <>
            <Head schedule={schedule} reload={found.reload} />
            <div class="record">
              <Facts schedule={schedule} names={names} />
              <Upcoming schedule={schedule} />
            </div>
            <Runs schedule={schedule} />
          </>
        )}
      </Load>
    </div>
  );
}

function Head({ schedule, reload }: { schedule: API.ScheduleDetails; reload: () => Promise<void> }) {
  const zone = useZone();
  const { name, status } = schedule;
  const setShown = (shown: boolean) => {
    if (!shown) go(href(agentId.value, "calendar", "schedules"));
  };
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <Name>{name}</Name> <Badge>{status}</Badge>
      </h1>
      {mayEdit.value && (
        <>
          <Button icon="Pencil" onClick={() => openScheduleForm(schedule, zone, reload)}>
            Edit
          </Button>
          {status === "active" && (
            <Button icon="Pause" onClick={() => setStatus(schedule, "paused", reload)}>
              Pause
            </Button>
          )}
          {status === "paused" && (
            <Button icon="Play" onClick={() => setStatus(schedule, "active", reload)}>
              Resume
            </Button>
          )}
          <Button kind="primary" icon="Play" onClick={() => runNow(schedule, reload)}>
            Run now
          </Button>
          <Menu label="Actions" items={scheduleActions(schedule, zone, reload, setShown)} />
        </>
      )}
    </div>
  );
}

function Facts({ schedule, names }: { schedule: API.ScheduleDetails; names: Map<string, string> }) {
  const { words, cron_expression, timezone, callback_type, payload, misfire_policy, overlap } = schedule;
  const hasPayload = callback_type !== "agent" && Object.keys(payload).length > 0;
  return (
    <section class="card stack" aria-label="About">
      <dl class="facts-list">
        <dt>Runs</dt>
        <dd>
          {words}
          {cron_expression && (
            <>
              {" "}
              <code>{cron_expression}</code>
            </>
          )}
        </dd>
        <dt>Time zone</dt>
        <dd>{timezone}</dd>
        <dt>Calls</dt>
        <dd>
          <CallbackTarget schedule={schedule} names={names} />
        </dd>
        {hasPayload && (
          <>
            <dt>Payload</dt>
            <dd>
              <JsonTree value={payload} />
            </dd>
          </>
        )}
        <dt>Missed runs</dt>
        <dd>{titleOf(misfires, misfire_policy)}</dd>
        <dt>If one is still running</dt>
        <dd>{titleOf(overlaps, overlap)}</dd>
      </dl>
    </section>
  );
}

function Runs({ schedule: { executions, timezone, next_run } }: { schedule: API.ScheduleDetails }) {
  return (
    <section class="stack" aria-label="Runs">
      <h2>Runs</h2>
      {executions.length > 0 ? (
        <Table rows={executions} keyOf={({ id }) => id} columns={runColumns(timezone)} />
      ) : (
        <Empty icon="History" title="Not run yet">
          {next_run ? (
            <>
              First run: <When time={next_run} />.
            </>
          ) : (
            "No runs planned."
          )}
        </Empty>
      )}
      {executions.length === maxRuns && <p class="muted small">The latest {maxRuns} runs.</p>}
    </section>
  );
}

function runColumns(zone: string): Column<API.ScheduleDetails["executions"][number]>[] {
  return [
    {
      title: "For",
      class: "time",
      cell: ({ scheduled_for }) => <time dateTime={scheduled_for}>{writeTime(scheduled_for, zone)}</time>,
    },
    {
      title: "Status",
      cell: ({ status, error }) => (
        <>
          <Badge>{status}</Badge>
          {error && (
            <p class="issue small">
              <bdi>{error}</bdi>
            </p>
          )}
        </>
      ),
    },
    {
      title: "Started",
      class: "time",
      cell: ({ executed_at }) => (executed_at ? <When time={executed_at} /> : <span class="muted">not started</span>),
    },
    {
      title: "Took",
      class: "number",
      cell: ({ executed_at, status, duration_ms }) => (executed_at && status !== "running" ? span(duration_ms) : ""),
    },
    {
      title: "",
      class: "actions",
      cell: ({ execution_id }) =>
        execution_id && <a href={href(agentId.value, "workflows", "executions", execution_id)}>Execution</a>,
    },
  ];
}

/** The next runs of a schedule. */
function Upcoming({ schedule }: { schedule: API.ScheduleDetails }) {
  const { status, type, cron_expression, timezone, next_run } = schedule;
  const active = status === "active";
  const preview = useQuery(active && type === "cron" ? schedulesAt("preview") : null, { cron_expression, timezone });
  let next: string[] = [];
  if (active && type === "cron") next = preview.data.value?.next ?? [];
  else if (active && next_run) next = [next_run];
  const reasons: Record<string, string> = { paused: "It is paused.", completed: "Completed." };
  return (
    <section class="card stack" aria-label="Next runs">
      <h2>Next runs</h2>
      {next.length ? <NextRuns next={next} zone={timezone} /> : <p class="muted">{reasons[status] ?? "…"}</p>}
    </section>
  );
}
