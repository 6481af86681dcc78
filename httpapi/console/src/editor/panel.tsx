// The panel of the node that is selected: its fields, what flows in, what came out, and its JSON.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { asError } from "../data";
import {
  Badge,
  Button,
  Icon,
  JsonTree,
  Menu,
  Name,
  Segments,
  span,
  tell,
  TextArea,
  TextField,
  type MenuItem,
} from "../ui";
import {
  catalog,
  type Data,
  type Editor,
  fieldsOf,
  HookCall,
  needText,
  type Step,
  TryNode,
  typeName,
  typeOf,
} from "./base";
import { Fields, SchemaField } from "./fields";
import { JsonField } from "./jsonfield";
import type { Hooked } from "./hook";
import { PathTree } from "./pathtree";
import { renameNode } from "./rename";
import { sampleOf, scopeOf } from "./template";
import { NodeContext } from "./templatefield";
import type { LoadTests } from "./trynode";

export { fill, suggest } from "./template";

/** The types of nodes that send a request, which can be tried. */
const requests = new Set(["http-request", "operation"]);

/** The fields that every node has, which are shown under Reliability. */
const reliability = ["timeout_ms", "retry", "on_error", "at_most_once"];

type Tab = "fields" | "input" | "output" | "json";

export type PanelActions = {
  duplicate: (id: string) => void;
  remove: (ids: Set<string>) => void;
  test?: (mode: "to" | "node", id: string) => void;
  /** What tries a request beside the tests of the page. */ tests: LoadTests;
  close: () => void;
};

export function NodePanel({
  editor,
  node,
  workflow,
  actions,
}: {
  editor: Editor;
  node: Step;
  workflow: Hooked;
  actions: PanelActions;
}) {
  const [tab, setTab] = useState<Tab>("fields");
  const ref = useRef<HTMLElement>(null);
  const type = typeOf(node.type);
  const readonly = editor.readonly.value;
  const context = useMemo(() => ({ editor, node, readonly }), [editor, node, readonly]);
  const focus = editor.focus.value;
  useEffect(() => {
    if (!focus) return;
    editor.focus.value = null;
    setTab("fields");
    requestAnimationFrame(() => focusField(ref.current, focus.field));
  }, [focus]);
  const issues = editor.issuesOf.value.get(node.id) ?? [];
  const pinned = node.metadata?.pin !== undefined;
  const pin = () =>
    editor.changeNode(node.id, (n) => {
      const { pin: _, ...metadata } = n.metadata ?? {};
      if (pinned) {
        const { metadata: __, ...rest } = n;
        return Object.keys(metadata).length ? { ...n, metadata } : (rest as Step);
      }
      return { ...n, metadata: { ...metadata, pin: sampleOf(editor, n) } };
    });
  const items: MenuItem[] = [
    { label: "Duplicate", icon: "Copy", run: () => actions.duplicate(node.id) },
    {
      label: node.data?.disabled ? "Enable" : "Disable",
      icon: "Power",
      run: () => editor.setData(node.id, ["disabled"], node.data?.disabled ? undefined : true),
    },
    { label: pinned ? "Remove the pin" : "Pin its output", icon: "Pin", run: pin },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, run: () => actions.remove(new Set([node.id])) },
  ];
  return (
    <aside ref={ref} class="editor-panel" aria-label={`Node ${editor.nameOf(node)}`}>
      <header class="panel-head">
        <span class={`node-icon group-${(type?.group ?? "none").toLowerCase()}`}>
          <Icon name={type?.icon ?? "CircleHelp"} size={18} />
        </span>
        <div class="grow">
          <h2 class="clip">
            <Name>{editor.nameOf(node)}</Name>
          </h2>
          <p class="muted small clip">
            {node.data?.label && (
              <>
                <Name>{typeName(node.type)}</Name> ·{" "}
              </>
            )}
            <code>{node.id}</code>
          </p>
        </div>
        {!readonly && actions.test && (
          <Button icon="Play" kind="quiet" label="Test this node" onClick={() => actions.test!("node", node.id)} />
        )}
        {!readonly && <Menu label="Node actions" items={items} />}
        <Button kind="quiet" icon="X" label="Close" onClick={actions.close} />
      </header>
      <nav class="tabs" aria-label="Node">
        {(
          [
            ["fields", "Fields"],
            ["input", "Input"],
            ["output", "Output"],
            ["json", "JSON"],
          ] as [Tab, string][]
        ).map(([t, title]) => (
          <button type="button" aria-current={tab === t ? "page" : undefined} onClick={() => setTab(t)}>
            {title}
            {t === "fields" && issues.length > 0 && <span class="tab-count">{issues.length}</span>}
          </button>
        ))}
      </nav>
      <div class="panel-body">
        <NodeContext.Provider value={context}>
          {tab === "fields" && (
            <NodeFields key={node.id} editor={editor} node={node} workflow={workflow} tests={actions.tests} />
          )}
          {tab === "input" && <Input editor={editor} node={node} />}
          {tab === "output" && <Output editor={editor} node={node} pin={pin} />}
          {tab === "json" && <NodeJson key={node.id} editor={editor} node={node} />}
        </NodeContext.Provider>
      </div>
    </aside>
  );
}

