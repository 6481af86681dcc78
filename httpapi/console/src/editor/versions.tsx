// The versions of a workflow: what they changed, and the way back to one.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, get, path, post, useQuery } from "../data";
import { Badge, Button, Dialog, JsonTree, Load, Name, openDialog, Pager, plural, Table, tell, When } from "../ui";
import { Canvas, Editor, type Graph, namesOf, placed, readGraph, type Step } from "./base";

const workflowAt = <const M extends (string | number)[]>(id: string, ...more: M) => path("agents", agentId.value, "workflows", id, ...more);

export function Versions({ id, version, editor, restored }: { id: string; version: number; editor: Editor; restored: () => Promise<void> }) {
  const [offset, setOffset] = useState(0);
  const found = useQuery(workflowAt(id, "versions"), { limit: 20, offset });
  useEffect(() => { void found.reload(); }, [version]);
  const restore = async (v: number) => {
    await post(workflowAt(id, "versions", v, "restore"));
    tell(`Version ${v} is restored as the latest version.`);
    await restored();
  };
  return (
    <div class="pad"><Load of={found}>{({ versions, meta }) => (
      <>
        <Table rows={versions} keyOf={(v) => v.version} columns={[
          { title: "Version", cell: (v) => <>{v.version} {v.current && <Badge tone="good">current</Badge>}</> },
          { title: "Nodes", cell: (v) => v.nodes, class: "number" }, { title: "Edges", cell: (v) => v.edges, class: "number" },
            { title: "By", cell: (v) => <><Name>{v.author}</Name>{v.note && <small class="muted"> <bdi>{v.note}</bdi></small>}</> },
          { title: "Saved", cell: (v) => <When time={v.created_at} /> },
          { title: "", class: "actions", cell: (v) => !v.current && <>
            <Button onClick={async () => { const old = await get(workflowAt(id, "versions", v.version)); const graph = await placed(readGraph(old)); openDialog((close) => <OldVersion old={{ ...old, ...graph }} now={editor.doc.value.nodes} close={close} restore={editor.readonly.value ? undefined : () => restore(v.version)} />); }}>Show</Button>{" "}
            {!editor.readonly.value && <Button onClick={() => restore(v.version)}>Restore</Button>}</> },
        ]} />
        <Pager meta={meta} go={setOffset} />
      </>
    )}</Load></div>
  );
}

/** What differs between two lists of nodes, from the old to the new. */
function differences(old: Step[], now: Step[]) {
  const [before, after] = [new Map(old.map((n) => [n.id, n])), new Map(now.map((n) => [n.id, n]))];
  const core = (n: Step) => JSON.stringify([n.type, n.data ?? {}]);
  const changes: { node: Step; what: string; fields: { name: string; from: unknown; to: unknown }[] }[] = [];
  for (const n of now) {
    const was = before.get(n.id);
    if (!was) changes.push({ node: n, what: "added since", fields: [] });
    else if (core(was) !== core(n)) {
      const names = [...new Set([...Object.keys(was.data ?? {}), ...Object.keys(n.data ?? {})])].filter((k) => JSON.stringify(was.data?.[k]) !== JSON.stringify(n.data?.[k]));
      changes.push({ node: n, what: "changed since", fields: names.map((name) => ({ name, from: was.data?.[name], to: n.data?.[name] })) });
    }
  }
  for (const n of old) if (!after.has(n.id)) changes.push({ node: n, what: "removed since", fields: [] });
  return changes;
}

const words = (v: unknown) => (v === undefined ? "nothing" : typeof v === "string" ? v : JSON.stringify(v));

function OldVersion({ old, now, close, restore }: { old: API.Workflow & Graph; now: Step[]; close: () => void; restore?: () => Promise<void> }) {
  const [shown] = useState(() => {
    const e = new Editor();
    e.load({ name: old.name, description: "", settings: old.settings, nodes: old.nodes, edges: old.edges });
    e.readonly.value = true;
    return e;
  });
  const changes = differences(old.nodes, now);
  const names = namesOf(now);
  const name = (n: Step) => names.get(n.id) ?? shown.nameOf(n);
  return (
    <Dialog title={`Version ${old.version}`} close={close} wide>
      <div class="version-canvas"><Canvas editor={shown} actions={noActions} /></div>
      <section class="stack">
        <h3>{changes.length ? `${plural(changes.length, "node")} ${changes.length === 1 ? "differs" : "differ"} from what the editor shows` : "Identical to the graph in the editor"}</h3>
        <ul class="plain">{changes.map(({ node, what, fields }) => (
          <li key={node.id}><strong><Name>{name(node)}</Name></strong> <Badge tone={what.startsWith("removed") ? "bad" : what.startsWith("added") ? "good" : "warn"}>{what}</Badge>
            {fields.map((f) => <p class="small field-diff"><code>{f.name}</code> <del><bdi>{words(f.from)}</bdi></del> <ins><bdi>{words(f.to)}</bdi></ins></p>)}</li>
        ))}</ul>
        <details><summary>JSON</summary><JsonTree value={{ nodes: old.nodes, edges: old.edges }} /></details>
      </section>
      <div class="row end"><Button onClick={close}>Close</Button>{restore && <Button kind="primary" onClick={async () => { await restore(); close(); }}>Restore</Button>}</div>
    </Dialog>
  );
}

const noActions = {};
