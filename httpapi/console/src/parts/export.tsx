// What a list shows, as a file.
import { saveFile } from "../data";
import { Menu, tell } from "../ui";

/** How many rows a file has at most. */
const maxRows = 5_000;

const cell = (value: unknown) => {
  let text =
    value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  if (/^[=+\-@\t\r]/.test(text) && typeof value === "string") text = `'${text}`; // spreadsheets would read a formula
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Rows as CSV, with the columns that any of them has. */
export function csv(rows: Record<string, unknown>[]): string {
  const columns = [...new Set(rows.flatMap((r) => Object.keys(r)))];
  return (
    [columns, ...rows.map((r) => columns.map((c) => r[c]))].map((line) => line.map(cell).join(",")).join("\r\n") +
    "\r\n"
  );
}

/** Saves all that the filters of a list let through. */
export function ExportMenu({ name, pages }: { name: string; pages: () => AsyncGenerator<object[]> }) {
  const save = async (kind: "json" | "csv") => {
    const rows: object[] = [];
    for await (const page of pages()) {
      rows.push(...page);
      if (rows.length >= maxRows) {
        tell(`The file has the newest ${maxRows.toLocaleString()} rows.`);
        break;
      }
    }
    const all = rows.slice(0, maxRows);
    saveFile(
      kind === "json"
        ? new Blob([JSON.stringify(all, null, 2)], { type: "application/json" })
        : new Blob(["\ufeff", csv(all as Record<string, unknown>[])], { type: "text/csv" }),
      `${name}.${kind}`,
    );
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
