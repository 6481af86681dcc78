// The rows of a table as a grid: one cell has the focus, and is edited where it
// stands. See https://www.w3.org/WAI/ARIA/apg/patterns/grid/ for the keys.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiError, reasonOf } from "../../data";
import { Icon, tell, type Sorting } from "../../ui";
import { typed, written, type DataTable, type Row, type TableColumn } from "../../parts/tables";
import { areaOf, inArea, isOne, lay, readCells, textOf, writeCells, type Paste } from "./cells";

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

export function Grid({ table, rows, first, may, picked, pick, save, saveCells, extend, sorting, sort }: Props) {
  const [at, setAt] = useState({ row: 0, column: 0 });
  const [anchor, setAnchor] = useState(at); // the other corner of the cells that are selected
  const again = useRef(false); // the cell that is pressed had the focus before
  const shift = useRef(false); // the next cell that gets the focus extends them
  const [editing, setEditing] = useState<{ text: string; issue?: string; busy?: boolean }>();
  const frame = useRef<HTMLDivElement>(null);
  const focus = useRef(false); // the cell at the cursor is to get the focus
  const columns = [...table.columns, { name: "created_at", type: "time" } as TableColumn];
  const own = (c: number) => may && c < table.columns.length;
  useLayoutEffect(() => {
    if (!focus.current || editing) return;
    focus.current = false;
    frame.current?.querySelector<HTMLElement>(`[data-at="${at.row},${at.column}"]`)?.focus();
  });
  const area = areaOf({ row: Math.min(anchor.row, rows.length - 1), column: anchor.column }, at);
  const move = (row: number, column: number, extended = false) => {
    focus.current = true;
    const to = {
      row: Math.max(0, Math.min(rows.length - 1, row)),
      column: Math.max(0, Math.min(columns.length - 1, column)),
    };
    shift.current = extended;
    setAt(to);
    if (!extended) setAnchor(to);
  };
  const write = async (pasted: string[][]) => {
    const { left, ...cells } = lay(pasted, rows, table.columns, area, extend);
    if (cells.columns.length && cells.rows.length + cells.added.length) await saveCells(cells);
    if (left) tell(`${left.toLocaleString()} ${left === 1 ? "row" : "rows"} did not fit below. Import CSV adds rows.`);
  };
  const copy = (e: ClipboardEvent) => {
    if (editing || !(e.target as HTMLElement).dataset?.at || getSelection()?.toString()) return;
    e.preventDefault();
    e.clipboardData?.setData("text/plain", writeCells(textOf(rows, columns, area)));
  };
  const paste = (e: ClipboardEvent) => {
    const text = e.clipboardData?.getData("text/plain");
    if (editing || !text || !own(area.left) || !(e.target as HTMLElement).dataset?.at) return;
    e.preventDefault();
    write(readCells(text)).catch(tell);
  };
  const store = async (row: Row, column: TableColumn, value: unknown) => {
    try {
      await save(row, column.name, value);
    } catch (error) {
      tell(error instanceof ApiError ? new Error(`${column.name} ${reasonOf(error)}`) : error);
    }
  };
  const begin = (row: number, column: number, text?: string) => {
    if (!own(column)) return;
    setAt({ row, column });
    setAnchor({ row, column });
    const c = columns[column];
    if (c.type === "boolean") {
      focus.current = true;
      void store(rows[row], c, !rows[row][c.name]);
      return;
    }
    setEditing({ text: text ?? written(rows[row][c.name], c.type) });
  };
  const commit = async (text: string, then?: () => void) => {
    if (!editing || editing.busy) return;
    const c = columns[at.column];
    const row = rows[at.row];
    if (!row || text === written(row[c.name], c.type)) {
      setEditing(undefined);
      then?.();
      return;
    }
    const value = typed(text, c.type);
    if (value === undefined) {
      setEditing({ text, issue: "is not valid JSON" });
      return;
    }
    setEditing({ text, busy: true });
    try {
      await save(row, c.name, value);
      setEditing(undefined);
      then?.();
    } catch (error) {
      setEditing({ text, issue: reasonOf(error) });
      if (!(error instanceof ApiError)) tell(error);
    }
  };
  const keys = (e: KeyboardEvent) => {
    if (editing || e.altKey || !(e.target as HTMLElement).dataset.at) return;
    if ((e.ctrlKey || e.metaKey) && e.key === "a") {
      e.preventDefault();
      setAnchor({ row: 0, column: 0 });
      move(rows.length - 1, table.columns.length - 1, true);
      return;
    }
    if (e.ctrlKey || e.metaKey) return;
    const { row, column } = at;
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
      move(row + steps[e.key][0], column + steps[e.key][1], e.shiftKey);
    } else if (e.key === "Escape" && !isOne(area)) {
      e.stopPropagation();
      setAnchor(at);
    } else if (e.key === "Enter" || e.key === "F2" || (e.key === " " && columns[column].type === "boolean")) {
      e.preventDefault();
      begin(row, column);
    } else if ((e.key === "Delete" || e.key === "Backspace") && own(column)) {
      e.preventDefault();
      if (isOne(area)) void store(rows[row], columns[column], null);
      else write([[""]]).catch(tell);
    } else if (e.key.length === 1 && own(column) && !["boolean", "choice"].includes(columns[column].type)) {
      e.preventDefault();
      e.stopPropagation();
      begin(row, column, e.key);
    }
  };
  const turn = (name: string) =>
    sort(
      sorting?.by !== name
        ? { by: name, order: "asc" }
        : sorting.order === "asc"
          ? { by: name, order: "desc" }
          : undefined,
    );
  const all = rows.length > 0 && rows.every((r) => picked.includes(r.id));
  return (
    <div class="rows-frame" ref={frame} onKeyDown={keys} onCopy={copy} onPaste={paste}>
      <table
        class="rows"
        role="grid"
        aria-rowcount={rows.length + 1}
        aria-label={table.name}
        aria-multiselectable="true"
      >
        <thead>
          <tr>
            <th class="rows-number" scope="col">
              {may ? (
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={all}
                  onChange={() => pick(all ? [] : rows.map((r) => r.id))}
                />
              ) : (
                <span class="hidden">Row</span>
              )}
            </th>
            {columns.map((c) => (
              <th
                scope="col"
                key={c.name}
                class={c.type === "number" ? "number" : ""}
                aria-sort={sorting?.by === c.name ? (sorting.order === "asc" ? "ascending" : "descending") : undefined}
              >
                <button type="button" class="sort" onClick={() => turn(c.name)}>
                  <bdi>{c.name}</bdi>
                  {c.required && (
                    <span title="required" class="muted">
                      *
                    </span>
                  )}
                  {sorting?.by === c.name && (
                    <Icon name={sorting.order === "asc" ? "ChevronUp" : "ChevronDown"} size={14} />
                  )}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r, i) => (
            <tr key={r.id} class={picked.includes(r.id) ? "on" : ""}>
              <th class="rows-number muted" scope="row">
                <span>{first + i}</span>
                {may && (
                  <input
                    type="checkbox"
                    aria-label={`Select row ${first + i}`}
                    checked={picked.includes(r.id)}
                    onChange={(e) =>
                      pick(e.currentTarget.checked ? [...picked, r.id] : picked.filter((x) => x !== r.id))
                    }
                  />
                )}
              </th>
              {columns.map((c, n) => {
                const here = at.row === i && at.column === n;
                if (here && editing)
                  return (
                    <td key={c.name} role="gridcell" class={editing.issue ? "editing wrong" : "editing"}>
                      <Editor
                        column={c}
                        {...editing}
                        note={(text) => setEditing({ text })}
                        commit={commit}
                        leave={(by) => {
                          setEditing(undefined);
                          move(i + (by ?? 0), n);
                        }}
                        step={(by) => move(i, n + by)}
                      />
                    </td>
                  );
                return (
                  <td
                    key={c.name}
                    role="gridcell"
                    class={!isOne(area) && inArea(area, i, n) ? `${c.type} in` : c.type}
                    data-at={`${i},${n}`}
                    tabIndex={here ? 0 : -1}
                    aria-readonly={!own(n)}
                    aria-selected={inArea(area, i, n)}
                    onClick={(e) => {
                      if (
                        again.current &&
                        (e as unknown as PointerEvent).pointerType === "touch" &&
                        c.type !== "boolean"
                      )
                        begin(i, n);
                    }}
                    onMouseDown={(e) => {
                      shift.current = e.shiftKey;
                      again.current = here && document.activeElement === e.currentTarget;
                      if (here && !e.shiftKey) setAnchor({ row: i, column: n });
                    }}
                    onMouseEnter={(e) => {
                      if (e.buttons === 1 && frame.current?.contains(document.activeElement)) move(i, n, true);
                    }}
                    onFocus={() => {
                      if (!here) {
                        setAt({ row: i, column: n });
                        if (!shift.current) setAnchor({ row: i, column: n });
                      }
                      shift.current = false;
                    }}
                    onDblClick={() => {
                      if (c.type !== "boolean") begin(i, n);
                    }}
                  >
                    <Shown
                      column={c}
                      value={r[c.name]}
                      may={own(n)}
                      label={`${c.name}, row ${first + i}`}
                      set={(v) => store(r, c, v)}
                    />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Shown({
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

type EditorProps = {
  column: TableColumn;
  text: string;
  issue?: string;
  busy?: boolean;
  note: (text: string) => void;
  commit: (text: string, then?: () => void) => Promise<void>;
  leave: (rows?: number) => void;
  step: (columns: number) => void;
};

function Editor({ column, text, issue, busy, note, commit, leave, step }: EditorProps) {
  const ref = useRef<HTMLInputElement & HTMLSelectElement & HTMLTextAreaElement>(null);
  const over = useRef(false); // a key ended it, so leaving the field does not save again
  if (issue && !busy) over.current = false;
  useLayoutEffect(() => {
    ref.current?.focus();
    ref.current?.setSelectionRange?.(text.length, text.length);
  }, []);
  const keys = (e: KeyboardEvent) => {
    e.stopPropagation();
    const now = (e.currentTarget as HTMLInputElement).value;
    if (!["Escape", "Enter", "Tab"].includes(e.key) || (e.key === "Enter" && e.shiftKey)) return;
    e.preventDefault();
    over.current = true;
    if (e.key === "Escape") leave();
    else if (e.key === "Enter") void commit(now, () => leave(1));
    else void commit(now, () => step(e.shiftKey ? -1 : 1));
  };
  const common = {
    ref,
    "aria-label": column.name,
    "aria-invalid": Boolean(issue),
    "aria-busy": busy,
    onKeyDown: keys,
    onBlur: (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => {
      if (!over.current && document.activeElement !== e.currentTarget) void commit(e.currentTarget.value);
    },
  };
  return (
    <>
      {column.type === "choice" ? (
        <select
          {...common}
          value={text}
          onChange={(e) => {
            over.current = true;
            note(e.currentTarget.value);
            void commit(e.currentTarget.value, () => leave());
          }}
        >
          <option value="" selected={!text}>
            –
          </option>
          {column.options!.map((o) => (
            <option value={o} selected={o === text}>
              {o}
            </option>
          ))}
        </select>
      ) : column.type === "text" || column.type === "json" ? (
        <textarea
          {...common}
          rows={Math.min(6, Math.max(1, text.split("\n").length, Math.ceil(text.length / 40)))}
          value={text}
          class={column.type === "json" ? "code" : ""}
          onInput={(e) => note(e.currentTarget.value)}
        />
      ) : (
        <input
          {...common}
          type="text"
          inputMode={column.type === "number" ? "decimal" : undefined}
          value={text}
          placeholder={column.type === "time" ? "2026-01-31 09:00 UTC" : ""}
          onInput={(e) => note(e.currentTarget.value)}
        />
      )}
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </>
  );
}
