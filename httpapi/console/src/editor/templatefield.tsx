// A text with templates, with suggestions after {{ and a preview of the values.
import { createContext } from "preact";
import { useContext, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useTyped } from "../parts/typed";
import type { GraphNode } from "./graph";
import { scopeOf } from "./samples";
import { Editor } from "./state";
import { fill, hasTemplate, labelsOf, suggest, type Filled, type Suggestion } from "./template";

/** The node whose fields are shown. */
export const NodeContext = createContext<{ editor: Editor; node: GraphNode; readonly: boolean }>({
  editor: new Editor(),
  node: { id: "", type: "" },
  readonly: true,
});

/** The field that had the focus last; a path that is chosen from the input is inserted there. */
let lastField: { element: HTMLElement; insert: (text: string) => void } | null = null;

/** Registers a field that has the focus, and the function that inserts a template into it. */
export const takesPaths = (element: HTMLElement, insert: (text: string) => void) => {
  lastField = { element, insert };
};

/** Inserts a template at the last cursor position; returns false if there is no such field. */
export function insertTemplate(path: string): boolean {
  if (!lastField?.element.isConnected) return false;
  lastField.insert(`{{${path}}}`);
  return true;
}

const short = (value: unknown) => {
  const text = value === undefined ? "" : asText(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

type TemplateFieldProps = {
  value: string;
  onInput: (text: string) => void;
  rows?: number;
  code?: boolean;
  label?: string;
  id?: string;
  placeholder?: string;
  invalid?: boolean;
};

/** Suggestions for the template at the cursor: where the text that they replace begins, and which one is active. */
type Suggestions = { from: number; list: Suggestion[]; active: number };

/** The type of the data that is dragged: a path that becomes a template. */
export const pathDataType = "application/x-satchel-path";
const closeDelay = 150; // milliseconds after the field lost the focus, in which a suggestion can be clicked

/** Reports whether a suggestion completes a template; one that is an object can be continued with a path. */
const isLeaf = ({ note, value }: Suggestion) =>
  (note !== undefined && value === undefined) || value === null || typeof value !== "object";

/** The suggestions of a template field, and what changes its text. */
function useSuggestions({ value, onInput }: TemplateFieldProps) {
  const { editor, node } = useContext(NodeContext);
  const field = useRef<HTMLTextAreaElement>(null);
  const [shown, setShown] = useState<Suggestions | null>(null);
  const caret = useRef<number | null>(null);
  useLayoutEffect(() => {
    // Before the next key, which may come within the same frame.
    if (caret.current === null || !field.current) return;
    field.current.setSelectionRange(caret.current, caret.current);
    caret.current = null;
  });
  const update = () => {
    const { value: text, selectionStart, selectionEnd } = field.current!;
    const found =
      selectionStart === selectionEnd ? suggest(text, selectionStart, scopeOf(editor, node), labelsOf(editor)) : null;
    setShown(found && found.list.length ? { ...found, active: 0 } : null);
  };
  const replace = (from: number, to: number, text: string, cursor = from + text.length) => {
    caret.current = cursor;
    onInput(value.slice(0, from) + text + value.slice(to));
    requestAnimationFrame(() => {
      field.current?.focus();
      update();
    });
  };
  const choose = (suggestion: Suggestion) => {
    const to = field.current!.selectionStart;
    const isClosed = /^\s*(\||\}\})/.test(value.slice(to));
    const leaf = isLeaf(suggestion);
    replace(shown!.from, to, leaf && !isClosed ? `${suggestion.insert}}}` : suggestion.insert);
    if (leaf) setShown(null);
  };
  return { field, shown, setShown, update, replace, choose };
}

/** Handles a key while suggestions are shown. */
function handleSuggestionKey(event: KeyboardEvent, suggestions: ReturnType<typeof useSuggestions>) {
  const { setShown, choose } = suggestions;
  const shown = suggestions.shown!;
  const { list, active } = shown;
  if (event.key === "ArrowDown") setShown({ ...shown, active: (active + 1) % list.length });
  else if (event.key === "ArrowUp") setShown({ ...shown, active: (active + list.length - 1) % list.length });
  else if (event.key === "Enter" || event.key === "Tab") choose(list[active]);
  else if (event.key === "Escape") setShown(null);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Completes {{ with }}, lets } be typed over those, and keeps line breaks out of fields of one line. */
