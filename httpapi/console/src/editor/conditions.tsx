// Fields of conditions: on values, on columns of a table, and in the cases of a switch.
import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";

import { AddRow, Button, Segments } from "../ui";
import { type RowCondition, rowOperators, unary as unaryRowOperators } from "../parts/rowconditions";
import type { GraphNode } from "./graph";
import { JsonField, parseOrText } from "./jsonfield";
import type { Editor } from "./state";
import { hasTemplate } from "./template";
import { NodeContext, ValueField } from "./templatefield";

type FieldProps = {
  value: unknown;
  onChange: (value: unknown) => void;
  path: string;
  /** What the conditions belong to, for the names of their controls. */
  of?: string;
};

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
/** The operators that compare with nothing. */
const unaryOperators = new Set(["is_empty", "is_not_empty", "is_true", "is_false", "exists", "not_exists"]);

/** Reads a value: numbers, true, false, null and lists as such, other text as text. */
function readValue(text: string): unknown {
  const isJson = /^(-?\d+(\.\d+)?|true|false|null|\[.*\])$/s.test(text.trim());
  return isJson && !hasTemplate(text) ? parseOrText(text) : text;
}

/** Returns a list with a change to one of its items. */
const changeItem = <T extends object>(list: T[], index: number, change: Partial<T>): T[] =>
  list.map((item, i) => (i === index ? { ...item, ...change } : item));

/** Returns a list without one of its items. */
const removeItem = <T,>(list: T[], index: number): T[] => list.filter((_, i) => i !== index);

type ComparisonProps = {
  path: string;
  number: string;
  /** What is compared. */
  children: ComponentChildren;
  operators: readonly (readonly [operator: string, title: string])[];
  operator?: string;
  setOperator: (operator: string) => void;
  /** What it is compared with; null if the operator needs nothing. */
  operand: ComponentChildren;
  remove: () => void;
};

/** One condition: a value, an operator, and what the value is compared with. */
function Comparison(props: ComparisonProps) {
  const { path, number, children, operators, operator, setOperator, operand, remove } = props;
  const { readonly } = useContext(NodeContext);
  const isKnown = operators.some(([known]) => known === operator);
  return (
    <div class="condition" data-field={path}>
      {children}
      <div class="row nowrap">
        <select
          class="grow"
          aria-label={`Operator ${number}`}
          disabled={readonly}
          value={operator}
          onChange={(e) => setOperator(e.currentTarget.value)}
        >
          {!isKnown && (
            <option value={operator} selected>
              {operator ?? "–"}
            </option>
          )}
          {operators.map(([known, title]) => (
            <option value={known} selected={known === operator}>
              {title}
            </option>
          ))}
        </select>
        {!readonly && <Button kind="quiet" icon="X" label={`Remove condition ${number}`} onClick={remove} />}
      </div>
      {operand}
    </div>
  );
}

/** Conditions on values. */
export function ConditionsField({ value, onChange, path, of }: FieldProps) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const list: Condition[] = value ?? [];
  const numberOf = (index: number) => (of ? `${index + 1} of ${of}` : String(index + 1));
  const change = (index: number, changed: Condition) => onChange(changeItem(list, index, changed));
  const remove = (index: number) => onChange(list.length > 1 ? removeItem(list, index) : undefined);
  return (
    <div class="conditions">
      {list.map((condition, index) => (
        <Comparison
          key={index}
          path={`${path}[${index}]`}
          number={numberOf(index)}
          operators={operators}
          operator={condition?.operator}
          setOperator={(operator) => change(index, { operator })}
          operand={
            !unaryOperators.has(condition?.operator ?? "") && (
              <ValueField
                value={condition?.right}
                read={readValue}
                onChange={(right) => change(index, { right })}
                label={`Compared with ${numberOf(index)}`}
              />
            )
          }
          remove={() => remove(index)}
        >
          <ValueField
            value={condition?.left}
            read={readValue}
            onChange={(left) => change(index, { left })}
            label={`Value ${numberOf(index)}`}
            placeholder="{{value}}"
          />
        </Comparison>
      ))}
      {!readonly && <AddRow title="Add condition" of={of} add={() => onChange([...list, newCondition()])} />}
    </div>
  );
}

const newCondition = (): Condition => ({ left: "", operator: "equals", right: "" });

