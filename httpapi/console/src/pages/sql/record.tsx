// One row of an answer: its values in full, and changed by its key.
import { useState } from "preact/hooks";

import { type Address, mayEdit, post, asError } from "../../data";
import { Button, confirm, CopyButton, Drawer, JsonTree, Switch, tell } from "../../ui";
import { quoteName, type Answer, type Source } from "./statement";

const jsonOf = (v: unknown) => {
  if (typeof v !== "string" || !/^\s*[[{]/.test(v)) return undefined;
  try {
    return JSON.parse(v);
  } catch {
    return undefined;
  }
};

type Props = {
  at: Address<"agents/*/sql/execute">;
  answer: Answer;
  row: number;
  from?: Source;
  close: () => void;
  step: (by: number) => void;
  changed: () => void;
};

export function Record({ at, answer, row, from, close, step, changed }: Props) {
  const values = answer.rows[row];
  const [edits, setEdits] = useState<Record<number, string | null>>({});
  const [wrong, setWrong] = useState("");
  const column = (i: number) => from?.table.columns.find((c) => c.name === answer.columns[i]);
  const may = mayEdit.value && from;
  const where = from ? from.keys.map((k) => `${quoteName(answer.columns[k])} = ?`).join(" AND ") : "";
  const key = from ? from.keys.map((k) => values[k]) : [];
  const dirty = Object.keys(edits)
    .map(Number)
    .filter((i) => edits[i] !== values[i]);
  const send = async (query: string, params: unknown[]) => {
    setWrong("");
    try {
      const { changes } = await post(at, { query, params });
      if (changes === 0) throw new Error("Someone changed or deleted this row in the meantime. Run the query again.");
      changed();
      return true;
    } catch (error) {
      setWrong(asError(error).message);
      return false;
    }
  };
  const save = async () => {
    const set = dirty.map((i) => `${quoteName(answer.columns[i])} = ?`).join(", ");
    const same = dirty.map((i) => `${quoteName(answer.columns[i])} IS ?`).join(" AND ");
    const new_ = dirty.map((i) => typed(edits[i], column(i)?.type));
    if (
      await send(`UPDATE ${quoteName(from!.table.name)} SET ${set} WHERE ${where} AND ${same}`, [
        ...new_,
        ...key,
        ...dirty.map((i) => values[i]),
      ])
    ) {
      setEdits({});
      tell("Saved");
    }
  };
  const remove = () =>
    confirm({
      title: "Delete this row?",
      text: (
        <>
          The row of <bdi>{from!.table.name}</bdi> with the key <bdi>{key.join(", ")}</bdi> is deleted, with what
          belongs to it.
        </>
      ),
      action: "Delete",
      run: async () => {
        if (await send(`DELETE FROM ${quoteName(from!.table.name)} WHERE ${where}`, key)) {
          close();
          tell("Deleted");
        }
      },
    });
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
            text={() => JSON.stringify(Object.fromEntries(answer.columns.map((c, i) => [c, values[i]])), null, 2)}
          >
            Copy as JSON
          </CopyButton>
        </div>
        {mayEdit.value && !from && (
          <p class="muted small">To edit rows here, query a single table and include its key.</p>
        )}
        {answer.columns.map((c, i) => {
          const fixed = !may || from.keys.includes(i);
          const value = i in edits ? edits[i] : values[i];
          const tree = fixed ? jsonOf(values[i]) : undefined;
          const id = `value-${i}`;
          return (
            <div class="field" key={i}>
              <label for={id}>
                <bdi>{c}</bdi>{" "}
                <span class="muted small">
                  {column(i)?.type.toLowerCase()}
                  {from?.keys.includes(i) ? " key" : ""}
                </span>
              </label>
              {fixed ? (
                <output id={id} class="record-value">
                  {values[i] === null ? (
                    <i class="muted">null</i>
                  ) : tree !== undefined ? (
                    <JsonTree value={tree} />
                  ) : (
                    <bdi>{String(values[i])}</bdi>
                  )}
                </output>
              ) : (
                <textarea
                  id={id}
                  class="code"
                  rows={1}
                  value={value === null ? "" : String(value)}
                  placeholder={value === null ? "null" : ""}
                  onInput={(e) => setEdits({ ...edits, [i]: e.currentTarget.value })}
                />
              )}
              {!fixed && column(i)?.nullable && (
                <Switch
                  label="null"
                  checked={value === null}
                  onChange={(on) => setEdits({ ...edits, [i]: on ? null : "" })}
                />
              )}
              {column(i)?.description && <small class="muted">{column(i)!.description}</small>}
            </div>
          );
        })}
        {may && (
          <div class="row end record-actions">
            {wrong && (
              <p class="issue" role="alert">
                {wrong}
              </p>
            )}
            <Button kind="danger" icon="Trash2" onClick={remove}>
              Delete
            </Button>
            <span class="grow" />
            {dirty.length > 0 && <Button onClick={() => setEdits({})}>Undo</Button>}
            <Button kind="primary" disabled={dirty.length === 0} onClick={save}>
              Save
            </Button>
          </div>
        )}
      </div>
    </Drawer>
  );
}

/** What was typed as the column's type has it. */
function typed(text: string | null, type = "") {
  if (text === null || !/INT|REAL|NUM/i.test(type) || text.trim() === "" || !Number.isFinite(Number(text))) return text;
  return Math.abs(Number(text)) > Number.MAX_SAFE_INTEGER ? text : Number(text);
}
