// The list of executions. Its filters are in the address.
import { useEffect } from "preact/hooks";

import { agentId, type API, href, onChange, path, route, setQuery, useQuery } from "../data";
import { ExportMenu, pagesOf } from "../parts/export";
import { Badge, Button, type Column, Empty, Load, Moment, Name, Pager, span, Table, When } from "../ui";
import { triggerLabel } from "./triggerlabels";

const pageSize = 50;

const statuses: [status: string, label: string][] = [
  ["", "Any status"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["complete", "Complete"],
  ["errored", "Errored"],
  ["terminated", "Terminated"],
];

/** Returns how long an execution took; empty until it has ended. */
export const took = ({ started_at, completed_at }: { started_at?: string | null; completed_at?: string | null }) =>
  started_at && completed_at ? span(Date.parse(completed_at) - Date.parse(started_at)) : "";

type Filters = { workflow: string; version: string; status: string; offset: number };

function filtersOf(query: URLSearchParams): Filters {
  const workflow = query.get("workflow") ?? "";
  return {
    workflow,
    version: workflow && (query.get("version") ?? ""),
    status: query.get("status") ?? "",
    offset: Number(query.get("offset")) || 0,
  };
}

/** Loads a page of executions, which follows their changes, and the ids of those that wait for a person. */
function useExecutions(query: { workflow_id: string; version: string; status: string }, offset: number) {
  const list = useQuery(path("agents", agentId.value, "workflows", "executions"), {
    ...query,
    limit: pageSize,
    offset,
  });
  const running = list.data.value?.executions.some((execution) => execution.status === "running");
  const waiting = useQuery(running ? path("agents", agentId.value, "waiting") : null);
  useEffect(
    () =>
      onChange("execution", ({ id, op, row }) => {
        if (running) waiting.reloadThrottled();
        const isListed = list.data.value?.executions.some((execution) => execution.id === id);
        if (op !== "update" || !isListed || !row) return list.reloadThrottled();
        list.set((data) => ({
          ...data,
          executions: data.executions.map((execution) => (execution.id === id ? { ...execution, ...row } : execution)),
        }));
      }),
    [list, waiting, running],
  );
  const waitingItems = (running && waiting.data.value?.waiting) || [];
  return { list, waitingIds: new Set(waitingItems.map((item) => item.execution_id)) };
}

/** The list of executions; exact shows times to the second. */
export function Executions({ exact }: { exact?: boolean }) {
  const filters = filtersOf(route.value.query);
  const { workflow, version, status, offset } = filters;
  const query = { workflow_id: workflow, version, status };
  const { list, waitingIds } = useExecutions(query, offset);
  const names = useQuery(path("agents", agentId.value, "workflows"), { limit: 200, sort: "name" });
  const workflows = names.data.value?.workflows ?? [];
  const address = path("agents", agentId.value, "workflows", "executions");
  return (
    <>
      <div class="row" role="search">
        <FilterFields filters={filters} workflows={workflows} />
        <span class="grow" />
        <ExportMenu name="executions" pages={() => pagesOf(address, query, (page) => page.executions)} />
      </div>
      <Load of={list} lines={6}>
        {({ executions, meta }) =>
          executions.length ? (
            <>
              <ExecutionTable executions={executions} workflows={workflows} waitingIds={waitingIds} exact={exact} />
              <Pager meta={meta} go={(next) => setQuery({ offset: next || null })} />
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

type FilterFieldsProps = { filters: Filters; workflows: API.WorkflowItem[] };

function FilterFields({ filters: { workflow, version, status }, workflows }: FilterFieldsProps) {
  const isListed = workflows.some((item) => item.id === workflow);
  return (
    <>
      <select
        aria-label="Workflow"
        value={workflow}
        onChange={(event) => setQuery({ workflow: event.currentTarget.value, version: null, offset: null })}
      >
        <option value="" selected={!workflow}>
          All workflows
        </option>
        {workflows.map(({ id, name }) => (
          <option key={id} value={id} selected={id === workflow}>
            {name}
          </option>
        ))}
        {workflow && !isListed && (
          <option value={workflow} selected>
            {workflow}
          </option>
        )}
      </select>
      <select
        aria-label="Status"
        value={status}
        onChange={(event) => setQuery({ status: event.currentTarget.value, offset: null })}
      >
        {statuses.map(([value, label]) => (
          <option value={value} selected={value === status}>
            {label}
          </option>
        ))}
      </select>
      {version && (
        <Button icon="X" label="Show all versions" onClick={() => setQuery({ version: null, offset: null })}>
          Version {version}
        </Button>
      )}
    </>
  );
}

type ExecutionTableProps = {
  executions: API.ExecutionItem[];
  workflows: API.WorkflowItem[];
  waitingIds: ReadonlySet<string | undefined>;
  exact?: boolean;
};

function ExecutionTable({ executions, workflows, waitingIds, exact }: ExecutionTableProps) {
  const nameOf = (id: string) => workflows.find((workflow) => workflow.id === id)?.name ?? id;
  const hrefOf = ({ id }: API.ExecutionItem) => href(agentId.value, "workflows", "executions", id);
  const columns: Column<API.ExecutionItem>[] = [
    {
      title: "Workflow",
      class: "title",
      cell: (execution) => (
        <a href={hrefOf(execution)}>
          <Name>{nameOf(execution.workflow_id)}</Name>
        </a>
      ),
    },
    {
      title: "Status",
      cell: (execution) => <Status execution={execution} waiting={waitingIds.has(execution.id)} />,
    },
    {
      title: "Started",
      cell: ({ started_at, created_at }) =>
        exact ? <Moment time={started_at ?? created_at} /> : <When time={started_at ?? created_at} />,
    },
    { title: "Trigger", cell: ({ trigger }) => <bdi>{triggerLabel(trigger)}</bdi> },
    { title: "Took", class: "number", cell: took },
  ];
  return <Table rows={executions} keyOf={(execution) => execution.id} open={hrefOf} columns={columns} />;
}

function Status({ execution: { status, error }, waiting }: { execution: API.ExecutionItem; waiting: boolean }) {
  return (
    <div>
      {status === "running" && waiting ? (
        <Badge tone="warn" title="Running, and waiting for a person">
          waiting
        </Badge>
      ) : (
        <Badge>{status}</Badge>
      )}
      {error && (
        <p class="issue small">
          <bdi>{error.message}</bdi>
        </p>
      )}
    </div>
  );
}
