// Renaming node ids in edges, templates and scripts.
import { type Data, type Graph, type GraphNode, typeOf } from "./index";

const inTemplates = /(?<![.\w])nodes(?:\.([A-Za-z0-9_-]+)|\["([^"\\]+)"\])/g;
const inScripts = /(?<![.\w$])nodes(?:\.([\w$]+)|\["([^"\\]+)"\]|\['([^'\\]+)'\])/g;

/** Returns a text in which references to nodes are renamed; the groups of the pattern match their ids. */
function renameText(text: string, pattern: RegExp, names: Map<string, string>): string {
  return text.replace(pattern, (reference, ...groups: (string | undefined)[]) => {
    const id = groups.slice(0, 3).find((group) => typeof group === "string") ?? "";
    const newId = names.get(id);
    if (newId === undefined) return reference;
    return /^[A-Za-z_]\w*$/.test(newId) ? `nodes.${newId}` : `nodes[${JSON.stringify(newId)}]`;
  });
}

function renameValue(value: unknown, names: Map<string, string>): unknown {
  if (typeof value === "string")
    return value.replace(/\{\{[^{}]*\}\}/g, (template) => renameText(template, inTemplates, names));
  if (Array.isArray(value)) return value.map((item) => renameValue(item, names));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renameValue(item, names)]));
  return value;
}

/** Returns the data of a node in which the references of templates and scripts are renamed. */
export function renameIn(node: GraphNode, names: Map<string, string>): Data | undefined {
  const data = renameValue(node.data, names) as Data | undefined;
  for (const [name, value] of Object.entries(data ?? {}))
    if (typeof value === "string" && typeOf(node.type)?.data.properties?.[name]?.["x-widget"] === "javascript")
      data![name] = renameText(value, inScripts, names);
  return data;
}

/** Gives a node another id, also in edges, templates and scripts. */
export function renameNode(graph: Graph, oldId: string, newId: string): Graph {
  const names = new Map([[oldId, newId]]);
  const renamed = (id: string) => (id === oldId ? newId : id);
  return {
    nodes: graph.nodes.map((node) =>
      node.id === oldId ? { ...node, id: newId } : { ...node, data: renameIn(node, names) },
    ),
    edges: graph.edges.map((edge) =>
      edge.source === oldId || edge.target === oldId
        ? { ...edge, source: renamed(edge.source), target: renamed(edge.target) }
        : edge,
    ),
  };
}
