// What surrounds the control of each field of a node, and what the controls are given.
import type { ComponentChildren } from "preact";

import type { Schema } from "./catalog";

/** A field of a node's data. */
export type FieldProps = {
  name: string;
  schema: Schema;
  value: unknown;
  /** Sets the value; undefined removes the field. */
  onChange: (value: unknown) => void;
  required?: boolean;
  /** The path of the field in the node's data. */
  path: string;
  /** The problem of the field at a path, if it has one. */
  issue?: (path: string) => string | undefined;
};

/** A field for its control, which has the id that the label refers to. */
export type ControlProps = FieldProps & { id: string };

/** Reports whether a schema allows a type. */
export const hasType = (schema: Schema, type: string) => [schema.type].flat().includes(type);

/** Returns a value that is an object, but no list. */
export const asObject = (value: unknown) =>
  value && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

type FrameProps = {
  title: string;
  schema?: Schema;
  required?: boolean;
  error?: string;
  path: string;
  children: ComponentChildren;
  id?: string;
  extra?: ComponentChildren;
};

/** A field with its title, and its problem or else its description. */
export function FieldFrame({ title, schema, required, error, path, children, id, extra }: FrameProps) {
  const isReferenceList = schema?.["x-ref"] && hasType(schema, "array");
  return (
    <div class={error ? "field wrong" : "field"} data-field={path}>
      <div class="row nowrap field-head">
        <label for={id} class="grow">
          {title}
          {required && <RequiredMark />}
          {schema?.["x-unit"] && <span class="muted"> in {schema["x-unit"]}</span>}
        </label>
        {extra}
      </div>
      {children}
      {error && (
        <small class="issue" role="alert">
          {error}
        </small>
      )}
      {!error && schema?.description && !isReferenceList && <small class="muted">{schema.description}</small>}
    </div>
  );
}

/** The asterisk of a required field. */
export const RequiredMark = () => (
  <span class="muted" aria-hidden="true">
    {" "}
    *
  </span>
);
