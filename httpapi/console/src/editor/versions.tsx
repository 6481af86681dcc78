// The versions of a workflow: what they changed, and restoring one.
import { useEffect, useMemo, useState } from "preact/hooks";

import { agentId, type API, get, href, post, useQuery } from "../data";
import {
  Author,
  Badge,
  Button,
  type Column,
  confirm,
  Dialog,
  ErrorCard,
  JsonTree,
  Load,
  Name,
  openDialog,
  Pager,
  plural,
  Segments,
  Skeleton,
  Table,
  showToast,
  When,
} from "../ui";
import { typeOf } from "./catalog";
import { Canvas } from "./components";
import {
  type Change,
  type EdgeChange,
  edgeChanges,
  type FieldChange,
  fieldTitle,
  type Line,
  lineChanges,
  linesInContext,
  type NodeChange,
  nodeChanges,
} from "./diff";
import { defaultHandle, type Graph, type GraphEdge, type GraphNode, readGraph, sourceHandleOf } from "./graph";
import { withPositions } from "./layout";
import { namesOf } from "./names";
import { workflowPath } from "./run";
import { Editor } from "./state";

type StoredVersion = API.Workflow & Graph;

const pageSize = 20;
const noActions = {};

async function readVersion(id: string, version: number): Promise<StoredVersion> {
  const stored = await get(workflowPath(id, "versions", version));
  return { ...stored, ...(await withPositions(readGraph(stored))) };
}

type VersionsProps = {
  id: string;
  /** The current version. */
  version: number;
  /** Whether the workflow is active. */
  live: boolean;
  editor: Editor;
  restored: () => Promise<void>;
};

/** The versions of a workflow, which can be compared and restored. */
export function Versions({ id, version, live, editor, restored }: VersionsProps) {
  const [offset, setOffset] = useState(0);
  const query = useQuery(workflowPath(id, "versions"), { limit: pageSize, offset });
  useEffect(() => {
    void query.reload();
  }, [version]);
  const editable = !editor.readonly.value;
  const restore = (chosen: number, done?: () => void) => {
    const run = async () => {
      await post(workflowPath(id, "versions", chosen, "restore"));
      showToast(`Version ${chosen} is restored as the latest version.`);
      await restored();
      done?.();
    };
    return confirmRestore({ version: chosen, live, dirty: editor.dirty.value, run });
  };
  const compare = async (chosen: number) => {
    const stored = await readVersion(id, chosen);
    const current = chosen === version;
    openDialog((close) => (
      <VersionDialog
        id={id}
        stored={stored}
        current={current}
        editor={editor}
        close={close}
        restore={editable && !current ? async () => restore(chosen, close) : undefined}
      />
    ));
  };
  return (
    <div class="pad versions">
      <Load of={query}>
        {({ versions, meta }) => (
          <>
            <VersionTable
              workflow={id}
              versions={versions}
              compare={compare}
              restore={editable ? restore : undefined}
            />
            <Pager meta={meta} go={setOffset} />
          </>
        )}
      </Load>
    </div>
  );
}

type Restore = { version: number; live: boolean; dirty: boolean; run: () => Promise<void> };

/** Restores a version, and asks first if that changes what is live or discards unsaved changes. */
function confirmRestore({ version, live, dirty, run }: Restore) {
  if (!dirty && !live) return run();
  confirm({
    title: `Restore version ${version}?`,
    action: live ? "Restore and go live" : "Restore",
    run,
    text: (
      <>
        {live && `The workflow is active: new executions use version ${version} at once.`}
        {live && dirty && " "}
        {dirty && "Your unsaved changes are lost."}
      </>
    ),
  });
}

type VersionTableProps = {
  workflow: string;
  versions: API.WorkflowVersion[];
  compare: (version: number) => unknown;
  restore?: (version: number) => unknown;
};

