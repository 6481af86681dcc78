// The agent's own tables, and what their columns hold.
import { agentId, type API, path } from "../data";

/** A column of a table. */
export type TableColumn = API.TableColumn;
/** The type of a column. */
export type ColumnType = TableColumn["type"];
/** A table of the agent. */
export type DataTable = API.Table;
/** A row of a table. */
export type Row = { id: string; created_at: string; updated_at: string; [column: string]: unknown };

/** Returns the path of the tables in the API, or of a resource below it. */
export const tablesAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "tables", ...more);

/** The types of columns and their labels. */
export const columnTypes: [type: ColumnType, label: string][] = [
  ["text", "Text"],
  ["number", "Number"],
  ["boolean", "Yes or no"],
  ["time", "Time"],
  ["choice", "Choice"],
  ["json", "JSON"],
];

/** A value as text, as people type it. */
export function written(value: unknown, type: ColumnType): string {
  if (value === null || value === undefined) return "";
  if (type === "json") return JSON.stringify(value);
  if (type === "time")
    return String(value)
      .replace("T", " ")
      .replace(/(:00)?\.000Z$/, "")
      .replace("Z", "");
  return String(value);
}

/** What was typed, as the service takes it. Times without a zone are UTC. */
export function typed(text: string, type: ColumnType): unknown {
  if (text.trim() === "" && type !== "text") return null;
  if (type === "json")
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  if (type === "time") {
    const iso = text.trim().replace(" ", "T");
    return /T\d\d:\d\d(:\d\d)?(\.\d+)?$/.test(iso) ? `${/T\d\d:\d\d$/.test(iso) ? `${iso}:00` : iso}Z` : iso;
  }
  return text === "" ? null : text;
}

/** A name for a table or a column out of any words. */
export function slug(words: string, fallback: string): string {
  const plain = words
    .normalize("NFKD")
    .replace(/ß/g, "ss")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[_\d]+|_+$/g, "")
    .slice(0, 48);
  return plain || fallback;
}
