// The rows of a table as a grid: one cell has the focus, and is edited where it
// stands. See https://www.w3.org/WAI/ARIA/apg/patterns/grid/ for the keys.
import { useState } from "preact/hooks";

import { ApiError, reasonOf } from "../../data";
import { Icon, plural, showToast, type Sorting } from "../../ui";
import { typed, written, type DataTable, type Row, type TableColumn } from "../../parts/tables";
import { inArea, isOne, lay, readCells, textOf, writeCells, type Paste } from "./cells";
import { useCursor } from "./cursor";
import { CellEditor } from "./editor";

type Props = {
  table: DataTable;
  rows: Row[];
  first: number;
  may: boolean;
  picked: string[];
  pick: (ids: string[]) => void;
  save: (row: Row, column: string, value: unknown) => Promise<void>;
  /** Stores several cells. */
  saveCells: (cells: Paste) => Promise<void>;
  /** Whether rows that are pasted below the last one become new rows. */
  extend: boolean;
  sorting?: Sorting;
  sort: (s?: Sorting) => void;
};

/** What was typed into the focused cell and is not stored yet. */
type Edit = { text: string; issue?: string; busy?: boolean };

type Editing = ReturnType<typeof useEditing>;

/** Keeps and stores what is typed into the focused cell. */
function useEditing({ rows, save }: Props, columns: TableColumn[], editable: (column: number) => boolean) {
  const [edit, setEdit] = useState<Edit>();
  const cursor = useCursor(rows.length, columns.length, Boolean(edit));

  const store = async (row: Row, column: TableColumn, value: unknown) => {
    try {
      await save(row, column.name, value);
    } catch (error) {
      showToast(error instanceof ApiError ? new Error(`${column.name} ${reasonOf(error)}`) : error);
    }
  };

  /** Starts to edit a cell, with its value or a text; a checkbox is switched at once. */
  const begin = (rowIndex: number, columnIndex: number, text?: string) => {
    if (!editable(columnIndex)) return;
    cursor.select(rowIndex, columnIndex);
    const row = rows[rowIndex];
    const column = columns[columnIndex];
    if (column.type === "boolean") {
      cursor.keepFocus();
      void store(row, column, !row[column.name]);
      return;
    }
    setEdit({ text: text ?? written(row[column.name], column.type) });
  };

  const commit = async (text: string, then?: () => void) => {
    if (!edit || edit.busy) return;
    const column = columns[cursor.column];
    const row = rows[cursor.row];
    if (!row || text === written(row[column.name], column.type)) {
      setEdit(undefined);
      then?.();
      return;
    }
    const value = typed(text, column.type);
    if (value === undefined) {
      setEdit({ text, issue: "is not valid JSON" });
      return;
    }
    setEdit({ text, busy: true });
    try {
      await save(row, column.name, value);
      setEdit(undefined);
      then?.();
    } catch (error) {
      setEdit({ text, issue: reasonOf(error) });
      if (!(error instanceof ApiError)) showToast(error);
    }
  };

  return { edit, setEdit, cursor, store, begin, commit };
}

/** Handles copying and pasting of the selected cells; replace writes texts over them. */
function useClipboard(
  { rows, table, saveCells, extend }: Props,
  columns: TableColumn[],
  editable: (column: number) => boolean,
  { edit, cursor }: Editing,
) {
  const inCell = (e: Event) => Boolean((e.target as HTMLElement).dataset?.at);
  const replace = async (texts: string[][]) => {
    const { left, ...cells } = lay(texts, rows, table.columns, cursor.area, extend);
    if (cells.columns.length && cells.rows.length + cells.added.length) await saveCells(cells);
    if (left) showToast(`${plural(left, "row")} did not fit below. Import CSV adds rows.`);
  };
  const onCopy = (e: ClipboardEvent) => {
    if (edit || !inCell(e) || getSelection()?.toString()) return;
    e.preventDefault();
    e.clipboardData?.setData("text/plain", writeCells(textOf(rows, columns, cursor.area)));
  };
  const onPaste = (e: ClipboardEvent) => {
    const text = e.clipboardData?.getData("text/plain");
    if (edit || !text || !editable(cursor.area.left) || !inCell(e)) return;
    e.preventDefault();
    replace(readCells(text)).catch(showToast);
  };
  return { replace, onCopy, onPaste };
}

