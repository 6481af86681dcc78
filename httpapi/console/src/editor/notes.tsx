// Notes that lie on the canvas: they are moved, sized, written and coloured.
import { type NodeProps, NodeResizer } from "@xyflow/react";
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";

import { Icon } from "../ui";
import { noteColors, type Note, smallestNote } from "./index";
import type { NoteShape } from "./shapes";

const longest = 4000;

/** A note as a node of the canvas. */
export const NoteNode = memo(function NoteNode({ data: { note, editor }, selected }: NodeProps<NoteShape>) {
  const [writing, setWriting] = useState(false);
  const [typed, setTyped] = useState(note.text);
  const field = useRef<HTMLTextAreaElement>(null);
  const may = !editor.readonly.value;
  useEffect(() => {
    if (may && selected && !note.text) setWriting(true);
  }, []);
  useEffect(() => {
    if (!writing) setTyped(note.text);
  }, [note.text, writing]);
  useEffect(() => {
    if (writing) field.current?.focus();
  }, [writing]);
  const change = (part: Partial<Note>, key = "") => editor.changeNote(note.id, part, key);
  return (
    <div
      class={`canvas-note ${note.color ?? ""} ${selected ? "selected" : ""}`}
      onDblClick={() => may && setWriting(true)}
    >
      {may && (
        <NodeResizer
          isVisible={selected}
          minWidth={smallestNote}
          minHeight={smallestNote / 2}
          onResizeEnd={(_, at) =>
            change({
              x: Math.round(at.x),
              y: Math.round(at.y),
              width: Math.round(at.width),
              height: Math.round(at.height),
            })
          }
        />
      )}
      {selected && may && (
        <div class="note-tools nodrag nopan">
          {noteColors.map((c) => (
            <button
              type="button"
              class={`note-color ${c}`}
              aria-label={`Colour: ${c || "yellow"}`}
              aria-pressed={(note.color ?? "") === c}
              onClick={() => change({ color: c || undefined })}
            />
          ))}
          <button type="button" aria-label="Write" title="Edit (double-click)" onClick={() => setWriting(true)}>
            <Icon name="Pencil" size={14} />
          </button>
          <button
            type="button"
            aria-label="Delete note"
            title="Delete (Del)"
            onClick={() => editor.removeNote(note.id)}
          >
            <Icon name="Trash2" size={14} />
          </button>
        </div>
      )}
      {writing ? (
        <textarea
          ref={field}
          class="nodrag nopan nowheel"
          aria-label="Note"
          maxLength={longest}
          value={typed}
          onInput={(e) => {
            setTyped(e.currentTarget.value);
            change({ text: e.currentTarget.value }, "text");
          }}
          onBlur={() => setWriting(false)}
          onKeyDown={(e) => {
            if (e.key === "Escape") {
              e.stopPropagation();
              setWriting(false);
            }
          }}
        />
      ) : (
        <p>
          <bdi>{note.text || (may ? "Double-click to edit" : "")}</bdi>
        </p>
      )}
    </div>
  );
});
