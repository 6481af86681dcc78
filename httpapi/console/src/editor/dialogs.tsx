// The smaller dialogs and menus of the editor, and the graph as JSON.
import { useEffect, useRef, useState } from "preact/hooks";

import { asError, saveFile } from "../data";
import {
  Button,
  CopyButton,
  Dialog,
  FormDialog,
  Icon,
  type MenuItem,
  openMenu,
  SelectField,
  Switch,
  showToast,
  TextArea,
  TextField,
  When,
} from "../ui";
import { typeOf } from "./catalog";
import { IncomingWebhook } from "./components";
import type { Draft } from "./drafts";
import { defaultHandle, type Graph, type GraphNode, outputHandles, readGraph, setMetadata, writeGraph } from "./graph";
import { withPositions } from "./layout";
import { typeName } from "./names";
import type { Editor } from "./state";
import type { WebhookWorkflow } from "./incomingwebhook";

/** The name and description of the workflow, and how its executions run. */
export function SettingsDialog({ editor, close }: { editor: Editor; close: () => void }) {
  const doc = editor.doc.value;
  const locked = editor.readonly.value;
  const set = (change: object) => editor.change({ settings: { ...doc.settings, ...change } }, "settings");
  return (
    <Dialog title="Name and settings" close={close}>
      <TextField label="Name" value={doc.name} disabled={locked} onInput={(name) => editor.change({ name }, "name")} />
      <TextArea
        label="Description"
        value={doc.description}
        disabled={locked}
        onInput={(description) => editor.change({ description }, "description")}
      />
      <TextField
        label="Concurrent executions"
        type="number"
        value={String(doc.settings.concurrency)}
        disabled={locked}
        onInput={(v) => set({ concurrency: Number(v) || 1 })}
      />
      <SelectField
        label="When that many are already running"
        value={doc.settings.on_conflict}
        disabled={locked}
        options={[
          ["reject", "is refused"],
          ["queue", "waits in a queue"],
        ]}
        onChange={(on_conflict) => set({ on_conflict })}
      />
      <Switch
        label="A template with a missing value fails its node"
        checked={doc.settings.strict_templates}
        disabled={locked}
        onChange={(strict_templates) => set({ strict_templates })}
      />
      <div class="row end">
        <Button kind="primary" onClick={close}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

/** Saves the workflow with a note about the change. */
export function NoteDialog({ save, close }: { save: (note: string) => Promise<void>; close: () => void }) {
  return (
    <FormDialog
      title="Save with a note"
      close={close}
      action="Save"
      initial={{ note: "" }}
      run={({ note }) => save(note)}
    >
      {(f) => (
        <TextField label="What changes" autoFocus placeholder="Asks for the order number first" {...f.text("note")} />
      )}
    </FormDialog>
  );
}

/** The address that starts the workflow, and how it is called. */
export function IncomingWebhookDialog({
  workflow,
  close,
}: {
  workflow: WebhookWorkflow & { nodes: GraphNode[] };
  close: () => void;
}) {
  const trigger = workflow.nodes.find((n) => n.type === "trigger" && n.data?.event === "webhook");
  return (
    <Dialog title="Webhook address" close={close}>
      {trigger ? (
        <IncomingWebhook workflow={workflow} trigger={trigger} />
      ) : (
        <p>The workflow has no webhook trigger.</p>
      )}
    </Dialog>
  );
}

type DraftOfferProps = { draft: Draft; version: number; keep: () => Promise<void>; drop: () => Promise<void> };

/** Offers changes that were not saved when the editor was closed. */
export function DraftOffer({ draft, version, keep, drop }: DraftOfferProps) {
  const outdated =
    draft.version === version
      ? ""
      : `; they are based on version ${draft.version}, and version ${version} is the newest`;
  return (
    <div class="banner draft-offer" role="status">
      <Icon name="History" size={16} />
      <span class="grow">
        Changes of <When time={new Date(draft.at).toISOString()} full /> were not saved{outdated}.
      </span>
      <Button kind="primary" onClick={keep}>
        Restore
      </Button>
      <Button onClick={drop}>Discard</Button>
    </div>
  );
}

/** Connects a node to one that is chosen from a list, for use with the keyboard. */
export function ConnectDialog({ editor, from, close }: { editor: Editor; from: GraphNode; close: () => void }) {
  const handles = [...outputHandles(from, typeOf(from.type)), "error"];
  const others = editor.doc.value.nodes.filter((node) => node.type !== "trigger" && node.id !== from.id);
  const [handle, setHandle] = useState(handles[0]);
  const [target, setTarget] = useState(others[0]?.id ?? "");
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current!.querySelector("select")!.focus();
  }, []);
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    if (target) editor.connect(from.id, handle, target);
    close();
  };
  const nameOf = (node: GraphNode) =>
    node.data?.label ? `${editor.nameOf(node)} (${typeName(node.type)})` : editor.nameOf(node);
  return (
    <Dialog title={`Connect ${editor.nameOf(from)}`} close={close}>
      <form ref={form} class="stack" onSubmit={onSubmit}>
        <SelectField
          label="From"
          value={handle}
          options={handles.map((id) => [id, id === defaultHandle ? "output" : id])}
          onChange={setHandle}
        />
        {others.length ? (
          <SelectField
            label="To"
            value={target}
            options={others.map((node) => [node.id, nameOf(node)])}
            onChange={setTarget}
          />
        ) : (
          <p class="muted">There are no other nodes.</p>
        )}
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit disabled={!target}>
            Connect
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

const isListOfObjects = (list: unknown) =>
  Array.isArray(list) && list.every((item) => item && typeof item === "object" && !Array.isArray(item));

/** Parses a graph that was edited as text; throws an error if it is invalid. */
function parseGraph(text: string): Graph {
  const value = JSON.parse(text);
  if (!isListOfObjects(value?.nodes) || !isListOfObjects(value?.edges ?? []))
    throw new Error("A graph is an object with the arrays nodes and edges.");
  const nodes: GraphNode[] = value.nodes;
  if (nodes.some(({ id, type }) => typeof id !== "string" || !id || typeof type !== "string"))
    throw new Error("Every node needs an id and a type.");
  if (new Set(nodes.map((node) => node.id)).size !== nodes.length) throw new Error("Two nodes have the same id.");
  return readGraph(value);
}

/** The nodes and edges as JSON, which can be edited. */
export function GraphJson({ editor }: { editor: Editor }) {
  const text = JSON.stringify(writeGraph(editor.doc.value), null, 2);
  const [edited, setEdited] = useState({ base: text, text });
  const [issue, setIssue] = useState("");
  // A change of the graph elsewhere replaces what was typed.
  const typed = edited.base === text ? edited.text : text;
  const apply = async () => {
    try {
      editor.set(await withPositions(parseGraph(typed)));
      setIssue("");
      showToast("Applied");
    } catch (error) {
      setIssue(error instanceof SyntaxError ? `Not valid JSON: ${error.message}` : asError(error).message);
    }
  };
  return (
    <div class="stack pad">
      <div class="field">
        <label for="graph-json">Nodes and edges</label>
        <textarea
          id="graph-json"
          class="code"
          rows={14}
          spellcheck={false}
          value={typed}
          readOnly={editor.readonly.value}
          onInput={(event) => setEdited({ base: text, text: event.currentTarget.value })}
        />
      </div>
      {issue && (
        <p class="issue" role="alert">
          {issue}
        </p>
      )}
      <div class="row end">
        <CopyButton text={() => typed}>Copy</CopyButton>
        {!editor.readonly.value && (
          <Button kind="primary" disabled={typed === text} onClick={apply}>
            Apply
          </Button>
        )}
      </div>
    </div>
  );
}

type NodeMenuActions = {
  open: (id: string) => void;
  test: false | ((mode: "to" | "node", id: string) => unknown);
  duplicate: (id: string) => void;
  remove: (ids: Set<string>) => void;
};

/** Opens the menu of a node where it was right-clicked. */
export function nodeMenu(editor: Editor, id: string, { clientX, clientY }: MouseEvent, actions: NodeMenuActions) {
  const { open, test, duplicate, remove } = actions;
  const disabled = editor.node(id)?.data?.disabled;
  const items: MenuItem[] = [{ label: "Open", icon: "Eye", run: () => open(id) }];
  if (test)
    items.push(
      { label: "Test this node", icon: "Play", run: () => test("node", id) },
      { label: "Test up to here", icon: "ArrowRight", run: () => test("to", id) },
      "-",
      { label: "Duplicate", icon: "Copy", run: () => duplicate(id) },
      {
        label: disabled ? "Enable" : "Disable",
        icon: "Power",
        run: () => editor.setData(id, ["disabled"], disabled ? undefined : true),
      },
      "-",
      { label: "Delete", icon: "Trash2", danger: true, run: () => remove(new Set([id])) },
    );
  openMenu("Node actions", items, { x: clientX, y: clientY });
}

const shortcuts: [keys: string[], action: string][] = [
  [["Tab"], "Add a node"],
  [["Enter"], "Open the node"],
  [["n"], "Add a note"],
  [["c"], "Connect from a list"],
  [["←", "→", "↑", "↓"], "Walk"],
  [["Alt", "arrows"], "Move"],
  [["F2"], "Rename"],
  [["d"], "Disable"],
  [["p"], "Pin its output"],
  [["Del"], "Delete"],
  [["1"], "Fit the graph"],
  [["Ctrl", "A"], "Select all"],
  [["Ctrl", "C"], "Copy"],
  [["Ctrl", "X"], "Cut"],
  [["Ctrl", "V"], "Paste"],
  [["Ctrl", "D"], "Duplicate"],
  [["Ctrl", "Z"], "Undo"],
  [["Ctrl", "Y"], "Redo"],
  [["Ctrl", "S"], "Save"],
  [["Ctrl", "Enter"], "Test"],
  [["Space", "drag"], "Move the view"],
];

/** The keyboard shortcuts of the editor. */
export function KeyHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <dl class="keys">
        {shortcuts.map(([keys, action]) => (
          <>
            <dt>
              {keys.map((key) => (
                <>
                  <kbd>{key}</kbd>{" "}
                </>
              ))}
            </dt>
            <dd>{action}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

/** Saves the workflow as a file, without pinned outputs. */
export function exportFile(editor: Editor) {
  const doc = editor.doc.value;
  const { nodes, edges } = writeGraph({
    nodes: doc.nodes.map((node) => setMetadata(node, { pin: undefined })),
    edges: doc.edges,
    notes: doc.notes,
  });
  const text = JSON.stringify(
    { satchel: "workflow/1", name: doc.name, description: doc.description, settings: doc.settings, nodes, edges },
    null,
    2,
  );
  saveFile(new Blob([text], { type: "application/json" }), `${doc.name || "workflow"}.json`);
}
