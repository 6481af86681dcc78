// Workflows: the list of them and of their executions. The editor and an
// execution are a file of their own, with the canvas.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  get,
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
  saveFile,
  type API,
  ApiError,
} from "../data";
import {
  Badge,
  Button,
  deleteLater,
  Empty,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  tell,
  When,
  type MenuItem,
} from "../ui";
import { Page } from "../shell/page";
import { style } from "../parts/styles";
import { Executions } from "../workflows/executions";
import { Execute } from "../workflows/execute";
import { NewWorkflow } from "../workflows/new";
import { triggerWords } from "../workflows/words";
import "../css/workflows.css";

export const styles = style("./workflows.css");

export default function Workflows() {
  const [first, second] = route.value.rest;
  if (first === "executions" && second) return <Page name="workflow" execution={second} />;
  if (first === "templates") return <Page name="templates" template={second} />;
  if (first === "import") return <Page name="workflowimport" />;
  if (first && first !== "executions") return <Page name="workflow" workflow={first} />;
  return <Lists />;
}

const templates = () => href(agentId.value, "workflows", "templates");
const workflowsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "workflows", ...more);

function Lists() {
  const { query, rest } = route.value;
  const tab = rest[0] === "executions" ? "executions" : (query.get("tab") ?? "workflows");
  const may = mayEdit.value;
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Workflows
        </h1>
        {may && (
          <>
            <a class="button" href={href(agentId.value, "workflows", "import")}>
              <Icon name="Upload" size={16} />
              <span>Import</span>
            </a>
            <a class="button" href={templates()}>
              <Icon name="Layers" size={16} />
              <span>From template</span>
            </a>
            <Button
              kind="primary"
              icon="Plus"
              onClick={() => {
                openDialog((close) => <NewWorkflow close={close} />);
              }}
            >
              New workflow
            </Button>
          </>
        )}
      </div>
      <nav class="tabs" aria-label="Workflows">
        {[
          ["workflows", "Workflows"],
          ["executions", "Executions"],
        ].map(([t, title]) => (
          <button
            type="button"
            aria-current={tab === t ? "page" : undefined}
            onClick={() =>
              go(
                t === "workflows"
                  ? href(agentId.value, "workflows")
                  : `${href(agentId.value, "workflows")}?tab=executions`,
              )
            }
          >
            {title}
          </button>
        ))}
      </nav>
      {tab === "executions" ? <Executions /> : <List />}
    </div>
  );
}