/** Returns what the keys do in a cell that is not being edited. */
function keyHandler(
  { rows, table }: Props,
  columns: TableColumn[],
  editable: (column: number) => boolean,
  { edit, cursor, begin, store }: Editing,
  replace: (texts: string[][]) => Promise<void>,
) {
  return (e: KeyboardEvent) => {
    if (edit || e.altKey || !(e.target as HTMLElement).dataset.at) return;
    if ((e.ctrlKey || e.metaKey) && e.key === "a") {
      e.preventDefault();
      cursor.selectFrom(0, 0);
      cursor.move(rows.length - 1, table.columns.length - 1, true);
      return;
    }
    if (e.ctrlKey || e.metaKey) return;
    const { row, column } = cursor;
    const { type } = columns[column];
    const steps: Record<string, [number, number]> = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -column],
      End: [0, columns.length],
      PageDown: [10, 0],
      PageUp: [-10, 0],
    };
    if (steps[e.key]) {
      e.preventDefault();
      cursor.move(row + steps[e.key][0], column + steps[e.key][1], e.shiftKey);
    } else if (e.key === "Escape" && !isOne(cursor.area)) {
      e.stopPropagation();
      cursor.collapse();
    } else if (e.key === "Enter" || e.key === "F2" || (e.key === " " && type === "boolean")) {
      e.preventDefault();
      begin(row, column);
    } else if ((e.key === "Delete" || e.key === "Backspace") && editable(column)) {
      e.preventDefault();
      if (isOne(cursor.area)) void store(rows[row], columns[column], null);
      else replace([[""]]).catch(showToast);
    } else if (e.key.length === 1 && editable(column) && !["boolean", "choice"].includes(type)) {
      e.preventDefault();
      e.stopPropagation();
      begin(row, column, e.key);
    }
  };
}