/** Focuses a code editor, which may still be loading. */
function focusCode(host: Element, tries = 20) {
  const inside = [host, ...host.querySelectorAll("*")]
    .map((e) => e.shadowRoot?.querySelector<HTMLElement>("[contenteditable]"))
    .find(Boolean);
  if (inside) inside.focus();
  else if (tries) setTimeout(() => focusCode(host, tries - 1), 50);
}

/** Focuses the control of a field, or of what holds it. */
function focusField(root: HTMLElement | null, field: string) {
  for (let path = field.replace(/^data\.?/, ""); root; path = path.replace(/(^|\.|\[)[^.[]*$/, "")) {
    const found = path && root.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
    if (found) {
      for (let d = found.closest("details"); d; d = d.parentElement?.closest("details") ?? null) d.open = true;
      const code = found.querySelector(".code-editor");
      if (code) focusCode(code);
      else found.querySelector<HTMLElement>("textarea, input, select, button")?.focus();
      found.scrollIntoView({ block: "center" });
      return;
    }
    if (!path) break;
  }
  root?.querySelector<HTMLElement>(".panel-body :is(textarea, input, select)")?.focus();
}

/** What is wrong with a field: data.url and the paths below it that have no field of their own. */
function issueFinder(editor: Editor, node: Step) {
  const own = new Map<string, string>();
  for (const i of editor.issuesOf.value.get(node.id) ?? []) {
    const field = i.field.replace(/^nodes\[\d+\]\.?/, "").replace(/^data\.?/, "");
    if (!own.has(field)) own.set(field, i.issue);
  }
  const known = new Set<string>();
  return {
    own,
    find: (path: string) => {
      const hit = [...own].find(([f]) => f === path || f.startsWith(`${path}[`));
      if (hit) known.add(hit[0]);
      return hit?.[1];
    },
    known,
  };
}

function NodeFields({
  editor,
  node,
  workflow,
  tests,
}: {
  editor: Editor;
  node: Step;
  workflow: Hooked;
  tests: LoadTests;
}) {
  const type = typeOf(node.type);
  const common = catalog.value.common;
  const issues = issueFinder(editor, node);
  const data = node.data ?? {};
  const set = (next: Record<string, unknown>) => {
    const changed = [...new Set([...Object.keys(next), ...Object.keys(data)])].filter((k) => next[k] !== data[k]);
    editor.changeNode(node.id, (n) => ({ ...n, data: { ...next } }), changed.join());
  };
  const shown = new Set(fieldsOf(type?.data).map(([n]) => n));
  const rest = [...issues.own].filter(
    ([f]) =>
      !type ||
      ![...shown, ...reliability, "label", "disabled"].some(
        (s) => f === s || f.startsWith(`${s}.`) || f.startsWith(`${s}[`),
      ),
  );
  const oneOf = type?.data.oneOf?.map((o) => o.required[0]);
  return (
    <div class="stack">
      {node.data?.disabled && (
        <div class="card warn row">
          <span class="grow">Disabled: its input passes through.</span>
          <Button disabled={editor.readonly.value} onClick={() => editor.setData(node.id, ["disabled"], undefined)}>
            Enable
          </Button>
        </div>
      )}
      {type && (
        <p class="muted small">
          {type.summary}
          {type.needs
            .map(needText)
            .filter(Boolean)
            .map((n) => (
              <>
                {" "}
                <Badge tone="warn">{n}</Badge>
              </>
            ))}
        </p>
      )}
      {rest.map(([field, issue]) => (
        <p class="issue" role="alert">
          {field && (
            <>
              <code>{field}</code>{" "}
            </>
          )}
          {issue}
        </p>
      ))}
      <TextField
        label="Name"
        value={typeof data.label === "string" ? data.label : ""}
        placeholder={editor.nameOf(node)}
        disabled={editor.readonly.value}
        onInput={(v) => editor.setData(node.id, ["label"], v || undefined)}
      />
      {!type && <JsonData editor={editor} node={node} />}
      {type && oneOf ? (
        <OneOf names={oneOf} editor={editor} node={node} set={set} find={issues.find} />
      ) : (
        type && <Fields schema={type.data} value={data} onChange={set} path="" issue={issues.find} />
      )}
      {requests.has(node.type) && !editor.readonly.value && <TryNode editor={editor} node={node} load={tests} />}
      {node.type === "trigger" && data.event === "webhook" && (
        <details class="more-fields">
          <summary>Call it with curl</summary>
          <div class="stack">
            <HookCall workflow={workflow} trigger={node} />
          </div>
        </details>
      )}
      {type && node.type !== "trigger" && (
        <details class="more-fields" open={reliability.some((f) => data[f] !== undefined)}>
          <summary>Reliability</summary>
          <div class="stack">
            {fieldsOf(common)
              .filter(([n]) => reliability.includes(n))
              .map(([name, schema]) => (
                <SchemaField
                  key={name}
                  name={name}
                  schema={schema}
                  value={data[name]}
                  path={name}
                  issue={issues.find}
                  onChange={(v) => editor.setData(node.id, [name], v)}
                />
              ))}
          </div>
        </details>
      )}
      <NodeNote editor={editor} node={node} />
      <NodeId editor={editor} node={node} />
    </div>
  );
}

/** Fields of which a node has one: they are chosen by name. */
function OneOf({
  names,
  editor,
  node,
  set,
  find,
}: {
  names: string[];
  editor: Editor;
  node: Step;
  set: (d: Record<string, unknown>) => void;
  find: (p: string) => string | undefined;
}) {
  const type = typeOf(node.type)!;
  const data = node.data ?? {};
  const [mode, setMode] = useState(names.find((n) => data[n] !== undefined) ?? names[0]);
  const props = type.data.properties!;
  const hidden = names.filter((n) => n !== mode);
  const order = fieldsOf(type.data)
    .map(([n]) => n)
    .filter((n) => !hidden.includes(n));
  const belongs: Record<string, string[]> = { duration: ["unit"], event: ["timeout"], conditions: ["combinator"] };
  const schema = {
    ...type.data,
    properties: Object.fromEntries(
      order
        .filter((n) => !Object.entries(belongs).some(([m, f]) => names.includes(m) && m !== mode && f.includes(n)))
        .map((n) => [n, { ...props[n], "x-advanced": names.includes(n) ? false : props[n]["x-advanced"] }]),
    ),
    "x-order": order,
  };
  return (
    <>
      <Segments
        label="By"
        value={mode}
        options={names.map((n) => [n, props[n].title ?? n])}
        onChange={(n) => {
          setMode(n);
          if (editor.readonly.value) return;
          const next = { ...data };
          for (const o of names) if (o !== n) delete next[o];
          set(next);
        }}
      />
      <Fields schema={schema} value={data} onChange={set} path="" issue={find} />
    </>
  );
}

/** The data of a node of a type that the catalogue does not know. */
function JsonData({ editor, node }: { editor: Editor; node: Step }) {
  return (
    <div class="field">
      <label>Data</label>
      <JsonField
        label="Data"
        rows={10}
        value={node.data ?? {}}
        onChange={(v) => {
          if (v && typeof v === "object" && !Array.isArray(v))
            editor.changeNode(node.id, (n) => ({ ...n, data: v as Data }), "data");
        }}
      />
    </div>
  );
}

/** A note for people, which stands below the node on the canvas. */
function NodeNote({ editor, node }: { editor: Editor; node: Step }) {
  const set = (text: string) =>
    editor.changeNode(
      node.id,
      (n) => {
        const { note: _, ...rest } = n.metadata ?? {};
        const metadata = text ? { ...rest, note: text } : rest;
        const { metadata: _m, ...bare } = n;
        return Object.keys(metadata).length ? { ...n, metadata } : (bare as Step);
      },
      "note",
    );
  return (
    <details class="more-fields" open={Boolean(node.metadata?.note)}>
      <summary>Note</summary>
      <TextArea
        label="Note on the canvas"
        rows={2}
        value={typeof node.metadata?.note === "string" ? node.metadata.note : ""}
        disabled={editor.readonly.value}
        onInput={set}
      />
    </details>
  );
}

function NodeId({ editor, node }: { editor: Editor; node: Step }) {
  const [typed, setTyped] = useState(node.id);
  const taken = editor.doc.value.nodes.some((n) => n.id === typed && n.id !== node.id);
  const rename = () => {
    const to = typed.trim();
    if (!to || to === node.id || taken) {
      setTyped(node.id);
      return;
    }
    editor.set(renameNode(editor.doc.value, node.id, to));
    editor.select([to]);
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
          onBlur={rename}
          onKeyDown={(e) => {
            if (e.key === "Enter") rename();
          }}
        />
        <small class={taken ? "issue" : "muted"}>
          {taken ? (
            "Another node already has this ID."
          ) : (
            <>
              Use its output in templates as <code>{`{{nodes.${node.id}}}`}</code>; they follow when it changes.
            </>
          )}
        </small>
      </div>
    </details>
  );
}

function Input({ editor, node }: { editor: Editor; node: Step }) {
  const scope = scopeOf(editor, node);
  const { nodes, input, trigger: _, execution, workflow, agent, now, ...payload } = scope;
  return (
    <div class="stack">
      <p class="muted small">Values you can use here. Choose one to insert it at the cursor.</p>
      <Tree title="Input" value={input} path={["input"]} />
      {Object.keys(payload).length > 0 && <Tree title="Payload and variables" value={payload} path={[]} />}
      {Object.entries(nodes as object).map(([id, value]) => (
        <Tree key={id} title={editor.nameOf(id)} value={value} path={["nodes", id]} />
      ))}
      <Tree title="Always available" value={{ now, execution, workflow, agent }} path={[]} />
    </div>
  );
}

const Tree = ({ title, value, path }: { title: string; value: unknown; path: (string | number)[] }) => (
  <section>
    <h3>
      <Name>{title}</Name>
    </h3>
    <PathTree value={value} path={path} />
  </section>
);

function Output({ editor, node, pin }: { editor: Editor; node: Step; pin: () => void }) {
  const pinned = node.metadata?.pin !== undefined;
  const known = Object.hasOwn(editor.samples.value, node.id);
  const mark = editor.marks.value.get(node.id);
  const readonly = editor.readonly.value;
  return (
    <div class="stack">
      {mark && (
        <p class="row">
          <Badge>{mark.status}</Badge>
          {mark.ms !== undefined && <span class="muted small">{span(mark.ms)}</span>}
          {mark.error && <span class="issue">{mark.error}</span>}
        </p>
      )}
      {pinned ? (
        <>
          <p class="card warn">Tests use this output instead of running the node. Live executions ignore it.</p>
          <JsonField
            label="Pinned output"
            rows={12}
            value={node.metadata?.pin}
            onChange={(v) =>
              editor.changeNode(node.id, (n) => ({ ...n, metadata: { ...n.metadata, pin: v ?? {} } }), "pin")
            }
          />
        </>
      ) : known ? (
        <JsonTree value={editor.samples.value[node.id]} />
      ) : (
        <>
          <p class="muted">Not run yet. Its output looks like this:</p>
          <JsonTree value={sampleOf(editor, node)} />
        </>
      )}
      {!readonly && (
        <div class="row">
          <Button icon="Pin" onClick={pin}>
            {pinned ? "Remove the pin" : "Pin this output"}
          </Button>
        </div>
      )}
    </div>
  );
}

function NodeJson({ editor, node }: { editor: Editor; node: Step }) {
  const [typed, setTyped] = useState(() => JSON.stringify(node, null, 2));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    setTyped((t) => {
      try {
        if (JSON.stringify(JSON.parse(t)) === JSON.stringify(node)) return t;
      } catch {
        /* it is replaced */
      }
      return JSON.stringify(node, null, 2);
    });
  }, [node]);
  const apply = () => {
    try {
      const value = JSON.parse(typed);
      if (
        !value ||
        typeof value !== "object" ||
        typeof value.id !== "string" ||
        !value.id ||
        typeof value.type !== "string"
      )
        throw new Error("A node is an object with an id and a type.");
      if (value.id !== node.id && editor.node(value.id)) throw new Error("Another node already has this ID.");
      const renamed = value.id === node.id ? editor.doc.value : renameNode(editor.doc.value, node.id, value.id);
      editor.change({ ...renamed, nodes: renamed.nodes.map((n) => (n.id === value.id ? value : n)) });
      editor.select([value.id]);
      setWrong("");
      tell("Applied");
    } catch (error) {
      setWrong(asError(error).message);
    }
  };
  return (
    <div class="stack">
      <textarea
        class="code"
        aria-label="Node JSON"
        rows={18}
        spellcheck={false}
        value={typed}
        readOnly={editor.readonly.value}
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      {wrong && (
        <p class="issue" role="alert">
          {wrong}
        </p>
      )}
      {!editor.readonly.value && (
        <div class="row end">
          <Button kind="primary" onClick={apply}>
            Apply
          </Button>
        </div>
      )}
    </div>
  );
}
