// The form of a tool; each type of tool has its own fields.
import { useState } from "preact/hooks";

import { agentId, ApiError, asError, href, mayEdit, post, put, type API } from "../../data";
import { Button, ErrorCard, LinkButton, objectOf, Segments, showToast, TextArea, TextField } from "../../ui";
import { ArgumentsSchema, type Schema } from "../../parts/arguments";
import { authOf, credentialOf } from "../../parts/credentials";
import { usePageForm, Unsaved } from "../../parts/pageform";
import { CodeField } from "./codefield";
import type { ToolFieldsProps } from "./fields";
import { HTTPFields } from "./http";
import { operationConfig, OperationFields, operationTypes } from "./operation";
import { toolsAt } from "./paths";
import { type ToolValues, valuesOf } from "./values";
import { workflowConfig, WorkflowFields } from "./workflow";

/** Parses the JSON of a field; undefined if it is empty. */
function parseField(text: string, field: string): unknown {
  if (!text.trim()) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, {
      error: {
        message: "A field is not valid JSON.",
        details: { field, issue: `is not valid JSON: ${asError(error).message}` },
      },
    });
  }
}

/** The config of a tool for the values of the form. */
function configOf(type: string, values: ToolValues): Record<string, unknown> {
  const { code, parameters, server_id, tool_name } = values;
  if (type === "function") return { code, parameters };
  if (operationTypes.includes(type)) return operationConfig(type, values, parseField);
  if (type === "workflow") return workflowConfig(values, parseField);
  if (type === "mcp") return { server_id, tool_name, parameters };
  return httpConfig(values);
}

/**
 * Adds an argument for each {{name}} in the parts of a new tool's request that has none: it would always be empty, as
 * the model could not give it.
 */
function withArguments({ parameters, url, headers, query, body }: ToolValues): Schema {
  const parts = [url, body, ...[...headers, ...query].map(([, value]) => value)].join("\n");
  const names = [...parts.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, name]) => name);
  const missing = [...new Set(names)].filter((name) => !parameters.properties?.[name]);
  if (!missing.length) return parameters;
  const properties = Object.fromEntries(missing.map((name) => [name, { type: "string" }]));
  return {
    ...parameters,
    properties: { ...parameters.properties, ...properties },
    required: [...(parameters.required ?? []), ...missing],
  };
}

function httpConfig(values: ToolValues) {
  const { method, url, parameters, body_type } = values;
  const config: Record<string, unknown> = { method, url, parameters };
  const auth = authOf(values);
  if (auth.type !== "none") config.auth = auth;
  if (credentialOf(values)) config.credential = credentialOf(values);
  if (values.headers.length) config.headers = objectOf(values.headers);
  if (values.query.length) config.query = objectOf(values.query);
  if (method !== "GET") {
    const body = parseField(values.body, "config.body");
    if (body !== undefined) config.body = body;
    if (body_type) config.body_type = body_type;
  }
  if (body_type === "multipart" && values.files.length) config.files = objectOf(values.files);
  if (values.response_path) config.response_path = values.response_path;
  if (values.timeout_ms) config.timeout_ms = Number(values.timeout_ms);
  return config;
}

/** The fields that have a place for their issues in the form. */
const fieldsWithIssues = new RegExp(
  "^(name|description|config\\.(code|url|method|headers|query|body|body_type|files|parameters|" +
    "response_path|timeout_ms|server_id|tool_name|auth|credential|api_id|operation|defaults|allow|workflow_id))",
);

type Props = { tool?: API.Tool; initialType: string; saved: (tool: API.Tool) => unknown };

