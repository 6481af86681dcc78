// The fields of a node, by the schema of its data.
import type { ComponentChildren } from "preact";
import { useContext, useId } from "preact/hooks";

import { FormFields } from "../parts/formfields";
import { lazy } from "../parts/lazy";
import { fieldsOf, type Schema } from "./catalog";
import { CasesField, ConditionsField, RowConditionsField } from "./conditions";
import { type ControlProps, FieldFrame, type FieldProps, hasType } from "./fieldframe";
import { JsonField } from "./jsonfield";
import { KeyValueField } from "./keyvaluefield";
import { ArgumentsField, OperationField } from "./operation";
import { ReferenceField } from "./referencefield";
import { BooleanField, ChipsField, ChoiceField, NumberField, ScriptField, SecretField } from "./simplefields";
import { SqlField } from "./sqlfield";
import { asText, NodeContext, TemplateField } from "./templatefield";

/** Builds the schema of a model's answer. */
const OutputSchemaField = lazy(() => import("./schemafield").then((m) => m.OutputSchemaField));

/** The fields of a form that people fill in. */
function FormFieldsField({ value, onChange, path, issue }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  return (
    <FormFields
      value={value ?? []}
      readonly={readonly}
      issue={(field) => issue?.(path + field)}
      onChange={(list) => onChange(list.length ? list : undefined)}
    />
  );
}

/** Text of several lines, or another value as JSON. */
function TextAreaField({ id, schema, value, onChange }: ControlProps) {
  const isText = typeof value === "string" || (value === undefined && hasType(schema, "string"));
  if (!isText) return <JsonField id={id} value={value} onChange={onChange} text />;
  return <TemplateField id={id} rows={3} value={asText(value)} onInput={(text) => onChange(text || undefined)} />;
}

/** The controls that a schema asks for by name. */
const widgets: Record<string, (props: ControlProps) => ComponentChildren> = {
  textarea: (props) => <TextAreaField {...props} />,
  template: (props) => <JsonField id={props.id} value={props.value} onChange={props.onChange} rows={1} text />,
  javascript: (props) => <ScriptField {...props} />,
  sql: (props) => (
    <SqlField
      label={props.schema.title ?? props.name}
      value={asText(props.value)}
      invalid={Boolean(props.issue?.(props.path))}
      onInput={(text) => props.onChange(text || undefined)}
    />
  ),
  selector: (props) => (
    <TemplateField
      id={props.id}
      code
      value={asText(props.value)}
      onInput={(text) => props.onChange(text || undefined)}
      placeholder="#id, .class, text=…"
    />
  ),
  duration: (props) => <NumberField {...props} />,
  chips: (props) => <ChipsField {...props} />,
  keyvalue: (props) => <KeyValueField {...props} />,
  schema: (props) => <OutputSchemaField id={props.id} value={props.value} onChange={props.onChange} />,
  conditions: (props) => <ConditionsField value={props.value} onChange={props.onChange} path={props.path} />,
  cases: (props) => <CasesField value={props.value} onChange={props.onChange} path={props.path} />,
  rowconditions: (props) => <RowConditionsField value={props.value} onChange={props.onChange} path={props.path} />,
  formfields: (props) => <FormFieldsField {...props} />,
  arguments: (props) => <ArgumentsField {...props} />,
};

/** The fields of an object within a node's data. */
function ObjectField({ schema, value, onChange, path, issue }: ControlProps) {
  return (
    <fieldset class="nested">
      <Fields
        schema={schema}
        value={(value ?? {}) as Record<string, unknown>}
        path={path}
        issue={issue}
        onChange={(object) => onChange(Object.keys(object).length ? object : undefined)}
      />
    </fieldset>
  );
}

/** A text that may have templates. */
function TextValueField({ id, schema, value, onChange, path, issue }: ControlProps) {
  return (
    <TemplateField
      id={id}
      value={asText(value)}
      onInput={(text) => onChange(text || undefined)}
      placeholder={schema.default === undefined ? undefined : String(schema.default)}
      invalid={Boolean(issue?.(path))}
    />
  );
}

/** Returns the control of a field: by what its schema says about it, else by its type. */
function controlOf(props: ControlProps): ComponentChildren {
  const { id, schema, value, onChange } = props;
  if (schema.writeOnly) return <SecretField {...props} />;
  if (schema["x-ref"] === "operation") return <OperationField {...props} />;
  if (schema["x-ref"]) return <ReferenceField {...props} />;
  const widget = widgets[schema["x-widget"] ?? ""];
  if (widget) return widget(props);
  if (schema.properties) return <ObjectField {...props} />;
  if (schema.enum) return <ChoiceField {...props} />;
  if (hasType(schema, "boolean")) return <BooleanField {...props} />;
  if (hasType(schema, "number") && !hasType(schema, "string")) return <NumberField {...props} />;
  if (hasType(schema, "object")) return <KeyValueField {...props} />;
  if (hasType(schema, "array")) return <JsonField id={id} value={value} onChange={onChange} />;
  if (schema.type === undefined) return <JsonField id={id} value={value} onChange={onChange} rows={1} text />;
  return <TextValueField {...props} />;
}

/** One field of a node by its schema. */
export function SchemaField(props: FieldProps) {
  const { name, schema, required, path, issue } = props;
  const id = useId();
  return (
    <FieldFrame
      title={schema.title ?? name}
      schema={schema}
      required={required}
      error={issue?.(path)}
      path={path}
      id={id}
    >
      {controlOf({ ...props, id })}
    </FieldFrame>
  );
}

type FieldsProps = {
  schema: Schema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  path: string;
  issue?: (path: string) => string | undefined;
};

/** The fields of an object. Advanced ones are folded away unless one of them is set or has a problem. */
export function Fields({ schema, value, onChange, path, issue }: FieldsProps) {
  const properties = schema.properties ?? {};
  const isSet = (name: string) => value[name] !== undefined;
  const applies = (field: Schema) =>
    Object.entries(field["x-when"] ?? {}).every(([other, values]) =>
      values.includes(asText(value[other] ?? properties[other]?.default)),
    );
  const fields = fieldsOf(schema).filter(([name, field]) => isSet(name) || applies(field));
  const pathOf = (name: string) => (path ? `${path}.${name}` : name);
  const set = (name: string, changed: unknown) => {
    const next = { ...value };
    if (changed === undefined) delete next[name];
    else next[name] = changed;
    onChange(next);
  };
  const render = ([name, field]: [string, Schema]) => (
    <SchemaField
      key={name}
      name={name}
      schema={field}
      value={value[name]}
      onChange={(changed) => set(name, changed)}
      required={schema.required?.includes(name)}
      path={pathOf(name)}
      issue={issue}
    />
  );
  const advanced = fields.filter(([, field]) => field["x-advanced"]);
  const open = advanced.some(([name]) => isSet(name) || issue?.(pathOf(name)));
  return (
    <>
      {fields.filter(([, field]) => !field["x-advanced"]).map(render)}
      {advanced.length > 0 && (
        <details class="more-fields" open={open}>
          <summary>More</summary>
          <div class="stack">{advanced.map(render)}</div>
        </details>
      )}
    </>
  );
}
