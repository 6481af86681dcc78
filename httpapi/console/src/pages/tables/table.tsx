// One table: its rows, found and sorted by the address, and what is done to it.
import { useEffect, useRef, useState } from "preact/hooks";

import {
  agentId,
  ApiError,
  download,
  go,
  href,
  invalidate,
  mayEdit,
  onChange,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../../data";
import {
  Button,
  confirm,
  deleteLater,
  Empty,
  ErrorCard,
  FormDialog,
  Menu,
  openDialog,
  Pager,
  plural,
  SearchField,
  SelectField,
  Skeleton,
  TextArea,
  TextField,
  type MenuItem,
  type Sorting,
} from "../../ui";
import { DataTabs } from "../../parts/datatabs";
import { useSelection } from "../../parts/selection";
import { tablesAt, typed, written, type DataTable, type Row, type TableColumn } from "../../parts/tables";
import { storeCells, type Paste } from "./cells";
import { TableDialog } from "./columns";
import { Filters, readFilters } from "./filters";
import { Grid } from "./grid";
import { ImportRows } from "./import";

const pageSize = 100;

type RowList = { rows: Row[]; meta: API.PageMeta };

/** What the address asks for: which rows, in which order, from which one on. */
function listOptions() {
  const { query } = route.value;
  const by = query.get("sort");
  const order = query.get("order") === "desc" ? "desc" : "asc";
  const sorting: Sorting | undefined = by ? { by, order } : undefined;
  return {
    where: query.get("where") ?? "",
    search: query.get("search") ?? "",
    offset: Number(query.get("offset")) || 0,
    sorting,
  };
}

/**
 * Loads a table and the rows that the address asks for, and loads the rows again when others change them, but not
 * during a change of its own.
 */
function useTable(name: string) {
  const { where, search, offset, sorting } = listOptions();
  const table = useQuery<DataTable>(tablesAt(name));
  const found = useQuery<RowList>(`${tablesAt(name)}/rows`, {
    limit: pageSize,
    offset,
    search,
    where,
    sort: sorting?.by,
    order: sorting?.order,
  });
  const saving = useRef(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = onChange("table", (change) => {
      if (change.id !== name || change.op === "delete") return;
      const { row } = change;
      if (row) table.set(() => row);
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (!saving.current) void found.reload();
      }, 400);
    });
    return () => {
      clearTimeout(timer);
      unsubscribe();
    };
  }, [found, table]);
  const whileSaving = async (change: () => Promise<void>) => {
    saving.current++;
    try {
      await change();
    } finally {
      saving.current--;
    }
  };
  return { table, found, whileSaving };
}

/** The page of one table. */
export function TablePage({ name }: { name: string }) {
  const loaded = useTable(name);
  const { table } = loaded;
  if (table.data.value) return <LoadedTable {...loaded} definition={table.data.value} />;
  if (!table.error.value)
    return (
      <div class="page wide">
        <Skeleton lines={8} title="Data" />
      </div>
    );
  return (
    <div class="page wide">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Data
        </h1>
      </div>
      <DataTabs now="tables" />
      <ErrorCard error={table.error.value} retry={table.reload} />
    </div>
  );
}

/** Deletes the rows that are selected; until that can no longer be undone, they are only hidden. */
function useRowDeletion({ table, found }: ReturnType<typeof useTable>, at: string) {
  const [picked, pick] = useSelection(route.value.query.toString());
  const [hidden, setHidden] = useState<string[]>([]);
  const deletePicked = () => {
    const ids = picked;
    const show = () => setHidden((all) => all.filter((id) => !ids.includes(id)));
    setHidden((all) => [...all, ...ids]);
    pick([]);
    deleteLater(
      `${plural(ids.length, "row")} deleted`,
      async () => {
        await post(`${at}/rows/batch`, { ids, delete: true });
        await found.reload();
        void table.reload();
        show();
      },
      show,
    );
  };
  return { picked, pick, hidden, deletePicked };
}

