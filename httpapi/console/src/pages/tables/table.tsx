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

export function TablePage({ name }: { name: string }) {
  const { query } = route.value;
  const at = tablesAt(name);
  const table = useQuery<DataTable>(at);
  const where = query.get("where") ?? "";
  const search = query.get("search") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const sorting: Sorting | undefined = query.get("sort")
    ? { by: query.get("sort")!, order: query.get("order") === "desc" ? "desc" : "asc" }
    : undefined;
  const found = useQuery<{ rows: Row[]; meta: API.PageMeta }>(`${at}/rows`, {
    limit: pageSize,
    offset,
    search,
    where,
    sort: sorting?.by,
    order: sorting?.order,
  });
  const [picked, setPicked] = useSelection(query.toString());
  const [hidden, setHidden] = useState<string[]>([]);
  const saving = useRef(0);
  const may = mayEdit.value;
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const off = onChange("table", (c) => {
      if (c.id !== name || c.op === "delete") return;
      const { row } = c;
      if (row) table.set(() => row);
      clearTimeout(due);
      due = setTimeout(() => {
        if (!saving.current) void found.reload();
      }, 400);
    });
    return () => {
      clearTimeout(due);
      off();
    };
  }, [found, table]);
  if (table.error.value && !table.data.value)
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
  const t = table.data.value;
  if (!t)
    return (
      <div class="page wide">
        <Skeleton lines={8} title="Data" />
      </div>
    );

  const save = async (row: Row, column: string, value: unknown) => {
    saving.current++;
    try {
      const stored = await put(`${at}/rows/${encodeURIComponent(row.id)}`, { row: { [column]: value } });
      found.set((d) => ({ ...d, rows: d.rows.map((r) => (r.id === row.id ? (stored as Row) : r)) }));
    } finally {
      saving.current--;
    }
  };
  const saveCells = async (cells: Paste) => {
    saving.current++;
    try {
      await storeCells(t, cells, async () => {
        await Promise.all([table.reload(), found.reload()]);
      });
    } finally {
      saving.current--;
    }
  };
  const reload = () => {
    void table.reload();
    void found.reload();
  };
  const drop = () => {
    const ids = picked;
    setHidden((h) => [...h, ...ids]);
    setPicked([]);
    const show = () => setHidden((h) => h.filter((x) => !ids.includes(x)));
    deleteLater(
      `${plural(ids.length, "row")} deleted`,
      () =>
        post(`${at}/rows/batch`, { ids, delete: true }).then(async () => {
          await found.reload();
          void table.reload();
          show();
        }),
      show,
    );
  };
  const add = () => {
    openDialog((close) => <NewRow table={t} close={close} done={reload} />);
  };
  const importRows = () => {
    openDialog((close) => <ImportRows table={t} close={close} done={reload} />);
  };
  const filters = readFilters(where);
  const filtered = Boolean(search || filters.length);
  const issues = found.error.value instanceof ApiError ? found.error.value.issues : {};
  const items = [
    ...(may
      ? [
          {
            label: "Columns and name",
            icon: "Pencil" as const,
            run: () => openDialog((close) => <TableDialog table={t} close={close} done={reload} />),
          },
          { label: "Import CSV", icon: "Upload" as const, run: importRows },
        ]
      : []),
    { label: "Export CSV", icon: "Download" as const, run: () => download("GET", `${at}/export`, { format: "csv" }) },
    { label: "Export JSON", icon: "Download" as const, run: () => download("GET", `${at}/export`, { format: "json" }) },
    {
      label: "Open in SQL",
      icon: "Database" as const,
      run: () =>
        go(`${href(agentId.value, "sql")}?${new URLSearchParams({ q: `SELECT *\nFROM data_${t.name}\nLIMIT 100` })}`),
    },
    ...(may
      ? [
          "-" as const,
          {
            label: "Delete table",
            icon: "Trash2" as const,
            danger: true,
            run: () =>
              confirm({
                title: `Delete ${t.name}?`,
                text: (
                  <>
                    The table <bdi>{t.name}</bdi> is deleted with {plural(t.rows, "row")}. Workflows that use it will
                    fail.
                  </>
                ),
                action: "Delete",
                typed: t.rows > 0 ? t.name : undefined,
                run: async () => {
                  await remove(at);
                  invalidate(tablesAt());
                  go(href(agentId.value, "tables"));
                },
              }),
          },
        ]
      : []),
  ];
  return (
    <div class="page wide table-page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          <a class="muted" href={href(agentId.value, "tables")}>
            Data
          </a>{" "}
          <span class="muted">/</span> <bdi>{t.name}</bdi>
        </h1>
        {picked.length > 0 && (
          <Button kind="danger" icon="Trash2" onClick={drop}>{`Delete ${plural(picked.length, "row")}`}</Button>
        )}
        {may && (
          <Button kind="primary" icon="Plus" onClick={add}>
            Add row
          </Button>
        )}
        <Menu label="More" items={items} />
      </div>
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
          table={t}
          filters={filters}
          issues={issues}
          set={(list) => setQuery({ where: list.length ? JSON.stringify(list) : null, offset: null })}
        />
      </div>
      {found.error.value && !Object.keys(issues).some((f) => f.startsWith("where[")) && (
        <ErrorCard error={found.error.value} retry={found.reload} />
      )}
      {!found.data.value ? (
        !found.error.value && <Skeleton lines={8} />
      ) : found.data.value.rows.length === 0 ? (
        <Empty
          icon={filtered ? "Search" : "Table"}
          title={filtered ? "No rows match" : "No rows yet"}
          action={
            may &&
            !filtered && (
              <>
                <Button icon="Plus" onClick={add}>
                  Add row
                </Button>
                <Button icon="Upload" onClick={importRows}>
                  Import CSV
                </Button>
              </>
            )
          }
        >
          {filtered
            ? "Try different words or conditions."
            : "Add one here, import a CSV file, or have a workflow or a form write them."}
        </Empty>
      ) : (
        <>
          <Grid
            table={t}
            rows={found.data.value.rows.filter((r) => !hidden.includes(r.id))}
            first={offset + 1}
            may={may}
            picked={picked}
            pick={setPicked}
            save={save}
            saveCells={saveCells}
            extend={!filtered && !sorting && offset + pageSize >= t.rows}
            sorting={sorting}
            sort={(s) => setQuery({ sort: s?.by, order: s?.order === "desc" ? "desc" : null, offset: null })}
          />
          <div class="row">
            <span class="muted small grow">
              {plural(found.data.value.meta.total, "row")}
              {filtered && ` of ${t.rows.toLocaleString()}`}
              {may && (
                <span class="grid-hint">
                  . Arrows move, <kbd>Enter</kbd> edits, <kbd>Shift</kbd> selects several, <kbd>Ctrl</kbd> <kbd>C</kbd>{" "}
                  and <kbd>V</kbd> copy and paste, also from a spreadsheet.
                </span>
              )}
              {may && <span class="grid-touch">. Tap a cell twice to edit it.</span>}
            </span>
          </div>
          <Pager meta={found.data.value.meta} go={(to) => setQuery({ offset: to || null })} />
        </>
      )}
    </div>
  );
}

/** A field for the value of a column. */
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
    for (const c of table.columns) {
      const value = typed(values[c.name] ?? "", c.type);
      row[c.name] = value === undefined ? values[c.name] : value;
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