function VersionTable({ workflow, versions, compare, restore }: VersionTableProps) {
  const columns: Column<API.WorkflowVersion>[] = [
    {
      title: "Version",
      cell: ({ version, current }) => (
        <span>
          {version} {current && <Badge tone="good">current</Badge>}
        </span>
      ),
    },
    {
      title: "Note",
      class: "version-note",
      cell: ({ note }) => <bdi class={note ? "" : "muted"}>{note || "–"}</bdi>,
    },
    { title: "By", cell: ({ author }) => <Author who={author} /> },
    {
      title: "Executions",
      class: "number",
      cell: (version) => <ExecutionCount workflow={workflow} version={version} />,
    },
    { title: "Saved", cell: ({ created_at }) => <When time={created_at} /> },
    {
      title: "",
      class: "actions",
      cell: ({ version, current }) => (
        <>
          {(version > 1 || !current) && <Button onClick={() => compare(version)}>Compare</Button>}{" "}
          {restore && !current && <Button onClick={() => restore(version)}>Restore</Button>}
        </>
      ),
    },
  ];
  return <Table rows={versions} keyOf={(version) => version.version} columns={columns} />;
}

/** How often a version was executed, and how often it failed, with links to these executions. */
function ExecutionCount({ workflow, version }: { workflow: string; version: API.WorkflowVersion }) {
  if (!version.executions) return <span class="muted">–</span>;
  const filter = `workflow=${encodeURIComponent(workflow)}&version=${version.version}`;
  const list = `${href(agentId.value, "workflows")}?tab=executions&${filter}`;
  return (
    <>
      <a href={list} aria-label={`${plural(version.executions, "execution")} of version ${version.version}`}>
        {version.executions.toLocaleString()}
      </a>
      {version.failed > 0 && (
        <>
          {" "}
          <a
            href={`${list}&status=errored`}
            aria-label={`${version.failed} failed executions of version ${version.version}`}
          >
            <Badge tone="bad">{`${version.failed.toLocaleString()} failed`}</Badge>
          </a>
        </>
      )}
    </>
  );
}

/** Returns a read-only editor that shows a version. */
function editorOf({ name, settings, nodes, edges, notes }: StoredVersion): Editor {
  const editor = new Editor();
  editor.load({ name, description: "", settings, nodes, edges, notes });
  editor.readonly.value = true;
  return editor;
}

/** Loads the version before another one once it is wanted. */
function useVersionBefore(id: string, version: number, wanted: boolean) {
  const [before, setBefore] = useState<StoredVersion>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    if (wanted && !before) readVersion(id, version - 1).then(setBefore, setError);
  }, [wanted]);
  return { before, error };
}

type Differences = { nodes: NodeChange[]; edges: EdgeChange[]; names: Map<string, string> };

const differencesOf = (from: Graph, to: Graph): Differences => ({
  nodes: nodeChanges(from, to),
  edges: edgeChanges(from, to),
  names: new Map([...namesOf(from.nodes), ...namesOf(to.nodes)]),
});

type VersionDialogProps = {
  id: string;
  stored: StoredVersion;
  current: boolean;
  editor: Editor;
  close: () => void;
  restore?: () => Promise<void>;
};

