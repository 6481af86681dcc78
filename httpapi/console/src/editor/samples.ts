// Sample values of nodes, with which templates are suggested and filled in the editor.
import { typeOf } from "./catalog";
import type { Graph, GraphEdge, GraphNode } from "./graph";
import type { Editor } from "./state";
import { fill } from "./template";

/** The types of nodes that pass their input on. */
const passingTypes = new Set(["if-else", "switch"]);

const isLoopBody = (source: GraphNode, edge: GraphEdge) =>
  source.type === "loop" && edge.sourceHandle !== "done" && edge.sourceHandle !== "error";

/** Returns the nodes from which a node can be reached, the nearest first. */
function upstream({ nodes, edges }: Graph, id: string): GraphNode[] {
  const ids = new Set([id]);
  for (const target of ids) for (const edge of edges) if (edge.target === target) ids.add(edge.source);
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  return [...ids].slice(1).flatMap((source) => nodesById.get(source) ?? []);
}

function examplePayload(editor: Editor): unknown {
  const trigger = editor.doc.value.nodes.find((node) => node.type === "trigger");
  const isMessage = String(trigger?.data?.event ?? "").startsWith("message.");
  return (isMessage && typeOf("trigger")?.output.example) || {};
}

/** Returns the output of a node: the pinned one, that of the last test or newest execution, or an example. */
export function sampleOf(editor: Editor, node: GraphNode): unknown {
  if (node.metadata?.pin !== undefined) return node.metadata.pin;
  const samples = editor.samples.value;
  if (Object.hasOwn(samples, node.id)) return samples[node.id];
  if (node.type === "trigger") return editor.payload.value ?? examplePayload(editor);
  if (node.type === "set") return node.data?.values ?? {};
  return typeOf(node.type)?.output.example ?? {};
}

/** Returns the first item of a loop; null if its list is empty or unknown. */
function firstItem(loop: GraphNode, scope: unknown): unknown {
  let items = loop.data?.items;
  if (typeof items === "string") items = fill(items, scope).value;
  return Array.isArray(items) ? items[0] : null;
}

/** Returns the values that templates of a node can use, with sample values. */
export function scopeOf(editor: Editor, node: GraphNode): Record<string, unknown> {
  const doc = editor.doc.value;
  const before = upstream(doc, node.id);
  const trigger = before.find((n) => n.type === "trigger") ?? doc.nodes.find((n) => n.type === "trigger");
  const payload = trigger ? sampleOf(editor, trigger) : {};
  const nodes = Object.fromEntries(before.map((n) => [n.id, sampleOf(editor, n)]));
  const variables: Record<string, unknown> = {};
  const items = new Map<string, unknown>();
  for (const loop of before.filter((n) => n.type === "loop").reverse()) {
    const item = firstItem(loop, { ...(payload as object), ...variables, nodes });
    items.set(loop.id, item);
    variables[String(loop.data?.item_variable ?? "item")] = item;
    variables.index = 0;
  }
  const now = new Date().toISOString();
  return {
    ...(payload && typeof payload === "object" ? payload : {}),
    ...variables,
    nodes,
    input: inputOf(editor, node, nodes, items),
    trigger: payload,
    execution: { id: "execution-…", started_at: now },
    workflow: { name: doc.name },
    agent: { name: "" },
    now,
  };
}

/**
 * Returns the input of a node: the output of the node before it, or in the body of a loop the loop's item. If there are
 * several, they are by node id.
 */
function inputOf(
  editor: Editor,
  node: GraphNode,
  outputs: Record<string, unknown>,
  items: ReadonlyMap<string, unknown>,
): unknown {
  const seen = new Set<string>();
  const inputsOf = (id: string): [id: string, value: unknown][] => {
    const incoming = editor.doc.value.edges.filter((edge) => edge.target === id && !seen.has(edge.source));
    return incoming.flatMap((edge): [string, unknown][] => {
      seen.add(edge.source);
      const source = editor.node(edge.source);
      if (!source) return [];
      if (passingTypes.has(source.type)) return inputsOf(source.id);
      const output = outputs[source.id] ?? sampleOf(editor, source);
      return [[source.id, isLoopBody(source, edge) ? items.get(source.id) : output]];
    });
  };
  const inputs = inputsOf(node.id);
  return inputs.length === 1 ? inputs[0][1] : Object.fromEntries(inputs);
}
