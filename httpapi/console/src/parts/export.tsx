// Saving a list as a file.
import { type Answer, get, type Query, saveFile } from "../data";
import { Menu, showToast } from "../ui";
import { guardFormula } from "./formula";

const maxRows = 5_000;
const pageSize = 200;

/** Reads a list of the API page by page; rowsOf returns the rows of a page. */
export async function* pagesOf<const A extends string, T>(
  address: A,
  query: Query,
  rowsOf: (page: Answer<A, "GET">) => T[],
): AsyncGenerator<T[]> {
  for (let offset = 0, total = 1; offset < total; offset += pageSize) {
    const page = await get(address, { ...query, limit: pageSize, offset });
    yield rowsOf(page);
    total = (page as { meta: { total: number } }).meta.total;
  }
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns a value as a cell of CSV. Text that spreadsheets would read as a formula begins with an apostrophe. */
function csvCell(value: unknown): string {
  const text = typeof value === "string" ? guardFormula(value) : textOf(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns rows as CSV, with the columns that any of them has. */
export function csv(rows: Record<string, unknown>[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");
}

function fileOf(rows: object[], kind: "json" | "csv"): Blob {
  if (kind === "json") return new Blob([JSON.stringify(rows, null, 2)], { type: "application/json" });
  return new Blob(["\ufeff", csv(rows as Record<string, unknown>[])], { type: "text/csv" });
}

/** A menu that saves all rows that match a list's filters. */
export function ExportMenu({ name, pages }: { name: string; pages: () => AsyncGenerator<object[]> }) {
  const save = async (kind: "json" | "csv") => {
    const rows: object[] = [];
    for await (const page of pages()) {
      rows.push(...page);
      if (rows.length >= maxRows) {
        showToast(`The file has the newest ${maxRows.toLocaleString()} rows.`);
        break;
      }
    }
    saveFile(fileOf(rows.slice(0, maxRows), kind), `${name}.${kind}`);
  };
  return (
    <Menu
      label="Export"
      icon="Download"
      items={[
        { label: "As CSV", icon: "Table", run: () => save("csv") },
        { label: "As JSON", icon: "Braces", run: () => save("json") },
      ]}
    />
  );
}
