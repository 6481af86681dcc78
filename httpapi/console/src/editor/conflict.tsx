// Saving a workflow that someone else saved meanwhile: the changes of both are merged.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, get, path } from "../data";
import { Button, Dialog, ErrorCard, Name, Segments, Skeleton, When } from "../ui";
import { type Doc, type GraphEdge, type GraphNode, readGraph } from "./graph";
import type { Editor } from "./state";

type NodesAndEdges = { nodes: GraphNode[]; edges: GraphEdge[] };

/** A node that both sides changed; undefined for a side that removed it. */
type Conflict = { id: string; local?: GraphNode; remote?: GraphNode };

/** A merged graph, and the nodes that both sides changed. */
export type Merged = NodesAndEdges & { both: Conflict[] };

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const withoutPosition = (node?: GraphNode) => node && { ...node, position: undefined };
const sameNode = (a?: GraphNode, b?: GraphNode) => same(withoutPosition(a), withoutPosition(b));
const byId = (nodes: GraphNode[]) => new Map(nodes.map((node) => [node.id, node]));

/** Returns the edges by where they lead, since their ids may differ. */
const byEnds = (edges: GraphEdge[]) =>
  new Map(edges.map((edge) => [`${edge.source}\n${edge.sourceHandle ?? ""}\n${edge.target}`, edge]));

function edgesBetween(nodes: GraphNode[], edges: GraphEdge[]): GraphEdge[] {
  const ids = new Set(nodes.map((node) => node.id));
  return edges.filter((edge) => ids.has(edge.source) && ids.has(edge.target));
}

/**
 * Merges two changes of the same graph node by node. Where both sides changed a node, the local one is kept and the
 * conflict is listed.
 */
export function merge(base: NodesAndEdges, local: NodesAndEdges, remote: NodesAndEdges): Merged {
  const baseNodes = byId(base.nodes);
  const localNodes = byId(local.nodes);
  const remoteNodes = byId(remote.nodes);
  const both: Conflict[] = [];
  const nodes: GraphNode[] = [];
  for (const id of new Set([...localNodes.keys(), ...remoteNodes.keys()])) {
    const [before, localNode, remoteNode] = [baseNodes.get(id), localNodes.get(id), remoteNodes.get(id)];
    const localChanged = !sameNode(before, localNode);
    const remoteChanged = !sameNode(before, remoteNode);
    if (localChanged && remoteChanged && !sameNode(localNode, remoteNode))
      both.push({ id, local: localNode, remote: remoteNode });
    const unchanged = localNode ?? remoteNode;
    const oneSided = localChanged ? localNode : remoteNode;
    const kept = localChanged || remoteChanged ? oneSided : unchanged;
    if (kept) nodes.push(kept);
  }
  const baseEdges = byEnds(base.edges);
  const localEdges = byEnds(local.edges);
  const remoteEdges = byEnds(remote.edges);
  const isKept = (key: string) => !baseEdges.has(key) || (localEdges.has(key) && remoteEdges.has(key));
  const edges = [...new Set([...localEdges.keys(), ...remoteEdges.keys()])]
    .filter(isKept)
    .map((key) => localEdges.get(key) ?? remoteEdges.get(key)!);
  return { nodes, edges: edgesBetween(nodes, edges), both };
}

/** Returns the merged graph with the remote version of some nodes, by id. */
function resolve(merged: Merged, ids: ReadonlySet<string>): NodesAndEdges {
  const resolved = merged.both.filter((conflict) => ids.has(conflict.id));
  const remote = new Map(resolved.map((conflict) => [conflict.id, conflict.remote]));
  const nodes = merged.nodes.flatMap((node) => (remote.has(node.id) ? (remote.get(node.id) ?? []) : node));
  const present = new Set(nodes.map((node) => node.id));
  for (const [id, node] of remote) if (node && !present.has(id)) nodes.push(node);
  return { nodes, edges: edgesBetween(nodes, merged.edges) };
}

