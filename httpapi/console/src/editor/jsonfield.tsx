// A field that holds any JSON value, written as text.
import { useContext } from "preact/hooks";

import { useTyped } from "../parts/typed";
import { hasTemplate } from "./template";
import { NodeContext, TemplateField } from "./templatefield";

const format = (value: unknown) => {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
};

/** Parses JSON; returns other text as it is. */
export function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reports whether a text with templates is a text, and not JSON that contains templates. */
export const isTemplateText = (text: string) => hasTemplate(text) && !/^[[{](?!\{)/.test(text);

type JsonFieldProps = {
  id?: string;
  value: unknown;
  onChange: (value: unknown) => void;
  rows?: number;
  /** Text that is not JSON is a value too. */
  text?: boolean;
  label?: string;
};

/** JSON as text. Text that is not valid JSON yet stays in the field and does not change the value. */
export function JsonField({ id, value, onChange, rows = 4, text, label }: JsonFieldProps) {
  const [typed, setTyped] = useTyped(value, format);
  const { readonly } = useContext(NodeContext);
  const read = (input: string): { value: unknown; invalid?: boolean } => {
    if (!input.trim()) return { value: undefined };
    try {
      const parsed = JSON.parse(input);
      const isObject = typeof parsed === "object" && parsed !== null;
      return { value: text && !isObject ? input : parsed };
    } catch {
      return text || hasTemplate(input) ? { value: input } : { value, invalid: true };
    }
  };
  const onInput = (input: string) => {
    const result = read(input);
    setTyped(input, result.value);
    if (!result.invalid) onChange(result.value);
  };
  return (
    <>
      {text ? (
        <TemplateField id={id} label={label} value={typed} onInput={onInput} rows={rows} />
      ) : (
        <textarea
          id={id}
          aria-label={label}
          class="code"
          rows={rows}
          value={typed}
          spellcheck={false}
          readOnly={readonly}
          onInput={(e) => onInput(e.currentTarget.value)}
        />
      )}
      {read(typed).invalid && <small class="issue">Not valid JSON yet.</small>}
    </>
  );
}
