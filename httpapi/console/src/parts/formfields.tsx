// The fields of a form, made and put in order; and how the form looks.
import { useRef } from "preact/hooks";

import type { API } from "../data";
import { Button } from "../ui";
import { slug } from "./tables";

/** A field of a form, which may not be finished yet. */
export type FormField = Partial<API.FormField>;
export type FormData = {
  title?: string;
  description?: string;
  submit?: string;
  success?: string;
  fields?: FormField[];
};

export const fieldTypes: [string, string][] = [
  ["text", "Text"],
  ["long_text", "Long text"],
  ["email", "Email"],
  ["phone", "Phone"],
  ["url", "Web address"],
  ["number", "Number"],
  ["boolean", "Checkbox"],
  ["date", "Date"],
  ["choice", "Single choice"],
  ["choices", "Multiple choice"],
  ["file", "File"],
];

const hasOptions = (f: FormField) => f.type === "choice" || f.type === "choices";

export function FormFields({
  value,
  onChange,
  readonly,
  issue,
}: {
  value: FormField[];
  onChange: (fields: FormField[]) => void;
  readonly?: boolean;
  issue?: (path: string) => string | undefined;
}) {
  const kept = useRef(new Set(value.map((f) => f.name))); // what the workflow may know already
  const set = (i: number, change: FormField) => onChange(value.map((f, j) => (j === i ? { ...f, ...change } : f)));
  const move = (i: number, by: number) => {
    const next = [...value];
    [next[i], next[i + by]] = [next[i + by], next[i]];
    onChange(next);
  };
  const free = (label: string, but: number) => {
    const name = slug(label, "field");
    for (let n = 1; ; n++) {
      const tried = n === 1 ? name : `${name}_${n}`;
      if (!value.some((f, j) => j !== but && f.name === tried)) return tried;
    }
  };
  /** The label as typed; the name of a new field follows. */
  const label = (i: number, text: string) =>
    set(i, {
      label: text,
      ...(!value[i].name || (!kept.current.has(value[i].name) && value[i].name === free(value[i].label ?? "", i))
        ? { name: free(text, i) }
        : {}),
    });
  return (
    <div class="columns-editor form-fields">
      {value.map((f, i) => {
        const wrong = ["name", "type", "label", "options"].map((p) => issue?.(`[${i}].${p}`)).find(Boolean);
        return (
          <div class={wrong ? "column-editor wrong" : "column-editor"} key={i}>
            <input
              aria-label={`Label of field ${i + 1}`}
              placeholder="Shown to people"
              value={f.label ?? f.name ?? ""}
              readOnly={readonly}
              onInput={(e) => label(i, e.currentTarget.value)}
            />
            <select
              aria-label={`Type of field ${i + 1}`}
              value={f.type ?? "text"}
              disabled={readonly}
              onChange={(e) => set(i, { type: e.currentTarget.value as FormField["type"] })}
            >
              {fieldTypes.map(([v, title]) => (
                <option value={v} selected={v === (f.type ?? "text")}>
                  {title}
                </option>
              ))}
            </select>
            <label class="tick">
              <input
                type="checkbox"
                checked={Boolean(f.required)}
                disabled={readonly}
                onChange={(e) => set(i, { required: e.currentTarget.checked || undefined })}
              />{" "}
              required
            </label>
            {!readonly && (
              <span class="row nowrap tight">
                <Button
                  kind="quiet"
                  icon="ChevronUp"
                  label={`Move field ${i + 1} up`}
                  disabled={i === 0}
                  onClick={() => move(i, -1)}
                />
                <Button
                  kind="quiet"
                  icon="ChevronDown"
                  label={`Move field ${i + 1} down`}
                  disabled={i === value.length - 1}
                  onClick={() => move(i, 1)}
                />
                <Button
                  kind="quiet"
                  icon="X"
                  label={`Remove field ${i + 1}`}
                  onClick={() => onChange(value.filter((_, j) => j !== i))}
                />
              </span>
            )}
            <div class="field-more row">
              <label class="small muted">
                In the workflow{" "}
                <input
                  class="code"
                  aria-label={`Name of field ${i + 1}`}
                  value={f.name ?? ""}
                  readOnly={readonly}
                  onInput={(e) => set(i, { name: e.currentTarget.value })}
                />
              </label>
              <label class="small muted grow">
                Help{" "}
                <input
                  aria-label={`Help of field ${i + 1}`}
                  value={f.help ?? ""}
                  readOnly={readonly}
                  onInput={(e) => set(i, { help: e.currentTarget.value || undefined })}
                />
              </label>
            </div>
            {hasOptions(f) && (
              <textarea
                class="column-options"
                rows={3}
                aria-label={`Options of field ${i + 1}`}
                placeholder="One option per line"
                readOnly={readonly}
                value={(f.options ?? []).join("\n")}
                onInput={(e) => set(i, { options: e.currentTarget.value.split("\n") })}
                onBlur={(e) =>
                  set(i, {
                    options: e.currentTarget.value
                      .split("\n")
                      .map((o) => o.trim())
                      .filter(Boolean),
                  })
                }
              />
            )}
            {wrong && (
              <small class="issue" role="alert">
                {wrong}
              </small>
            )}
          </div>
        );
      })}
      {!readonly && (
        <div class="row">
          <Button icon="Plus" onClick={() => onChange([...value, { name: free("", -1), label: "", type: "text" }])}>
            Add a field
          </Button>
        </div>
      )}
    </div>
  );
}

const inputs: Record<string, string> = {
  email: "email",
  phone: "tel",
  url: "url",
  number: "number",
  date: "date",
  file: "file",
};

/** How people see a form; nothing can be sent from it. */
export function FormPreview({ form, name }: { form: FormData; name: string }) {
  const star = (f: FormField) =>
    f.required && (
      <span class="issue" title="required">
        {" "}
        *
      </span>
    );
  return (
    <section class="form-preview" aria-label="Preview">
      <div inert>
        <h2>
          <bdi>{form.title || name}</bdi>
        </h2>
        {form.description && (
          <p class="form-text">
            <bdi>{form.description}</bdi>
          </p>
        )}
        {(form.fields ?? []).map((f, i) => {
          const title = f.label || f.name || `Field ${i + 1}`;
          if (f.type === "choices")
            return (
              <fieldset key={i}>
                <legend>
                  <bdi>{title}</bdi>
                  {star(f)}
                </legend>
                {(f.options ?? []).filter(Boolean).map((o) => (
                  <label class="tick">
                    <input type="checkbox" /> <bdi>{o}</bdi>
                  </label>
                ))}
              </fieldset>
            );
          if (f.type === "boolean")
            return (
              <div class="field" key={i}>
                <label class="tick">
                  <input type="checkbox" />{" "}
                  <span>
                    <bdi>{title}</bdi>
                    {star(f)}
                  </span>
                </label>
              </div>
            );
          return (
            <div class="field" key={i}>
              <label>
                <span>
                  <bdi>{title}</bdi>
                  {star(f)}
                </span>
                {f.type === "long_text" ? (
                  <textarea rows={4} />
                ) : f.type === "choice" ? (
                  <select>
                    <option />
                    {(f.options ?? []).filter(Boolean).map((o) => (
                      <option>{o}</option>
                    ))}
                  </select>
                ) : (
                  <input type={(inputs[f.type ?? ""] ?? "text") as "text"} />
                )}
              </label>
              {f.help && (
                <small class="muted">
                  <bdi>{f.help}</bdi>
                </small>
              )}
            </div>
          );
        })}
        <Button kind="primary">{form.submit || "Send"}</Button>
      </div>
    </section>
  );
}