/** The rows of a page of a table. Cells of the table's own columns can be edited. */
export function Grid(props: Props) {
  const { table, rows, first, may, picked, pick } = props;
  const columns = [...table.columns, { name: "created_at", type: "time" } as TableColumn];
  const editable = (column: number) => may && column < table.columns.length;
  const editing = useEditing(props, columns, editable);
  const { replace, onCopy, onPaste } = useClipboard(props, columns, editable, editing);
  const onKeyDown = keyHandler(props, columns, editable, editing, replace);
  const pickRow = (id: string, on: boolean) => pick(on ? [...picked, id] : picked.filter((other) => other !== id));
  return (
    <div class="rows-frame" ref={editing.cursor.frame} onKeyDown={onKeyDown} onCopy={onCopy} onPaste={onPaste}>
      <table
        class="rows"
        role="grid"
        aria-rowcount={rows.length + 1}
        aria-label={table.name}
        aria-multiselectable="true"
      >
        <Header {...props} columns={columns} />
        <tbody>
          {rows.map((row, rowIndex) => (
            <tr key={row.id} class={picked.includes(row.id) ? "on" : ""}>
              <th class="rows-number muted" scope="row">
                <span>{first + rowIndex}</span>
                {may && (
                  <input
                    type="checkbox"
                    aria-label={`Select row ${first + rowIndex}`}
                    checked={picked.includes(row.id)}
                    onChange={(e) => pickRow(row.id, e.currentTarget.checked)}
                  />
                )}
              </th>
              {columns.map((column, columnIndex) => (
                <Cell
                  key={column.name}
                  row={row}
                  column={column}
                  rowIndex={rowIndex}
                  columnIndex={columnIndex}
                  label={`${column.name}, row ${first + rowIndex}`}
                  editable={editable(columnIndex)}
                  editing={editing}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The names of the columns, which sort, and the checkbox for all rows. */
function Header({ rows, may, picked, pick, sorting, sort, columns }: Props & { columns: TableColumn[] }) {
  const allPicked = rows.length > 0 && rows.every((row) => picked.includes(row.id));
  const toggleSorting = (name: string) => {
    if (sorting?.by !== name) sort({ by: name, order: "asc" });
    else sort(sorting.order === "asc" ? { by: name, order: "desc" } : undefined);
  };
  return (
    <thead>
      <tr>
        <th class="rows-number" scope="col">
          {may ? (
            <input
              type="checkbox"
              aria-label="Select all on this page"
              checked={allPicked}
              onChange={() => pick(allPicked ? [] : rows.map((row) => row.id))}
            />
          ) : (
            <span class="hidden">Row</span>
          )}
        </th>
        {columns.map((column) => {
          const order = sorting?.by === column.name ? sorting.order : undefined;
          return (
            <th
              scope="col"
              key={column.name}
              class={column.type === "number" ? "number" : ""}
              aria-sort={order && (order === "asc" ? "ascending" : "descending")}
            >
              <button type="button" class="sort" onClick={() => toggleSorting(column.name)}>
                <bdi>{column.name}</bdi>
                {column.required && (
                  <span title="required" class="muted">
                    *
                  </span>
                )}
                {order && <Icon name={order === "asc" ? "ChevronUp" : "ChevronDown"} size={14} />}
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

type CellProps = {
  row: Row;
  column: TableColumn;
  rowIndex: number;
  columnIndex: number;
  label: string;
  editable: boolean;
  editing: Editing;
};

function Cell({ row, column, rowIndex, columnIndex, label, editable, editing }: CellProps) {
  const { edit, setEdit, cursor, begin, commit, store } = editing;
  const focused = cursor.isAt(rowIndex, columnIndex);
  if (focused && edit)
    return (
      <td role="gridcell" class={edit.issue ? "editing wrong" : "editing"}>
        <CellEditor
          column={column}
          {...edit}
          setText={(text) => setEdit({ text })}
          commit={commit}
          leave={(rows = 0) => {
            setEdit(undefined);
            cursor.move(rowIndex + rows, columnIndex);
          }}
          step={(columns) => cursor.move(rowIndex, columnIndex + columns)}
        />
      </td>
    );
  const selected = inArea(cursor.area, rowIndex, columnIndex);
  const checkbox = column.type === "boolean";
  return (
    <td
      role="gridcell"
      class={selected && !isOne(cursor.area) ? `${column.type} in` : column.type}
      data-at={`${rowIndex},${columnIndex}`}
      tabIndex={focused ? 0 : -1}
      aria-readonly={!editable}
      aria-selected={selected}
      onClick={(e) => {
        const touched = (e as unknown as PointerEvent).pointerType === "touch";
        if (cursor.pressedAgain.current && touched && !checkbox) begin(rowIndex, columnIndex);
      }}
      onMouseDown={(e) => cursor.onPress(e, rowIndex, columnIndex)}
      onMouseEnter={(e) => cursor.onDrag(e, rowIndex, columnIndex)}
      onFocus={() => cursor.onFocus(rowIndex, columnIndex)}
      onDblClick={() => {
        if (!checkbox) begin(rowIndex, columnIndex);
      }}
    >
      <Value
        column={column}
        value={row[column.name]}
        may={editable}
        label={label}
        set={(value) => store(row, column, value)}
      />
    </td>
  );
}

/** The value of a cell that is not being edited. */
function Value({
  column,
  value,
  may,
  label,
  set,
}: {
  column: TableColumn;
  value: unknown;
  may: boolean;
  label: string;
  set: (v: boolean) => void;
}) {
  if (column.type === "boolean")
    return (
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={label}
        checked={value === true}
        disabled={!may}
        class={value === null ? "unset" : ""}
        onChange={(e) => set(e.currentTarget.checked)}
      />
    );
  const text = written(value, column.type);
  if (column.type === "choice" && text)
    return (
      <span class="tag">
        <bdi>{text}</bdi>
      </span>
    );
  return <bdi>{text.length > 300 ? `${text.slice(0, 300)}…` : text}</bdi>;
}
