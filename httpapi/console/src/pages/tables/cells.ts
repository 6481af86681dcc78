// Several cells of a table at once, as spreadsheets copy and paste them.
import { post, upload } from "../../data";
import { plural, tell } from "../../ui";
import { tablesAt, typed, written, type DataTable, type Row, type TableColumn } from "../../parts/tables";

/** Two corners of a rectangle of cells. */
export type Corner = { row: number; column: number };
export type Area = { top: number; bottom: number; left: number; right: number };

export const areaOf = (a: Corner, b: Corner): Area => ({
  top: Math.min(a.row, b.row),
  bottom: Math.max(a.row, b.row),
  left: Math.min(a.column, b.column),
  right: Math.max(a.column, b.column),
});
export const inArea = (a: Area, row: number, column: number) =>
  row >= a.top && row <= a.bottom && column >= a.left && column <= a.right;
export const isOne = (a: Area) => a.top === a.bottom && a.left === a.right;

/** Reads what a spreadsheet put into the clipboard: lines of cells parted by tabs, where a cell in quotes may have several lines. */
export function readCells(text: string): string[][] {
  const lines: string[][] = [[]];
  const cell = /"((?:[^"]|"")*)"(?=[\t\r\n]|$)|[^\t\r\n]*/y;
  for (let at = 0; at <= text.length;) {
    cell.lastIndex = at;
    const found = cell.exec(text)!;
    lines.at(-1)!.push(found[1] === undefined ? found[0] : found[1].replaceAll('""', '"'));
    at = cell.lastIndex;
    if (text[at] === "\t") {
      at++;
      continue;
    }
    if (at >= text.length) break;
    at += text.startsWith("\r\n", at) ? 2 : 1;
    if (at >= text.length) break; // the end of the last line
    lines.push([]);
  }
  return lines;
}

/** Writes cells for a spreadsheet. */
export const writeCells = (lines: string[][]) =>
  lines.map((l) => l.map((c) => (/[\t\r\n]|^"/.test(c) ? `"${c.replaceAll('"', '""')}"` : c)).join("\t")).join("\n");

/** The cells of an area as text. */
export const textOf = (rows: Row[], columns: TableColumn[], a: Area) =>
  rows.slice(a.top, a.bottom + 1).map((r) => columns.slice(a.left, a.right + 1).map((c) => written(r[c.name], c.type)));

/** Cells to be stored: for each column a text, in the rows there are and in new ones. */
export type Paste = { columns: TableColumn[]; rows: Row[]; cells: string[][]; added: string[][] };

/** Lays pasted cells on a table; a single one fills the area. Rows beyond the last are added where extend says so. */
export function lay(
  pasted: string[][],
  rows: Row[],
  columns: TableColumn[],
  a: Area,
  extend: boolean,
): Paste & { left: number } {
  const one = pasted.length === 1 && pasted[0].length === 1;
  const [height, width] = one
    ? [a.bottom - a.top + 1, a.right - a.left + 1]
    : [pasted.length, Math.max(...pasted.map((l) => l.length))];
  const lines = Array.from({ length: height }, (_, i) =>
    Array.from({ length: width }, (_, n) => (one ? pasted[0][0] : (pasted[i][n] ?? ""))),
  );
  const onto = columns.slice(a.left, a.left + width);
  const fitting = rows.slice(a.top, a.top + height);
  const beyond = lines.slice(fitting.length);
  return {
    columns: onto,
    rows: fitting,
    cells: lines.slice(0, fitting.length),
    added: extend ? beyond : [],
    left: extend ? 0 : beyond.length,
  };
}

const forFile = (text: string, c: TableColumn) =>
  `"${(c.type === "time" ? String(typed(text, "time") ?? "") : text).replaceAll('"', '""')}"`;

/** Stores cells: one request changes the rows, one adds those that are new. What could not be stored is told; the rest can be undone. */
export async function storeCells(table: DataTable, p: Paste, reload: () => Promise<void>) {
  const at = tablesAt(table.name);
  const change = async (cells: string[][]) => {
    const text = [
      ["id", ...p.columns.map((c) => c.name)].join(","),
      ...p.rows.map((r, i) => [r.id, ...p.columns.map((c, n) => forFile(cells[i][n], c))].join(",")),
    ].join("\n");
    const { errors } = (await upload(`${at}/import`, {
      key: "id",
      file: new File([text], "cells.csv", { type: "text/csv" }),
    })) as { errors: { row: number; field: string; issue: string }[] };
    if (errors.length)
      tell(new Error(`${plural(errors.length, "row")} not changed: ${errors[0].field} ${errors[0].issue}`));
    return p.rows.length - errors.length;
  };
  const before = textOf(p.rows, p.columns, { top: 0, bottom: p.rows.length - 1, left: 0, right: p.columns.length - 1 });
  const changed = p.rows.length ? await change(p.cells) : 0;
  let ids: string[] = [];
  try {
    if (p.added.length) {
      const rows = p.added.map((line) =>
        Object.fromEntries(
          p.columns.map((c, n) => {
            const v = typed(line[n], c.type);
            return [c.name, v === undefined ? line[n] : v];
          }),
        ),
      );
      ids = ((await post(tablesAt(table.name, "rows"), { rows })) as { rows: Row[] }).rows.map((r) => r.id);
    }
  } finally {
    await reload();
  }
  const undo = async () => {
    try {
      if (changed) await change(before);
      if (ids.length) await post(tablesAt(table.name, "rows", "batch"), { ids, delete: true });
    } catch (error) {
      tell(error);
    }
    await reload();
  };
  if (changed || ids.length)
    tell(
      [
        changed ? `${plural(changed * p.columns.length, "cell")} changed` : "",
        ids.length ? `${plural(ids.length, "row")} added` : "",
      ]
        .filter(Boolean)
        .join(", "),
      () => void undo(),
    );
}
