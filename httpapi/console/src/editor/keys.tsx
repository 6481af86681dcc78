// The keys of the editor.
import { tell } from "../ui";
import { type Editor, noteNode, setMetadata } from "./base";

type Actions = {
  add: unknown;
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

const typing = (el: EventTarget | null) =>
  el instanceof HTMLElement && (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

/** The handlers of keys: of the whole page, of the canvas, and of the clipboard. */
export function editorKeys({
  editor,
  actions,
  save,
  test,
  help,
}: {
  editor: Editor;
  actions: Actions;
  save: () => void;
  test: () => void;
  help: () => void;
}) {
  const ids = () => new Set(editor.selected.value);
  const writable = () => !editor.readonly.value;

  const page = (e: KeyboardEvent) => {
    if (e.defaultPrevented || document.querySelector("dialog[open]")) return;
    const key = e.key.toLowerCase();
    if (e.ctrlKey || e.metaKey) {
      if (key === "s") {
        e.preventDefault();
        if (writable()) save();
      } else if (e.key === "Enter") {
        e.preventDefault();
        if (writable()) test();
      } else if (key === "z" && !typing(e.target)) {
        e.preventDefault();
        if (e.shiftKey) editor.redo();
        else editor.undo();
      } else if (key === "y" && !typing(e.target)) {
        e.preventDefault();
        editor.redo();
      }
      return;
    }
    if (e.key === "Escape" && editor.selected.value.size) editor.select([]);
  };

  const walk = (key: string) => {
    const all = editor.doc.value.nodes.filter((n) => n.position);
    const from = editor.one.value;
    if (!from?.position) {
      if (all[0]) editor.select([all[0].id]);
      return;
    }
    const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key]!;
    let best: { id: string; cost: number } | undefined;
    for (const n of all) {
      const [x, y] = [n.position!.x - from.position.x, n.position!.y - from.position.y];
      const along = x * dx + y * dy;
      if (along < 5) continue;
      const cost = along + 2.5 * Math.abs(x * dy + y * dx);
      if (!best || cost < best.cost) best = { id: n.id, cost };
    }
    if (best) editor.select([best.id]);
  };
  const move = (key: string, far: boolean) => {
    const by = far ? 50 : 10;
    const [dx, dy] = { ArrowRight: [by, 0], ArrowLeft: [-by, 0], ArrowDown: [0, by], ArrowUp: [0, -by] }[key]!;
    const moved = ids();
    editor.change(
      {
        nodes: editor.doc.value.nodes.map((n) =>
          moved.has(n.id) && n.position ? { ...n, position: { x: n.position.x + dx, y: n.position.y + dy } } : n,
        ),
        notes: editor.doc.value.notes?.map((n) => (moved.has(noteNode(n.id)) ? { ...n, x: n.x + dx, y: n.y + dy } : n)),
      },
      "move",
    );
  };

  const canvas = (e: KeyboardEvent) => {
    if (typing(e.target) || e.defaultPrevented) return;
    const one = editor.one.value;
    const onButton = (e.target as HTMLElement).tagName === "BUTTON";
    const done = () => {
      e.preventDefault();
      e.stopPropagation();
    };
    if (e.ctrlKey || e.metaKey) {
      if (e.key.toLowerCase() === "a") {
        done();
        editor.select([
          ...editor.doc.value.nodes.map((n) => n.id),
          ...(editor.doc.value.notes ?? []).map((n) => noteNode(n.id)),
        ]);
      } else if (e.key.toLowerCase() === "d" && writable()) {
        done();
        actions.duplicate();
      }
      return;
    }
    if (e.key.startsWith("Arrow")) {
      done();
      if (e.altKey && writable()) move(e.key, e.shiftKey);
      else walk(e.key);
      return;
    }
    if (e.altKey) return;
    if (e.key === "Enter" && one && !onButton) {
      done();
      actions.open(one.id);
    } else if (e.key === "1") {
      done();
      actions.fit();
    } else if (!writable()) return;
    else if (e.key === "Tab" && !e.shiftKey && e.target === e.currentTarget) {
      done();
      actions.palette();
    } else if (e.key === "Delete" || e.key === "Backspace") {
      done();
      actions.remove(ids());
    } else if (e.key === "n") {
      done();
      actions.note();
    } else if (e.key === "c" && one) {
      done();
      actions.connect();
    } else if (e.key === "F2" && one) {
      done();
      editor.focus.value = { field: "label", at: Date.now() };
    } else if (e.key === "d" && ids().size) {
      done();
      const chosen = ids();
      const off = editor.doc.value.nodes.some((n) => chosen.has(n.id) && !n.data?.disabled);
      editor.change({
        nodes: editor.doc.value.nodes.map((n) => {
          if (!chosen.has(n.id)) return n;
          const { disabled: _, ...data } = n.data ?? {};
          return { ...n, data: off ? { ...data, disabled: true } : data };
        }),
      });
    } else if (e.key === "p" && one) {
      done();
      const samples = editor.samples.value;
      editor.changeNode(one.id, (n) =>
        setMetadata(n, { pin: n.metadata?.pin === undefined ? (samples[n.id] ?? {}) : undefined }),
      );
      tell(one.metadata?.pin !== undefined ? "Pin removed" : "Output pinned: tests now use it");
    } else if (e.key === "?") {
      done();
      help();
    }
  };

  const clipboard = (e: ClipboardEvent) => {
    if (
      typing(document.activeElement) ||
      document.querySelector("dialog[open]") ||
      (String(getSelection()) && e.type !== "paste")
    )
      return;
    if (e.type === "paste") {
      const text = e.clipboardData?.getData("text/plain") ?? "";
      if (!writable() || !text.trim().startsWith("{")) return;
      e.preventDefault();
      void actions.paste(text).catch(tell);
      return;
    }
    if (!editor.selected.value.size) return;
    e.clipboardData?.setData("text/plain", actions.copy());
    e.preventDefault();
    if (e.type === "cut" && writable()) actions.remove(ids());
  };
  return { page, canvas, clipboard };
}
