// What the toolbar, the canvas and the keyboard do with the graph.
import { showToast } from "../ui";
import type { CanvasActions } from "./canvasnode";
import { type NodeType, typeOf } from "./catalog";
import { copyText, type GraphNode, outputHandles, type Point, removeFrom, sourceHandleOf } from "./graph";
import { tidy } from "./layout";
import { loadDialogs, loadPasting, openEditorDialog, openPalette } from "./lazy";
import type { Editor } from "./state";
import type { EditorView } from "./view";

const noteOffset = { x: 120, y: 60 }; // half the size of a new note
const panDuration = 200;

const pasteText = async (view: EditorView, text: string, mouse?: Point) =>
  (await loadPasting()).pasteText(view, text, mouse);

/** Returns the actions of an editor's page. */
export function editorActions(view: EditorView) {
  const { editor, flow, editable } = view;
  const open = (nodeId: string) => {
    editor.select([nodeId]);
    editor.focus.value = { field: "", at: Date.now() };
  };
  const remove = (ids: Set<string>) => {
    const edges = new Set(editor.selectedEdge.value ? [editor.selectedEdge.value] : []);
    if (!ids.size && !edges.size) return;
    editor.set(removeFrom(editor.doc.value, ids, edges));
    editor.select([]);
    editor.selectedEdge.value = "";
  };
  const duplicate = (nodeId?: string) => {
    const ids = nodeId ? new Set([nodeId]) : new Set(editor.selected.value);
    void pasteText(view, copyText(editor.doc.value, ids)).catch(showToast);
  };
  const add: CanvasActions["add"] = (target) => {
    openPalette(!target.after && !target.edge, (type) => {
      editor.add(type, target);
    });
  };
  const pick = (type: NodeType) => {
    const previous = editor.selectedNode.value ?? lastNode(editor);
    editor.add(
      type,
      previous && type.type !== "trigger" ? { after: previous.id, handle: freeHandle(editor, previous) } : {},
    );
  };
  const menu = (nodeId: string, event: MouseEvent) => {
    const nodeActions = { open, duplicate, remove, test: editable && view.runTest };
    void loadDialogs().then((dialogs) => dialogs.nodeMenu(editor, nodeId, event, nodeActions), showToast);
  };
  return {
    canvas: { add: editable ? add : undefined, open, menu },
    add,
    remove,
    paste: (text: string) => pasteText(view, text, view.mouse()),
    open,
    duplicate,
    copy: () => copyText(editor.doc.value, new Set(editor.selected.value)),
    note: () => addNote(view),
    tidy: async () => editor.set(await tidy(editor.doc.value)),
    fit: () => {
      const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
      return flow()?.fitView({ maxZoom: 1, padding: 0.15, duration: reducedMotion ? 0 : panDuration });
    },
    zoom: (factor: number) => flow()?.zoomTo(flow()!.getZoom() * factor),
    connect: () => {
      const from = editor.selectedNode.value;
      if (from)
        void openEditorDialog(({ ConnectDialog }, close) => (
          <ConnectDialog editor={editor} from={from} close={close} />
        ));
    },
    pick,
    palette: () => openPalette(!editor.selectedNode.value, pick),
  };
}

/** What the toolbar, the canvas and the keyboard do. */
export type EditorActions = ReturnType<typeof editorActions>;

/** Adds a note in the middle of the view. */
function addNote({ editor, flow, element }: EditorView) {
  const box = element()?.getBoundingClientRect();
  if (!box || !editor.doc.value.nodes.length) return;
  const middle = flow()?.screenToFlowPosition({ x: box.left + box.width / 2, y: box.top + box.height / 2 });
  if (middle) editor.addNote(middle.x - noteOffset.x, middle.y - noteOffset.y);
}

/** Returns the first output of a node that has no edge yet, or its first. */
function freeHandle(editor: Editor, node: GraphNode): string {
  const type = typeOf(node.type);
  const handles = outputHandles(node, type);
  const used = editor.doc.value.edges
    .filter((edge) => edge.source === node.id)
    .map((edge) => sourceHandleOf(edge, node, type));
  return handles.find((handle) => !used.includes(handle)) ?? handles[0];
}

/** Returns the node at which the graph ends, if it has one end. */
function lastNode(editor: Editor): GraphNode | undefined {
  const { nodes, edges } = editor.doc.value;
  const ends = nodes.filter((node) => !edges.some((edge) => edge.source === node.id && edge.sourceHandle !== "error"));
  return ends.length === 1 ? ends[0] : undefined;
}
