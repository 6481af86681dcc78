// One row of an answer: its values in full, which can be edited where the key of the row is known.
import { useState } from "preact/hooks";

import { asError, mayEdit, post, type Address, type API } from "../../data";
import { Button, confirm, CopyButton, Drawer, JsonTree, Switch, showToast } from "../../ui";
import { quoteName, type Answer, type Source } from "./statement";

/** New values by the index of their column; null is SQL's null. */
type Edits = Record<number, string | null>;

type Props = {
  at: Address<"agents/*/sql/execute">;
  answer: Answer;
  /** The index of the row in the answer. */
  row: number;
  from?: Source;
  close: () => void;
  step: (offset: number) => void;
  changed: () => void;
};

/** The drawer of one row. */
export function Record({ at, answer, row, from, close, step, changed }: Props) {
  const [edits, setEdits] = useState<Edits>({});
  const values = answer.rows[row];
  const editable = mayEdit.value ? from : undefined;
  const mayEditColumn = (index: number) => editable !== undefined && !editable.keys.includes(index);
  return (
    <Drawer title={`Row ${row + 1}`} close={close}>
      <div class="stack sql-row">
        <div class="row">
          <Button icon="ChevronUp" label="Row before" disabled={row === 0} onClick={() => step(-1)} />
          <Button
            icon="ChevronDown"
            label="Next row"
            disabled={row >= answer.rows.length - 1}
            onClick={() => step(1)}
          />
          <CopyButton
            text={() => JSON.stringify(Object.fromEntries(answer.columns.map((name, i) => [name, values[i]])), null, 2)}
          >
            Copy as JSON
          </CopyButton>
        </div>
        {mayEdit.value && !from && (
          <p class="muted small">To edit rows here, query a single table and include its key.</p>
        )}
        {answer.columns.map((name, index) => (
          <ValueField
            key={index}
            id={`value-${index}`}
            name={name}
            column={from?.table.columns.find((column) => column.name === name)}
            isKey={Boolean(from?.keys.includes(index))}
            stored={values[index]}
            value={index in edits ? edits[index] : values[index]}
            set={mayEditColumn(index) ? (value) => setEdits({ ...edits, [index]: value }) : undefined}
          />
        ))}
        {editable && (
          <RecordActions
            at={at}
            from={editable}
            columns={answer.columns}
            values={values}
            edits={edits}
            setEdits={setEdits}
            close={close}
            changed={changed}
          />
        )}
      </div>
    </Drawer>
  );
}

type ValueFieldProps = {
  id: string;
  name: string;
  /** The column of the table; undefined where it is not known. */
  column?: API.SQLColumn;
  isKey: boolean;
  stored: unknown;
  /** The value as edited. */
  value: unknown;
  /** Changes the value; undefined where it is fixed. */
  set?: (value: string | null) => void;
};

function ValueField({ id, name, column, isKey, stored, value, set }: ValueFieldProps) {
  return (
    <div class="field">
      <label for={id}>
        <bdi>{name}</bdi>{" "}
        <span class="muted small">
          {column?.type.toLowerCase()}
          {isKey ? " key" : ""}
        </span>
      </label>
      {set ? (
        <textarea
          id={id}
          class="code"
          rows={1}
          value={value === null ? "" : String(value)}
          placeholder={value === null ? "null" : ""}
          onInput={(e) => set(e.currentTarget.value)}
        />
      ) : (
        <output id={id} class="record-value">
          <FixedValue value={stored} />
        </output>
      )}
      {set && column?.nullable && (
        <Switch label="null" checked={value === null} onChange={(on) => set(on ? null : "")} />
      )}
      {column?.description && <small class="muted">{column.description}</small>}
    </div>
  );
}

/** A value that cannot be edited; JSON is shown as a tree. */
function FixedValue({ value }: { value: unknown }) {
  if (value === null) return <i class="muted">null</i>;
  const tree = jsonOf(value);
  return tree === undefined ? <bdi>{String(value)}</bdi> : <JsonTree value={tree} />;
}

