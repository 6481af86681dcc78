// One schedule: when it runs, what it calls, and how its runs ended.
import { useEffect } from "preact/hooks";

import { agentId, go, href, listHref, mayEdit, onChange, useQuery, type API } from "../../data";
import { Badge, Button, Empty, JsonTree, Load, Menu, Name, openDialog, span, Table, When } from "../../ui";
import { writeTime } from "../../parts/zone";
import { useZone } from "./data";
import { ScheduleForm } from "./later";
import { NextRuns } from "./nextruns";
import { Called, runNow, scheduleActions, setStatus, useNames } from "./schedules";
import { misfires, overlaps, schedulesAt, titleOf } from "./words";

export function ScheduleRecord({ id }: { id: string }) {
  const found = useQuery(schedulesAt(id));
  const zone = useZone();
  const names = useNames(found.data.value && [found.data.value]);
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      clearTimeout(due);
      due = setTimeout(() => void found.reload(), 300);
    };
    const offs = [
      onChange("schedule", (c) => {
        if (c.id === id && c.op !== "delete") soon();
      }),
      onChange("run", (c) => {
        if (c.schedule_id === id) soon();
      }),
    ];
    return () => {
      clearTimeout(due);
      offs.forEach((off) => off());
    };
  }, [found]);
  const away = (on: boolean) => {
    if (on) go(href(agentId.value, "calendar", "schedules"));
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "calendar", "schedules")}>Schedules</a>
      </p>
      <Load of={found} title="Schedule">
        {(s) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{s.name}</Name> <Badge>{s.status}</Badge>
              </h1>
              {mayEdit.value && (
                <>
                  <Button
                    icon="Pencil"
                    onClick={() => {
                      openDialog((close) => (
                        <ScheduleForm schedule={s} zone={zone} close={close} made={() => void found.reload()} />
                      ));
                    }}
                  >
                    Edit
                  </Button>
                  {s.status === "active" ? (
                    <Button icon="Pause" onClick={() => setStatus(s, "paused", found.reload)}>
                      Pause
                    </Button>
                  ) : (
                    s.status === "paused" && (
                      <Button icon="Play" onClick={() => setStatus(s, "active", found.reload)}>
                        Resume
                      </Button>
                    )
                  )}
                  <Button kind="primary" icon="Play" onClick={() => runNow(s, found.reload)}>
                    Run now
                  </Button>
                  <Menu label="Actions" items={scheduleActions(s, zone, found.reload, away)} />
                </>
              )}
            </div>
            <div class="record">
              <section class="card stack" aria-label="About">
                <dl class="facts-list">
                  <dt>Runs</dt>
                  <dd>
                    {s.words}
                    {s.cron_expression && (
                      <>
                        {" "}
                        <code>{s.cron_expression}</code>
                      </>
                    )}
                  </dd>
                  <dt>Time zone</dt>
                  <dd>{s.timezone}</dd>
                  <dt>Calls</dt>
                  <dd>
                    <Called s={s} names={names} />
                  </dd>
                  {s.callback_type !== "agent" && Object.keys(s.payload).length > 0 && (
                    <>
                      <dt>Payload</dt>
                      <dd>
                        <JsonTree value={s.payload} />
                      </dd>
                    </>
                  )}
                  <dt>Missed runs</dt>
                  <dd>{titleOf(misfires, s.misfire_policy)}</dd>
                  <dt>If one is still running</dt>
                  <dd>{titleOf(overlaps, s.overlap)}</dd>
                </dl>
              </section>
              <Coming s={s} />
            </div>
            <section class="stack" aria-label="Runs">
              <h2>Runs</h2>
              {s.executions.length ? (
                <Table
                  rows={s.executions}
                  keyOf={(r) => r.id}
                  columns={[
                    {
                      title: "For",
                      class: "time",
                      cell: (r) => <time dateTime={r.scheduled_for}>{writeTime(r.scheduled_for, s.timezone)}</time>,
                    },
                    {
                      title: "Status",
                      cell: (r) => (
                        <>
                          <Badge>{r.status}</Badge>
                          {r.error && (
                            <p class="issue small">
                              <bdi>{r.error}</bdi>
                            </p>
                          )}
                        </>
                      ),
                    },
                    {
                      title: "Started",
                      class: "time",
                      cell: (r) =>
                        r.executed_at ? <When time={r.executed_at} /> : <span class="muted">not started</span>,
                    },
                    {
                      title: "Took",
                      class: "number",
                      cell: (r) => (r.executed_at && r.status !== "running" ? span(r.duration_ms) : ""),
                    },
                    {
                      title: "",
                      class: "actions",
                      cell: (r) =>
                        r.execution_id && (
                          <a href={href(agentId.value, "workflows", "executions", r.execution_id)}>Execution</a>
                        ),
                    },
                  ]}
                />
              ) : (
                <Empty icon="History" title="Not run yet">
                  {s.next_run ? (
                    <>
                      First run: <When time={s.next_run} />.
                    </>
                  ) : (
                    "No runs planned."
                  )}
                </Empty>
              )}
              {s.executions.length === 100 && <p class="muted small">The latest 100 runs.</p>}
            </section>
          </>
        )}
      </Load>
    </div>
  );
}

/** The next runs of a schedule. */
function Coming({ s }: { s: API.ScheduleDetails }) {
  const found = useQuery(s.status === "active" && s.type === "cron" ? schedulesAt("preview") : null, {
    cron_expression: s.cron_expression,
    timezone: s.timezone,
  });
  const next =
    s.status !== "active" ? [] : s.type === "cron" ? (found.data.value?.next ?? []) : s.next_run ? [s.next_run] : [];
  return (
    <section class="card stack" aria-label="Next runs">
      <h2>Next runs</h2>
      {next.length ? (
        <NextRuns next={next} zone={s.timezone} />
      ) : (
        <p class="muted">{s.status === "paused" ? "It is paused." : s.status === "completed" ? "Completed." : "…"}</p>
      )}
    </section>
  );
}
