// The name and the columns of a table, new or changed.
import { useState } from "preact/hooks";

import { agentId, ApiError, go, href, invalidate, post, put } from "../../data";
import { AddRow, Button, Dialog, showToast, TextField } from "../../ui";
import { columnTypes, slug, tablesAt, type ColumnType, type DataTable, type TableColumn } from "../../parts/tables";

/** A column as the form keeps it: from is its stored name, and options has one option a line. */
type Draft = Omit<TableColumn, "options"> & { from?: string; options: string };

const draftOf = (column: TableColumn): Draft => ({
  ...column,
  from: column.name,
  options: (column.options ?? []).join("\n"),
});

/** A column as the API takes it. */
const columnOf = (d: Draft) => ({
  name: d.name,
  type: d.type,
  ...(d.required && { required: true }),
  ...(d.unique && d.type !== "json" && { unique: true }),
  ...(d.type === "choice" && {
    options: d.options
      .split("\n")
      .map((option) => option.trim())
      .filter(Boolean),
  }),
  ...(d.from && d.from !== d.name && { from: d.from }),
});

/** The parts of a column whose issues are shown at the column. */
const columnFields = ["", ".name", ".type", ".unique", ".from"];

/** The issue of the column at an index. */
const issueOf = (issues: Record<string, string>, index: number) =>
  columnFields.map((field) => issues[`columns[${index}]${field}`]).find(Boolean) ??
  Object.entries(issues).find(([field]) => field.startsWith(`columns[${index}].options`))?.[1];

/** Reports whether the form shows the issue of a field at the field itself. */
function isShown(field: string, columns: Draft[]) {
  if (field === "name" || /^columns\[\d+\]\.options/.test(field)) return true;
  return columns.some((_, i) => columnFields.some((part) => field === `columns[${i}]${part}`));
}