/** Returns the document that is saved: the local changes, and the remote ones where nothing was changed here. */
function mergedDoc(local: Doc, base: API.Workflow, newest: API.Workflow, resolved: NodesAndEdges): Partial<Doc> {
  const mergeField = <K extends "name" | "description" | "settings">(name: K): Doc[K] =>
    same(local[name], base[name] ?? "") ? ((newest[name] ?? local[name]) as Doc[K]) : local[name];
  return {
    ...resolved,
    notes: same(local.notes, readGraph(base).notes) ? readGraph(newest).notes : local.notes,
    name: mergeField("name"),
    description: mergeField("description"),
    settings: mergeField("settings"),
  };
}

/** The changes that conflict with a newer version, and what can be done with them. */
export type ConflictDialogProps = {
  editor: Editor;
  /** The version that the changes are based on. */
  base: API.Workflow;
  close: () => void;
  reload: () => Promise<void>;
  overwrite: (doc: Partial<Doc>, version: number) => Promise<void>;
  copy: () => Promise<void>;
};

/** Asks what to do after someone else saved the workflow: merge, discard one's own changes, or save a copy. */
export function ConflictDialog(props: ConflictDialogProps) {
  const { base, close } = props;
  const [newest, setNewest] = useState<API.Workflow>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    get(path("agents", agentId.value, "workflows", base.id)).then(setNewest, setError);
  }, []);
  return (
    <Dialog title="Someone else saved changes" close={close}>
      {newest ? <MergeForm {...props} newest={newest} /> : error ? <ErrorCard error={error} /> : <Skeleton />}
    </Dialog>
  );
}

function MergeForm(props: ConflictDialogProps & { newest: API.Workflow }) {
  const { editor, base, newest, close, reload, overwrite, copy } = props;
  const [remote, setRemote] = useState<ReadonlySet<string>>(new Set());
  const merged = merge(readGraph(base), editor.doc.value, readGraph(newest));
  const choose = (id: string, side: string) => {
    const ids = new Set(remote);
    if (side === "theirs") ids.add(id);
    else ids.delete(id);
    setRemote(ids);
  };
  const mergeAndSave = () =>
    overwrite(mergedDoc(editor.doc.value, base, newest, resolve(merged, remote)), newest.version).then(close);
  return (
    <>
      <p>
        Version {newest.version} was saved <When time={newest.updated_at} />
        <SavedBy author={newest.updated_by} />, while you changed version {base.version}. Changes to different nodes are
        merged.
      </p>
      {merged.both.length > 0 && (
        <section class="stack">
          <h3>Changed in both</h3>
          <ul class="plain">
            {merged.both.map((conflict) => (
              <ConflictRow
                key={conflict.id}
                conflict={conflict}
                name={editor.nameOf(conflict.local ?? conflict.remote ?? conflict.id)}
                side={remote.has(conflict.id) ? "theirs" : "mine"}
                choose={(side) => choose(conflict.id, side)}
              />
            ))}
          </ul>
        </section>
      )}
      <div class="row end">
        <Button onClick={() => reload().then(close)}>Discard my changes</Button>
        <Button onClick={() => copy().then(close)}>Save mine as a copy</Button>
        <Button kind="primary" onClick={mergeAndSave}>
          Merge and save
        </Button>
      </div>
    </>
  );
}

/** Who saved a version, if it was a person. */
function SavedBy({ author }: { author?: string }) {
  if (!author?.includes("@")) return <> elsewhere</>;
  return (
    <>
      {" "}
      by <Name>{author}</Name>
    </>
  );
}

type ConflictRowProps = {
  conflict: Conflict;
  name: string;
  side: "mine" | "theirs";
  choose: (side: string) => void;
};

function ConflictRow({ conflict, name, side, choose }: ConflictRowProps) {
  return (
    <li class="row">
      <span class="grow">
        <Name>{name}</Name>
        {!conflict.local && <span class="muted"> (you removed it)</span>}
        {!conflict.remote && <span class="muted"> (it was removed)</span>}
      </span>
      <Segments
        label={`Which ${name}`}
        value={side}
        options={[
          ["mine", "Mine"],
          ["theirs", "Theirs"],
        ]}
        onChange={choose}
      />
    </li>
  );
}
