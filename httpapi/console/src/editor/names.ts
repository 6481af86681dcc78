// What nodes are called, on the canvas, in lists and in executions.
import { typeOf } from "./catalog";
import type { GraphNode } from "./graph";

/** A value as short text; empty for others than texts and numbers. */
export const shortText = (value: unknown) =>
  typeof value === "string" || typeof value === "number" ? String(value).trim() : "";

/** What the type of a node is called. */
export const typeName = (type: string) => typeOf(type)?.label ?? type;

/** What a node is called where the others are not known: its label, else its type. */
export const nameOf = (node?: GraphNode) => shortText(node?.data?.label) || (node ? typeName(node.type) : "");

/** What nodes are called, by id. Those without a label have the name of their type, the second of a type with the number 2. */
export function namesOf(nodes: readonly GraphNode[]): Map<string, string> {
  const names = new Map<string, string>(),
    taken = new Set<string>();
  for (const n of nodes) {
    const label = shortText(n.data?.label);
    if (label) {
      names.set(n.id, label);
      taken.add(label);
    }
  }
  const last = new Map<string, number>();
  for (const n of nodes) {
    if (names.has(n.id)) continue;
    const base = typeName(n.type);
    let count = (last.get(base) ?? 0) + 1;
    while (taken.has(numbered(base, count))) count++;
    last.set(base, count);
    names.set(n.id, numbered(base, count));
  }
  return names;
}

const numbered = (base: string, count: number) => (count > 1 ? `${base} ${count}` : base);
