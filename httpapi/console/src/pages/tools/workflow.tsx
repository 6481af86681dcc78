// Tools that run a workflow.
import { agentId, href } from "../../data";
import { TextArea, TextField } from "../../ui";
import { ArgumentsSchema, type Schema } from "../../parts/arguments";
import { PickField } from "../../parts/pick";
import type { ToolFieldsProps } from "./fields";
import type { ToolValues } from "./values";

/** The config of such a tool for the values of the form; parse reads JSON. */
export function workflowConfig(
  { workflow_id, parameters, defaults: defaultsText, response_path, timeout_ms }: ToolValues,
  parse: (text: string, field: string) => unknown,
): Record<string, unknown> {
  const defaults = parse(defaultsText, "config.defaults");
  return {
    workflow_id,
    parameters,
    ...(defaults === undefined ? {} : { defaults }),
    ...(response_path && { response_path }),
    ...(timeout_ms && { timeout_ms: Number(timeout_ms) }),
  };
}

/** The fields of a tool that runs a workflow. */
export function WorkflowFields(props: ToolFieldsProps) {
  const { form, issue, disabled } = props;
  const { workflow_id, parameters } = form.values;
  return (
    <>
      {disabled ? (
        <p>
          <a href={href(agentId.value, "workflows", workflow_id)}>Open workflow</a>
        </p>
      ) : (
        <PickField
          label="Workflow"
          kind="workflows"
          value={workflow_id}
          onChange={(id) => form.set("workflow_id", id)}
          error={issue("workflow_id")}
          hint="It must be active. The arguments are its trigger payload; its output is the result."
        />
      )}
      <ArgumentsSchema
        value={parameters}
        onChange={(schema) => form.set("parameters", schema)}
        disabled={disabled}
        error={issue("parameters")}
      />
      <MoreFields {...props} />
    </>
  );
}

function MoreFields({ form, text, issue }: ToolFieldsProps) {
  const fields = ["defaults", "response_path", "timeout_ms"] as const;
  return (
    <details open={fields.some((name) => form.values[name] || issue(name))}>
      <summary>More</summary>
      <div class="stack">
        <TextArea
          label="Set arguments"
          code
          rows={3}
          placeholder={'{"channel": "chat"}'}
          hint="A JSON object of arguments that the model neither sees nor sets."
          {...text("defaults")}
        />
        <div class="row">
          <TextField
            label="Part of the output"
            placeholder="data.items"
            hint="Empty: all of it."
            {...text("response_path")}
          />
          <TextField label="Time limit in ms" type="number" placeholder="60000" {...text("timeout_ms")} />
        </div>
      </div>
    </details>
  );
}

/** The arguments that a model sees: those that are not set. */
export function visibleArguments(
  schema: Schema | undefined,
  defaults: Record<string, unknown> = {},
): Schema | undefined {
  if (!schema) return undefined;
  const seen = (name: string) => !(name in defaults);
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => seen(name))),
    required: (schema.required ?? []).filter(seen),
  };
}
