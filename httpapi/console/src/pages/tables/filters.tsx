// Conditions that rows must meet, kept in the address.
import { useEffect, useState } from "preact/hooks";

import { Button } from "../../ui";
import { rowOperators, unary, type RowCondition } from "../../parts/rowconditions";
import type { DataTable } from "../../parts/tables";

export function readFilters(text: string): RowCondition[] {
  try {
    const list = JSON.parse(text);
    return Array.isArray(list)
      ? list.filter((c) => c && typeof c.column === "string" && typeof c.operator === "string")
      : [];
  } catch {
    return [];
  }
}

/** The conditions of a list of rows; issues are what the service says of them, by their place among those that say something. */
export function Filters({
  table,
  filters,
  issues,
  set,
}: {
  table: DataTable;
  filters: RowCondition[];
  issues: Record<string, string>;
  set: (list: RowCondition[]) => void;
}) {
  const [list, setList] = useState(filters);
  const given = JSON.stringify(filters);
  useEffect(() => {
    if (JSON.stringify(done(list)) !== given) setList(filters);
  }, [given]);
  const change = (next: RowCondition[]) => {
    setList(next);
    set(done(next));
  };
  const edit = (i: number, part: Partial<RowCondition>) =>
    change(list.map((c, j) => (j === i ? { ...c, ...part } : c)));
  const choices = (c: RowCondition) =>
    ["equals", "not_equals"].includes(c.operator)
      ? table.columns.find((x) => x.name === c.column && x.type === "choice")?.options
      : undefined;
  const issueOf = (c: RowCondition) => {
    const place = done(list).indexOf(c);
    return Object.entries(issues).find(([field]) => field.startsWith(`where[${place}]`))?.[1];
  };
  return (
    <>
      {list.map((c, i) => (
        <div class="row nowrap filter" key={i}>
          <select
            aria-label={`Column ${i + 1}`}
            value={c.column}
            onChange={(e) => edit(i, { column: e.currentTarget.value })}
          >
            {[...table.columns.map((x) => x.name), "id", "created_at", "updated_at"].map((name) => (
              <option value={name} selected={name === c.column}>
                {name}
              </option>
            ))}
          </select>
          <select
            aria-label={`Operator ${i + 1}`}
            value={c.operator}
            onChange={(e) => edit(i, { operator: e.currentTarget.value })}
          >
            {rowOperators.map(([o, words]) => (
              <option value={o} selected={o === c.operator}>
                {words}
              </option>
            ))}
          </select>
          {!unary.has(c.operator) &&
            (choices(c) ? (
              <select
                aria-label={`Value ${i + 1}`}
                value={String(c.value ?? "")}
                onChange={(e) => edit(i, { value: e.currentTarget.value })}
              >
                <option value="" selected={!c.value}>
                  value
                </option>
                {choices(c)!.map((o) => (
                  <option value={o} selected={o === c.value}>
                    {o}
                  </option>
                ))}
              </select>
            ) : (
              <input
                aria-label={`Value ${i + 1}`}
                defaultValue={String(c.value ?? "")}
                placeholder="value"
                onChange={(e) => edit(i, { value: e.currentTarget.value })}
              />
            ))}
          <Button
            kind="quiet"
            icon="X"
            label={`Remove condition ${i + 1}`}
            onClick={() => change(list.filter((_, j) => j !== i))}
          />
          {issueOf(c) && (
            <small class="issue" role="alert">
              {issueOf(c)}
            </small>
          )}
        </div>
      ))}
      <Button
        icon="Plus"
        onClick={() =>
          setList([
            ...list,
            { column: table.columns[0].name, operator: table.columns[0].type === "text" ? "contains" : "equals" },
          ])
        }
      >
        Filter
      </Button>
    </>
  );
}

/** The conditions that say something. */
const done = (list: RowCondition[]) =>
  list.filter((c) => unary.has(c.operator) || (c.value !== undefined && c.value !== ""));
