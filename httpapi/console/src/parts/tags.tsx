// Short texts as chips, with a field to add more.
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Icon } from "../ui";

type Props = {
  value: string[];
  onChange: (value: string[]) => void;
  label: string;
  known?: string[];
  autoFocus?: boolean;
  id?: string;
};

/** Tags: Enter or a comma adds what is typed, Backspace takes the last away. */
export function TagsInput({ value, onChange, label, known = [], autoFocus, id }: Props) {
  const [typed, setTyped] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const listId = useId();
  useEffect(() => {
    if (autoFocus) input.current?.focus();
  }, []);
  const add = (text: string) => {
    const more = text
      .split(",")
      .map((t) => t.trim())
      .filter((t, i, all) => t && !value.includes(t) && all.indexOf(t) === i);
    setTyped("");
    if (more.length) onChange([...value, ...more]);
  };
  const keys = (e: KeyboardEvent) => {
    if ((e.key === "Enter" && typed.trim()) || e.key === ",") {
      e.preventDefault();
      e.stopPropagation();
      add(typed);
    } else if (e.key === "Backspace" && !typed && value.length) onChange(value.slice(0, -1));
  };
  return (
    <div
      class="tags-input"
      onClick={(e) => {
        if (e.target === e.currentTarget) input.current?.focus();
      }}
    >
      {value.map((tag) => (
        <span class="tag" key={tag}>
          <bdi>{tag}</bdi>
          <button type="button" aria-label={`Remove ${tag}`} onClick={() => onChange(value.filter((t) => t !== tag))}>
            <Icon name="X" size={12} />
          </button>
        </span>
      ))}
      <input
        ref={input}
        id={id}
        aria-label={label}
        value={typed}
        list={listId}
        maxLength={100}
        placeholder={value.length ? "" : "Add a tag"}
        onInput={(e) => {
          const text = e.currentTarget.value;
          if (known.includes(text) && (e as InputEvent).inputType === "insertReplacementText") add(text);
          else setTyped(text);
        }}
        onBlur={() => add(typed)}
        onKeyDown={keys}
      />
      <datalist id={listId}>
        {known
          .filter((t) => !value.includes(t))
          .slice(0, 100)
          .map((t) => (
            <option value={t} />
          ))}
      </datalist>
    </div>
  );
}
