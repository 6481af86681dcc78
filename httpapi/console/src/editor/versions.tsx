// The versions of a workflow: what they changed, and the way back to one.
import { useEffect, useMemo, useState } from "preact/hooks";

import { agentId, type API, get, href, path, post, useQuery } from "../data";
import {
  Author,
  Badge,
  Button,
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
  tell,
  When,
} from "../ui";
import {
  Canvas,
  defaultHandle,
  Editor,
  type Graph,
  type GraphEdge,
  type GraphNode,
  namesOf,
  readGraph,
  sourceHandleOf,
  typeOf,
  withPositions,
} from "./index";
import { type Change, edgeChanges, fieldTitle, lineChanges, nearChanges, nodeChanges } from "./diff";

type Old = API.Workflow & Graph;

const workflowAt = <const M extends (string | number)[]>(id: string, ...more: M) =>
  path("agents", agentId.value, "workflows", id, ...more);

async function readVersion(id: string, version: number): Promise<Old> {
  const old = await get(workflowAt(id, "versions", version));
  return { ...old, ...(await withPositions(readGraph(old))) };
}

export function Versions({
  id,
  version,
  live,
  editor,
  restored,
}: {
  id: string;
  version: number;
  /** Whether the workflow is active. */ live: boolean;
  editor: Editor;
  restored: () => Promise<void>;
}) {
  const [offset, setOffset] = useState(0);
  const found = useQuery(workflowAt(id, "versions"), { limit: 20, offset });
  useEffect(() => {
    void found.reload();
  }, [version]);
  const may = !editor.readonly.value;
  const restoreNow = async (v: number) => {
    await post(workflowAt(id, "versions", v, "restore"));
    tell(`Version ${v} is restored as the latest version.`);
    await restored();
  };
  /** Restores a version, and asks first if that changes what is live or drops what is not saved. */
  const restore = async (v: number, done = () => {}) => {
    const dirty = editor.dirty.value;
    const run = () => restoreNow(v).then(done);
    if (!dirty && !live) return run();
    confirm({
      title: `Restore version ${v}?`,
      action: live ? "Restore and go live" : "Restore",
      run,
      text: (
        <>
          {live && `The workflow is active: new executions use version ${v} at once.`}
          {live && dirty && " "}
          {dirty && "Your unsaved changes are lost."}
        </>
      ),
    });
  };
  const show = async (v: number) => {
    const old = await readVersion(id, v);
    openDialog((close) => (
      <OldVersion
        id={id}
        old={old}
        editor={editor}
        close={close}
        restore={may && v !== version ? () => restore(v, close) : undefined}
        current={v === version}
      />
    ));
  };
  return (
    <div class="pad versions">
      <Load of={found}>
        {({ versions, meta }) => (
          <>
            <Table
              rows={versions}
              keyOf={(v) => v.version}
              columns={[
                {
                  title: "Version",
                  cell: (v) => (
                    <span>
                      {v.version} {v.current && <Badge tone="good">current</Badge>}
                    </span>
                  ),
                },
                {
                  title: "Note",
                  class: "version-note",
                  cell: (v) => <bdi class={v.note ? "" : "muted"}>{v.note || "–"}</bdi>,
                },
                { title: "By", cell: (v) => <Author who={v.author} /> },
                { title: "Executions", class: "number", cell: (v) => <Ran workflow={id} v={v} /> },
                { title: "Saved", cell: (v) => <When time={v.created_at} /> },
                {
                  title: "",
                  class: "actions",
                  cell: (v) => (
                    <>
                      {(v.version > 1 || !v.current) && <Button onClick={() => show(v.version)}>Compare</Button>}{" "}
                      {may && !v.current && <Button onClick={() => restore(v.version)}>Restore</Button>}
                    </>
                  ),
                },
              ]}
            />
            <Pager meta={meta} go={setOffset} />
          </>
        )}
      </Load>
    </div>
  );
}

/** How often a version was executed, and how often it failed, with links to these executions. */
function Ran({ workflow, v }: { workflow: string; v: API.WorkflowVersion }) {
  if (!v.executions) return <span class="muted">–</span>;
  const list = `${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(workflow)}&version=${v.version}`;
  return (
    <>
      <a href={list} aria-label={`${plural(v.executions, "execution")} of version ${v.version}`}>
        {v.executions.toLocaleString()}
      </a>
      {v.failed > 0 && (
        <>
          {" "}
          <a href={`${list}&status=errored`} aria-label={`${v.failed} failed executions of version ${v.version}`}>
            <Badge tone="bad">{`${v.failed.toLocaleString()} failed`}</Badge>
          </a>
        </>
      )}
    </>
  );
}

