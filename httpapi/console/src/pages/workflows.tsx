// Workflows: the list of them and of their executions. The editor and an
// execution are a file of their own, with the canvas.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  get,
  go,
  href,
  mayEdit,
  onChange,
  path,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  saveFile,
  type API,
  ApiError,
} from "../data";
import {
  Badge,
  Button,
  deleteLater,
  Empty,
  LinkButton,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  showToast,
  When,
  type MenuItem,
} from "../ui";
import { Page } from "../shell/page";
import { style } from "../parts/styles";
import { Executions } from "../workflows/executions";
import { Execute } from "../workflows/execute";
import { NewWorkflow } from "../workflows/new";
import { triggerLabels } from "../workflows/triggerlabels";
import "../css/workflows.css";

export const styles = style("./workflows.css");

/** The page of workflows: the lists, or what the address names. */
export default function Workflows() {
  const [first, second] = route.value.rest;
  if (first === "executions" && second) return <Page name="workflow" execution={second} />;
  if (first === "templates") return <Page name="templates" template={second} />;
  if (first === "import") return <Page name="workflowimport" />;
  if (first && first !== "executions") return <Page name="workflow" workflow={first} />;
  return <Lists />;
}

const workflowsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "workflows", ...more);
const workflowsHref = (...more: string[]) => href(agentId.value, "workflows", ...more);

/** The address of the executions of all workflows, or of one. */
const executionsHref = (workflow?: string) =>
  `${workflowsHref()}?tab=executions${workflow ? `&workflow=${encodeURIComponent(workflow)}` : ""}`;

const openNewWorkflow = () => {
  openDialog((close) => <NewWorkflow close={close} />);
};

const tabs = [
  ["workflows", "Workflows"],
  ["executions", "Executions"],
];

function Lists() {
  const { query, rest } = route.value;
  const current = rest[0] === "executions" ? "executions" : (query.get("tab") ?? "workflows");
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Workflows
        </h1>
        {mayEdit.value && (
          <>
            <LinkButton icon="Upload" href={workflowsHref("import")}>
              Import
            </LinkButton>
            <LinkButton icon="Layers" href={workflowsHref("templates")}>
              From template
            </LinkButton>
            <Button kind="primary" icon="Plus" onClick={openNewWorkflow}>
              New workflow
            </Button>
          </>
        )}
      </div>
      <nav class="tabs" aria-label="Workflows">
        {tabs.map(([tab, title]) => (
          <button
            type="button"
            aria-current={tab === current ? "page" : undefined}
            onClick={() => go(tab === "workflows" ? workflowsHref() : executionsHref())}
          >
            {title}
          </button>
        ))}
      </nav>
      {current === "executions" ? <Executions /> : <WorkflowList />}
    </div>
  );
}

/** What the address asks for. */
function listOptions() {
  const { query } = route.value;
  return {
    search: query.get("q") ?? "",
    status: query.get("status") ?? "",
    offset: Number(query.get("offset")) || 0,
  };
}

/** Loads the workflows that the address asks for, and when schedules start them next; both are kept current. */
function useWorkflows() {
  const { search, status, offset } = listOptions();
  const found = useQuery(workflowsAt(), {
    search,
    status,
    limit: 50,
    offset,
    sort: "updated_at",
    order: "desc",
    recent: 20,
  });
  const scheduled = found.data.value?.workflows.some(({ triggers }) => triggers.includes("schedule"));
  const schedules = useQuery(scheduled ? path("agents", agentId.value, "schedules") : null, {
    status: "active",
    sort: "next_run",
    order: "asc",
    limit: 200,
  });
  useEffect(() => {
    const unsubscribe = [
      onChange("workflow", found.reloadThrottled),
      onChange("execution", found.reloadThrottled),
      onChange("schedule", schedules.reloadThrottled),
    ];
    return () => {
      for (const stop of unsubscribe) stop();
    };
  }, [found, schedules]);
  const nextRuns = new Map<string, string>();
  for (const { callback_type, callback_id, next_run } of schedules.data.value?.schedules ?? [])
    if (callback_type === "workflow" && next_run && !nextRuns.has(callback_id)) nextRuns.set(callback_id, next_run);
  return { found, nextRuns };
}

const statuses = [
  ["", "Any status"],
  ["draft", "Draft"],
  ["active", "Active"],
  ["paused", "Paused"],
  ["archived", "Archived"],
];