/** Creates a table, or changes its name and columns; done is called after a change that keeps the name. */
export function TableDialog({ table, close, done }: { table?: DataTable; close: () => void; done?: () => void }) {
  const [name, setName] = useState(table?.name ?? "");
  const [columns, setColumns] = useState<Draft[]>(
    table ? table.columns.map(draftOf) : [{ name: "name", type: "text", required: true, options: "" }],
  );
  const [issues, setIssues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const removed = table?.columns.filter((c) => !columns.some((draft) => draft.from === c.name)) ?? [];
  const submit = async () => {
    setBusy(true);
    setIssues({});
    try {
      const body = { name, columns: columns.map(columnOf) };
      const saved: DataTable = table ? await put(tablesAt(table.name), body) : await post(tablesAt(), body);
      invalidate(tablesAt());
      close();
      if (saved.name !== table?.name) go(href(agentId.value, "tables", saved.name));
      else done?.();
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) setIssues(error.issues);
      else showToast(error);
    }
    setBusy(false);
  };
  return (
    <Dialog title={table ? "Columns and name" : "New table"} close={close} wide>
      <form
        class="stack"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void submit();
        }}
      >
        <NameField name={name} setName={setName} error={issues.name} autoFocus={!table} />
        <ColumnsField columns={columns} setColumns={setColumns} issues={issues} />
        <p class="muted small">Every row also has an id and the times when it was added and changed.</p>
        {removed.length > 0 && (
          <p class="card warn">
            Their values are deleted with them:{" "}
            <b>
              <bdi>{removed.map((c) => c.name).join(", ")}</bdi>
            </b>
          </p>
        )}
        {Object.entries(issues)
          .filter(([field]) => !isShown(field, columns))
          .map(([field, issue]) => (
            <p class="issue" role="alert">
              <code>{field}</code>: {issue}
            </p>
          ))}
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit disabled={busy || !name || columns.some((c) => !c.name)}>
            {table ? "Save" : "Create"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The name of the table; one that SQL cannot take is offered in another form. */
function NameField({
  name,
  setName,
  error,
  autoFocus,
}: {
  name: string;
  setName: (name: string) => void;
  error?: string;
  autoFocus: boolean;
}) {
  const valid = slug(name, "table");
  const hint =
    !name || valid === name ? (
      "Workflows and SQL use this name."
    ) : (
      <>
        Use lower-case letters, digits and _.{" "}
        <button type="button" class="link" onClick={() => setName(valid)}>
          Use {valid}
        </button>
      </>
    );
  return <TextField label="Name" value={name} error={error} autoFocus={autoFocus} hint={hint} onInput={setName} />;
}

function ColumnsField({
  columns,
  setColumns,
  issues,
}: {
  columns: Draft[];
  setColumns: (columns: Draft[]) => void;
  issues: Record<string, string>;
}) {
  const move = (index: number, offset: number) => {
    const next = [...columns];
    [next[index], next[index + offset]] = [next[index + offset], next[index]];
    setColumns(next);
  };
  return (
    <fieldset class="nested columns-editor">
      <legend>Columns</legend>
      {columns.map((column, index) => (
        <ColumnEditor
          key={index}
          column={column}
          index={index}
          count={columns.length}
          issue={issueOf(issues, index)}
          set={(change) => setColumns(columns.map((c, i) => (i === index ? { ...c, ...change } : c)))}
          move={(offset) => move(index, offset)}
          remove={() => setColumns(columns.filter((_, i) => i !== index))}
        />
      ))}
      <AddRow title="Add a column" add={() => setColumns([...columns, { name: "", type: "text", options: "" }])} />
    </fieldset>
  );
}

type ColumnProps = {
  column: Draft;
  index: number;
  count: number;
  issue?: string;
  set: (change: Partial<Draft>) => void;
  move: (offset: number) => void;
  remove: () => void;
};

function ColumnEditor({ column, index, count, issue, set, move, remove }: ColumnProps) {
  const number = index + 1;
  const title = column.name || number;
  const suggestedName = (name: string) => {
    if (name && !/^[A-Za-z][A-Za-z0-9_]*$/.test(name)) set({ name: slug(name, "column") });
  };
  return (
    <div class={issue ? "column-editor wrong" : "column-editor"}>
      <input
        aria-label={`Name of column ${number}`}
        value={column.name}
        placeholder="name"
        aria-invalid={Boolean(issue)}
        onInput={(e) => set({ name: e.currentTarget.value })}
        onBlur={(e) => suggestedName(e.currentTarget.value)}
      />
      <select
        aria-label={`Type of column ${number}`}
        value={column.type}
        onChange={(e) => set({ type: e.currentTarget.value as ColumnType })}
      >
        {columnTypes.map(([type, label]) => (
          <option value={type} selected={type === column.type}>
            {label}
          </option>
        ))}
      </select>
      <Checkbox label="required" checked={Boolean(column.required)} set={(required) => set({ required })} />
      <Checkbox
        label="unique"
        checked={Boolean(column.unique) && column.type !== "json"}
        disabled={column.type === "json"}
        set={(unique) => set({ unique })}
      />
      <span class="row nowrap tight">
        <Button
          kind="quiet"
          icon="ChevronUp"
          label={`Move ${title} up`}
          disabled={index === 0}
          onClick={() => move(-1)}
        />
        <Button
          kind="quiet"
          icon="ChevronDown"
          label={`Move ${title} down`}
          disabled={index === count - 1}
          onClick={() => move(1)}
        />
        <Button kind="quiet" icon="X" label={`Remove ${title}`} disabled={count === 1} onClick={remove} />
      </span>
      {column.type === "choice" && (
        <textarea
          class="column-options"
          rows={3}
          aria-label={`Options of ${column.name}`}
          placeholder="One option per line"
          value={column.options}
          onInput={(e) => set({ options: e.currentTarget.value })}
        />
      )}
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </div>
  );
}

function Checkbox({
  label,
  checked,
  disabled,
  set,
}: {
  label: string;
  checked: boolean;
  disabled?: boolean;
  set: (checked: boolean) => void;
}) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(e) => set(e.currentTarget.checked)} />
      {" " + label}
    </label>
  );
}
