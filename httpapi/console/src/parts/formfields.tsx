// Editing the fields of a form, and a preview of the form.
import { useRef } from "preact/hooks";

import type { API } from "../data";
import { AddRow, Button } from "../ui";
import { slug } from "./tables";

/** A field of a form that is edited and may be incomplete. */
export type FormField = Partial<API.FormField>;
/** A form that is edited. */
export type FormData = {
  title?: string;
  description?: string;
  submit?: string;
  success?: string;
  fields?: FormField[];
};

/** The types of fields and their labels. */
export const fieldTypes: [type: string, label: string][] = [
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

const hasOptions = (field: FormField) => field.type === "choice" || field.type === "choices";

/** Returns a name for a field with a label, which no field but the one at an index has. */
function freeName(fields: FormField[], label: string, index = -1): string {
  const name = slug(label, "field");
  const taken = new Set(fields.filter((_, other) => other !== index).map((field) => field.name));
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}_${n}`;
  return free;
}

type FormFieldsProps = {
  value: FormField[];
  onChange: (fields: FormField[]) => void;
  readonly?: boolean;
  /** Returns the issue at a path such as [0].name. */
  issue?: (path: string) => string | undefined;
};

/** The fields of a form, which can be changed and reordered. */
export function FormFields({ value: fields, onChange, readonly, issue }: FormFieldsProps) {
  const savedNames = useRef(new Set(fields.map((field) => field.name))); // templates may use them already
  const change = (index: number, changes: FormField) => onChange(fields.with(index, { ...fields[index], ...changes }));
  const move = (index: number, offset: number) => {
    const other = index + offset;
    onChange(fields.with(index, fields[other]).with(other, fields[index]));
  };
  /** Changes a label, and the name of a new field with it. */
  const setLabel = (index: number, label: string) => {
    const { name, label: before = "" } = fields[index];
    const isGenerated = !savedNames.current.has(name) && name === freeName(fields, before, index);
    change(index, { label, ...((!name || isGenerated) && { name: freeName(fields, label, index) }) });
  };
  const addField = () => onChange([...fields, { name: freeName(fields, ""), label: "", type: "text" }]);
  return (
    <div class="columns-editor form-fields">
      {fields.map((field, index) => (
        <FieldEditor
          key={index}
          field={field}
          number={index + 1}
          isLast={index === fields.length - 1}
          readonly={readonly}
          issue={["name", "type", "label", "options"].map((part) => issue?.(`[${index}].${part}`)).find(Boolean)}
          change={(changes) => change(index, changes)}
          setLabel={(label) => setLabel(index, label)}
          move={(offset) => move(index, offset)}
          remove={() => onChange(fields.toSpliced(index, 1))}
        />
      ))}
      {!readonly && <AddRow title="Add a field" add={addField} />}
    </div>
  );
}

type FieldEditorProps = {
  field: FormField;
  /** The position of the field, from 1. */
  number: number;
  isLast: boolean;
  readonly?: boolean;
  issue?: string;
  change: (changes: FormField) => void;
  setLabel: (label: string) => void;
  move: (offset: number) => void;
  remove: () => void;
};

function FieldEditor(props: FieldEditorProps) {
  const { field, number, readonly, issue, change, setLabel } = props;
  const type = field.type ?? "text";
  return (
    <div class={issue ? "column-editor wrong" : "column-editor"}>
      <input
        aria-label={`Label of field ${number}`}
        placeholder="Shown to people"
        value={field.label ?? field.name ?? ""}
        readOnly={readonly}
        onInput={(event) => setLabel(event.currentTarget.value)}
      />
      <select
        aria-label={`Type of field ${number}`}
        value={type}
        disabled={readonly}
        onChange={(event) => change({ type: event.currentTarget.value as FormField["type"] })}
      >
        {fieldTypes.map(([value, label]) => (
          <option value={value} selected={value === type}>
            {label}
          </option>
        ))}
      </select>
      <label class="tick">
        <input
          type="checkbox"
          checked={Boolean(field.required)}
          disabled={readonly}
          onChange={(event) => change({ required: event.currentTarget.checked || undefined })}
        />{" "}
        required
      </label>
      {!readonly && <FieldButtons {...props} />}
      <NameAndHelp {...props} />
      {hasOptions(field) && <Options {...props} />}
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </div>
  );
}

function FieldButtons({ number, isLast, move, remove }: FieldEditorProps) {
  return (
    <span class="row nowrap tight">
      <Button
        kind="quiet"
        icon="ChevronUp"
        label={`Move field ${number} up`}
        disabled={number === 1}
        onClick={() => move(-1)}
      />
      <Button
        kind="quiet"
        icon="ChevronDown"
        label={`Move field ${number} down`}
        disabled={isLast}
        onClick={() => move(1)}
      />
      <Button kind="quiet" icon="X" label={`Remove field ${number}`} onClick={remove} />
    </span>
  );
}

function NameAndHelp({ field, number, readonly, change }: FieldEditorProps) {
  return (
    <div class="field-more row">
      <label class="small muted">
        In the workflow{" "}
        <input
          class="code"
          aria-label={`Name of field ${number}`}
          value={field.name ?? ""}
          readOnly={readonly}
          onInput={(event) => change({ name: event.currentTarget.value })}
        />
      </label>
      <label class="small muted grow">
        Help{" "}
        <input
          aria-label={`Help of field ${number}`}
          value={field.help ?? ""}
          readOnly={readonly}
          onInput={(event) => change({ help: event.currentTarget.value || undefined })}
        />
      </label>
    </div>
  );
}

/** The options of a choice; empty lines are removed when the field loses the focus. */
function Options({ field, number, readonly, change }: FieldEditorProps) {
  const removeEmpty = (text: string) => {
    const options = text.split("\n").map((option) => option.trim());
    change({ options: options.filter(Boolean) });
  };
  return (
    <textarea
      class="column-options"
      rows={3}
      aria-label={`Options of field ${number}`}
      placeholder="One option per line"
      readOnly={readonly}
      value={(field.options ?? []).join("\n")}
      onInput={(event) => change({ options: event.currentTarget.value.split("\n") })}
      onBlur={(event) => removeEmpty(event.currentTarget.value)}
    />
  );
}

/** A form as people see it, which cannot be sent. */
export function FormPreview({ form, name }: { form: FormData; name: string }) {
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
        {(form.fields ?? []).map((field, index) => (
          <FieldPreview key={index} field={field} title={field.label || field.name || `Field ${index + 1}`} />
        ))}
        <Button kind="primary">{form.submit || "Send"}</Button>
      </div>
    </section>
  );
}

type FieldPreviewProps = { field: FormField; title: string };

function FieldPreview({ field, title }: FieldPreviewProps) {
  const label = (
    <>
      <bdi>{title}</bdi>
      {field.required && (
        <span class="issue" title="required">
          {" "}
          *
        </span>
      )}
    </>
  );
  if (field.type === "choices")
    return (
      <fieldset>
        <legend>{label}</legend>
        {optionsOf(field).map((option) => (
          <label class="tick">
            <input type="checkbox" /> <bdi>{option}</bdi>
          </label>
        ))}
      </fieldset>
    );
  if (field.type === "boolean")
    return (
      <div class="field">
        <label class="tick">
          <input type="checkbox" /> <span>{label}</span>
        </label>
      </div>
    );
  return (
    <div class="field">
      <label>
        <span>{label}</span>
        <Control field={field} />
      </label>
      {field.help && (
        <small class="muted">
          <bdi>{field.help}</bdi>
        </small>
      )}
    </div>
  );
}

const optionsOf = (field: FormField) => (field.options ?? []).filter(Boolean);

const inputTypes: Record<string, string> = {
  email: "email",
  phone: "tel",
  url: "url",
  number: "number",
  date: "date",
  file: "file",
};

function Control({ field }: { field: FormField }) {
  if (field.type === "long_text") return <textarea rows={4} />;
  if (field.type !== "choice") return <input type={(inputTypes[field.type ?? ""] ?? "text") as "text"} />;
  return (
    <select>
      <option />
      {optionsOf(field).map((option) => (
        <option>{option}</option>
      ))}
    </select>
  );
}