/** The array or object that a text holds; undefined if it holds none. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

type RecordActionsProps = {
  at: Address<"agents/*/sql/execute">;
  from: Source;
  columns: string[];
  values: unknown[];
  edits: Edits;
  setEdits: (edits: Edits) => void;
  close: () => void;
  changed: () => void;
};

/** Saves what was edited in a row, or deletes the row. */
function RecordActions({ at, from, columns, values, edits, setEdits, close, changed }: RecordActionsProps) {
  const [failure, setFailure] = useState("");
  const edited = Object.keys(edits)
    .map(Number)
    .filter((index) => edits[index] !== values[index]);
  /** Runs a statement on the row, and reports whether it succeeded. */
  const execute = async ({ query, params }: Statement) => {
    setFailure("");
    try {
      const { changes } = await post(at, { query, params });
      if (changes === 0) throw new Error("Someone changed or deleted this row in the meantime. Run the query again.");
      changed();
      return true;
    } catch (error) {
      setFailure(asError(error).message);
      return false;
    }
  };
  const save = async () => {
    if (!(await execute(updateOf(from, columns, values, edits, edited)))) return;
    setEdits({});
    showToast("Saved");
  };
  const run = async () => {
    if (!(await execute(deleteOf(from, columns, values)))) return;
    close();
    showToast("Deleted");
  };
  const keys = from.keys.map((key) => values[key]).join(", ");
  const text = (
    <>
      The row of <bdi>{from.table.name}</bdi> with the key <bdi>{keys}</bdi> is deleted, with what belongs to it.
    </>
  );
  return (
    <div class="row end record-actions">
      {failure && (
        <p class="issue" role="alert">
          {failure}
        </p>
      )}
      <Button
        kind="danger"
        icon="Trash2"
        onClick={() => confirm({ title: "Delete this row?", text, action: "Delete", run })}
      >
        Delete
      </Button>
      <span class="grow" />
      {edited.length > 0 && <Button onClick={() => setEdits({})}>Undo</Button>}
      <Button kind="primary" disabled={edited.length === 0} onClick={save}>
        Save
      </Button>
    </div>
  );
}

type Statement = { query: string; params: unknown[] };

/** The condition on the key of a row, with one parameter for each column of the key. */
const keyCondition = (from: Source, columns: string[]) =>
  from.keys.map((key) => `${quoteName(columns[key])} = ?`).join(" AND ");

/** Updates the edited columns of a row, if they still have the values that are shown. */
function updateOf(from: Source, columns: string[], values: unknown[], edits: Edits, edited: number[]): Statement {
  const names = edited.map((index) => quoteName(columns[index]));
  const assignments = names.map((name) => `${name} = ?`).join(", ");
  const unchanged = names.map((name) => `${name} IS ?`).join(" AND ");
  const typeOf = (index: number) => from.table.columns.find(({ name }) => name === columns[index])?.type;
  const condition = `${keyCondition(from, columns)} AND ${unchanged}`;
  return {
    query: `UPDATE ${quoteName(from.table.name)} SET ${assignments} WHERE ${condition}`,
    params: [
      ...edited.map((index) => typed(edits[index], typeOf(index))),
      ...from.keys.map((key) => values[key]),
      ...edited.map((index) => values[index]),
    ],
  };
}

function deleteOf(from: Source, columns: string[], values: unknown[]): Statement {
  return {
    query: `DELETE FROM ${quoteName(from.table.name)} WHERE ${keyCondition(from, columns)}`,
    params: from.keys.map((key) => values[key]),
  };
}

/** The value of an edited text in the type of its column; a number that JavaScript cannot hold exactly stays text. */
function typed(text: string | null, type = "") {
  if (text === null || !/INT|REAL|NUM/i.test(type) || text.trim() === "") return text;
  const number = Number(text);
  if (!Number.isFinite(number) || Math.abs(number) > Number.MAX_SAFE_INTEGER) return text;
  return number;
}
