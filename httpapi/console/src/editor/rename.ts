// Other ids for nodes, in whatever names them.
import { type Data, type Graph, type GraphNode, typeOf } from "./index";

const inTemplates = /(?<![.\w])nodes(?:\.([A-Za-z0-9_-]+)|\["([^"\\]+)"\])/g;
const inScripts = /(?<![.\w$])nodes(?:\.([\w$]+)|\["([^"\\]+)"\]|\['([^'\\]+)'\])/g;

/** A text with the nodes that it names renamed. */
function renameText(text: string, pattern: RegExp, names: Map<string, string>): string {
  return text.replace(pattern, (whole, ...ids: (string | undefined)[]) => {
    const to = names.get(ids.slice(0, 3).find((id) => typeof id === "string") ?? "");
    return to === undefined ? whole : /^[A-Za-z_]\w*$/.test(to) ? `nodes.${to}` : `nodes[${JSON.stringify(to)}]`;
  });
}

function renameValue(value: unknown, names: Map<string, string>): unknown {
  if (typeof value === "string") return value.replace(/\{\{[^{}]*\}\}/g, (t) => renameText(t, inTemplates, names));
  if (Array.isArray(value)) return value.map((v) => renameValue(v, names));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, renameValue(v, names)]));
  return value;
}

/** The data of a node with the nodes that its templates and scripts name renamed. */
export function renameIn(node: GraphNode, names: Map<string, string>): Data | undefined {
  const data = renameValue(node.data, names) as Data | undefined;
  for (const [name, value] of Object.entries(data ?? {}))
    if (typeof value === "string" && typeOf(node.type)?.data.properties?.[name]?.["x-widget"] === "javascript")
      data![name] = renameText(value, inScripts, names);
  return data;
}

/** Gives a node another id; edges, templates and scripts follow. */
export function renameNode(graph: Graph, from: string, to: string): Graph {
  const names = new Map([[from, to]]);
  return {
    nodes: graph.nodes.map((n) => (n.id === from ? { ...n, id: to } : { ...n, data: renameIn(n, names) })),
    edges: graph.edges.map((e) =>
      e.source === from || e.target === from
        ? { ...e, source: e.source === from ? to : e.source, target: e.target === from ? to : e.target }
        : e,
    ),
  };
}
