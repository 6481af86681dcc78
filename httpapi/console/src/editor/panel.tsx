// The panel of the selected node: its fields, its input and output, and its JSON.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Button, Menu, type MenuItem } from "../ui";
import { focusField } from "./focusfield";
import { type GraphNode, setMetadata } from "./graph";
import { NodeFields } from "./nodefields";
import { NodeInput, NodeJson, NodeOutput } from "./nodevalues";
import { PanelHead } from "./panelhead";
import { sampleOf } from "./samples";
import type { Editor } from "./state";
import { NodeContext } from "./templatefield";
import type { LoadTests } from "./trynode";
import type { WebhookWorkflow } from "./incomingwebhook";

// Used by tests.
export { fill, suggest } from "./template";

type Tab = "fields" | "input" | "output" | "json";

const tabs: [Tab, string][] = [
  ["fields", "Fields"],
  ["input", "Input"],
  ["output", "Output"],
  ["json", "JSON"],
];

/** What the panel's buttons and menu do. */
export type PanelActions = {
  duplicate: (id: string) => void;
  remove: (ids: Set<string>) => void;
  test?: (mode: "to" | "node", id: string) => void;
  /** Loads what tries a request, apart from the tests of the page. */
  tests: LoadTests;
  close: () => void;
};

type PanelProps = { editor: Editor; node: GraphNode; workflow: WebhookWorkflow; actions: PanelActions };

/** Pins the output of a node for tests, or removes the pin. */
function togglePin(editor: Editor, node: GraphNode) {
  editor.changeNode(node.id, (current) =>
    setMetadata(current, { pin: node.metadata?.pin === undefined ? sampleOf(editor, current) : undefined }),
  );
}

/** The panel of a node. */
export function NodePanel({ editor, node, workflow, actions }: PanelProps) {
  const [tab, setTab] = useState<Tab>("fields");
  const panel = useRef<HTMLElement>(null);
  const readonly = editor.readonly.value;
  const context = useMemo(() => ({ editor, node, readonly }), [editor, node, readonly]);
  const focus = editor.focus.value;
  useEffect(() => {
    if (!focus) return;
    editor.focus.value = null;
    setTab("fields");
    requestAnimationFrame(() => focusField(panel.current, focus.field));
  }, [focus]);
  const issues = editor.issuesByNode.value.get(node.id) ?? [];
  return (
    <aside ref={panel} class="editor-panel" aria-label={`Node ${editor.nameOf(node)}`}>
      <Head editor={editor} node={node} actions={actions} />
      <nav class="tabs" aria-label="Node">
        {tabs.map(([name, title]) => (
          <button type="button" aria-current={tab === name ? "page" : undefined} onClick={() => setTab(name)}>
            {title}
            {name === "fields" && issues.length > 0 && <span class="tab-count">{issues.length}</span>}
          </button>
        ))}
      </nav>
      <div class="panel-body">
        <NodeContext.Provider value={context}>
          {tab === "fields" && (
            <NodeFields key={node.id} editor={editor} node={node} workflow={workflow} tests={actions.tests} />
          )}
          {tab === "input" && <NodeInput editor={editor} node={node} />}
          {tab === "output" && <NodeOutput editor={editor} node={node} pin={() => togglePin(editor, node)} />}
          {tab === "json" && <NodeJson key={node.id} editor={editor} node={node} />}
        </NodeContext.Provider>
      </div>
    </aside>
  );
}

/** The name of the node and its buttons. */
function Head({ editor, node, actions }: { editor: Editor; node: GraphNode; actions: PanelActions }) {
  const editable = !editor.readonly.value;
  return (
    <PanelHead node={node} name={editor.nameOf(node)} close={actions.close}>
      {editable && actions.test && (
        <Button icon="Play" kind="quiet" label="Test this node" onClick={() => actions.test!("node", node.id)} />
      )}
      {editable && <Menu label="Node actions" items={menuItems(editor, node, actions)} />}
    </PanelHead>
  );
}

function menuItems(editor: Editor, node: GraphNode, actions: PanelActions): MenuItem[] {
  const isDisabled = Boolean(node.data?.disabled);
  return [
    { label: "Duplicate", icon: "Copy", run: () => actions.duplicate(node.id) },
    {
      label: isDisabled ? "Enable" : "Disable",
      icon: "Power",
      run: () => editor.setData(node.id, ["disabled"], isDisabled ? undefined : true),
    },
    {
      label: node.metadata?.pin === undefined ? "Pin its output" : "Remove the pin",
      icon: "Pin",
      run: () => togglePin(editor, node),
    },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, run: () => actions.remove(new Set([node.id])) },
  ];
}
