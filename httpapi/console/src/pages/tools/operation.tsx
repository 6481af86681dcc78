// Tools that call operations of an API: one operation, or a set that the model searches.
import { agentId, href, path, post, useQuery, type API } from "../../data";
import { Name, SelectField, Skeleton, TextArea, TextField, type FormState, type TextOf } from "../../ui";
import type { Schema } from "../../parts/arguments";
import { CredentialSelect } from "../../parts/credentials";
import { TryTool } from "../../parts/try";
import type { ToolConfig, ToolValues } from "./values";
import { seenArguments } from "./workflow";

const apiAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "apis", ...more);
const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export const operationTypes = ["operation", "api-set"];

/** The config that a form says. parse reads JSON. */
export function operationConfig(
  type: string,
  v: ToolValues,
  parse: (text: string, field: string) => unknown,
): Record<string, unknown> {
  const config: Record<string, unknown> = { api_id: v.api_id };
  if (v.credential) config.credential = v.credential;
  if (v.timeout_ms) config.timeout_ms = Number(v.timeout_ms);
  if (type === "api-set") {
    const allow = Object.fromEntries(
      [
        [
          "tags",
          v.tags
            .split("\n")
            .map((t) => t.trim())
            .filter(Boolean),
        ],
        ["methods", words(v.methods)],
        [
          "operations",
          v.operations
            .split("\n")
            .map((t) => t.trim())
            .filter(Boolean),
        ],
      ].filter(([, list]) => list.length),
    );
    return Object.keys(allow).length ? { ...config, allow } : config;
  }
  const defaults = parse(v.defaults, "config.defaults");
  return {
    ...config,
    operation: v.operation,
    ...(defaults === undefined ? {} : { defaults }),
    ...(v.response_path && { response_path: v.response_path }),
  };
}

export function OperationFields({
  type,
  form,
  text,
  issue,
  off,
}: {
  type: string;
  form: FormState<ToolValues>;
  text: TextOf<ToolValues>;
  issue: (name: string) => string | undefined;
  off: boolean;
}) {
  const found = useQuery(apiAt(), { limit: 50 });
  const apis = found.data.value?.apis ?? [];
  const v = form.values;
  const chosen = apis.find((a) => a.id === v.api_id || a.name.toLowerCase() === v.api_id.toLowerCase());
  const options: [string, string][] = [
    ["", found.data.value && !apis.length ? "None yet" : "Choose one"],
    ...apis.map((a): [string, string] => [a.id, a.name]),
    ...(v.api_id && !chosen ? [[v.api_id, v.api_id] as [string, string]] : []),
  ];
  return (
    <>
      <SelectField
        label="API"
        options={options}
        value={chosen?.id ?? v.api_id}
        onChange={(id) => form.set("api_id", id)}
        error={issue("api_id")}
        disabled={off}
        hint={
          <a href={href(agentId.value, "apis")} target="_blank">
            Manage APIs
          </a>
        }
      />
      {type === "operation" ? (
        <>
          <TextField
            label="Operation"
            required
            hint={
              chosen ? (
                <a href={href(agentId.value, "apis", chosen.id, v.operation)} target="_blank">
                  Read and try it
                </a>
              ) : undefined
            }
            {...text("operation")}
          />
          <TextArea
            label="Set arguments"
            code
            rows={3}
            placeholder={'{"status": "open"}'}
            hint="A JSON object of arguments that the model neither sees nor sets."
            {...text("defaults")}
          />
        </>
      ) : (
        <>
          <p class="muted small">
            The model gets two tools: <code>{v.name || "name"}_find</code> finds operations by words,{" "}
            <code>{v.name || "name"}_call</code> calls one. An operation must fit each list below that is not empty.
          </p>
          <div class="row">
            <TextField
              label="Only these methods"
              placeholder="GET POST"
              {...text("methods")}
              error={issue("allow.methods")}
            />
            <TextArea
              label="Only these tags"
              rows={2}
              hint="One per line."
              {...text("tags")}
              error={issue("allow.tags")}
            />
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
      )}
      <details open={Boolean(v.credential || v.timeout_ms || v.response_path)}>
        <summary>More</summary>
        <div class="stack">
          <CredentialSelect
            label="Credential, instead of the API's"
            value={v.credential}
            onChange={(id) => form.set("credential", id)}
            error={issue("credential")}
            disabled={off}
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

const setSchema = {
  type: "object",
  properties: {
    query: { type: "string", description: "Words to search operations for." },
    operation: { type: "string", description: "Or the ID of an operation to call." },
    arguments: { type: "object", description: "Its arguments." },
  },
};

/** Tries a tool whose arguments are those of its operation. */
export function TryOperation({ t, reason }: { t: API.Tool; reason?: string }) {
  const c = t.config as ToolConfig;
  const found = useQuery(t.type === "operation" ? apiAt(c.api_id!, "operations", c.operation!) : null);
  const run = (args: Record<string, unknown>) =>
    post(path("agents", agentId.value, "tools", t.id, "execute"), { arguments: args });
  if (t.type === "api-set") return <TryTool schema={setSchema} run={run} reason={reason} />;
  if (found.error.value)
    return (
      <p class="issue">
        The operation <Name>{c.operation ?? ""}</Name> is gone from the description.
      </p>
    );
  const schema = found.data.value?.parameters as Schema | undefined;
  if (!schema) return <Skeleton lines={3} />;
  return <TryTool schema={seenArguments(schema, c.defaults)} run={run} reason={reason} />;
}
