// Tools that run a workflow.
import { agentId, href } from "../../data";
import { TextArea, TextField, type FormState, type TextOf } from "../../ui";
import { ArgumentsSchema, type Schema } from "../../parts/arguments";
import { PickField } from "../../parts/pick";
import type { ToolValues } from "./values";

/** The config that a form says. parse reads JSON. */
export function workflowConfig(
  v: ToolValues,
  parse: (text: string, field: string) => unknown,
): Record<string, unknown> {
  const defaults = parse(v.defaults, "config.defaults");
  return {
    workflow_id: v.workflow_id,
    parameters: v.parameters,
    ...(defaults === undefined ? {} : { defaults }),
    ...(v.response_path && { response_path: v.response_path }),
    ...(v.timeout_ms && { timeout_ms: Number(v.timeout_ms) }),
  };
}

export function WorkflowFields({
  form,
  text,
  issue,
  off,
}: {
  form: FormState<ToolValues>;
  text: TextOf<ToolValues>;
  issue: (name: string) => string | undefined;
  off: boolean;
}) {
  const v = form.values;
  return (
    <>
      {off ? (
        <p>
          <a href={href(agentId.value, "workflows", v.workflow_id)}>Open workflow</a>
        </p>
      ) : (
        <PickField
          label="Workflow"
          kind="workflows"
          value={v.workflow_id}
          onChange={(id) => form.set("workflow_id", id)}
          error={issue("workflow_id")}
          hint="It must be active. The arguments are its trigger payload; its output is the result."
        />
      )}
      <ArgumentsSchema
        value={v.parameters}
        onChange={(s) => form.set("parameters", s)}
        disabled={off}
        error={issue("parameters")}
      />
      <details
        open={
          [v.defaults, v.response_path, v.timeout_ms].some(Boolean) ||
          ["defaults", "response_path", "timeout_ms"].some(issue)
        }
      >
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
    </>
  );
}

/** The arguments that a model sees: those that are not set. */
export function seenArguments(schema: Schema | undefined, defaults: Record<string, unknown> = {}): Schema | undefined {
  if (!schema) return undefined;
  const seen = (name: string) => !(name in defaults);
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => seen(name))),
    required: (schema.required ?? []).filter(seen),
  };
}
