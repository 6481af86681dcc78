// Builders of conditions and of the cases of a switch.
import { useContext } from "preact/hooks";

import { Button, Segments } from "../ui";
import { rowOperators, unary, type RowCondition } from "../parts/rowconditions";
import { hasTemplate } from "./template";
import { NodeContext, ValueField } from "./templatefield";
import { JsonField } from "./jsonfield";

type Condition = { left?: unknown; operator?: string; right?: unknown };

const operators: [string, string][] = [
  ["equals", "equals"],
  ["not_equals", "does not equal"],
  ["contains", "contains"],
  ["not_contains", "does not contain"],
  ["starts_with", "starts with"],
  ["ends_with", "ends with"],
  ["matches", "matches the pattern"],
  ["gt", "is greater than"],
  ["gte", "is at least"],
  ["lt", "is less than"],
  ["lte", "is at most"],
  ["in", "is one of"],
  ["not_in", "is none of"],
  ["is_empty", "is empty"],
  ["is_not_empty", "is not empty"],
  ["is_true", "is true"],
  ["is_false", "is false"],
  ["exists", "exists"],
  ["not_exists", "does not exist"],
];
const single = new Set(["is_empty", "is_not_empty", "is_true", "is_false", "exists", "not_exists"]);

/** Reads what was typed: numbers, true, false and lists as such, anything else as text. */
function typed(t: string): unknown {
  if (hasTemplate(t) || !/^(-?\d+(\.\d+)?|true|false|null|\[.*\])$/s.test(t.trim())) return t;
  try {
    return JSON.parse(t);
  } catch {
    return t;
  }
}

export function ConditionsField({
  value,
  onChange,
  path,
}: {
  value: unknown;
  onChange: (v: unknown) => void;
  path: string;
}) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const list: Condition[] = value ?? [];
  const set = (i: number, change: Condition) => onChange(list.map((c, j) => (j === i ? { ...c, ...change } : c)));
  return (
    <div class="conditions">
      {list.map((c, i) => (
        <div class="condition" key={i} data-field={`${path}[${i}]`}>
          <ValueField
            value={c?.left}
            read={typed}
            onChange={(left) => set(i, { left })}
            label={`Value ${i + 1}`}
            placeholder="{{value}}"
          />
          <div class="row nowrap">
            <select
              class="grow"
              aria-label={`Operator ${i + 1}`}
              disabled={readonly}
              value={c?.operator}
              onChange={(e) => set(i, { operator: e.currentTarget.value })}
            >
              {!operators.some(([o]) => o === c?.operator) && (
                <option value={c?.operator} selected>
                  {c?.operator ?? "–"}
                </option>
              )}
              {operators.map(([o, words]) => (
                <option value={o} selected={o === c?.operator}>
                  {words}
                </option>
              ))}
            </select>
            {!readonly && (
              <Button
                kind="quiet"
                icon="X"
                label={`Remove condition ${i + 1}`}
                onClick={() => onChange(list.length > 1 ? list.filter((_, j) => j !== i) : undefined)}
              />
            )}
          </div>
          {!single.has(c?.operator ?? "") && (
            <ValueField
              value={c?.right}
              read={typed}
              onChange={(right) => set(i, { right })}
              label={`Compared with ${i + 1}`}
            />
          )}
        </div>
      ))}
      {!readonly && (
        <div class="row">
          <Button icon="Plus" onClick={() => onChange([...list, { left: "", operator: "equals", right: "" }])}>
            Add condition
          </Button>
        </div>
      )}
    </div>
  );
}

