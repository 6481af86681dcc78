// Conditions that rows must meet, kept in the address.
import { useEffect, useState } from "preact/hooks";

import { AddRow, Button } from "../../ui";
import { rowOperators, unary, type RowCondition } from "../../parts/rowconditions";
import type { DataTable } from "../../parts/tables";

/** Reads the conditions of an address; those that are not conditions are ignored. */
export function readFilters(text: string): RowCondition[] {
  try {
    const list = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return list.filter((c) => c && typeof c.column === "string" && typeof c.operator === "string");
  } catch {
    return [];
  }
}

/** The conditions that can be asked: those with a value, or whose operator needs none. */
const complete = (list: RowCondition[]) =>
  list.filter((c) => unary.has(c.operator) || (c.value !== undefined && c.value !== ""));

type Props = {
  table: DataTable;
  filters: RowCondition[];
  /** What the service found wrong, by index among the complete conditions. */
  issues: Record<string, string>;
  set: (list: RowCondition[]) => void;
};

/** The conditions of a list of rows, those too that are still being written. */
export function Filters({ table, filters, issues, set }: Props) {
  const [list, setList] = useState(filters);
  const given = JSON.stringify(filters);
  useEffect(() => {
    if (JSON.stringify(complete(list)) !== given) setList(filters);
  }, [given]);
  const change = (next: RowCondition[]) => {
    setList(next);
    set(complete(next));
  };
  const issueOf = (condition: RowCondition) => {
    const index = complete(list).indexOf(condition);
    return Object.entries(issues).find(([field]) => field.startsWith(`where[${index}]`))?.[1];
  };
  const add = () => {
    const { name, type } = table.columns[0];
    setList([...list, { column: name, operator: type === "text" ? "contains" : "equals" }]);
  };
  return (
    <>
      {list.map((condition, index) => (
        <Condition
          key={index}
          table={table}
          condition={condition}
          number={index + 1}
          issue={issueOf(condition)}
          set={(part) => change(list.map((c, i) => (i === index ? { ...c, ...part } : c)))}
          remove={() => change(list.filter((_, i) => i !== index))}
        />
      ))}
      <AddRow title="Filter" add={add} />
    </>
  );
}

type ConditionProps = {
  table: DataTable;
  condition: RowCondition;
  number: number;
  issue?: string;
  set: (part: Partial<RowCondition>) => void;
  remove: () => void;
};

function Condition({ table, condition, number, issue, set, remove }: ConditionProps) {
  const { column, operator } = condition;
  const names = [...table.columns.map((c) => c.name), "id", "created_at", "updated_at"];
  return (
    <div class="row nowrap filter">
      <select aria-label={`Column ${number}`} value={column} onChange={(e) => set({ column: e.currentTarget.value })}>
        {names.map((name) => (
          <option value={name} selected={name === column}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label={`Operator ${number}`}
        value={operator}
        onChange={(e) => set({ operator: e.currentTarget.value })}
      >
        {rowOperators.map(([name, label]) => (
          <option value={name} selected={name === operator}>
            {label}
          </option>
        ))}
      </select>
      {!unary.has(operator) && <ConditionValue table={table} condition={condition} number={number} set={set} />}
      <Button kind="quiet" icon="X" label={`Remove condition ${number}`} onClick={remove} />
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </div>
  );
}

/** The value of a condition: chosen where its column has options and is compared with one, else typed. */
function ConditionValue({ table, condition, number, set }: Omit<ConditionProps, "issue" | "remove">) {
  const { column, operator, value } = condition;
  const compares = operator === "equals" || operator === "not_equals";
  const options = compares && table.columns.find((c) => c.name === column && c.type === "choice")?.options;
  if (!options)
    return (
      <input
        aria-label={`Value ${number}`}
        defaultValue={String(value ?? "")}
        placeholder="value"
        onChange={(e) => set({ value: e.currentTarget.value })}
      />
    );
  return (
    <select
      aria-label={`Value ${number}`}
      value={String(value ?? "")}
      onChange={(e) => set({ value: e.currentTarget.value })}
    >
      <option value="" selected={!value}>
        value
      </option>
      {options.map((option) => (
        <option value={option} selected={option === value}>
          {option}
        </option>
      ))}
    </select>
  );
}
