// The second line of a node, which says what the node does.
import { fieldsOf, type NodeType, type Schema } from "./catalog";
import type { GraphNode } from "./graph";
import { shortText, typeName } from "./names";

const maxLength = 80;
const operatorSigns: Record<string, string> = { equals: "=", not_equals: "≠", gt: ">", gte: "≥", lt: "<", lte: "≤" };

/** Returns a value as text, with paths in place of templates. */
function plainText(value: unknown): string {
  if (typeof value === "string") return value.replace(/\{\{\s*|\s*\}\}/g, "");
  return value === undefined ? "" : JSON.stringify(value);
}

type Condition = { left?: unknown; operator?: string; right?: unknown };

/** Returns the first of some conditions as text. */
function conditionText([first, ...others]: Condition[]): string {
  if (!first?.operator) return "";
  const operator = operatorSigns[first.operator] ?? first.operator.replaceAll("_", " ");
  const parts = [plainText(first.left), operator, plainText(first.right)];
  return parts.filter(Boolean).join(" ") + (others.length ? ", …" : "");
}

/** Returns a field as short text; empty for secrets and scripts, and for ids of records other than events. */
function fieldText(value: unknown, field: Schema): string {
  const widget = field["x-widget"];
  if (field.writeOnly || widget === "javascript" || widget === "sql" || (field["x-ref"] ?? "event") !== "event")
    return "";
  if (widget === "conditions" && Array.isArray(value)) return conditionText(value);
  if (widget === "keyvalue" && value && typeof value === "object" && !Array.isArray(value))
    return Object.keys(value).join(", ");
  return shortText(value);
}

/**
 * Returns the second line of a node: its type if it has a label, otherwise its first field. A field with fixed values
 * comes together with the next one, as in "GET example.com"; if it has its default value, only then.
 */
export function detailOf(node: GraphNode, type: NodeType | undefined): string {
  if (shortText(node.data?.label)) return typeName(node.type);
  let choice = "";
  let explicitChoice = "";
  for (const [name, field] of fieldsOf(type?.data)) {
    const value = node.data?.[name];
    const text = fieldText(value ?? (field.enum && field.default), field);
    if (!text) continue;
    if (!field.enum || choice) return `${choice} ${text.replace(/^https?:\/\//, "")}`.trim().slice(0, maxLength);
    choice = text;
    if (value !== undefined) explicitChoice = text;
  }
  return explicitChoice;
}