/** Keeps the values of a tool's form, and creates or changes the tool. */
function useToolForm({ tool, initialType, saved }: Props) {
  const [type, setType] = useState(initialType);
  const form = usePageForm(valuesOf(tool), "tool");
  const [failure, setFailure] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    form.setIssues({});
    setFailure(undefined);
    try {
      const { name, description } = form.values;
      const isNewRequest = !tool && type === "api";
      const values = isNewRequest ? { ...form.values, parameters: withArguments(form.values) } : form.values;
      const body = { name, description, type, config: configOf(type, values) };
      const stored = await (tool ? put(toolsAt(tool.id), body) : post(toolsAt(), body));
      showToast("Saved");
      await saved(stored);
      form.reset();
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      if (!Object.keys(issues).some((field) => fieldsWithIssues.test(field))) setFailure(asError(error));
    }
    setBusy(false);
  };
  return { type, setType, form, failure, busy, save };
}

/** Creates or changes a tool. */
export function ToolEditor(props: Props) {
  const { tool } = props;
  const { type, setType, form, failure, busy, save } = useToolForm(props);
  const disabled = !mayEdit.value;
  const issue = (name: string) => form.issues[`config.${name}`] ?? form.issues[name];
  const text: ToolFieldsProps["text"] = (name) => ({ ...form.text(name), error: issue(name), disabled });
  return (
    <form
      class="card stack tool-form"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void save();
      }}
    >
      {!tool && <TypeChoice type={type} setType={setType} />}
      <TextField label="Name" required hint="Letters, digits, _ and -." {...text("name")} />
      <TextArea
        label="Description"
        rows={2}
        hint="What it does and when to call it. The model reads this."
        {...text("description")}
      />
      <TypeFields type={type} form={form} text={text} issue={issue} disabled={disabled} />
      {failure && <ErrorCard error={failure} />}
      {!disabled && (
        <div class="row end">
          <Unsaved form={form} />
          {!tool && <LinkButton href={href(agentId.value, "tools")}>Cancel</LinkButton>}
          <Button kind="primary" submit disabled={busy}>
            {tool ? "Save" : "Create"}
          </Button>
        </div>
      )}
    </form>
  );
}

/** The type of a new tool. */
function TypeChoice({ type, setType }: { type: string; setType: (type: string) => void }) {
  return (
    <>
      <Segments
        label="Type"
        value={type}
        onChange={setType}
        options={[
          ["api", "HTTP API"],
          ["function", "Code"],
          ["api-set", "Imported API"],
          ["workflow", "Workflow"],
        ]}
      />
      <p class="muted small">
        Tools of MCP servers are added on <a href={href(agentId.value, "mcp")}>MCP servers</a>, tools of single
        operations on <a href={href(agentId.value, "apis")}>APIs</a>.
      </p>
    </>
  );
}

/** The fields of a type of tool. */
function TypeFields({ type, ...props }: ToolFieldsProps & { type: string }) {
  const { form, issue, disabled } = props;
  if (operationTypes.includes(type)) return <OperationFields type={type} {...props} />;
  if (type === "workflow") return <WorkflowFields {...props} />;
  if (type === "mcp") return <MCPFacts values={form.values} />;
  return (
    <>
      {type === "api" && <HTTPFields {...props} />}
      {type === "function" && (
        <CodeField
          language="javascript"
          label="Code"
          rows={8}
          value={form.values.code}
          onInput={(code) => form.set("code", code)}
          readonly={disabled}
          issue={issue("code")}
          hint="The body of an async function; arguments are in args."
        />
      )}
      <ArgumentsSchema
        value={form.values.parameters}
        onChange={(schema) => form.set("parameters", schema)}
        disabled={disabled}
        error={issue("parameters")}
      />
    </>
  );
}

/** The tool of an MCP server, which cannot be changed here. */
function MCPFacts({ values: { server_id, tool_name } }: { values: ToolValues }) {
  return (
    <dl class="facts-list">
      <dt>MCP server</dt>
      <dd>
        <a href={href(agentId.value, "mcp", server_id)}>Open it</a>
      </dd>
      <dt>Its tool</dt>
      <dd>
        <code>{tool_name}</code>
      </dd>
    </dl>
  );
}
