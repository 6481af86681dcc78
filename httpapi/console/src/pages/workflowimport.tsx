// Workflows of n8n: a file or pasted JSON, what would become of it, and the
// drafts.
import { useEffect, useState } from "preact/hooks";

import { agentId, ApiError, go, href, invalidate, mayEdit, path, post, type API } from "../data";
import { Badge, Button, Empty, Icon, Name, plural, Table, showToast, TextArea, type Values } from "../ui";
import { loadCatalog } from "../editor/catalog";
import { readCopy, writeGraph } from "../editor/graph";
import { style } from "../parts/styles";
import { GraphPreview } from "../parts/graph-preview";
import "../css/nodes.css";
import "../css/templates.css";

export const styles = style("./workflowimport.css");

type Level = "exact" | "approximate" | "unsupported";
type Line = {
  workflow: string;
  node: string;
  n8n_type: string;
  node_id: string;
  level: Level;
  code: string;
  message: string;
};
type Read = {
  workflows: API.ImportedWorkflows["workflows"];
  schedules: { name: string; cron_expression: string; workflow_id: string }[];
  tools: { name: string; description: string }[];
  credentials: { name: string; n8n_type: string; preset: string; nodes: string[] }[];
  report: Line[];
};

const workflowsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "workflows", ...more);
const maxBytes = 4 << 20;
const levels: Level[] = ["unsupported", "approximate", "exact"];
const tones: Record<Level, "good" | "warn" | "bad"> = { exact: "good", approximate: "warn", unsupported: "bad" };

/** The worst level of each node, with all its lines. */
function byNode(report: Line[], workflow: string) {
  const nodes = new Map<string, { line: Line; messages: string[] }>();
  for (const line of report) {
    if (line.workflow !== workflow) continue;
    const known = nodes.get(line.node);
    if (!known) nodes.set(line.node, { line, messages: line.message ? [line.message] : [] });
    else {
      known.messages.push(line.message);
      if (levels.indexOf(line.level) < levels.indexOf(known.line.level)) known.line = line;
    }
  }
  return [...nodes.values()].sort((a, b) => levels.indexOf(a.line.level) - levels.indexOf(b.line.level));
}

