// The fields of a node in its panel.
import { useState } from "preact/hooks";

import { lazy } from "../parts/lazy";
import { Badge, Button, Segments, TextArea, TextField } from "../ui";
import { catalog, type Data, fieldsOf, type NodeType, typeOf } from "./catalog";
import { IncomingWebhook } from "./components";
import { Fields, SchemaField } from "./fields";
import { type GraphNode, setMetadata } from "./graph";
import { JsonField } from "./jsonfield";
import { loadPasting } from "./lazy";
import { needText } from "./needs";
import type { Editor } from "./state";
import type { LoadTests } from "./trynode";
import type { WebhookWorkflow } from "./incomingwebhook";

/** Sends the request of a node once. */
const TryNode = lazy(() => import("./trynode").then((m) => m.TryNode));

/** The types of nodes that send a request, which can be tried. */
const requestTypes = new Set(["http-request", "operation"]);

/** The fields that every node has, which are shown under Reliability. */
const reliabilityFields = ["timeout_ms", "retry", "on_error", "at_most_once"];

/** The fields that are set together with one of several alternatives. */
const companions: Record<string, string[]> = { duration: ["unit"], event: ["timeout"], conditions: ["combinator"] };

type NodeProps = { editor: Editor; node: GraphNode };
type FindIssue = (path: string) => string | undefined;

/** Returns the problems of a node by the path of their field within its data. */
function issuesByPath(editor: Editor, node: GraphNode): Map<string, string> {
  const byPath = new Map<string, string>();
  for (const { field, issue } of editor.issuesByNode.value.get(node.id) ?? []) {
    const path = field.replace(/^nodes\[\d+\]\.?/, "").replace(/^data\.?/, "");
    if (!byPath.has(path)) byPath.set(path, issue);
  }
  return byPath;
}

