// Tools that call operations of an API: one operation, or a set that the model searches.
import { agentId, href, post, useQuery, type API } from "../../data";
import { Name, SelectField, Skeleton, TextArea, TextField } from "../../ui";
import type { Schema } from "../../parts/arguments";
import { CredentialSelect } from "../../parts/credentials";
import { TryTool } from "../../parts/trytool";
import { apisAt } from "../apis/paths";
import { linesOf, type ToolFieldsProps } from "./fields";
import { toolsAt } from "./paths";
import type { ToolConfig, ToolValues } from "./values";
import { visibleArguments } from "./workflow";

/** The types of tools that call operations of an API. */
export const operationTypes = ["operation", "api-set"];

/** The config of such a tool for the values of the form; parse reads JSON. */
export function operationConfig(
  type: string,
  values: ToolValues,
  parse: (text: string, field: string) => unknown,
): Record<string, unknown> {
  const config: Record<string, unknown> = { api_id: values.api_id };
  if (values.credential) config.credential = values.credential;
  if (values.timeout_ms) config.timeout_ms = Number(values.timeout_ms);
  if (type === "api-set") {
    const allow = allowOf(values);
    return Object.keys(allow).length ? { ...config, allow } : config;
  }
  const defaults = parse(values.defaults, "config.defaults");
  return {
    ...config,
    operation: values.operation,
    ...(defaults === undefined ? {} : { defaults }),
    ...(values.response_path && { response_path: values.response_path }),
  };
}

/** The lists that operations of a set must be on; those that are empty are left out. */
function allowOf({ tags, methods, operations }: ToolValues) {
  const lists = {
    tags: linesOf(tags),
    methods: methods.split(/[\s,]+/).filter(Boolean),
    operations: linesOf(operations),
  };
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length));
}

/** The fields of a tool that calls operations. */
export function OperationFields({ type, ...props }: ToolFieldsProps & { type: string }) {
  const { form, text, issue, disabled } = props;
  const { credential, timeout_ms, response_path } = form.values;
  return (
    <>
      <APIAndOperations type={type} {...props} />
      <details open={Boolean(credential || timeout_ms || response_path)}>
        <summary>More</summary>
        <div class="stack">
          <CredentialSelect
            label="Credential, instead of the API's"
            value={credential}
            onChange={(id) => form.set("credential", id)}
            error={issue("credential")}
            disabled={disabled}
          />
          <div class="row">
            {type === "operation" && (
              <TextField
                label="Part of the response"
                placeholder="data.items"
                hint="Empty: all of it."
                {...text("response_path")}
              />
            )}
            <TextField label="Time limit in ms" type="number" placeholder="30000" {...text("timeout_ms")} />
          </div>
        </div>
      </details>
    </>
  );
}

function APIAndOperations({ type, ...props }: ToolFieldsProps & { type: string }) {
  const { form, issue, disabled } = props;
  const found = useQuery(apisAt(), { limit: 50 });
  const apis = found.data.value?.apis ?? [];
  const { api_id } = form.values;
  const chosen = apis.find(({ id, name }) => id === api_id || name.toLowerCase() === api_id.toLowerCase());
  const options: [string, string][] = [
    ["", found.data.value && !apis.length ? "None yet" : "Choose one"],
    ...apis.map(({ id, name }): [string, string] => [id, name]),
  ];
  if (api_id && !chosen) options.push([api_id, api_id]);
  return (
    <>
      <SelectField
        label="API"
        options={options}
        value={chosen?.id ?? api_id}
        onChange={(id) => form.set("api_id", id)}
        error={issue("api_id")}
        disabled={disabled}
        hint={
          <a href={href(agentId.value, "apis")} target="_blank">
            Manage APIs
          </a>
        }
      />
      {type === "operation" ? <OneOperation apiId={chosen?.id} {...props} /> : <SetOfOperations {...props} />}
    </>
  );
}

/** The operation of a tool that calls one; apiId is the id of its API, where it is known. */
function OneOperation({ apiId, form, text }: ToolFieldsProps & { apiId?: string }) {
  const link = apiId && (
    <a href={href(agentId.value, "apis", apiId, form.values.operation)} target="_blank">
      Read and try it
    </a>
  );
  return (
    <>
      <TextField label="Operation" required hint={link} {...text("operation")} />
      <TextArea
        label="Set arguments"
        code
        rows={3}
        placeholder={'{"status": "open"}'}
        hint="A JSON object of arguments that the model neither sees nor sets."
        {...text("defaults")}
      />
    </>
  );
}

/** Which operations the model may find and call. */
function SetOfOperations({ form, text, issue }: ToolFieldsProps) {
  const name = form.values.name || "name";
  return (
    <>
      <p class="muted small">
        The model gets two tools: <code>{name}_find</code> finds operations by words, <code>{name}_call</code> calls
        one. An operation must fit each list below that is not empty.
      </p>
      <div class="row">
        <TextField
          label="Only these methods"
          placeholder="GET POST"
          {...text("methods")}
          error={issue("allow.methods")}
        />
        <TextArea label="Only these tags" rows={2} hint="One per line." {...text("tags")} error={issue("allow.tags")} />
      </div>
      <TextArea
        label="Only these operations"
        rows={2}
        code
        hint="One per line."
        {...text("operations")}
        error={issue("allow.operations")}
      />
    </>
  );
}

/** The arguments of a tool for a set of operations. */
const setSchema = {
  type: "object",
  properties: {
    query: { type: "string", description: "Words to search operations for." },
    operation: { type: "string", description: "Or the ID of an operation to call." },
    arguments: { type: "object", description: "Its arguments." },
  },
};

/** Tries a tool whose arguments are those of its operation. */
export function TryOperation({ tool, reason }: { tool: API.Tool; reason?: string }) {
  const { api_id, operation, defaults } = tool.config as ToolConfig;
  const found = useQuery(tool.type === "operation" ? apisAt(api_id!, "operations", operation!) : null);
  const run = (args: Record<string, unknown>) => post(toolsAt(tool.id, "execute"), { arguments: args });
  if (tool.type === "api-set") return <TryTool schema={setSchema} run={run} reason={reason} />;
  if (found.error.value)
    return (
      <p class="issue">
        The operation <Name>{operation ?? ""}</Name> is gone from the description.
      </p>
    );
  const schema = found.data.value?.parameters as Schema | undefined;
  if (!schema) return <Skeleton lines={3} />;
  return <TryTool schema={visibleArguments(schema, defaults)} run={run} reason={reason} />;
}
