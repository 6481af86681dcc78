// The list of executions; its filters stand in the address.
import { useEffect } from "preact/hooks";

import { agentId, get, href, onChange, path, route, setQuery, useQuery, type API } from "../data";
import { Badge, Button, Empty, Load, Moment, Name, Pager, span, Table, When } from "../ui";
import { ExportMenu } from "../parts/export";
import { triggerWord } from "./words";

const statuses: [string, string][] = [
  ["", "Any status"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["complete", "Complete"],
  ["errored", "Errored"],
  ["terminated", "Terminated"],
];

export const took = (x: { started_at?: string | null; completed_at?: string | null }) =>
  x.started_at && x.completed_at ? span(Date.parse(x.completed_at) - Date.parse(x.started_at)) : "";

/** The list of executions; exact shows times to the second. */
export function Executions({ exact }: { exact?: boolean }) {
  const { query } = route.value;
  const workflow = query.get("workflow") ?? "";
  const [version, status, offset] = [
    workflow && (query.get("version") ?? ""),
    query.get("status") ?? "",
    Number(query.get("offset")) || 0,
  ];
  const at = path("agents", agentId.value, "workflows", "executions");
  const filters = { workflow_id: workflow, version, status };
  const found = useQuery(at, { ...filters, limit: 50, offset });
  const names = useQuery(path("agents", agentId.value, "workflows"), { limit: 200, sort: "name" });
  const running = found.data.value?.executions.some((x) => x.status === "running");
  const waiting = useQuery(running ? path("agents", agentId.value, "waiting") : null);
  const waits = new Set(running ? (waiting.data.value?.waiting ?? []).map((w) => w.execution_id) : []);
  useEffect(() => {
    return onChange("execution", (c) => {
      if (running) waiting.soon();
      const known = found.data.value?.executions.some((x) => x.id === c.id);
      if (c.op === "update" && known && c.row)
        found.set((d) => ({ ...d, executions: d.executions.map((x) => (x.id === c.id ? { ...x, ...c.row } : x)) }));
      else found.soon();
    });
  }, [found, waiting, running]);
  const all = names.data.value?.workflows ?? [];
  const nameOf = (id: string) => all.find((w) => w.id === id)?.name ?? id;
  async function* pages() {
    for (let from = 0, more = true; more; from += 200) {
      const page = await get(at, { ...filters, limit: 200, offset: from });
      yield page.executions;
      more = from + 200 < page.meta.total;
    }
  }
  const to = (x: API.ExecutionItem) => href(agentId.value, "workflows", "executions", x.id);
  return (
    <>
      <div class="row" role="search">
        <select
          aria-label="Workflow"
          value={workflow}
          onChange={(e) => setQuery({ workflow: e.currentTarget.value, version: null, offset: null })}
        >
          <option value="" selected={!workflow}>
            All workflows
          </option>
          {all.map((w) => (
            <option key={w.id} value={w.id} selected={w.id === workflow}>
              {w.name}
            </option>
          ))}
          {workflow && !all.some((w) => w.id === workflow) && (
            <option value={workflow} selected>
              {workflow}
            </option>
          )}
        </select>
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
        {version && (
          <Button icon="X" label="Show all versions" onClick={() => setQuery({ version: null, offset: null })}>
            Version {version}
          </Button>
        )}
        <span class="grow" />
        <ExportMenu name="executions" pages={pages} />
      </div>
      <Load of={found} lines={6}>
        {({ executions, meta }) =>
          executions.length ? (
            <>
              <Table
                rows={executions}
                keyOf={(x) => x.id}
                open={to}
                columns={[
                  {
                    title: "Workflow",
                    class: "title",
                    cell: (x) => (
                      <a href={to(x)}>
                        <Name>{nameOf(x.workflow_id)}</Name>
                      </a>
                    ),
                  },
                  {
                    title: "Status",
                    cell: (x) => (
                      <div>
                        {x.status === "running" && waits.has(x.id) ? (
                          <Badge tone="warn" title="Running, and waiting for a person">
                            waiting
                          </Badge>
                        ) : (
                          <Badge>{x.status}</Badge>
                        )}
                        {x.error && (
                          <p class="issue small">
                            <bdi>{x.error.message}</bdi>
                          </p>
                        )}
                      </div>
                    ),
                  },
                  {
                    title: "Started",
                    cell: (x) =>
                      exact ? (
                        <Moment time={x.started_at ?? x.created_at} />
                      ) : (
                        <When time={x.started_at ?? x.created_at} />
                      ),
                  },
                  { title: "Trigger", cell: (x) => <bdi>{triggerWord(x.trigger)}</bdi> },
                  { title: "Took", class: "number", cell: took },
                ]}
              />
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="Activity" title={workflow || status ? "No executions match" : "No executions yet"}>
              An execution is one run of a workflow, from trigger to end.
            </Empty>
          )
        }
      </Load>
    </>
  );
}