function WorkflowList() {
  const { search, status } = listOptions();
  const { found, nextRuns } = useWorkflows();
  const [hidden, setHidden] = useState<string[]>([]);
  const setShown = (id: string, shown: boolean) =>
    setHidden((ids) => (shown ? ids.filter((other) => other !== id) : [...ids, id]));
  return (
    <>
      <div class="row" role="search">
        <SearchField
          value={search}
          onInput={(q) => setQuery({ q, offset: null })}
          label="Search workflows"
          placeholder="Name or description"
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
      <Load of={found} lines={6}>
        {({ workflows, meta }) => {
          const shown = workflows.filter(({ id }) => !hidden.includes(id));
          if (!shown.length) return <NoWorkflows filtered={Boolean(search || status)} />;
          return (
            <>
              <ul class="sources workflows">
                {shown.map((workflow) => (
                  <WorkflowRow
                    key={workflow.id}
                    workflow={workflow}
                    nextRun={workflow.status === "active" ? nextRuns.get(workflow.id) : undefined}
                    changed={found.reload}
                    setShown={(on) => setShown(workflow.id, on)}
                  />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </>
  );
}

function NoWorkflows({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Empty icon="Search" title="No workflows match">
        Try different words or another status.
      </Empty>
    );
  const actions = mayEdit.value && (
    <>
      <Button kind="primary" icon="Plus" onClick={openNewWorkflow}>
        New workflow
      </Button>
      <a class="button" href={workflowsHref("templates")}>
        From template
      </a>
      <a class="button" href={workflowsHref("import")}>
        Import
      </a>
    </>
  );
  return (
    <Empty icon="Workflow" title="No workflows yet" action={actions}>
      A workflow starts with a trigger, such as an incoming message, and runs its nodes step by step.
    </Empty>
  );
}

type RowProps = {
  workflow: API.WorkflowItem;
  /** When a schedule starts it next. */
  nextRun?: string;
  changed: () => Promise<void>;
  /** Shows or hides the row, until a deletion can no longer be undone. */
  setShown: (shown: boolean) => void;
};

/** The parts of a workflow that a copy has. */
async function definitionOf(id: string) {
  const { name, description, settings, nodes, edges } = await get(workflowsAt(id));
  return { name, description, settings, nodes, edges };
}

async function duplicate(id: string) {
  const definition = await definitionOf(id);
  const created = await post(workflowsAt(), { ...definition, name: `${definition.name} (copy)` });
  go(workflowsHref(created.id));
}

async function exportFile(id: string) {
  const definition = await definitionOf(id);
  const text = JSON.stringify({ satchel: "workflow/1", ...definition }, null, 2);
  saveFile(new Blob([text], { type: "application/json" }), `${definition.name || "workflow"}.json`);
}

function menuItems({ workflow, changed, setShown }: RowProps): MenuItem[] {
  const { id, name, status } = workflow;
  const may = mayEdit.value;
  const reason = may ? undefined : "You have read-only access.";
  const execute = () => {
    openDialog((close) => <Execute workflow={workflow} close={close} />);
  };
  const deleteWorkflow = () => {
    setShown(false);
    deleteLater(
      `${name} deleted`,
      () => remove(workflowsAt(id)).then(changed),
      () => setShown(true),
    );
  };
  return [
    { label: "Open", icon: "Pencil", run: () => go(workflowsHref(id)) },
    { label: "Executions", icon: "Activity", run: () => go(executionsHref(id)) },
    {
      label: "Execute",
      icon: "Zap",
      disabled: !may || !["draft", "active"].includes(status),
      reason,
      run: execute,
    },
    { label: "Duplicate", icon: "Copy", disabled: !may, reason, run: () => duplicate(id) },
    { label: "Export", icon: "Download", run: () => exportFile(id) },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, disabled: !may, reason, run: deleteWorkflow },
  ];
}

function WorkflowRow(props: RowProps) {
  const { workflow, changed } = props;
  const { id, name, status, recent } = workflow;
  const newest = recent?.[0];
  return (
    <li class="source-row workflow-row">
      <LiveSwitch workflow={workflow} changed={changed} />
      <div class="grow">
        <a href={workflowsHref(id)}>
          <Name>{name}</Name>
        </a>
        <RowFacts {...props} />
        {newest?.status === "errored" && newest.error && (
          <p class="issue small clip">
            <bdi>{newest.error}</bdi>
          </p>
        )}
      </div>
      <Outcomes workflow={workflow} />
      <Badge>{status}</Badge>
      <Menu label={`Actions for ${name}`} items={menuItems(props)} />
    </li>
  );
}

/** Activates and pauses a workflow; it changes here when the service has stored it. */
function LiveSwitch({ workflow: { id, name, status }, changed }: Pick<RowProps, "workflow" | "changed">) {
  const live = status === "active";
  const toggle = async () => {
    try {
      await put(workflowsAt(id), { status: live ? "paused" : "active" });
      showToast(live ? "It is paused" : "It is live");
    } catch (error) {
      showToast(error);
      if (error instanceof ApiError && (error.details.errors?.length || error.details.node_id))
        go(`${workflowsHref(id)}?tab=problems`);
    }
    await changed();
  };
  return (
    <input
      class="workflow-switch"
      type="checkbox"
      role="switch"
      aria-label={`${name} is live`}
      checked={live}
      disabled={!mayEdit.value || status === "archived"}
      onChange={(e) => {
        e.currentTarget.checked = live;
        void toggle();
      }}
    />
  );
}

function RowFacts({ workflow, nextRun }: RowProps) {
  const { triggers, description, version, updated_at } = workflow;
  const texts = [triggerLabels(triggers), description].filter(Boolean);
  return (
    <p class="muted small">
      {texts.map((text) => (
        <>
          <bdi>{text}</bdi>
          {" · "}
        </>
      ))}
      version {version} · <When time={updated_at} />
      {nextRun && (
        <>
          {" "}
          · next run <When time={nextRun} />
        </>
      )}
    </p>
  );
}

/** How the last executions of a workflow ended, the newest on the right. */
function Outcomes({ workflow: { id, recent } }: { workflow: API.WorkflowItem }) {
  if (!recent?.length) return null;
  const failed = recent.filter(({ status }) => status === "errored").length;
  return (
    <a
      class="outcomes"
      href={executionsHref(id)}
      aria-label={`The last ${plural(recent.length, "execution")}: ${failed} failed`}
    >
      {recent.toReversed().map((execution) => (
        <i key={execution.id} class={execution.status} title={execution.status} />
      ))}
    </a>
  );
}
