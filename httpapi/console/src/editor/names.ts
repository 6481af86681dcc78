// The names of nodes on the canvas, in lists and in executions.
import { typeOf } from "./catalog";
import type { GraphNode } from "./graph";

/** Returns a text or a number as text; empty for other values. */
export const shortText = (value: unknown) =>
  typeof value === "string" || typeof value === "number" ? String(value).trim() : "";

/** Returns the name of a type of node. */
export const typeName = (type: string) => typeOf(type)?.label ?? type;

/** Returns the name of a node on its own: its label, or its type. */
export const nameOf = (node?: GraphNode) => shortText(node?.data?.label) || (node ? typeName(node.type) : "");

const numbered = (name: string, number: number) => (number > 1 ? `${name} ${number}` : name);

/**
 * Returns the names of nodes by id. Nodes without a label have the name of their type, with a number from the second
 * one on.
 */
export function namesOf(nodes: readonly GraphNode[]): Map<string, string> {
  const labels = nodes.map((node) => [node.id, shortText(node.data?.label)] as const).filter(([, label]) => label);
  const names = new Map(labels);
  const taken = new Set(names.values());
  const lastNumbers = new Map<string, number>();
  for (const { id, type } of nodes) {
    if (names.has(id)) continue;
    const name = typeName(type);
    let number = (lastNumbers.get(name) ?? 0) + 1;
    while (taken.has(numbered(name, number))) number++;
    lastNumbers.set(name, number);
    names.set(id, numbered(name, number));
  }
  return names;
}
