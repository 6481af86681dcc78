// The name and the columns of a table, new or changed.
import { useState } from "preact/hooks";

import { agentId, ApiError, go, href, invalidate, post, put } from "../../data";
import { Button, Dialog, tell, TextField } from "../../ui";
import { columnTypes, slug, tablesAt, type ColumnType, type DataTable, type TableColumn } from "../../parts/tables";

type Draft = Omit<TableColumn, "options"> & { from?: string; options: string };

const draftOf = (c: TableColumn): Draft => ({ ...c, from: c.name, options: (c.options ?? []).join("\n") });

const columnOf = (d: Draft) => ({
  name: d.name,
  type: d.type,
  ...(d.required && { required: true }),
  ...(d.unique && d.type !== "json" && { unique: true }),
  ...(d.type === "choice" && {
    options: d.options
      .split("\n")
      .map((o) => o.trim())
      .filter(Boolean),
  }),
  ...(d.from && d.from !== d.name && { from: d.from }),
});

export function TableDialog({ table, close, done }: { table?: DataTable; close: () => void; done?: () => void }) {
  const [name, setName] = useState(table?.name ?? "");
  const [columns, setColumns] = useState<Draft[]>(
    table ? table.columns.map(draftOf) : [{ name: "name", type: "text", required: true, options: "" }],
  );
  const [issues, setIssues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const set = (i: number, change: Partial<Draft>) =>
    setColumns(columns.map((c, j) => (j === i ? { ...c, ...change } : c)));
  const move = (i: number, by: number) => {
    const next = [...columns];
    [next[i], next[i + by]] = [next[i + by], next[i]];
    setColumns(next);
  };
  const gone = table?.columns.filter((c) => !columns.some((d) => d.from === c.name)) ?? [];
  const submit = async () => {
    setBusy(true);
    setIssues({});
    try {
      const body = { name, columns: columns.map(columnOf) };
      const made: DataTable = table ? await put(tablesAt(table.name), body) : await post(tablesAt(), body);
      invalidate(tablesAt());
      close();
      if (made.name !== table?.name) go(href(agentId.value, "tables", made.name));
      else done?.();
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) setIssues(error.issues);
      else tell(error);
    }
    setBusy(false);
  };
  const known = new Set([
    "name",
    ...columns.flatMap((_, i) =>
      ["", ".name", ".type", ".options", ".unique", ".from"].map((p) => `columns[${i}]${p}`),
    ),
  ]);
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
        <TextField
          label="Name"
          value={name}
          error={issues.name}
          autoFocus={!table}
          hint={
            name && slug(name, "table") !== name ? (
              <>
                Use lower-case letters, digits and _.{" "}
                <button type="button" class="link" onClick={() => setName(slug(name, "table"))}>
                  Use {slug(name, "table")}
                </button>
              </>
            ) : (
              "Workflows and SQL use this name."
            )
          }
          onInput={setName}
        />
        <fieldset class="nested columns-editor">
          <legend>Columns</legend>
          {columns.map((c, i) => {
            const issue =
              ["", ".name", ".type", ".unique", ".from"].map((p) => issues[`columns[${i}]${p}`]).find(Boolean) ??
              Object.entries(issues).find(([f]) => f.startsWith(`columns[${i}].options`))?.[1];
            return (
              <div class={issue ? "column-editor wrong" : "column-editor"} key={i}>
                <input
                  aria-label={`Name of column ${i + 1}`}
                  value={c.name}
                  placeholder="name"
                  aria-invalid={Boolean(issue)}
                  onInput={(e) => set(i, { name: e.currentTarget.value })}
                  onBlur={(e) => {
                    const v = e.currentTarget.value;
                    if (v && !/^[A-Za-z][A-Za-z0-9_]*$/.test(v)) set(i, { name: slug(v, "column") });
                  }}
                />
                <select
                  aria-label={`Type of column ${i + 1}`}
                  value={c.type}
                  onChange={(e) => set(i, { type: e.currentTarget.value as ColumnType })}
                >
                  {columnTypes.map(([v, title]) => (
                    <option value={v} selected={v === c.type}>
                      {title}
                    </option>
                  ))}
                </select>
                <label class="tick">
                  <input
                    type="checkbox"
                    checked={Boolean(c.required)}
                    onChange={(e) => set(i, { required: e.currentTarget.checked })}
                  />{" "}
                  required
                </label>
                <label class="tick">
                  <input
                    type="checkbox"
                    checked={Boolean(c.unique) && c.type !== "json"}
                    disabled={c.type === "json"}
                    onChange={(e) => set(i, { unique: e.currentTarget.checked })}
                  />{" "}
                  unique
                </label>
                <span class="row nowrap tight">
                  <Button
                    kind="quiet"
                    icon="ChevronUp"
                    label={`Move ${c.name || i + 1} up`}
                    disabled={i === 0}
                    onClick={() => move(i, -1)}
                  />
                  <Button
                    kind="quiet"
                    icon="ChevronDown"
                    label={`Move ${c.name || i + 1} down`}
                    disabled={i === columns.length - 1}
                    onClick={() => move(i, 1)}
                  />
                  <Button
                    kind="quiet"
                    icon="X"
                    label={`Remove ${c.name || i + 1}`}
                    disabled={columns.length === 1}
                    onClick={() => setColumns(columns.filter((_, j) => j !== i))}
                  />
                </span>
                {c.type === "choice" && (
                  <textarea
                    class="column-options"
                    rows={3}
                    aria-label={`Options of ${c.name}`}
                    placeholder="One option per line"
                    value={c.options}
                    onInput={(e) => set(i, { options: e.currentTarget.value })}
                  />
                )}
                {issue && (
                  <small class="issue" role="alert">
                    {issue}
                  </small>
                )}
              </div>
            );
          })}
          <div class="row">
            <Button icon="Plus" onClick={() => setColumns([...columns, { name: "", type: "text", options: "" }])}>
              Add a column
            </Button>
          </div>
        </fieldset>
        <p class="muted small">Every row also has an id and the times when it was added and changed.</p>
        {gone.length > 0 && (
          <p class="card warn">
            Their values go with them:{" "}
            <b>
              <bdi>{gone.map((c) => c.name).join(", ")}</bdi>
            </b>
          </p>
        )}
        {Object.entries(issues)
          .filter(([f]) => !known.has(f) && !/^columns\[\d+\]\.options/.test(f))
          .map(([f, issue]) => (
            <p class="issue" role="alert">
              <code>{f}</code>: {issue}
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