/** Returns the problems of paths for which the panel has no field. */
function issuesWithoutField(issues: Map<string, string>, type?: NodeType): [string, string][] {
  if (!type) return [...issues];
  const names = [...fieldsOf(type.data).map(([name]) => name), ...reliabilityFields, "label", "disabled"];
  const hasField = (path: string) =>
    names.some((name) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`));
  return [...issues].filter(([path]) => !hasField(path));
}

/** All fields of a node. */
export function NodeFields({
  editor,
  node,
  workflow,
  tests,
}: NodeProps & { workflow: WebhookWorkflow; tests: LoadTests }) {
  const type = typeOf(node.type);
  const issues = issuesByPath(editor, node);
  const findIssue: FindIssue = (path) =>
    [...issues].find(([known]) => known === path || known.startsWith(`${path}[`))?.[1];
  const data = node.data ?? {};
  const editable = !editor.readonly.value;
  return (
    <div class="stack">
      {data.disabled && (
        <div class="card warn row">
          <span class="grow">Disabled: its input passes through.</span>
          <Button disabled={!editable} onClick={() => editor.setData(node.id, ["disabled"], undefined)}>
            Enable
          </Button>
        </div>
      )}
      {type && <TypeSummary type={type} />}
      {issuesWithoutField(issues, type).map(([path, issue]) => (
        <p class="issue" role="alert">
          {path && (
            <>
              <code>{path}</code>{" "}
            </>
          )}
          {issue}
        </p>
      ))}
      <TextField
        label="Name"
        value={typeof data.label === "string" ? data.label : ""}
        placeholder={editor.nameOf(node)}
        disabled={!editable}
        onInput={(label) => editor.setData(node.id, ["label"], label || undefined)}
      />
      <TypeFields editor={editor} node={node} type={type} findIssue={findIssue} />
      {requestTypes.has(node.type) && editable && <TryNode editor={editor} node={node} load={tests} />}
      {node.type === "trigger" && data.event === "webhook" && (
        <details class="more-fields">
          <summary>Call it with curl</summary>
          <div class="stack">
            <IncomingWebhook workflow={workflow} trigger={node} />
          </div>
        </details>
      )}
      {type && node.type !== "trigger" && <Reliability editor={editor} node={node} findIssue={findIssue} />}
      <NodeNote editor={editor} node={node} />
      <NodeId editor={editor} node={node} />
    </div>
  );
}

/** What a type of node does, and what it needs. */
function TypeSummary({ type }: { type: NodeType }) {
  return (
    <p class="muted small">
      {type.summary}
      {type.needs
        .map(needText)
        .filter(Boolean)
        .map((need) => (
          <>
            {" "}
            <Badge tone="warn">{need}</Badge>
          </>
        ))}
    </p>
  );
}

/** The fields of the node's type; all of its data as JSON if the type is unknown. */
function TypeFields({ editor, node, type, findIssue }: NodeProps & { type?: NodeType; findIssue: FindIssue }) {
  const data = node.data ?? {};
  const setData = (next: Data) => {
    const names = [...new Set([...Object.keys(next), ...Object.keys(data)])];
    const changed = names.filter((name) => next[name] !== data[name]);
    editor.changeNode(node.id, (current) => ({ ...current, data: { ...next } }), changed.join());
  };
  if (!type) return <JsonData editor={editor} node={node} />;
  const alternatives = type.data.oneOf?.map((option) => option.required[0]);
  if (!alternatives) return <Fields schema={type.data} value={data} onChange={setData} path="" issue={findIssue} />;
  return (
    <AlternativeFields
      type={type}
      alternatives={alternatives}
      data={data}
      readonly={editor.readonly.value}
      setData={setData}
      findIssue={findIssue}
    />
  );
}

type AlternativeProps = {
  type: NodeType;
  alternatives: string[];
  data: Data;
  readonly: boolean;
  setData: (data: Data) => void;
  findIssue: FindIssue;
};

/** Fields of a type of which a node has one: which one is chosen by name. */
function AlternativeFields({ type, alternatives, data, readonly, setData, findIssue }: AlternativeProps) {
  const [chosen, setChosen] = useState(alternatives.find((name) => data[name] !== undefined) ?? alternatives[0]);
  const properties = type.data.properties!;
  const others = alternatives.filter((name) => name !== chosen);
  const hidden = new Set([...others, ...others.flatMap((name) => companions[name] ?? [])]);
  const order = fieldsOf(type.data)
    .map(([name]) => name)
    .filter((name) => !others.includes(name));
  const shown = order.filter((name) => !hidden.has(name));
  const schema = {
    ...type.data,
    properties: Object.fromEntries(
      shown.map((name) => {
        const property = properties[name];
        return [name, alternatives.includes(name) ? { ...property, "x-advanced": false } : property];
      }),
    ),
    "x-order": order,
  };
  const choose = (name: string) => {
    setChosen(name);
    if (readonly) return;
    const next = { ...data };
    for (const other of alternatives) if (other !== name) delete next[other];
    setData(next);
  };
  return (
    <>
      <Segments
        label="By"
        value={chosen}
        options={alternatives.map((name) => [name, properties[name].title ?? name])}
        onChange={choose}
      />
      <Fields schema={schema} value={data} onChange={setData} path="" issue={findIssue} />
    </>
  );
}

/** The data of a node of a type that the catalogue does not know. */
function JsonData({ editor, node }: NodeProps) {
  return (
    <div class="field">
      <label>Data</label>
      <JsonField
        label="Data"
        rows={10}
        value={node.data ?? {}}
        onChange={(value) => {
          if (value && typeof value === "object" && !Array.isArray(value))
            editor.changeNode(node.id, (current) => ({ ...current, data: value as Data }), "data");
        }}
      />
    </div>
  );
}

/** The fields about failures, which every type has but triggers. */
function Reliability({ editor, node, findIssue }: NodeProps & { findIssue: FindIssue }) {
  const data = node.data ?? {};
  const fields = fieldsOf(catalog.value.common).filter(([name]) => reliabilityFields.includes(name));
  return (
    <details class="more-fields" open={reliabilityFields.some((name) => data[name] !== undefined || findIssue(name))}>
      <summary>Reliability</summary>
      <div class="stack">
        {fields.map(([name, schema]) => (
          <SchemaField
            key={name}
            name={name}
            schema={schema}
            value={data[name]}
            path={name}
            issue={findIssue}
            onChange={(value) => editor.setData(node.id, [name], value)}
          />
        ))}
      </div>
    </details>
  );
}

/** A note for people, which is shown below the node on the canvas. */
function NodeNote({ editor, node }: NodeProps) {
  const setNote = (text: string) =>
    editor.changeNode(node.id, (current) => setMetadata(current, { note: text || undefined }), "note");
  return (
    <details class="more-fields" open={Boolean(node.metadata?.note)}>
      <summary>Note</summary>
      <TextArea
        label="Note on the canvas"
        rows={2}
        value={typeof node.metadata?.note === "string" ? node.metadata.note : ""}
        disabled={editor.readonly.value}
        onInput={setNote}
      />
    </details>
  );
}

/** The id of the node, by which templates refer to it. */
function NodeId({ editor, node }: NodeProps) {
  const [typed, setTyped] = useState(node.id);
  const isTaken = editor.doc.value.nodes.some((other) => other.id === typed && other.id !== node.id);
  const rename = async () => {
    const id = typed.trim();
    if (!id || id === node.id || isTaken) {
      setTyped(node.id);
      return;
    }
    const { renameNode } = await loadPasting();
    editor.set(renameNode(editor.doc.value, node.id, id));
    editor.select([id]);
  };
  return (
    <details class="more-fields">
      <summary>ID in templates</summary>
      <div class="field">
        <label>ID</label>
        <input
          aria-label="ID"
          value={typed}
          readOnly={editor.readonly.value}
          onInput={(e) => setTyped(e.currentTarget.value)}
          onBlur={() => void rename()}
          onKeyDown={(e) => {
            if (e.key === "Enter") void rename();
          }}
        />
        {isTaken ? (
          <small class="issue">Another node already has this ID.</small>
        ) : (
          <small class="muted">
            Use its output in templates as <code>{`{{nodes.${node.id}}}`}</code>; they follow when it changes.
          </small>
        )}
      </div>
    </details>
  );
}
