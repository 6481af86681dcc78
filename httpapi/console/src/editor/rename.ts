// Renaming node ids in edges, templates and scripts.
import { type Data, typeOf } from "./catalog";
import type { Graph, GraphNode } from "./graph";
import { writePath } from "./template";
import { Parser } from "./templateparser";

const inScripts = /(?<![.\w$])nodes(?:\.([\w$]+)|\["([^"\\]+)"\]|\['([^'\\]+)'\])/g;

/** Returns a script in which references to nodes are renamed. */
const renameScript = (script: string, names: Map<string, string>) =>
  script.replace(inScripts, (reference, ...groups: (string | undefined)[]) => {
    const newId = names.get(groups.slice(0, 3).find((group) => typeof group === "string") ?? "");
    if (newId === undefined) return reference;
    return /^[A-Za-z_]\w*$/.test(newId) ? `nodes.${newId}` : `nodes[${JSON.stringify(newId)}]`;
  });

/** Returns a text in which references to nodes in templates are renamed. What is no template stays as it is. */
function renameText(text: string, names: Map<string, string>): string {
  let renamed = "";
  let at = 0;
  for (let start = text.indexOf("{{"); start >= 0; start = text.indexOf("{{", at)) {
    renamed += text.slice(at, start);
    const [template, length] = renameTemplate(text.slice(start), names);
    renamed += template;
    at = start + length;
  }
  return renamed + text.slice(at);
}

/** Returns the template that a text begins with, renamed, and its length; the braces alone if it is no template. */
function renameTemplate(text: string, names: Map<string, string>): [string, number] {
  const parser = new Parser(text);
  try {
    const { source, path } = parser.template();
    const template = text.slice(0, parser.position);
    const id = path?.[0] === "nodes" ? names.get(String(path[1])) : undefined;
    const written = id === undefined ? source : writePath(["nodes", id, ...path!.slice(2)]);
    return [template.replace(source, () => written), template.length];
  } catch {
    return ["{{", 2];
  }
}

function renameValue(value: unknown, names: Map<string, string>): unknown {
  if (typeof value === "string") return renameText(value, names);
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
      data![name] = renameScript(value, names);
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