function List() {
  const { query } = route.value;
  const [search, status, offset] = [query.get("q") ?? "", query.get("status") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery(workflowsAt(), {
    search,
    status,
    limit: 50,
    offset,
    sort: "updated_at",
    order: "desc",
    recent: 20,
  });
  const scheduled = found.data.value?.workflows.some((w) => w.triggers.includes("schedule"));
  const due = useQuery(scheduled ? path("agents", agentId.value, "schedules") : null, {
    status: "active",
    sort: "next_run",
    order: "asc",
    limit: 200,
  });
  const [hidden, setHidden] = useState<string[]>([]);
  useEffect(() => {
    const offs = [onChange("workflow", found.soon), onChange("execution", found.soon), onChange("schedule", due.soon)];
    return () => offs.forEach((off) => off());
  }, [found, due]);
  const next = new Map<string, string>();
  for (const s of due.data.value?.schedules ?? [])
    if (s.callback_type === "workflow" && s.next_run && !next.has(s.callback_id)) next.set(s.callback_id, s.next_run);
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
          {[
            ["", "Any status"],
            ["draft", "Draft"],
            ["active", "Active"],
            ["paused", "Paused"],
            ["archived", "Archived"],
          ].map(([v, t]) => (
            <option value={v} selected={v === status}>
              {t}
            </option>
          ))}
        </select>
      </div>
      <Load of={found} lines={6}>
        {({ workflows, meta }) => {
          const shown = workflows.filter((w) => !hidden.includes(w.id));
          if (!shown.length && (search || status))
            return (
              <Empty icon="Search" title="No workflows match">
                Try different words or another status.
              </Empty>
            );
          if (!shown.length)
            return (
              <Empty
                icon="Workflow"
                title="No workflows yet"
                action={
                  mayEdit.value && (
                    <>
                      <Button
                        kind="primary"
                        icon="Plus"
                        onClick={() => {
                          openDialog((close) => <NewWorkflow close={close} />);
                        }}
                      >
                        New workflow
                      </Button>
                      <a class="button" href={templates()}>
                        From template
                      </a>
                      <a class="button" href={href(agentId.value, "workflows", "import")}>
                        Import
                      </a>
                    </>
                  )
                }
              >
                A workflow starts with a trigger, such as an incoming message, and runs its nodes step by step.
              </Empty>
            );
          return (
            <>
              <ul class="sources workflows">
                {shown.map((w) => (
                  <Row
                    key={w.id}
                    w={w}
                    next={w.status === "active" ? next.get(w.id) : undefined}
                    changed={() => found.reload()}
                    hide={(on) => setHidden((h) => (on ? [...h, w.id] : h.filter((x) => x !== w.id)))}
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

function Row({
  w,
  next,
  changed,
  hide,
}: {
  w: API.WorkflowItem;
  next?: string;
  changed: () => Promise<void>;
  hide: (on: boolean) => void;
}) {
  const may = mayEdit.value;
  const live = w.status === "active";
  const runs = w.recent ?? [];
  const failed = runs[0]?.status === "errored" ? runs[0].error : "";
  const switchTo = async () => {
    try {
      await put(workflowsAt(w.id), { status: live ? "paused" : "active" });
      tell(live ? "It is paused" : "It is live");
    } catch (error) {
      tell(error);
      if (error instanceof ApiError && (error.details.errors?.length || error.details.node_id))
        go(`${href(agentId.value, "workflows", w.id)}?tab=problems`);
    }
    await changed();
  };
  const duplicate = async () => {
    const { name, description, nodes, edges, settings } = await get(workflowsAt(w.id));
    const made = await post(workflowsAt(), { name: `${name} (copy)`, description, nodes, edges, settings });
    go(href(agentId.value, "workflows", made.id));
  };
  const download = async () => {
    const { name, description, nodes, edges, settings } = await get(workflowsAt(w.id));
    saveFile(
      new Blob([JSON.stringify({ satchel: "workflow/1", name, description, settings, nodes, edges }, null, 2)], {
        type: "application/json",
      }),
      `${name || "workflow"}.json`,
    );
  };
  const reason = may ? undefined : "You have read-only access.";
  const items: MenuItem[] = [
    { label: "Open", icon: "Pencil", run: () => go(href(agentId.value, "workflows", w.id)) },
    {
      label: "Executions",
      icon: "Activity",
      run: () => go(`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(w.id)}`),
    },
    {
      label: "Execute",
      icon: "Zap",
      disabled: !may || !["draft", "active"].includes(w.status),
      reason,
      run: () => {
        openDialog((close) => <Execute workflow={w} close={close} />);
      },
    },
    { label: "Duplicate", icon: "Copy", disabled: !may, reason, run: duplicate },
    { label: "Export", icon: "Download", run: download },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      disabled: !may,
      reason,
      run: () => {
        hide(true);
        deleteLater(
          `${w.name} deleted`,
          () => remove(workflowsAt(w.id)).then(changed),
          () => hide(false),
        );
      },
    },
  ];
  return (
    <li class="source-row workflow-row">
      <input
        class="workflow-switch"
        type="checkbox"
        role="switch"
        aria-label={`${w.name} is live`}
        checked={live}
        disabled={!may || w.status === "archived"}
        onChange={(e) => {
          e.currentTarget.checked = live;
          void switchTo();
        }}
      />
      <div class="grow">
        <a href={href(agentId.value, "workflows", w.id)}>
          <Name>{w.name}</Name>
        </a>
        <p class="muted small">
          {[triggerWords(w.triggers), w.description].filter(Boolean).map((t, i) => (
            <>
              {i > 0 && " · "}
              <bdi>{t}</bdi>
            </>
          ))}
          {(w.triggers?.length || w.description) && " · "}version {w.version} · <When time={w.updated_at} />
          {next && (
            <>
              {" "}
              · next run <When time={next} />
            </>
          )}
        </p>
        {failed && (
          <p class="issue small clip">
            <bdi>{failed}</bdi>
          </p>
        )}
      </div>
      {runs.length > 0 && (
        <a
          class="outcomes"
          href={`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(w.id)}`}
          aria-label={`The last ${plural(runs.length, "execution")}: ${runs.filter((r) => r.status === "errored").length} failed`}
        >
          {[...runs].reverse().map((r) => (
            <i key={r.id} class={r.status} title={r.status} />
          ))}
        </a>
      )}
      <Badge>{w.status}</Badge>
      <Menu label={`Actions for ${w.name}`} items={items} />
    </li>
  );
}
