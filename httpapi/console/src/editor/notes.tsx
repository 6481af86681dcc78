// Notes on the canvas, which can be moved, resized, edited and coloured.
import { type NodeProps, NodeResizer, type ResizeParams } from "@xyflow/react";
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";

import { Icon } from "../ui";
import { type Note, noteColors, minNoteWidth } from "./graph";
import type { NoteShape } from "./shapes";
import type { Editor } from "./state";

const maxLength = 4000;

/** A note as a node of the canvas. */
export const NoteNode = memo(function NoteNode({ data: { note, editor }, selected }: NodeProps<NoteShape>) {
  const [editing, setEditing] = useState(false);
  const editable = !editor.readonly.value;
  useEffect(() => {
    if (editable && selected && !note.text) setEditing(true);
  }, []);
  const startEditing = () => setEditing(true);
  const onResizeEnd = (_: unknown, { x, y, width, height }: ResizeParams) =>
    editor.changeNote(note.id, {
      x: Math.round(x),
      y: Math.round(y),
      width: Math.round(width),
      height: Math.round(height),
    });
  return (
    <div
      class={`canvas-note ${note.color ?? ""} ${selected ? "selected" : ""}`}
      onDblClick={editable ? startEditing : undefined}
    >
      {editable && (
        <NodeResizer
          isVisible={selected}
          minWidth={minNoteWidth}
          minHeight={minNoteWidth / 2}
          onResizeEnd={onResizeEnd}
        />
      )}
      {selected && editable && <NoteTools note={note} editor={editor} edit={startEditing} />}
      {editing ? (
        <NoteText note={note} editor={editor} close={() => setEditing(false)} />
      ) : (
        <p>
          <bdi>{note.text || (editable ? "Double-click to edit" : "")}</bdi>
        </p>
      )}
    </div>
  );
});

/** The buttons above a selected note. */
function NoteTools({ note, editor, edit }: { note: Note; editor: Editor; edit: () => void }) {
  return (
    <div class="note-tools nodrag nopan">
      {noteColors.map((color) => (
        <button
          type="button"
          class={`note-color ${color}`}
          aria-label={`Colour: ${color || "yellow"}`}
          aria-pressed={(note.color ?? "") === color}
          onClick={() => editor.changeNote(note.id, { color: color || undefined })}
        />
      ))}
      <button type="button" aria-label="Write" title="Edit (double-click)" onClick={edit}>
        <Icon name="Pencil" size={14} />
      </button>
      <button type="button" aria-label="Delete note" title="Delete (Del)" onClick={() => editor.removeNote(note.id)}>
        <Icon name="Trash2" size={14} />
      </button>
    </div>
  );
}

/** The field in which a note is edited. */
function NoteText({ note, editor, close }: { note: Note; editor: Editor; close: () => void }) {
  const [typed, setTyped] = useState(note.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <textarea
      ref={field}
      class="nodrag nopan nowheel"
      aria-label="Note"
      maxLength={maxLength}
      value={typed}
      onInput={(event) => {
        setTyped(event.currentTarget.value);
        editor.changeNote(note.id, { text: event.currentTarget.value }, "text");
      }}
      onBlur={close}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
    />
  );
}