function LoadedTable({ definition, ...loaded }: ReturnType<typeof useTable> & { definition: DataTable }) {
  const { table, found, whileSaving } = loaded;
  const at = tablesAt(definition.name);
  const { where, search, offset, sorting } = listOptions();
  const { picked, pick, hidden, deletePicked } = useRowDeletion(loaded, at);
  const may = mayEdit.value;
  const filters = readFilters(where);
  const filtered = Boolean(search || filters.length);
  const issues = found.error.value instanceof ApiError ? found.error.value.issues : {};
  const filterIsWrong = Object.keys(issues).some((field) => field.startsWith("where["));
  const list = found.data.value;

  const save = (row: Row, column: string, value: unknown) =>
    whileSaving(async () => {
      const stored = await put(`${at}/rows/${encodeURIComponent(row.id)}`, { row: { [column]: value } });
      found.set((data) => ({ ...data, rows: data.rows.map((r) => (r.id === row.id ? (stored as Row) : r)) }));
    });
  const saveCells = (cells: Paste) =>
    whileSaving(() =>
      storeCells(definition, cells, async () => {
        await Promise.all([table.reload(), found.reload()]);
      }),
    );
  const reload = () => {
    void table.reload();
    void found.reload();
  };
  const add = () => {
    openDialog((close) => <NewRow table={definition} close={close} done={reload} />);
  };
  const importRows = () => {
    openDialog((close) => <ImportRows table={definition} close={close} done={reload} />);
  };
  return (
    <div class="page wide table-page">
      <Head
        table={definition}
        picked={picked.length}
        deletePicked={deletePicked}
        add={add}
        items={menuItems(definition, importRows, reload)}
      />
      <DataTabs now="tables" />
      <div class="row" role="search">
        <SearchField
          key={search ? "typed" : "none"}
          value={search}
          label="Search rows"
          placeholder="Search all columns"
          onInput={(text) => setQuery({ search: text, offset: null })}
        />
        <Filters
          table={definition}
          filters={filters}
          issues={issues}
          set={(conditions) => setQuery({ where: conditions.length ? JSON.stringify(conditions) : null, offset: null })}
        />
      </div>
      {found.error.value && !filterIsWrong && <ErrorCard error={found.error.value} retry={found.reload} />}
      {!list && !found.error.value && <Skeleton lines={8} />}
      {list?.rows.length === 0 && <NoRows filtered={filtered} add={add} importRows={importRows} />}
      {list && list.rows.length > 0 && (
        <>
          <Grid
            table={definition}
            rows={list.rows.filter((row) => !hidden.includes(row.id))}
            first={offset + 1}
            may={may}
            picked={picked}
            pick={pick}
            save={save}
            saveCells={saveCells}
            extend={!filtered && !sorting && offset + pageSize >= definition.rows}
            sorting={sorting}
            sort={(s) => setQuery({ sort: s?.by, order: s?.order === "desc" ? "desc" : null, offset: null })}
          />
          <GridFooter meta={list.meta} all={filtered ? definition.rows : undefined} />
        </>
      )}
    </div>
  );
}

type HeadProps = {
  table: DataTable;
  /** How many rows are selected. */
  picked: number;
  deletePicked: () => void;
  add: () => void;
  items: MenuItem[];
};

function Head({ table, picked, deletePicked, add, items }: HeadProps) {
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <a class="muted" href={href(agentId.value, "tables")}>
          Data
        </a>{" "}
        <span class="muted">/</span> <bdi>{table.name}</bdi>
      </h1>
      {picked > 0 && (
        <Button kind="danger" icon="Trash2" onClick={deletePicked}>{`Delete ${plural(picked, "row")}`}</Button>
      )}
      {mayEdit.value && (
        <Button kind="primary" icon="Plus" onClick={add}>
          Add row
        </Button>
      )}
      <Menu label="More" items={items} />
    </div>
  );
}

function deleteTable(table: DataTable) {
  confirm({
    title: `Delete ${table.name}?`,
    text: (
      <>
        The table <bdi>{table.name}</bdi> is deleted with {plural(table.rows, "row")}. Workflows that use it will fail.
      </>
    ),
    action: "Delete",
    typed: table.rows > 0 ? table.name : undefined,
    run: async () => {
      await remove(tablesAt(table.name));
      invalidate(tablesAt());
      go(href(agentId.value, "tables"));
    },
  });
}