function handleTextKey(event: KeyboardEvent, suggestions: ReturnType<typeof useSuggestions>, isLine: boolean) {
  const { value, selectionStart, selectionEnd } = suggestions.field.current!;
  const opensTemplate = event.key === "{" && value[selectionStart - 1] === "{";
  if (opensTemplate && !value.slice(selectionStart).startsWith("}}")) {
    event.preventDefault();
    suggestions.replace(selectionStart, selectionEnd, "{}}", selectionStart + 1);
  }
  const before = value.slice(0, selectionStart);
  const isInTemplate = before.lastIndexOf("{{") > before.lastIndexOf("}}");
  if (event.key === "}" && selectionStart === selectionEnd && isInTemplate && value[selectionStart] === "}") {
    event.preventDefault();
    suggestions.field.current!.setSelectionRange(selectionStart + 1, selectionStart + 1);
    suggestions.update();
  }
  const isModified = event.shiftKey || event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && isLine && !isModified) event.preventDefault();
}

/** A text with templates: with suggestions while one is typed, and below it the text with their values. */
export function TemplateField(props: TemplateFieldProps) {
  const { value, onInput, rows = 1, code, label, id, placeholder, invalid } = props;
  const { editor, node, readonly } = useContext(NodeContext);
  const suggestions = useSuggestions(props);
  const { field, shown, setShown, update, replace, choose } = suggestions;
  const listId = useId();
  const isLine = rows === 1 && !code;
  const insertAtSelection = (text: string) => {
    const { selectionStart, selectionEnd } = field.current!;
    replace(selectionStart, selectionEnd, text);
  };
  const onDrop = (event: DragEvent) => {
    const path = event.dataTransfer?.getData(pathDataType);
    if (!path) return;
    event.preventDefault();
    const cursor = field.current!.selectionStart;
    replace(cursor, cursor, `{{${path}}}`);
  };
  const preview = hasTemplate(value) ? fill(value, scopeOf(editor, node)) : null;
  return (
    <div class="template-field">
      <textarea
        ref={field}
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
        aria-activedescendant={shown ? `${listId}-${shown.active}` : undefined}
        aria-autocomplete="list"
        onInput={(e) => {
          onInput(e.currentTarget.value);
          requestAnimationFrame(() => field.current && update());
        }}
        onKeyDown={(e) => {
          if (shown) handleSuggestionKey(e, suggestions);
          if (!e.defaultPrevented) handleTextKey(e, suggestions, isLine);
        }}
        onClick={update}
        onFocus={() => takesPaths(field.current!, insertAtSelection)}
        onBlur={() => setTimeout(() => setShown(null), closeDelay)}
        onDragOver={(e) => {
          if (e.dataTransfer?.types.includes(pathDataType)) e.preventDefault();
        }}
        onDrop={onDrop}
      />
      {shown && <SuggestionList id={listId} shown={shown} choose={choose} />}
      {preview && <FilledTemplate filled={preview} />}
    </div>
  );
}

type SuggestionListProps = { id: string; shown: Suggestions; choose: (suggestion: Suggestion) => void };

function SuggestionList({ id, shown, choose }: SuggestionListProps) {
  return (
    <ul class="suggestions" role="listbox" id={id} aria-label="Values">
      {shown.list.map((suggestion, index) => (
        <li
          key={suggestion.insert}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === shown.active}
          onMouseDown={(e) => {
            e.preventDefault();
            choose(suggestion);
          }}
        >
          <code>{suggestion.label}</code>
          <span class="muted clip">
            <bdi>{suggestion.note ?? short(suggestion.value)}</bdi>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Returns a value as text: empty for undefined and null, JSON for what is not text. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

type ValueFieldProps = Omit<TemplateFieldProps, "value" | "onInput"> & {
  value: unknown;
  show?: (value: unknown) => string;
  read: (text: string) => unknown;
  onChange: (value: unknown) => void;
};

/** A text with templates for a value of another type, such as a number. */
export function ValueField({ value, show = asText, read, onChange, ...rest }: ValueFieldProps) {
  const [typed, setTyped] = useTyped(value, show);
  const onInput = (text: string) => {
    const changed = read(text);
    setTyped(text, changed);
    onChange(changed);
  };
  return <TemplateField {...rest} value={typed} onInput={onInput} />;
}

/** A text with the values of its templates, or the templates that have none. */
export function FilledTemplate({ filled: { text, missing, problem } }: { filled: Filled }) {
  if (problem) return <small class="filled missing">{problem}</small>;
  if (missing.length === 0)
    return (
      <small class="filled" title={text}>
        = <bdi>{short(text) || "empty"}</bdi>
      </small>
    );
  return (
    <small class="filled missing">
      {missing.map((template) => (
        <>
          <code>{template}</code>{" "}
        </>
      ))}
      {missing.length === 1 ? "has no value" : "have no value"}
    </small>
  );
}
