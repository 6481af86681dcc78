// A cell of a grid while it is edited: a list, several lines or one, by the type of its column.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { TableColumn } from "../../parts/tables";

type EditorProps = {
  column: TableColumn;
  text: string;
  issue?: string;
  busy?: boolean;
  setText: (text: string) => void;
  /** Stores the text, then calls then. */
  commit: (text: string, then?: () => void) => Promise<void>;
  /** Ends the editing and moves by rows. */
  leave: (rows?: number) => void;
  /** Moves by columns. */
  step: (columns: number) => void;
};

type AnyField = HTMLInputElement & HTMLSelectElement & HTMLTextAreaElement;

/** What the fields of all types of columns share. */
type FieldProps = {
  ref: RefObject<AnyField | null>;
  "aria-label": string;
  "aria-invalid": boolean;
  "aria-busy"?: boolean;
  onKeyDown: (e: KeyboardEvent) => void;
  onBlur: (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => void;
};

/** A cell in which a person types or chooses. */
export function CellEditor({ column, text, issue, busy, setText, commit, leave, step }: EditorProps) {
  const ref = useRef<AnyField>(null);
  const finished = useRef(false); // a key or a choice ended it, so losing the focus does not save again
  if (issue && !busy) finished.current = false;
  useLayoutEffect(() => {
    ref.current?.focus();
    ref.current?.setSelectionRange?.(text.length, text.length);
  }, []);
  const keys = (e: KeyboardEvent) => {
    e.stopPropagation();
    if (!["Escape", "Enter", "Tab"].includes(e.key) || (e.key === "Enter" && e.shiftKey)) return;
    e.preventDefault();
    const value = (e.currentTarget as HTMLInputElement).value;
    finished.current = true;
    if (e.key === "Escape") leave();
    else if (e.key === "Enter") void commit(value, () => leave(1));
    else void commit(value, () => step(e.shiftKey ? -1 : 1));
  };
  const props: FieldProps = {
    ref,
    "aria-label": column.name,
    "aria-invalid": Boolean(issue),
    "aria-busy": busy,
    onKeyDown: keys,
    onBlur: (e) => {
      if (!finished.current && document.activeElement !== e.currentTarget) void commit(e.currentTarget.value);
    },
  };
  const choose = (option: string) => {
    finished.current = true;
    setText(option);
    void commit(option, () => leave());
  };
  return (
    <>
      <Field column={column} text={text} props={props} setText={setText} choose={choose} />
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </>
  );
}

function Field({
  column,
  text,
  props,
  setText,
  choose,
}: {
  column: TableColumn;
  text: string;
  props: FieldProps;
  setText: (text: string) => void;
  choose: (option: string) => void;
}) {
  if (column.type === "choice")
    return (
      <select {...props} value={text} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="" selected={!text}>
          –
        </option>
        {column.options!.map((option) => (
          <option value={option} selected={option === text}>
            {option}
          </option>
        ))}
      </select>
    );
  if (column.type === "text" || column.type === "json")
    return (
      <textarea
        {...props}
        rows={Math.min(6, Math.max(1, text.split("\n").length, Math.ceil(text.length / 40)))}
        value={text}
        class={column.type === "json" ? "code" : ""}
        onInput={(e) => setText(e.currentTarget.value)}
      />
    );
  return (
    <input
      {...props}
      type="text"
      inputMode={column.type === "number" ? "decimal" : undefined}
      value={text}
      placeholder={column.type === "time" ? "2026-01-31 09:00 UTC" : ""}
      onInput={(e) => setText(e.currentTarget.value)}
    />
  );
}