/** What can be done with a table as a whole. */
function menuItems(table: DataTable, importRows: () => void, reload: () => void): MenuItem[] {
  const exportAs = (format: string) => download("GET", `${tablesAt(table.name)}/export`, { format });
  const editColumns = () => openDialog((close) => <TableDialog table={table} close={close} done={reload} />);
  const openInSQL = () => {
    const q = `SELECT *\nFROM data_${table.name}\nLIMIT 100`;
    go(`${href(agentId.value, "sql")}?${new URLSearchParams({ q })}`);
  };
  const reading: MenuItem[] = [
    { label: "Export CSV", icon: "Download", run: () => exportAs("csv") },
    { label: "Export JSON", icon: "Download", run: () => exportAs("json") },
    { label: "Open in SQL", icon: "Database", run: openInSQL },
  ];
  if (!mayEdit.value) return reading;
  return [
    { label: "Columns and name", icon: "Pencil", run: editColumns },
    { label: "Import CSV", icon: "Upload", run: importRows },
    ...reading,
    "-",
    { label: "Delete table", icon: "Trash2", danger: true, run: () => deleteTable(table) },
  ];
}

function NoRows({ filtered, add, importRows }: { filtered: boolean; add: () => void; importRows: () => void }) {
  if (filtered)
    return (
      <Empty icon="Search" title="No rows match">
        Try different words or conditions.
      </Empty>
    );
  const actions = mayEdit.value && (
    <>
      <Button icon="Plus" onClick={add}>
        Add row
      </Button>
      <Button icon="Upload" onClick={importRows}>
        Import CSV
      </Button>
    </>
  );
  return (
    <Empty icon="Table" title="No rows yet" action={actions}>
      Add one here, import a CSV file, or have a workflow or a form write them.
    </Empty>
  );
}

/** The number of rows, of all where only some match, how the grid is used, and the pages. */
function GridFooter({ meta, all }: { meta: API.PageMeta; all?: number }) {
  return (
    <>
      <div class="row">
        <span class="muted small grow">
          {plural(meta.total, "row")}
          {all !== undefined && ` of ${all.toLocaleString()}`}
          {mayEdit.value && (
            <>
              <span class="grid-hint">
                {". Arrows move, "}
                <kbd>Enter</kbd> edits, <kbd>Shift</kbd> selects several, <kbd>Ctrl</kbd> <kbd>C</kbd>
                {" and "}
                <kbd>V</kbd> copy and paste, also from a spreadsheet.
              </span>
              <span class="grid-touch">. Tap a cell twice to edit it.</span>
            </>
          )}
        </span>
      </div>
      <Pager meta={meta} go={(offset) => setQuery({ offset: offset || null })} />
    </>
  );
}

/** A field for the value of a column of a new row. */
export function ValueField({
  column,
  value,
  onInput,
  error,
}: {
  column: TableColumn;
  value: string;
  onInput: (v: string) => void;
  error?: string;
}) {
  const label = column.required ? `${column.name} *` : column.name;
  const hint = column.type === "time" ? "Such as 2026-01-31 09:00, in UTC." : undefined;
  if (column.type === "choice")
    return (
      <SelectField
        label={label}
        value={value}
        error={error}
        options={[["", "–"], ...column.options!.map((o): [string, string] => [o, o])]}
        onChange={onInput}
      />
    );
  if (column.type === "boolean")
    return (
      <SelectField
        label={label}
        value={value}
        error={error}
        options={[
          ["", "–"],
          ["true", "Yes"],
          ["false", "No"],
        ]}
        onChange={onInput}
      />
    );
  if (column.type === "json") return <TextArea label={label} code value={value} error={error} onInput={onInput} />;
  return <TextField label={label} hint={hint} value={value} error={error} onInput={onInput} />;
}

function NewRow({ table, close, done }: { table: DataTable; close: () => void; done: () => void }) {
  const run = async (values: Record<string, string>) => {
    const row: Record<string, unknown> = {};
    for (const { name, type } of table.columns) {
      const value = typed(values[name] ?? "", type);
      row[name] = value === undefined ? values[name] : value;
    }
    await post(tablesAt(table.name, "rows"), { row });
    done();
  };
  return (
    <FormDialog
      title="Add a row"
      close={close}
      action="Add"
      initial={Object.fromEntries(table.columns.map((c): [string, string] => [c.name, ""]))}
      run={run}
    >
      {(f) =>
        table.columns.map((c) => (
          <ValueField
            key={c.name}
            column={c}
            value={written(f.values[c.name], "text")}
            error={f.issue(c.name)}
            onInput={(v) => f.set(c.name, v)}
          />
        ))
      }
    </FormDialog>
  );
}
