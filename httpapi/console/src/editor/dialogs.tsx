// Smaller parts of the editor: settings, the webhook's address, the offer of a draft, connecting by a list, and the graph as text.
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
  tell,
  TextArea,
  TextField,
  When,
} from "../ui";
import {
  defaultHandle,
  type Editor,
  type GraphNode,
  outputHandles,
  readGraph,
  setMetadata,
  typeName,
  typeOf,
  WebhookCall,
  withPositions,
  writeGraph,
} from "./index";
import type { Draft } from "./drafts";
import type { WebhookWorkflow } from "./webhook";

/** Name, description and how executions meet each other. */
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

/** Saves with a note that says what the version is about. */
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
export function WebhookDialog({
  workflow,
  close,
}: {
  workflow: WebhookWorkflow & { nodes: GraphNode[] };
  close: () => void;
}) {
  const trigger = workflow.nodes.find((n) => n.type === "trigger" && n.data?.event === "webhook");
  return (
    <Dialog title="Webhook address" close={close}>
      {trigger ? <WebhookCall workflow={workflow} trigger={trigger} /> : <p>The workflow has no webhook trigger.</p>}
    </Dialog>
  );
}

/** Offers changes that were not saved when the editor was closed. */
export function DraftOffer({
  draft,
  version,
  keep,
  drop,
}: {
  draft: Draft;
  version: number;
  keep: () => Promise<void>;
  drop: () => Promise<void>;
}) {
  return (
    <div class="banner draft-offer" role="status">
      <Icon name="History" size={16} />
      <span class="grow">
        Changes of <When time={new Date(draft.at).toISOString()} full /> were not saved
        {draft.version !== version
          ? `; they are based on version ${draft.version}, and version ${version} is the newest`
          : ""}
        .
      </span>
      <Button kind="primary" onClick={keep}>
        Restore
      </Button>
      <Button onClick={drop}>Discard</Button>
    </div>
  );
}

/** Joins a node to another that is chosen from a list, for the keyboard. */
export function ConnectDialog({ editor, from, close }: { editor: Editor; from: GraphNode; close: () => void }) {
  const handles = [...outputHandles(from, typeOf(from.type)), "error"];
  const others = editor.doc.value.nodes.filter((n) => n.type !== "trigger" && n.id !== from.id);
  const [handle, setHandle] = useState(handles[0]);
  const [to, setTo] = useState(others[0]?.id ?? "");
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current!.querySelector("select")!.focus();
  }, []);
  return (
    <Dialog title={`Connect ${editor.nameOf(from)}`} close={close}>
      <form
        ref={form}
        class="stack"
        onSubmit={(e) => {
          e.preventDefault();
          if (to) editor.connect(from.id, handle, to);
          close();
        }}
      >
        <SelectField
          label="From"
          value={handle}
          options={handles.map((w) => [w, w === defaultHandle ? "output" : w])}
          onChange={setHandle}
        />
        {others.length ? (
          <SelectField
            label="To"
            value={to}
            options={others.map((n) => [
              n.id,
              n.data?.label ? `${editor.nameOf(n)} (${typeName(n.type)})` : editor.nameOf(n),
            ])}
            onChange={setTo}
          />
        ) : (
          <p class="muted">There are no other nodes.</p>
        )}
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit disabled={!to}>
            Connect
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Nodes and edges as JSON, which can be changed. */
export function GraphJson({ editor }: { editor: Editor }) {
  const doc = editor.doc.value;
  const text = JSON.stringify(writeGraph(doc), null, 2);
  const [edited, setEdited] = useState({ base: text, text });
  const typed = edited.base === text ? edited.text : text; // a change elsewhere takes its place
  const setTyped = (t: string) => setEdited({ base: text, text: t });
  const [wrong, setWrong] = useState("");
  const apply = async () => {
    try {
      const value = JSON.parse(typed);
      const objects = (list: unknown) =>
        Array.isArray(list) && list.every((v) => v && typeof v === "object" && !Array.isArray(v));
      if (!objects(value?.nodes) || !objects(value?.edges ?? []))
        throw new Error("A graph is an object with the arrays nodes and edges.");
      if (value.nodes.some((n: GraphNode) => typeof n.id !== "string" || !n.id || typeof n.type !== "string"))
        throw new Error("Every node needs an id and a type.");
      if (new Set(value.nodes.map((n: GraphNode) => n.id)).size !== value.nodes.length)
        throw new Error("Two nodes have the same id.");
      editor.set(await withPositions(readGraph(value)));
      setWrong("");
      tell("Applied");
    } catch (error) {
      setWrong(error instanceof SyntaxError ? `Not valid JSON: ${error.message}` : asError(error).message);
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
          onInput={(e) => setTyped(e.currentTarget.value)}
        />
      </div>
      {wrong && (
        <p class="issue" role="alert">
          {wrong}
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

/** Shows what can be done with a node, at the place of a right click. */
export function nodeMenu(
  editor: Editor,
  id: string,
  at: MouseEvent,
  actions: {
    open: (id: string) => void;
    test: false | ((mode: "to" | "node", id: string) => unknown);
    duplicate: (id: string) => unknown;
    remove: (ids: Set<string>) => void;
  },
) {
  const off = editor.node(id)?.data?.disabled;
  const { test } = actions;
  openMenu(
    "Node actions",
    [
      { label: "Open", icon: "Eye", run: () => actions.open(id) },
      ...(test
        ? ([
            { label: "Test this node", icon: "Play", run: () => test("node", id) },
            { label: "Test up to here", icon: "ArrowRight", run: () => test("to", id) },
            "-",
            {
              label: "Duplicate",
              icon: "Copy",
              run: () => {
                actions.duplicate(id);
              },
            },
            {
              label: off ? "Enable" : "Disable",
              icon: "Power",
              run: () => editor.setData(id, ["disabled"], off ? undefined : true),
            },
            "-",
            { label: "Delete", icon: "Trash2", danger: true, run: () => actions.remove(new Set([id])) },
          ] as MenuItem[])
        : []),
    ],
    { x: at.clientX, y: at.clientY },
  );
}

const keys: [string[], string][] = [
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

/** The keys of the editor. */
export function KeyHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <dl class="keys">
        {keys.map(([pressed, what]) => (
          <>
            <dt>
              {pressed.map((k) => (
                <>
                  <kbd>{k}</kbd>{" "}
                </>
              ))}
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

/** Saves the workflow as a file, without what tests pinned. */
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
