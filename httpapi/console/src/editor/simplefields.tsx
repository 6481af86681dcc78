// Fields of single values: numbers, switches, choices, lists of short texts, secrets and scripts.
import { useContext, useState } from "preact/hooks";

import { Button, Code, Icon, Segments } from "../ui";
import type { ControlProps } from "./fieldframe";
import { hasTemplate } from "./template";
import { asText, NodeContext, TemplateField, ValueField } from "./templatefield";

/** Returns a value that is a text with templates. */
const asTemplate = (value: unknown) => (typeof value === "string" && hasTemplate(value) ? value : undefined);

/** Reads a number; other text, such as a template, stays text. */
function readNumber(text: string): number | string | undefined {
  if (text.trim() === "") return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** A number, or a template that gives one. */
export function NumberField({ id, schema, value, onChange }: ControlProps) {
  return (
    <ValueField
      id={id}
      value={value}
      read={readNumber}
      onChange={onChange}
      placeholder={schema.default !== undefined ? String(schema.default) : undefined}
    />
  );
}

/** Yes or no, or a template. */
export function BooleanField({ id, schema, value, onChange }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  const template = asTemplate(value);
  if (template !== undefined)
    return <TemplateField id={id} value={template} onInput={(text) => onChange(text || undefined)} />;
  const initial = schema.default ?? false;
  return (
    <span class="switch">
      <input
        id={id}
        type="checkbox"
        role="switch"
        checked={(value ?? initial) === true}
        disabled={readonly}
        onChange={(e) => onChange(e.currentTarget.checked === initial ? undefined : e.currentTarget.checked)}
      />
    </span>
  );
}

const maxSegments = 3;

/** One of the values that the schema lists, or a template. */
export function ChoiceField({ id, schema, value, onChange }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  const template = asTemplate(value);
  if (template !== undefined)
    return <TemplateField id={id} value={template} onInput={(text) => onChange(text || undefined)} />;
  const options = schema.enum!;
  const current = asText(value ?? schema.default);
  const pick = (option: string) => onChange(option === schema.default ? undefined : option || undefined);
  if (options.length <= maxSegments && schema.default !== undefined && !readonly)
    return (
      <Segments
        label={schema.title ?? ""}
        value={current}
        options={options.map((option) => [option, option])}
        onChange={pick}
      />
    );
  const isUnknown = current !== "" && !options.includes(current);
  return (
    <select id={id} value={current} disabled={readonly} onChange={(e) => pick(e.currentTarget.value)}>
      {schema.default === undefined && (
        <option value="" selected={current === ""}>
          –
        </option>
      )}
      {[...options, ...(isUnknown ? [current] : [])].map((option) => (
        <option value={option} selected={option === current}>
          {option}
        </option>
      ))}
    </select>
  );
}

const splitList = (text: string) => text.split(",").map((item) => item.trim());

function readChips(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String);
  return typeof value === "string" && value ? splitList(value) : [];
}

/** Several short texts, or a template that gives them. */
export function ChipsField({ id, value, onChange }: ControlProps) {
  const [typed, setTyped] = useState("");
  const { readonly } = useContext(NodeContext);
  const template = asTemplate(value);
  if (template !== undefined)
    return <TemplateField id={id} value={template} onInput={(text) => onChange(text || undefined)} />;
  const chips = readChips(value);
  const set = (next: string[]) => onChange(next.length ? next : undefined);
  const add = (text: string) => {
    const added = splitList(text).filter(Boolean);
    setTyped("");
    if (!added.length) return;
    const isTemplate = !chips.length && added.length === 1 && hasTemplate(added[0]);
    onChange(isTemplate ? added[0] : [...chips, ...added]);
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === "Enter" || e.key === ",") {
      e.preventDefault();
      add(typed);
    }
    if (e.key === "Backspace" && !typed && chips.length) set(chips.slice(0, -1));
  };
  return (
    <div class="chips">
      {chips.map((chip, index) => (
        <span class="chip" key={`${chip}${index}`}>
          <bdi>{chip}</bdi>
          {!readonly && (
            <button
              type="button"
              aria-label={`Remove ${chip}`}
              onClick={() => set(chips.filter((_, other) => other !== index))}
            >
              <Icon name="X" size={12} />
            </button>
          )}
        </span>
      ))}
      <input
        id={id}
        value={typed}
        readOnly={readonly}
        placeholder={chips.length ? "" : "Type and press Enter"}
        onInput={(e) => setTyped(e.currentTarget.value)}
        onBlur={() => add(typed)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

/** A secret: it is set or replaced, and never shown. */
export function SecretField({ id, value, onChange }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  const [replacing, setReplacing] = useState(false);
  const isStored = typeof value === "string" && /^\*+$/.test(value);
  if (isStored && !replacing) {
    const replace = () => {
      setReplacing(true);
      onChange(undefined);
    };
    return (
      <div class="row">
        <span class="muted">is set</span>
        {!readonly && <Button onClick={replace}>Replace</Button>}
      </div>
    );
  }
  return (
    <input
      id={id}
      type={(hasTemplate(value) ? "text" : "password") as "password"}
      autocomplete="off"
      value={asText(value)}
      readOnly={readonly}
      onInput={(e) => onChange(e.currentTarget.value || undefined)}
    />
  );
}

/** JavaScript. */
export function ScriptField({ schema, value, onChange, path, issue }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  return (
    <Code
      language="javascript"
      label={schema.title ?? "Code"}
      rows={6}
      value={asText(value)}
      readonly={readonly}
      invalid={Boolean(issue?.(path))}
      onInput={(code) => onChange(code || undefined)}
    />
  );
}