export default function WorkflowImport() {
  const [text, setText] = useState("");
  const [read, setRead] = useState<Read>();
  const [problem, setProblem] = useState("");
  const [done, setDone] = useState(false);
  useEffect(() => {
    void loadCatalog();
  }, []);
  const check = async (source: string) => {
    setProblem("");
    let document: Values;
    try {
      document = JSON.parse(source);
    } catch {
      setProblem(
        "Not valid JSON. Use the file that Download in n8n's editor saves, " +
          "or copy the nodes there and paste them here.",
      );
      return;
    }
    const own = readCopy(source);
    try {
      if (own) {
        const made = await post(workflowsAt(), {
          name: own.name || "Imported workflow",
          description: own.description ?? "",
          ...(own.settings && { settings: own.settings }),
          ...writeGraph(own),
        });
        invalidate(workflowsAt());
        return go(href(agentId.value, "workflows", made.id));
      }
      setRead(await post(workflowsAt("import"), { format: "n8n", document, dry_run: true }));
      setText(source);
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  };
  const create = async () => {
    try {
      setRead(await post(workflowsAt("import"), { format: "n8n", document: JSON.parse(text) }));
      setDone(true);
      invalidate(workflowsAt());
    } catch (error) {
      showToast(error);
    }
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={href(agentId.value, "workflows")}>Workflows</a>
      </p>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Import workflows
        </h1>
      </div>
      {!mayEdit.value ? (
        <p class="card">Read-only access. Importing workflows needs the admin role.</p>
      ) : !read ? (
        <Source check={check} problem={problem} />
      ) : (
        <Outcome
          read={read}
          done={done}
          create={create}
          back={() => {
            setRead(undefined);
            setDone(false);
          }}
        />
      )}
    </div>
  );
}

function Source({ check, problem }: { check: (text: string) => Promise<void>; problem: string }) {
  const [pasted, setPasted] = useState("");
  const take = async (file?: File) => {
    if (!file) return;
    if (file.size > maxBytes) return showToast(new Error("The file can be at most 4 MB."));
    await check(await file.text());
  };
  return (
    <div class="stack import-source">
      <p class="muted">
        From n8n, or exported here. n8n workflows become drafts with a report on every node; nothing runs, and nothing
        is stored until you have seen it.
      </p>
      <label
        class="drop import-drop"
        onDragOver={(e) => e.preventDefault()}
        onDrop={(e) => {
          e.preventDefault();
          void take(e.dataTransfer?.files[0]);
        }}
      >
        <Icon name="Upload" size={28} />
        <span>Drop a JSON file here, or choose one.</span>
        <span class="button">Choose a file</span>
        <input
          type="file"
          class="hidden"
          accept=".json,application/json"
          aria-label="Workflow file"
          onChange={(e) => {
            const file = e.currentTarget.files?.[0];
            e.currentTarget.value = "";
            void take(file);
          }}
        />
      </label>
      <TextArea
        label="Or paste it"
        value={pasted}
        onInput={setPasted}
        rows={6}
        code
        placeholder={'{"nodes": […], "connections": {…}}'}
      />
      {problem && (
        <p class="issue" role="alert">
          <bdi>{problem}</bdi>
        </p>
      )}
      <div class="row">
        <Button kind="primary" disabled={!pasted.trim()} onClick={() => check(pasted)}>
          Read
        </Button>
        <a class="button quiet" href={href(agentId.value, "workflows")}>
          Cancel
        </a>
      </div>
    </div>
  );
}

function Outcome({
  read,
  done,
  create,
  back,
}: {
  read: Read;
  done: boolean;
  create: () => Promise<void>;
  back: () => void;
}) {
  const [shown, setShown] = useState(0);
  const workflow = read.workflows[Math.min(shown, read.workflows.length - 1)];
  const count = (level: Level) =>
    new Set(read.report.filter((l) => l.node && l.level === level).map((l) => `${l.workflow}\n${l.node}`)).size;
  const parts = [
    plural(read.workflows.length, "workflow"),
    read.schedules.length > 0 && plural(read.schedules.length, "schedule"),
    read.tools.length > 0 && plural(read.tools.length, "tool"),
  ]
    .filter(Boolean)
    .join(", ");
  return (
    <div class="stack import-outcome">
      <div class="card row import-sum">
        <div class="grow">
          <strong>{done ? `Created: ${parts}` : `This creates ${parts}`}</strong>
          <p class="muted small">
            {done
              ? "Workflows are drafts, and schedules are paused."
              : "Workflows become drafts, and schedules are paused. Nothing is stored yet."}
          </p>
        </div>
        <div class="row">
          {levels.filter(count).map((level) => (
            <Badge key={level} tone={tones[level]}>{`${count(level)} ${level}`}</Badge>
          ))}
        </div>
        <div class="row">
          {done ? (
            <a
              class="button primary"
              href={href(agentId.value, "workflows", read.workflows.length === 1 ? read.workflows[0].id : "")}
            >
              {read.workflows.length === 1 ? "Open the workflow" : "Show workflows"}
            </a>
          ) : (
            <>
              <Button onClick={back}>Back</Button>
              <Button kind="primary" onClick={create}>
                {read.workflows.length === 1 ? "Create draft" : "Create drafts"}
              </Button>
            </>
          )}
        </div>
      </div>
      <Credentials read={read} />
      {read.workflows.length > 1 && (
        <nav class="tabs" aria-label="Workflows">
          {read.workflows.map((w, i) => (
            <button
              type="button"
              key={w.id}
              aria-current={i === shown ? "page" : undefined}
              onClick={() => setShown(i)}
            >
              <bdi>{w.name}</bdi>
            </button>
          ))}
        </nav>
      )}
      <div class="import-columns">
        <section class="stack tight" aria-label="Report">
          <h2>
            <Name>{workflow.name}</Name>
          </h2>
          <Report lines={byNode(read.report, workflow.name)} />
        </section>
        <section class="stack tight template-graph" aria-label="The workflow">
          <h2>The workflow</h2>
          {workflow.nodes.length ? (
            <GraphPreview nodes={workflow.nodes} edges={workflow.edges} />
          ) : (
            <Empty icon="Workflow" title="No nodes" />
          )}
        </section>
      </div>
    </div>
  );
}

function Report({ lines }: { lines: { line: Line; messages: string[] }[] }) {
  return (
    <ul class="import-report">
      {lines.map(({ line, messages }) => (
        <li key={line.node} class={line.level}>
          <Badge tone={tones[line.level]}>{line.level}</Badge>
          <div class="grow">
            <strong>{line.node ? <bdi>{line.node}</bdi> : "The workflow"}</strong>{" "}
            <span class="muted small">
              <bdi>{line.n8n_type.replace(/^.*\./, "")}</bdi>
            </span>
            {messages.map((m, i) => (
              <p key={i} class="small">
                <bdi>{m}</bdi>
              </p>
            ))}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Credentials({ read }: { read: Read }) {
  if (!read.credentials.length) return null;
  return (
    <section class="stack tight" aria-label="Credentials">
      <h2>Credentials to create</h2>
      <p class="muted small">n8n's files don't contain secrets. Create each credential under the name the nodes use.</p>
      <Table
        rows={read.credentials}
        keyOf={(c) => `${c.name} ${c.n8n_type}`}
        columns={[
          { title: "Name", class: "title", cell: (c) => <bdi>{c.name}</bdi> },
          {
            title: "In n8n",
            cell: (c) => (
              <span class="muted">
                <bdi>{c.n8n_type}</bdi>
              </span>
            ),
          },
          {
            title: "Used by",
            cell: (c) => (
              <span class="muted">
                <bdi>{c.nodes.join(", ")}</bdi>
              </span>
            ),
          },
          {
            title: "Credential",
            cell: (c) => (
              <a href={href(agentId.value, "credentials", "new", c.preset || "custom")} target="_blank" rel="noopener">
                {c.preset ? "Make it" : "Make one"}
              </a>
            ),
          },
        ]}
      />
    </section>
  );
}