/** Conditions on columns of a table. */
export function RowConditionsField({ value, onChange, path }: FieldProps) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const list: RowCondition[] = value ?? [];
  const change = (index: number, changed: Partial<RowCondition>) => onChange(changeItem(list, index, changed));
  const remove = (index: number) => onChange(list.length > 1 ? removeItem(list, index) : undefined);
  return (
    <div class="conditions">
      {list.map((condition, index) => (
        <Comparison
          key={index}
          path={`${path}[${index}]`}
          number={String(index + 1)}
          operators={rowOperators}
          operator={condition?.operator}
          setOperator={(operator) => change(index, { operator })}
          operand={
            !unaryRowOperators.has(condition?.operator) && (
              <ValueField
                value={condition?.value}
                read={readValue}
                onChange={(changed) => change(index, { value: changed })}
                label={`Compared with ${index + 1}`}
              />
            )
          }
          remove={() => remove(index)}
        >
          <input
            value={condition?.column ?? ""}
            aria-label={`Column ${index + 1}`}
            placeholder="column"
            readOnly={readonly}
            onInput={(e) => change(index, { column: e.currentTarget.value })}
          />
        </Comparison>
      ))}
      {!readonly && (
        <AddRow title="Add condition" add={() => onChange([...list, { column: "", operator: "equals", value: "" }])} />
      )}
    </div>
  );
}

type Case = { id?: string; value?: unknown; conditions?: Condition[]; combinator?: string };

/** Renames a case of a node in its data, and in the edges that leave the node by it. */
function renameCase(editor: Editor, node: GraphNode, cases: Case[], index: number, id: string) {
  const { nodes, edges } = editor.doc.value;
  const oldId = cases[index].id;
  const renamed = changeItem(cases, index, { id });
  const isUnique = oldId && !cases.some((other, i) => i !== index && other.id === oldId);
  editor.change(
    {
      nodes: nodes.map((other) =>
        other.id === node.id ? { ...other, data: { ...other.data, cases: renamed } } : other,
      ),
      edges: isUnique
        ? edges.map((edge) =>
            edge.source === node.id && edge.sourceHandle === oldId ? { ...edge, sourceHandle: id } : edge,
          )
        : edges,
    },
    `${node.id}/cases/${index}/id`,
  );
}

/** Returns an id that no case has: case1, case2, … */
function freeCaseId(cases: Case[]): string {
  let number = cases.length + 1;
  while (cases.some((other) => other.id === `case${number}`)) number++;
  return `case${number}`;
}

/** The cases of a switch. Each is an output of the node; a renamed one keeps its edges. */
export function CasesField({ value, onChange, path }: FieldProps) {
  const { editor, node, readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  const cases: Case[] = value ?? [];
  return (
    <div class="conditions">
      {cases.map((item, index) => (
        <CaseField
          key={index}
          item={item}
          number={index + 1}
          path={`${path}[${index}]`}
          rename={(id) => renameCase(editor, node, cases, index, id)}
          change={(changed) => onChange(changeItem(cases, index, changed))}
          replace={(next) => onChange(cases.map((other, i) => (i === index ? next : other)))}
          remove={() => onChange(removeItem(cases, index))}
        />
      ))}
      {!readonly && <AddRow title="Add case" add={() => onChange([...cases, { id: freeCaseId(cases), value: "" }])} />}
    </div>
  );
}

type CaseProps = {
  item: Case;
  number: number;
  path: string;
  rename: (id: string) => void;
  change: (changed: Case) => void;
  replace: (next: Case) => void;
  remove: () => void;
};

function CaseField({ item, number, path, rename, change, replace, remove }: CaseProps) {
  const { readonly } = useContext(NodeContext);
  const setKind = (kind: string) =>
    replace(kind === "value" ? { id: item.id, value: "" } : { id: item.id, conditions: [newCondition()] });
  return (
    <div class="condition" data-field={path}>
      <div class="row nowrap">
        <input
          class="grow"
          value={item?.id ?? ""}
          aria-label={`Name of case ${number}`}
          readOnly={readonly}
          onInput={(e) => rename(e.currentTarget.value)}
        />
        {!readonly && <Button kind="quiet" icon="X" label={`Remove case ${number}`} onClick={remove} />}
      </div>
      {!readonly && (
        <Segments
          label={`Case ${number} by`}
          value={item?.conditions ? "conditions" : "value"}
          options={[
            ["value", "Value"],
            ["conditions", "Conditions"],
          ]}
          onChange={setKind}
        />
      )}
      {item?.conditions ? (
        <ConditionsField
          value={item.conditions}
          path={`${path}.conditions`}
          of={`case ${number}`}
          onChange={(conditions) => change({ conditions: (conditions ?? []) as Condition[] })}
        />
      ) : (
        <ValueField
          value={item?.value}
          read={readValue}
          onChange={(changed) => change({ value: changed })}
          label={`Value of case ${number}`}
        />
      )}
      {(item?.conditions?.length ?? 0) > 1 && !readonly && (
        <Segments
          label={`Combine case ${number} by`}
          value={item.combinator ?? "and"}
          options={[
            ["and", "All hold"],
            ["or", "One holds"],
          ]}
          onChange={(combinator) => change({ combinator })}
        />
      )}
    </div>
  );
}
