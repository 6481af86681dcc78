// What a node does, in a line below its name.
import { fieldsOf, type GraphNode, type NodeType, type Schema, shortText, typeName } from "./index";

const longest = 80;
const signs: Record<string, string> = { equals: "=", not_equals: "≠", gt: ">", gte: "≥", lt: "<", lte: "≤" };

const plain = (value: unknown) =>
  typeof value === "string" ? value.replace(/\{\{\s*|\s*\}\}/g, "") : value === undefined ? "" : JSON.stringify(value);

/** A field in a few words; empty for what cannot be said in a few, such as scripts, and for what must not be shown. */
function words(value: unknown, field: Schema): string {
  if (
    field.writeOnly ||
    ["javascript", "sql"].includes(field["x-widget"] ?? "") ||
    (field["x-ref"] ?? "event") !== "event"
  )
    return "";
  if (field["x-widget"] === "conditions" && Array.isArray(value)) {
    const [first] = value as { left?: unknown; operator?: string; right?: unknown }[];
    return first?.operator
      ? [plain(first.left), signs[first.operator] ?? first.operator.replaceAll("_", " "), plain(first.right)]
          .filter(Boolean)
          .join(" ") + (value.length > 1 ? ", …" : "")
      : "";
  }
  if (field["x-widget"] === "keyvalue" && value && typeof value === "object" && !Array.isArray(value))
    return Object.keys(value).join(", ");
  return shortText(value);
}

/** The second line of a node: its type, or, where that is its name already, the first of its fields; a choice and what it is about together, as in "GET example.com". */
export function detailOf(node: GraphNode, type: NodeType | undefined): string {
  if (shortText(node.data?.label)) return typeName(node.type);
  let choice = "",
    chosen = ""; // a default choice is said only with what it is about
  for (const [name, field] of fieldsOf(type?.data)) {
    const given = node.data?.[name];
    const said = words(given ?? (field.enum ? field.default : undefined), field);
    if (!said) continue;
    if (!field.enum || choice) return `${choice} ${said.replace(/^https?:\/\//, "")}`.trim().slice(0, longest);
    choice = said;
    if (given !== undefined) chosen = said;
  }
  return chosen;
}