/** A version, and how it differs from the editor or from the version before. */
function VersionDialog({ id, stored, current, editor, close, restore }: VersionDialogProps) {
  const [shown] = useState(() => editorOf(stored));
  const [comparison, setComparison] = useState(current ? "before" : "editor");
  const withBefore = comparison === "before";
  const { before, error } = useVersionBefore(id, stored.version, withBefore);
  const from = withBefore ? before : stored;
  const to = withBefore ? stored : editor.doc.value;
  const differences = useMemo(() => from && differencesOf(from, to), [from, to]);
  useEffect(() => {
    shown.marks.value = new Map(differences?.nodes.map(({ node, change }) => [node.id, { status: change, count: 1 }]));
  }, [differences]);
  return (
    <Dialog title={`Version ${stored.version}`} close={close} wide>
      <div class="version-canvas">
        <Canvas editor={shown} actions={noActions} />
      </div>
      <div class="row">
        <span class="muted">Compared with</span>
        {stored.version > 1 ? (
          <Segments
            label="Compared with"
            value={comparison}
            options={[
              ["editor", "Editor"],
              ["before", `Version ${stored.version - 1}`],
            ]}
            onChange={setComparison}
          />
        ) : (
          <span>the editor</span>
        )}
      </div>
      {error && withBefore && <ErrorCard error={error} />}
      {!(error && withBefore) && !differences && <Skeleton />}
      {!(error && withBefore) && differences && <Changes {...differences} graph={to} since={!withBefore} />}
      <details>
        <summary>JSON</summary>
        <JsonTree value={{ nodes: stored.nodes, edges: stored.edges }} />
      </details>
      <div class="row end">
        <Button onClick={close}>Close</Button>
        {restore && (
          <Button kind="primary" onClick={restore}>
            Restore
          </Button>
        )}
      </div>
    </Dialog>
  );
}

const tones: Record<Change, "good" | "warn" | "bad"> = { added: "good", changed: "warn", removed: "bad" };

/** Returns the output of an edge in parentheses, if its node has several. */
function edgeOutput({ nodes }: Graph, edge: GraphEdge): string {
  const source = nodes.find((node) => node.id === edge.source);
  const handle = sourceHandleOf(edge, source, source && typeOf(source.type));
  return handle === defaultHandle ? "" : ` (${handle})`;
}

/** The differences between two graphs; graph is the newer one, and since says that it is the editor's. */
function Changes({ nodes, edges, names, graph, since }: Differences & { graph: Graph; since: boolean }) {
  if (!nodes.length && !edges.length) return <p class="muted">No differences.</p>;
  const badge = (change: Change) => <Badge tone={tones[change]}>{since ? `${change} since` : change}</Badge>;
  const name = (id: string) => <Name>{names.get(id) ?? id}</Name>;
  const counts = [nodes.length && plural(nodes.length, "node"), edges.length && plural(edges.length, "connection")];
  return (
    <section class="stack version-changes" aria-label="Differences">
      <h3>{counts.filter(Boolean).join(" and ")}</h3>
      <ul class="plain">
        {nodes.map(({ node, change, fields }) => (
          <li key={node.id}>
            <p class="row">
              <strong>{name(node.id)}</strong> {badge(change)}
            </p>
            {fields.map((field) => (
              <FieldDifference key={field.name} node={node} {...field} />
            ))}
          </li>
        ))}
        {edges.map(({ edge, change }) => (
          <li key={edge.id}>
            <p class="row">
              <span>
                {name(edge.source)}
                <bdi class="muted">{edgeOutput(graph, edge)}</bdi> → {name(edge.target)}
              </span>{" "}
              {badge(change)}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The old and the new value of a field; if they have several lines, those that changed. */
function FieldDifference({ node, name, from, to }: { node: GraphNode } & FieldChange) {
  const before = textOf(from);
  const after = textOf(to);
  return (
    <div class="field-diff small">
      <span class="muted">
        <bdi>{fieldTitle(node, name)}</bdi>
      </span>
      {before.includes("\n") || after.includes("\n") ? (
        <pre>{linesInContext(lineChanges(before, after)).map(lineDifference)}</pre>
      ) : (
        <p>
          {before && (
            <del>
              <bdi>{before}</bdi>
            </del>
          )}{" "}
          {after && (
            <ins>
              <bdi>{after}</bdi>
            </ins>
          )}
        </p>
      )}
    </div>
  );
}

function lineDifference(line: Line | null) {
  if (!line) return <span class="muted">…</span>;
  const text = line.text || " ";
  if (line.kind === "removed") return <del>{text}</del>;
  return line.kind === "added" ? <ins>{text}</ins> : <span>{text}</span>;
}
