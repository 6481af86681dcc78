// Someone else saved the workflow meanwhile: one-sided changes are joined by
// themselves, others by choice.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, get, path } from "../data";
import { Button, Dialog, ErrorCard, Name, Segments, Skeleton, When } from "../ui";
import { type Doc, type Editor, type GraphEdge, type GraphNode, readGraph } from "./index";

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const core = (n?: GraphNode) => n && { ...n, position: undefined };

/** A merged graph, and the nodes that both sides changed. */
export type Merged = {
  nodes: GraphNode[];
  edges: GraphEdge[];
  both: { id: string; mine?: GraphNode; theirs?: GraphNode }[];
};

/** Joins two changes of one graph, node by node. Where both sides changed a node, mine is taken and it is named. */
export function merge(
  base: { nodes: GraphNode[]; edges: GraphEdge[] },
  mine: { nodes: GraphNode[]; edges: GraphEdge[] },
  theirs: { nodes: GraphNode[]; edges: GraphEdge[] },
): Merged {
  const by = <T extends { id: string }>(l: T[]) => new Map(l.map((x) => [x.id, x]));
  const [b, m, t] = [by(base.nodes), by(mine.nodes), by(theirs.nodes)];
  const both: Merged["both"] = [];
  const nodes: GraphNode[] = [];
  for (const id of new Set([...m.keys(), ...t.keys()])) {
    const [old, my, their] = [b.get(id), m.get(id), t.get(id)];
    const [iChanged, theyChanged] = [!same(core(old), core(my)), !same(core(old), core(their))];
    if (iChanged && theyChanged && !same(core(my), core(their))) both.push({ id, mine: my, theirs: their });
    const kept = iChanged || !theyChanged ? (my ?? (iChanged ? undefined : their)) : their;
    if (kept) nodes.push(kept);
  }
  const key = (e: GraphEdge) => `${e.source}\n${e.sourceHandle ?? ""}\n${e.target}`;
  const [be, me, te] = [base, mine, theirs].map((g) => new Map(g.edges.map((e) => [key(e), e])));
  const ids = new Set(nodes.map((n) => n.id));
  const edges = [...new Set([...me.keys(), ...te.keys()])]
    .filter((k) => (be.has(k) ? me.has(k) && te.has(k) : true))
    .map((k) => me.get(k) ?? te.get(k)!)
    .filter((e) => ids.has(e.source) && ids.has(e.target));
  return { nodes, edges, both };
}

/** Takes the other side's node in place of mine, or leaves it out. */
const choose = (merged: Merged, theirs: ReadonlySet<string>): { nodes: GraphNode[]; edges: GraphEdge[] } => {
  const taken = new Map(merged.both.filter((c) => theirs.has(c.id)).map((c) => [c.id, c.theirs]));
  const nodes = merged.nodes.flatMap((n) => (taken.has(n.id) ? (taken.get(n.id) ?? []) : n));
  for (const c of merged.both)
    if (theirs.has(c.id) && c.theirs && !nodes.some((n) => n.id === c.id)) nodes.push(c.theirs);
  const ids = new Set(nodes.map((n) => n.id));
  return { nodes, edges: merged.edges.filter((e) => ids.has(e.source) && ids.has(e.target)) };
};

/** Asks how to go on after someone else saved the workflow: merge, discard one's own changes, or save a copy. */
export function ConflictDialog({
  editor,
  base,
  close,
  reload,
  overwrite,
  copy,
}: {
  editor: Editor;
  base: API.Workflow;
  close: () => void;
  reload: () => Promise<void>;
  overwrite: (doc: Partial<Doc>, version: number) => Promise<void>;
  copy: () => Promise<void>;
}) {
  const [now, setNow] = useState<API.Workflow>();
  const [error, setError] = useState<Error>();
  const [theirs, setTheirs] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    get(path("agents", agentId.value, "workflows", base.id)).then(setNow, setError);
  }, []);
  if (!now)
    return (
      <Dialog title="Someone else saved changes" close={close}>
        {error ? <ErrorCard error={error} /> : <Skeleton />}
      </Dialog>
    );
  const [before, theirGraph] = [readGraph(base), readGraph(now)];
  const merged = merge(before, editor.doc.value, theirGraph);
  const join = async () => {
    const doc = editor.doc.value;
    const other = <K extends "name" | "description" | "settings">(name: K): Doc[K] =>
      same(doc[name], base[name] ?? "") ? ((now[name] ?? doc[name]) as Doc[K]) : doc[name];
    await overwrite(
      {
        ...choose(merged, theirs),
        notes: same(doc.notes, before.notes) ? theirGraph.notes : doc.notes,
        name: other("name"),
        description: other("description"),
        settings: other("settings"),
      },
      now.version,
    );
    close();
  };
  return (
    <Dialog title="Someone else saved changes" close={close}>
      <p>
        Version {now.version} was saved <When time={now.updated_at} />
        {now.updated_by?.includes("@") ? (
          <>
            {" "}
            by <Name>{now.updated_by}</Name>
          </>
        ) : (
          " elsewhere"
        )}
        , while you changed version {base.version}. Changes to different nodes are merged.
      </p>
      {merged.both.length > 0 && (
        <section class="stack">
          <h3>Changed in both</h3>
          <ul class="plain">
            {merged.both.map((c) => (
              <li key={c.id} class="row">
                <span class="grow">
                  <Name>{editor.nameOf(c.mine ?? c.theirs ?? c.id)}</Name>
                  {!c.mine && <span class="muted"> (you removed it)</span>}
                  {!c.theirs && <span class="muted"> (it was removed)</span>}
                </span>
                <Segments
                  label={`Which ${editor.nameOf(c.mine ?? c.theirs ?? c.id)}`}
                  value={theirs.has(c.id) ? "theirs" : "mine"}
                  options={[
                    ["mine", "Mine"],
                    ["theirs", "Theirs"],
                  ]}
                  onChange={(v) => {
                    const next = new Set(theirs);
                    if (v === "theirs") next.add(c.id);
                    else next.delete(c.id);
                    setTheirs(next);
                  }}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="row end">
        <Button
          onClick={async () => {
            await reload();
            close();
          }}
        >
          Discard my changes
        </Button>
        <Button
          onClick={async () => {
            await copy();
            close();
          }}
        >
          Save mine as a copy
        </Button>
        <Button kind="primary" onClick={join}>
          Merge and save
        </Button>
      </div>
    </Dialog>
  );
}
