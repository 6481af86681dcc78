// A text with templates: completion after {{, and below what it comes to.
import { createContext } from "preact";
import { useContext, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useTyped } from "../parts/typed";
import { Editor, type Step } from "./base";
import { fill, hasTemplate, labelsOf, scopeOf, suggest, type Suggestion } from "./template";

/** The node whose fields are shown. */
export const NodeContext = createContext<{ editor: Editor; node: Step; readonly: boolean }>({
  editor: new Editor(),
  node: { id: "", type: "" },
  readonly: true,
});

/** The field that was last typed into: a path of the input tree goes there. */
let lastField: { el: HTMLElement; insert: (text: string) => void } | null = null;

/** Notes that an element takes templates, and how one is written into it. */
export const takesPaths = (el: HTMLElement, insert: (text: string) => void) => {
  lastField = { el, insert };
};

/** Writes a template where the cursor was last; false when there is no such place. */
export function insertTemplate(path: string): boolean {
  if (!lastField?.el.isConnected) return false;
  lastField.insert(`{{${path}}}`);
  return true;
}

const short = (v: unknown) => {
  const text = v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

type Props = {
  value: string;
  onInput: (v: string) => void;
  rows?: number;
  code?: boolean;
  label?: string;
  id?: string;
  placeholder?: string;
  invalid?: boolean;
  fills?: boolean;
};

export function TemplateField({
  value,
  onInput,
  rows = 1,
  code,
  label,
  id,
  placeholder,
  invalid,
  fills = true,
}: Props) {
  const { editor, node, readonly } = useContext(NodeContext);
  const ref = useRef<HTMLTextAreaElement>(null);
  const [shown, setShown] = useState<{ from: number; list: Suggestion[]; at: number } | null>(null);
  const caret = useRef<number | null>(null);
  const listId = useId();
  useLayoutEffect(() => {
    // before the next key, which may come within the same frame
    if (caret.current === null || !ref.current) return;
    ref.current.setSelectionRange(caret.current, caret.current);
    caret.current = null;
  });
  const look = () => {
    const el = ref.current!;
    const found =
      fills && el.selectionStart === el.selectionEnd
        ? suggest(el.value, el.selectionStart, scopeOf(editor, node), labelsOf(editor))
        : null;
    setShown(found && found.list.length ? { ...found, at: 0 } : null);
  };
  const replace = (from: number, to: number, text: string, cursor = from + text.length) => {
    caret.current = cursor;
    onInput(value.slice(0, from) + text + value.slice(to));
    requestAnimationFrame(() => {
      ref.current?.focus();
      look();
    });
  };
  const choose = (s: Suggestion) => {
    const el = ref.current!;
    const to = el.selectionStart;
    const leaf = s.note !== undefined && s.value === undefined ? true : s.value === null || typeof s.value !== "object";
    const closed = /^\s*(\||\}\})/.test(value.slice(to));
    const insert = leaf && !closed ? `${s.insert}}}` : s.insert;
    replace(shown!.from, to, insert);
    if (leaf) setShown(null);
  };
  const keys = (e: KeyboardEvent) => {
    if (shown) {
      if (e.key === "ArrowDown" || e.key === "ArrowUp")
        setShown({
          ...shown,
          at: (shown.at + (e.key === "ArrowDown" ? 1 : shown.list.length - 1)) % shown.list.length,
        });
      else if (e.key === "Enter" || e.key === "Tab") choose(shown.list[shown.at]);
      else if (e.key === "Escape") setShown(null);
      else if (e.key === "." || e.key === "|") return;
      else return;
      e.preventDefault();
      e.stopPropagation();
      return;
    }
    if (
      e.key === "{" &&
      ref.current!.value[ref.current!.selectionStart - 1] === "{" &&
      !value.slice(ref.current!.selectionStart).startsWith("}}")
    ) {
      e.preventDefault();
      const at = ref.current!.selectionStart;
      replace(at, ref.current!.selectionEnd, "{}}", at + 1);
    }
    if (e.key === "Enter" && rows === 1 && !code && !e.shiftKey && !e.ctrlKey && !e.metaKey) e.preventDefault();
  };
  const preview = fills && hasTemplate(value) ? fill(value, scopeOf(editor, node)) : null;
  return (
    <div class="template-field">
      <textarea
        ref={ref}
        id={id}
        rows={rows}
        value={value}
        class={code ? "code" : ""}
        spellcheck={!code}
        placeholder={placeholder}
        aria-label={label}
        aria-invalid={invalid}
        readOnly={readonly}
        aria-haspopup="listbox"
        aria-controls={shown ? listId : undefined}
        aria-activedescendant={shown ? `${listId}-${shown.at}` : undefined}
        aria-autocomplete="list"
        onInput={(e) => {
          onInput(e.currentTarget.value);
          requestAnimationFrame(() => ref.current && look());
        }}
        onKeyDown={keys}
        onClick={look}
        onFocus={() =>
          takesPaths(ref.current!, (t) => replace(ref.current!.selectionStart, ref.current!.selectionEnd, t))
        }
        onBlur={() => setTimeout(() => setShown(null), 150)}
        onDragOver={(e) => {
          if (e.dataTransfer?.types.includes("application/x-satchel-path")) e.preventDefault();
        }}
        onDrop={(e) => {
          const path = e.dataTransfer?.getData("application/x-satchel-path");
          if (path) {
            e.preventDefault();
            const at = ref.current!.selectionStart;
            replace(at, at, `{{${path}}}`);
          }
        }}
      />
      {shown && (
        <ul class="suggestions" role="listbox" id={listId} aria-label="Values">
          {shown.list.map((s, i) => (
            <li
              key={s.insert}
              id={`${listId}-${i}`}
              role="option"
              aria-selected={i === shown.at}
              onMouseDown={(e) => {
                e.preventDefault();
                choose(s);
              }}
            >
              <code>{s.label}</code>
              <span class="muted clip">
                <bdi>{s.note ?? short(s.value)}</bdi>
              </span>
            </li>
          ))}
        </ul>
      )}
      {preview && <Filled of={preview} />}
    </div>
  );
}

/** A value as text. */
export const asText = (v: unknown) =>
  v === undefined || v === null ? "" : typeof v === "string" ? v : JSON.stringify(v);

/** A text with templates that may stand for another value, such as a number. */
export function ValueField({
  value,
  show = asText,
  read,
  onChange,
  ...rest
}: Omit<Props, "value" | "onInput"> & {
  value: unknown;
  show?: (v: unknown) => string;
  read: (text: string) => unknown;
  onChange: (v: unknown) => void;
}) {
  const [typed, setTyped] = useTyped(value, show);
  return (
    <TemplateField
      {...rest}
      value={typed}
      onInput={(t) => {
        const v = read(t);
        setTyped(t, v);
        onChange(v);
      }}
    />
  );
}

/** What a text with templates comes to, or which of them lead nowhere. */
export const Filled = ({ of }: { of: { text: string; missing: string[] } }) =>
  of.missing.length > 0 ? (
    <small class="filled missing">
      {of.missing.map((m) => (
        <>
          <code>{m}</code>{" "}
        </>
      ))}
      {of.missing.length === 1 ? "leads nowhere" : "lead nowhere"}
    </small>
  ) : (
    <small class="filled" title={of.text}>
      = <bdi>{short(of.text) || "empty"}</bdi>
    </small>
  );