/** Conditions on columns of a table. */
export function RowConditionsField({
  value,
  onChange,
  path,
}: {
  value: unknown;
  onChange: (v: unknown) => void;
  path: string;
}) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const list: RowCondition[] = value ?? [];
  const set = (i: number, change: Partial<RowCondition>) =>
    onChange(list.map((c, j) => (j === i ? { ...c, ...change } : c)));
  return (
    <div class="conditions">
      {list.map((c, i) => (
        <div class="condition" key={i} data-field={`${path}[${i}]`}>
          <input
            value={c?.column ?? ""}
            aria-label={`Column ${i + 1}`}
            placeholder="column"
            readOnly={readonly}
            onInput={(e) => set(i, { column: e.currentTarget.value })}
          />
          <div class="row nowrap">
            <select
              class="grow"
              aria-label={`Operator ${i + 1}`}
              disabled={readonly}
              value={c?.operator}
              onChange={(e) => set(i, { operator: e.currentTarget.value })}
            >
              {rowOperators.map(([o, words]) => (
                <option value={o} selected={o === c?.operator}>
                  {words}
                </option>
              ))}
            </select>
            {!readonly && (
              <Button
                kind="quiet"
                icon="X"
                label={`Remove condition ${i + 1}`}
                onClick={() => onChange(list.length > 1 ? list.filter((_, j) => j !== i) : undefined)}
              />
            )}
          </div>
          {!unary.has(c?.operator) && (
            <ValueField
              value={c?.value}
              read={typed}
              onChange={(value) => set(i, { value })}
              label={`Compared with ${i + 1}`}
            />
          )}
        </div>
      ))}
      {!readonly && (
        <div class="row">
          <Button icon="Plus" onClick={() => onChange([...list, { column: "", operator: "equals", value: "" }])}>
            Add condition
          </Button>
        </div>
      )}
    </div>
  );
}

type Case = { id?: string; value?: unknown; conditions?: Condition[]; combinator?: string };

/** The cases of a switch. Each is a way out; a renamed one keeps its edges. */
export function CasesField({
  value,
  onChange,
  path,
}: {
  value: unknown;
  onChange: (v: unknown) => void;
  path: string;
}) {
  const { editor, node, readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const list: Case[] = value ?? [];
  const set = (i: number, change: Case) => onChange(list.map((c, j) => (j === i ? { ...c, ...change } : c)));
  const rename = (i: number, id: string) => {
    const old = list[i].id;
    const cases = list.map((c, j) => (j === i ? { ...c, id } : c));
    const doc = editor.doc.value;
    const own = old && !list.some((c, j) => j !== i && c.id === old);
    editor.change(
      {
        nodes: doc.nodes.map((n) => (n.id === node.id ? { ...n, data: { ...n.data, cases } } : n)),
        edges: own
          ? doc.edges.map((e) => (e.source === node.id && e.sourceHandle === old ? { ...e, sourceHandle: id } : e))
          : doc.edges,
      },
      `${node.id}/cases/${i}/id`,
    );
  };
  const add = () => {
    let n = list.length + 1;
    while (list.some((c) => c.id === `case${n}`)) n++;
    onChange([...list, { id: `case${n}`, value: "" }]);
  };
  return (
    <div class="conditions">
      {list.map((c, i) => (
        <div class="condition" key={i} data-field={`${path}[${i}]`}>
          <div class="row nowrap">
            <input
              class="grow"
              value={c?.id ?? ""}
              aria-label={`Name of case ${i + 1}`}
              readOnly={readonly}
              onInput={(e) => rename(i, e.currentTarget.value)}
            />
            {!readonly && (
              <Button
                kind="quiet"
                icon="X"
                label={`Remove case ${i + 1}`}
                onClick={() => onChange(list.filter((_, j) => j !== i))}
              />
            )}
          </div>
          {!readonly && (
            <Segments
              label={`Case ${i + 1} by`}
              value={c?.conditions ? "conditions" : "value"}
              options={[
                ["value", "Value"],
                ["conditions", "Conditions"],
              ]}
              onChange={(v) =>
                onChange(
                  list.map((x, j) =>
                    j !== i
                      ? x
                      : v === "value"
                        ? { id: x.id, value: "" }
                        : { id: x.id, conditions: [{ left: "", operator: "equals", right: "" }] },
                  ),
                )
              }
            />
          )}
          {c?.conditions ? (
            <ConditionsField
              value={c.conditions}
              path={`${path}[${i}].conditions`}
              onChange={(v) => set(i, { conditions: (v ?? []) as Condition[] })}
            />
          ) : (
            <ValueField
              value={c?.value}
              read={typed}
              onChange={(value) => set(i, { value })}
              label={`Value of case ${i + 1}`}
            />
          )}
          {(c?.conditions?.length ?? 0) > 1 && !readonly && (
            <Segments
              label="Combine by"
              value={c.combinator ?? "and"}
              options={[
                ["and", "All hold"],
                ["or", "One holds"],
              ]}
              onChange={(v) => set(i, { combinator: v })}
            />
          )}
        </div>
      ))}
      {!readonly && (
        <div class="row">
          <Button icon="Plus" onClick={add}>
            Add case
          </Button>
        </div>
      )}
    </div>
  );
}
