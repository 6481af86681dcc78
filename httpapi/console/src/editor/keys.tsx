// The keys of the editor.
import { showToast } from "../ui";
import { noteNodeId, setMetadata } from "./graph";
import type { Editor } from "./state";

type Actions = {
  remove: (ids: Set<string>) => void;
  paste: (text: string) => Promise<void>;
  open: (id: string) => void;
  duplicate: () => unknown;
  copy: () => string;
  fit: () => void;
  connect: () => void;
  palette: () => void;
  note: () => void;
};

type KeyOptions = { editor: Editor; actions: Actions; save: () => void; test: () => void; help: () => void };

const step = 10; // pixels by which an arrow moves a node
const largeStep = 50;
const sidewaysCost = 2.5; // a node beside the direction of an arrow counts as farther away

const directions: Record<string, [x: number, y: number]> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};

const isTextField = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

const isDialogOpen = () => document.querySelector("dialog[open]") !== null;

const selection = (editor: Editor) => new Set(editor.selected.value);

const withCommand = (event: KeyboardEvent) => event.ctrlKey || event.metaKey;

/** Returns the handlers of key events of the page and of the canvas, and of clipboard events. */
export function editorKeys(options: KeyOptions) {
  return {
    page: (event: KeyboardEvent) => handlePageKey(event, options),
    canvas: (event: KeyboardEvent) => handleCanvasKey(event, options),
    clipboard: (event: ClipboardEvent) => handleClipboard(event, options),
  };
}

function handlePageKey(event: KeyboardEvent, { editor, save, test }: KeyOptions) {
  if (event.defaultPrevented || isDialogOpen()) return;
  const editable = !editor.readonly.value;
  if (!withCommand(event)) {
    if (event.key === "Escape" && editor.selected.value.size) editor.select([]);
    return;
  }
  const key = event.key.toLowerCase();
  const inText = isTextField(event.target);
  if (key === "s") {
    event.preventDefault();
    if (editable) save();
  } else if (key === "enter") {
    event.preventDefault();
    if (editable) test();
  } else if (key === "z" && !inText) {
    event.preventDefault();
    if (event.shiftKey) editor.redo();
    else editor.undo();
  } else if (key === "y" && !inText) {
    event.preventDefault();
    editor.redo();
  }
}

function handleCanvasKey(event: KeyboardEvent, options: KeyOptions) {
  if (isTextField(event.target) || event.defaultPrevented) return;
  const action = canvasAction(event, options);
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

/** Returns what a key does on the canvas; undefined if nothing. */
function canvasAction(event: KeyboardEvent, options: KeyOptions): (() => unknown) | undefined {
  const { editor, actions } = options;
  const editable = !editor.readonly.value;
  if (withCommand(event)) {
    const key = event.key.toLowerCase();
    if (key === "a") return () => selectAll(editor);
    return key === "d" && editable ? () => actions.duplicate() : undefined;
  }
  if (event.key in directions) {
    const moves = event.altKey && editable;
    return () => (moves ? moveSelection(editor, event.key, event.shiftKey) : selectNext(editor, event.key));
  }
  if (event.altKey) return undefined;
  const node = editor.selectedNode.value;
  const onButton = (event.target as HTMLElement).tagName === "BUTTON";
  if (event.key === "Enter" && node && !onButton) return () => actions.open(node.id);
  if (event.key === "1") return actions.fit;
  return editable ? editAction(event, options) : undefined;
}

/** Returns how a key changes the graph; undefined if it does not. */
function editAction(event: KeyboardEvent, { editor, actions, help }: KeyOptions): (() => unknown) | undefined {
  const node = editor.selectedNode.value;
  switch (event.key) {
    case "Tab":
      return !event.shiftKey && event.target === event.currentTarget ? actions.palette : undefined;
    case "Delete":
    case "Backspace":
      return () => actions.remove(selection(editor));
    case "n":
      return actions.note;
    case "c":
      return node && actions.connect;
    case "F2":
      return node && (() => (editor.focus.value = { field: "label", at: Date.now() }));
    case "d":
      return editor.selected.value.size ? () => toggleDisabled(editor) : undefined;
    case "p":
      return node && (() => togglePin(editor, node.id));
    case "?":
      return help;
    default:
      return undefined;
  }
}

function selectAll(editor: Editor) {
  const { nodes, notes = [] } = editor.doc.value;
  editor.select([...nodes.map((node) => node.id), ...notes.map((note) => noteNodeId(note.id))]);
}

/** Selects the node that is nearest in the direction of an arrow. */
function selectNext(editor: Editor, key: string) {
  const nodes = editor.doc.value.nodes.filter((node) => node.position);
  const from = editor.selectedNode.value?.position;
  if (!from) {
    if (nodes[0]) editor.select([nodes[0].id]);
    return;
  }
  const [dx, dy] = directions[key];
  let nearest: { id: string; cost: number } | undefined;
  for (const node of nodes) {
    const x = node.position!.x - from.x;
    const y = node.position!.y - from.y;
    const ahead = x * dx + y * dy;
    if (ahead < 5) continue;
    const cost = ahead + sidewaysCost * Math.abs(x * dy + y * dx);
    if (!nearest || cost < nearest.cost) nearest = { id: node.id, cost };
  }
  if (nearest) editor.select([nearest.id]);
}

function moveSelection(editor: Editor, key: string, large: boolean) {
  const distance = large ? largeStep : step;
  const [dx, dy] = directions[key].map((direction) => direction * distance);
  const selected = selection(editor);
  const { nodes, notes } = editor.doc.value;
  editor.change(
    {
      nodes: nodes.map((node) =>
        selected.has(node.id) && node.position
          ? { ...node, position: { x: node.position.x + dx, y: node.position.y + dy } }
          : node,
      ),
      notes: notes?.map((note) =>
        selected.has(noteNodeId(note.id)) ? { ...note, x: note.x + dx, y: note.y + dy } : note,
      ),
    },
    "move",
  );
}

/** Disables the selected nodes; enables them if all of them are disabled. */
function toggleDisabled(editor: Editor) {
  const selected = selection(editor);
  const { nodes } = editor.doc.value;
  const disable = nodes.some((node) => selected.has(node.id) && !node.data?.disabled);
  editor.change({
    nodes: nodes.map((node) => {
      if (!selected.has(node.id)) return node;
      const { disabled: _, ...data } = node.data ?? {};
      return { ...node, data: disable ? { ...data, disabled: true } : data };
    }),
  });
}

/** Pins the last output of a node for tests, or removes the pin. */
function togglePin(editor: Editor, id: string) {
  const isPinned = editor.node(id)?.metadata?.pin !== undefined;
  const pin = isPinned ? undefined : (editor.samples.value[id] ?? {});
  editor.changeNode(id, (node) => setMetadata(node, { pin }));
  showToast(isPinned ? "Pin removed" : "Output pinned: tests now use it");
}

function handleClipboard(event: ClipboardEvent, { editor, actions }: KeyOptions) {
  const isPaste = event.type === "paste";
  const isTextSelected = String(getSelection()) !== "";
  if (isTextField(document.activeElement) || isDialogOpen() || (isTextSelected && !isPaste)) return;
  const editable = !editor.readonly.value;
  if (isPaste) {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!editable || !text.trim().startsWith("{")) return;
    event.preventDefault();
    void actions.paste(text).catch(showToast);
    return;
  }
  if (!editor.selected.value.size) return;
  event.clipboardData?.setData("text/plain", actions.copy());
  event.preventDefault();
  if (event.type === "cut" && editable) actions.remove(selection(editor));
}
