// Several cells of a table at once, as spreadsheets copy and paste them.
import { post, upload } from "../../data";
import { plural, showToast } from "../../ui";
import { guardFormula } from "../../parts/formula";
import { tablesAt, typed, written, type DataTable, type Row, type TableColumn } from "../../parts/tables";

/** A corner of a rectangle of cells. */
export type CellPosition = { row: number; column: number };

/** A rectangle of cells; its borders belong to it. */
export type Area = { top: number; bottom: number; left: number; right: number };

/** The area between two opposite corners. */
export const areaOf = (a: CellPosition, b: CellPosition): Area => ({
  top: Math.min(a.row, b.row),
  bottom: Math.max(a.row, b.row),
  left: Math.min(a.column, b.column),
  right: Math.max(a.column, b.column),
});

/** Reports whether a cell is in an area. */
export const inArea = (a: Area, row: number, column: number) =>
  row >= a.top && row <= a.bottom && column >= a.left && column <= a.right;

/** Reports whether an area is a single cell. */
export const isOne = (a: Area) => a.top === a.bottom && a.left === a.right;

/**
 * Reads cells that a spreadsheet put into the clipboard: lines of cells separated by tabs; a quoted cell may have
 * several lines.
 */
export function readCells(text: string): string[][] {
  const lines: string[][] = [[]];
  const cell = /"((?:[^"]|"")*)"(?=[\t\r\n]|$)|[^\t\r\n]*/y;
  for (let position = 0; position <= text.length;) {
    cell.lastIndex = position;
    const found = cell.exec(text)!;
    lines.at(-1)!.push(found[1] === undefined ? found[0] : found[1].replaceAll('""', '"'));
    position = cell.lastIndex;
    if (text[position] === "\t") {
      position++;
      continue;
    }
    if (position >= text.length) break;
    position += text.startsWith("\r\n", position) ? 2 : 1;
    if (position >= text.length) break; // the end of the last line
    lines.push([]);
  }
  return lines;
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

/** Writes cells for the clipboard, as spreadsheets read them. */
export const writeCells = (lines: string[][]) =>
  lines.map((line) => line.map((cell) => (/[\t\r\n]|^"/.test(cell) ? quoted(cell) : cell)).join("\t")).join("\n");

/** The cells of an area as text. */
export const textOf = (rows: Row[], columns: TableColumn[], area: Area) => {
  const selected = columns.slice(area.left, area.right + 1);
  return rows
    .slice(area.top, area.bottom + 1)
    .map((row) => selected.map((column) => written(row[column.name], column.type)));
};

/** Texts to be stored in these columns: those of cells in existing rows, those of added in new ones. */
export type Paste = { columns: TableColumn[]; rows: Row[]; cells: string[][]; added: string[][] };

/**
 * Assigns pasted cells to the cells of a table, from the corner of the area on; a single one fills the area. Lines
 * beyond the last row become new rows if extend is set; otherwise left counts them.
 */
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

type ImportAnswer = { errors: { row: number; field: string; issue: string }[] };

/** A text for a cell that had a value, as the import takes it: an apostrophe is an empty text, nothing is null. */
function csvCell(text: string, { type }: TableColumn, value: unknown) {
  if (type === "time") return quoted(String(typed(text, "time") ?? ""));
  const ambiguous = text ? /^'+$/.test(text) : value === "";
  return quoted(ambiguous ? `'${text}` : guardFormula(text));
}

/**
 * Writes texts into existing rows with one import, and returns how many rows it changed. Rows that are rejected are
 * reported.
 */
async function updateRows(at: string, { rows, columns }: Paste, cells: string[][]) {
  const header = ["id", ...columns.map((column) => column.name)];
  const lines = rows.map((row, i) => [
    row.id,
    ...columns.map((column, n) => csvCell(cells[i][n], column, row[column.name])),
  ]);
  const text = [header, ...lines].map((line) => line.join(",")).join("\n");
  const file = new File([text], "cells.csv", { type: "text/csv" });
  const { errors } = (await upload(`${at}/import`, { key: "id", file })) as ImportAnswer;
  if (errors.length)
    showToast(new Error(`${plural(errors.length, "row")} not changed: ${errors[0].field} ${errors[0].issue}`));
  return rows.length - errors.length;
}

/** Adds rows with one request, and returns their ids. */
async function addRows(table: string, { added, columns }: Paste) {
  const valueOf = (text: string, { type }: TableColumn) => {
    const value = typed(text, type);
    return value === undefined ? text : value;
  };
  const rows = added.map((line) =>
    Object.fromEntries(columns.map((column, i) => [column.name, valueOf(line[i], column)])),
  );
  const answer = (await post(tablesAt(table, "rows"), { rows })) as { rows: Row[] };
  return answer.rows.map((row) => row.id);
}

/** Stores cells in existing and new rows. Rows that are rejected are reported; the rest can be undone. */
export async function storeCells(table: DataTable, paste: Paste, reload: () => Promise<void>) {
  const at = tablesAt(table.name);
  const { rows, columns } = paste;
  const before = textOf(rows, columns, { top: 0, bottom: rows.length - 1, left: 0, right: columns.length - 1 });
  const changed = rows.length ? await updateRows(at, paste, paste.cells) : 0;
  let ids: string[] = [];
  try {
    if (paste.added.length) ids = await addRows(table.name, paste);
  } finally {
    await reload();
  }
  if (!changed && !ids.length) return;
  const undo = async () => {
    try {
      if (changed) await updateRows(at, paste, before);
      if (ids.length) await post(tablesAt(table.name, "rows", "batch"), { ids, delete: true });
    } catch (error) {
      showToast(error);
    }
    await reload();
  };
  const outcome = [
    changed ? `${plural(changed * columns.length, "cell")} changed` : "",
    ids.length ? `${plural(ids.length, "row")} added` : "",
  ];
  showToast(outcome.filter(Boolean).join(", "), () => void undo());
}