/** A version, and what differs between it and the editor, or between it and the version before. */
function OldVersion({
  id,
  old,
  current,
  editor,
  close,
  restore,
}: {
  id: string;
  old: Old;
  current: boolean;
  editor: Editor;
  close: () => void;
  restore?: () => Promise<void>;
}) {
  const [shown] = useState(() => {
    const e = new Editor();
    e.load({
      name: old.name,
      description: "",
      settings: old.settings,
      nodes: old.nodes,
      edges: old.edges,
      notes: old.notes,
    });
    e.readonly.value = true;
    return e;
  });
  const [to, setTo] = useState(current ? "before" : "editor");
  const [before, setBefore] = useState<Old>();
  const [error, setError] = useState<Error>();
  const previous = to === "before";
  useEffect(() => {
    if (previous && !before) readVersion(id, old.version - 1).then(setBefore, setError);
  }, [previous]);
  const graphs = previous ? before && { from: before, to: old } : { from: old, to: editor.doc.value };
  const changes = useMemo(
    () =>
      graphs && {
        nodes: nodeChanges(graphs.from, graphs.to),
        edges: edgeChanges(graphs.from, graphs.to),
        names: new Map([...namesOf(graphs.from.nodes), ...namesOf(graphs.to.nodes)]),
      },
    [graphs?.from, graphs?.to],
  );
  useEffect(() => {
    shown.marks.value = new Map(changes?.nodes.map((c) => [c.node.id, { status: c.change, count: 1 }]));
  }, [changes]);
  return (
    <Dialog title={`Version ${old.version}`} close={close} wide>
      <div class="version-canvas">
        <Canvas editor={shown} actions={noActions} />
      </div>
      <div class="row">
        <span class="muted">Compared with</span>
        {old.version > 1 ? (
          <Segments
            label="Compared with"
            value={to}
            options={[
              ["editor", "Editor"],
              ["before", `Version ${old.version - 1}`],
            ]}
            onChange={setTo}
          />
        ) : (
          <span>the editor</span>
        )}
      </div>
      {error && previous ? (
        <ErrorCard error={error} />
      ) : !changes ? (
        <Skeleton />
      ) : (
        <Changes {...changes} graph={graphs!.to} since={!previous} />
      )}
      <details>
        <summary>JSON</summary>
        <JsonTree value={{ nodes: old.nodes, edges: old.edges }} />
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

function Changes({
  nodes,
  edges,
  names,
  graph,
  since,
}: {
  nodes: ReturnType<typeof nodeChanges>;
  edges: ReturnType<typeof edgeChanges>;
  names: Map<string, string>;
  graph: Graph;
  since: boolean;
}) {
  const badge = (change: Change) => <Badge tone={tones[change]}>{since ? `${change} since` : change}</Badge>;
  const name = (id: string) => <Name>{names.get(id) ?? id}</Name>;
  const handle = (e: GraphEdge) => {
    const n = graph.nodes.find((s) => s.id === e.source);
    const w = sourceHandleOf(e, n, n && typeOf(n.type));
    return w === defaultHandle ? "" : ` (${w})`;
  };
  if (!nodes.length && !edges.length) return <p class="muted">No differences.</p>;
  return (
    <section class="stack version-changes" aria-label="Differences">
      <h3>
        {[nodes.length && plural(nodes.length, "node"), edges.length && plural(edges.length, "connection")]
          .filter(Boolean)
          .join(" and ")}
      </h3>
      <ul class="plain">
        {nodes.map(({ node, change, fields }) => (
          <li key={node.id}>
            <p class="row">
              <strong>{name(node.id)}</strong> {badge(change)}
            </p>
            {fields.map((f) => (
              <Field key={f.name} node={node} {...f} />
            ))}
          </li>
        ))}
        {edges.map(({ edge, change }) => (
          <li key={edge.id}>
            <p class="row">
              <span>
                {name(edge.source)}
                <bdi class="muted">{handle(edge)}</bdi> → {name(edge.target)}
              </span>{" "}
              {badge(change)}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

const textOf = (v: unknown) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, null, 2));

/** The old and the new value of a field; of longer ones the lines that changed. */
function Field({ node, name, from, to }: { node: GraphNode; name: string; from: unknown; to: unknown }) {
  const [before, after] = [textOf(from), textOf(to)];
  return (
    <div class="field-diff small">
      <span class="muted">
        <bdi>{fieldTitle(node, name)}</bdi>
      </span>
      {before.includes("\n") || after.includes("\n") ? (
        <pre>
          {nearChanges(lineChanges(before, after)).map((l) =>
            !l ? (
              <span class="muted">…</span>
            ) : l.kind === "removed" ? (
              <del>{l.text || " "}</del>
            ) : l.kind === "added" ? (
              <ins>{l.text || " "}</ins>
            ) : (
              <span>{l.text || " "}</span>
            ),
          )}
        </pre>
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

const noActions = {};
