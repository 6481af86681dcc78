// Fields with their labels, hints and errors.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

type Common = { label: string; hint?: ComponentChildren; error?: string; disabled?: boolean };

function Frame({ label, hint, error, id, children }: Common & { id: string; children: ComponentChildren }) {
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {children}
      {error ? (
        <small class="issue" id={`${id}-issue`} role="alert">
          {error}
        </small>
      ) : (
        hint && <small class="muted">{hint}</small>
      )}
    </div>
  );
}

/** The type of a field of one line. */
export type InputType = "text" | "password" | "number" | "email" | "url" | "date";

/** The properties of a field of one line. */
export type TextProps = Common & {
  value: string;
  onInput: (value: string) => void;
  type?: InputType;
  placeholder?: string;
  required?: boolean;
  list?: string[];
  autoFocus?: boolean;
};

/** One line of text. */
export function TextField({
  value,
  onInput,
  type = "text",
  placeholder,
  required,
  list,
  autoFocus,
  ...common
}: TextProps) {
  const id = useId();
  return (
    <Frame {...common} id={id}>
      <input
        id={id}
        type={type as "text"}
        value={value}
        placeholder={placeholder}
        required={required}
        disabled={common.disabled}
        list={list && `${id}-list`}
        autoFocus={autoFocus}
        autocomplete={type === "password" ? "off" : undefined}
        aria-invalid={Boolean(common.error)}
        aria-describedby={common.error ? `${id}-issue` : undefined}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      {list && (
        <datalist id={`${id}-list`}>
          {list.map((v) => (
            <option value={v} />
          ))}
        </datalist>
      )}
    </Frame>
  );
}

/** Several lines of text; it grows with them. */
export function TextArea({
  value,
  onInput,
  rows = 3,
  code,
  placeholder,
  ...common
}: Common & { value: string; onInput: (value: string) => void; rows?: number; code?: boolean; placeholder?: string }) {
  const id = useId();
  return (
    <Frame {...common} id={id}>
      <textarea
        id={id}
        rows={rows}
        value={value}
        class={code ? "code" : ""}
        spellcheck={!code}
        disabled={common.disabled}
        placeholder={placeholder}
        aria-invalid={Boolean(common.error)}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
    </Frame>
  );
}

/** One of several values: [value, text]. */
export function SelectField({
  value,
  onChange,
  options,
  ...common
}: Common & { value: string; onChange: (value: string) => void; options: [string, string][] }) {
  const id = useId();
  return (
    <Frame {...common} id={id}>
      <select
        id={id}
        value={value}
        disabled={common.disabled}
        aria-invalid={Boolean(common.error)}
        onChange={(e) => onChange(e.currentTarget.value)}
      >
        {options.map(([v, text]) => (
          <option value={v} selected={v === value}>
            {text}
          </option>
        ))}
      </select>
    </Frame>
  );
}

/** On or off. */
export function Switch({
  label,
  checked,
  onChange,
  disabled,
  hint,
}: {
  label: string;
  checked: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
  hint?: string;
}) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        checked={checked}
        disabled={disabled}
        onChange={(e) => onChange(e.currentTarget.checked)}
      />
      <span>
        {label}
        {hint && <small class="muted"> {hint}</small>}
      </span>
    </label>
  );
}

/** A few values, of which one is chosen. */
export function Segments({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: [string, ComponentChildren][];
  onChange: (value: string) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([v, text]) => (
        <button type="button" aria-pressed={v === value} onClick={() => onChange(v)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A search that starts while one types. */
export function SearchField({
  value,
  onInput,
  label = "Search",
  placeholder = label,
}: {
  value: string;
  onInput: (value: string) => void;
  label?: string;
  placeholder?: string;
}) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <input
      type="search"
      class="search"
      aria-label={label}
      placeholder={placeholder}
      defaultValue={value}
      data-search
      onInput={(e) => {
        const text = e.currentTarget.value;
        clearTimeout(timer.current);
        timer.current = setTimeout(() => onInput(text), 250);
      }}
    />
  );
}
