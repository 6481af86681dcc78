// One tool: what it is and calls, and a try.
import { useState } from "preact/hooks";

import {
  agentId,
  ApiError,
  go,
  href,
  invalidate,
  mayEdit,
  path,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
  asError,
} from "../../data";
import {
  Badge,
  Button,
  Code,
  confirm,
  Empty,
  ErrorCard,
  LinkButton,
  Load,
  Menu,
  objectOf,
  pairsOf,
  PairsField,
  Segments,
  SelectField,
  Switch,
  tell,
  TextArea,
  TextField,
  useForm,
  type FormState,
  type TextOf,
} from "../../ui";
import { ArgumentsSchema, type Schema } from "../../parts/arguments";
import { authOf, credentialOf, CredentialFields } from "../../parts/credentials";
import { TryTool } from "../../parts/try";
import { operationConfig, OperationFields, operationTypes, TryOperation } from "./operation";
import { type ToolConfig, type ToolValues, valuesOf } from "./values";
import { seenArguments, workflowConfig, WorkflowFields } from "./workflow";

const toolsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "tools", ...more);
const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];

export function ToolPage({ id }: { id: string }) {
  const found = useQuery(id === "new" ? null : toolsAt(id));
  const back = href(agentId.value, "tools");
  if (id === "new") {
    const type = route.value.query.get("type") ?? "api";
    return (
      <div class="page">
        <p class="crumb">
          <a href={back}>Tools</a>
        </p>
        <h1 tabIndex={-1}>New tool</h1>
        {mayEdit.value ? (
          <Editor
            type={type}
            saved={(t) => {
              invalidate(toolsAt());
              go(`${href(agentId.value, "tools", t.id)}?try=1`, true);
            }}
          />
        ) : (
          <Empty icon="Eye" title="Read-only access" />
        )}
      </div>
    );
  }
  return (
    <div class="page">
      <p class="crumb">
        <a href={back}>Tools</a>
      </p>
      <Load of={found} lines={8} title="Tool">
        {(t) => <Tool key={t.updated_at} t={t} changed={found.reload} />}
      </Load>
    </div>
  );
}

function Tool({ t, changed }: { t: API.Tool; changed: () => Promise<void> }) {
  const tab = route.value.query.has("try") ? "try" : "edit";
  const may = mayEdit.value;
  return (
    <>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          <code>{t.name}</code>
        </h1>
        {!t.enabled && <Badge tone="warn">off</Badge>}
        <Switch
          label="The agent may call it"
          checked={t.enabled}
          disabled={!may}
          onChange={async (enabled) => {
            try {
              await put(toolsAt(t.id), { enabled });
            } catch (error) {
              tell(error);
            }
            await changed();
          }}
        />
        {may && (
          <Menu
            label="More"
            items={[
              {
                label: "Delete",
                icon: "Trash2",
                danger: true,
                run: () =>
                  confirm({
                    title: `Delete ${t.name}?`,
                    text: "The agent and its workflows can no longer call it.",
                    action: "Delete",
                    run: async () => {
                      await remove(toolsAt(t.id));
                      invalidate(toolsAt());
                      go(href(agentId.value, "tools"));
                    },
                  }),
              },
            ]}
          />
        )}
      </div>
      <nav class="tabs" aria-label="Tool">
        {[
          ["edit", "Definition"],
          ["try", "Try"],
        ].map(([id, title]) => (
          <button
            type="button"
            aria-current={tab === id ? "page" : undefined}
            onClick={() => setQuery({ try: id === "try" ? 1 : null })}
          >
            {title}
          </button>
        ))}
      </nav>
      {tab === "edit" ? (
        <Editor t={t} type={t.type} saved={changed} />
      ) : (
        <section class="card stack narrow-card" aria-label="Try">
          {t.description && (
            <p class="muted">
              <bdi>{t.description}</bdi>
            </p>
          )}
          {may && operationTypes.includes(t.type) ? (
            <TryOperation t={t} reason={t.enabled ? undefined : "It's switched off."} />
          ) : may ? (
            <TryTool
              schema={seenArguments(t.config.parameters as Schema | undefined, (t.config as ToolConfig).defaults)}
              reason={t.enabled ? undefined : "It's switched off."}
              run={(args) => post(toolsAt(t.id, "execute"), { arguments: args })}
            />
          ) : (
            <p class="muted">Read-only access: calling tools needs the admin role.</p>
          )}
        </section>
      )}
    </>
  );
}

/** The JSON of a field; "" is none. */
function jsonOf(text: string, field: string): unknown {
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

/** The config that a form says. */
function configOf(type: string, v: ToolValues): Record<string, unknown> {
  if (type === "function") return { code: v.code, parameters: v.parameters };
  if (operationTypes.includes(type)) return operationConfig(type, v, jsonOf);
  if (type === "workflow") return workflowConfig(v, jsonOf);
  if (type === "mcp") return { server_id: v.server_id, tool_name: v.tool_name, parameters: v.parameters };
  const config: Record<string, unknown> = { method: v.method, url: v.url, parameters: v.parameters };
  const auth = authOf(v);
  if (auth.type !== "none") config.auth = auth;
  if (credentialOf(v)) config.credential = credentialOf(v);
  if (v.headers.length) config.headers = objectOf(v.headers);
  if (v.query.length) config.query = objectOf(v.query);
  const body = v.method === "GET" ? undefined : jsonOf(v.body, "config.body");
  if (body !== undefined) config.body = body;
  if (v.method !== "GET" && v.body_type) config.body_type = v.body_type;
  if (v.body_type === "multipart" && v.files.length) config.files = objectOf(v.files);
  if (v.response_path) config.response_path = v.response_path;
  if (v.timeout_ms) config.timeout_ms = Number(v.timeout_ms);
  return config;
}

function Editor({ t, type: given, saved }: { t?: API.Tool; type: string; saved: (t: API.Tool) => unknown }) {
  const c: ToolConfig = t?.config ?? {};
  const [type, setType] = useState(given);
  const form = useForm(valuesOf(t));
  const [failed, setFailed] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const off = !mayEdit.value;
  const issue = (name: string) => form.issues[`config.${name}`] ?? form.issues[name];
  const text: TextOf<ToolValues> = (name) => ({ ...form.text(name), error: issue(name), disabled: off });
  const submit = async () => {
    setBusy(true);
    form.setIssues({});
    setFailed(undefined);
    try {
      const body = {
        name: form.values.name,
        description: form.values.description,
        type,
        config: configOf(type, form.values),
      };
      const made = await (t ? put(toolsAt(t.id), body) : post(toolsAt(), body));
      tell("Saved");
      await saved(made);
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      const shown = Object.keys(issues).some((f) =>
        /^(name|description|config\.(code|url|method|headers|query|body|body_type|files|parameters|response_path|timeout_ms|server_id|tool_name|auth|credential|api_id|operation|defaults|allow|workflow_id))/.test(
          f,
        ),
      );
      if (!shown) setFailed(asError(error));
    }
    setBusy(false);
  };
  return (
    <form
      class="card stack tool-form"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void submit();
      }}
    >
      {!t && (
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
      )}
      {!t && (
        <p class="muted small">
          Tools of MCP servers are added on <a href={href(agentId.value, "mcp")}>MCP servers</a>, tools of single
          operations on <a href={href(agentId.value, "apis")}>APIs</a>.
        </p>
      )}
      <TextField label="Name" required hint="Letters, digits, _ and -." {...text("name")} />
      <TextArea
        label="Description"
        rows={2}
        hint="What it does and when to call it. The model reads this."
        {...text("description")}
      />
      {type === "api" && <Api form={form} text={text} issue={issue} off={off} />}
      {type === "function" && (
        <div class={issue("code") ? "field wrong" : "field"}>
          <span class="label">Code</span>
          <Code
            language="javascript"
            label="Code"
            rows={8}
            value={form.values.code}
            onInput={(v) => form.set("code", v)}
            readonly={off}
            invalid={Boolean(issue("code"))}
          />
          {issue("code") ? (
            <small class="issue" role="alert">
              {issue("code")}
            </small>
          ) : (
            <small class="muted">The body of an async function; arguments are in args.</small>
          )}
        </div>
      )}
      {operationTypes.includes(type) ? (
        <OperationFields type={type} form={form} text={text} issue={issue} off={off} />
      ) : type === "workflow" ? (
        <WorkflowFields form={form} text={text} issue={issue} off={off} />
      ) : type === "mcp" ? (
        <dl class="facts-list">
          <dt>MCP server</dt>
          <dd>
            <a href={href(agentId.value, "mcp", form.values.server_id)}>Open it</a>
          </dd>
          <dt>Its tool</dt>
          <dd>
            <code>{c.tool_name}</code>
          </dd>
        </dl>
      ) : (
        <ArgumentsSchema
          value={form.values.parameters}
          onChange={(s) => form.set("parameters", s)}
          disabled={off}
          error={issue("parameters")}
        />
      )}
      {failed && <ErrorCard error={failed} />}
      {!off && (
        <div class="row end">
          {!t && <LinkButton href={href(agentId.value, "tools")}>Cancel</LinkButton>}
          <Button kind="primary" submit disabled={busy}>
            {t ? "Save" : "Create"}
          </Button>
        </div>
      )}
    </form>
  );
}

function Api({
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
  const more =
    [v.response_path, v.timeout_ms, v.query.length].some(Boolean) ||
    ["response_path", "timeout_ms", "query"].some(issue);
  return (
    <>
      <div class="row address">
        <SelectField
          label="Method"
          disabled={off}
          options={methods.map((m) => [m, m])}
          {...form.choice("method")}
          error={issue("method")}
        />
        <TextField
          label="Address"
          required
          placeholder="https://api.example.com/orders/{{id}}"
          hint="Write arguments as {{name}}, after the host."
          {...text("url")}
        />
      </div>
      <CredentialFields form={form} kinds={["none", "stored", "bearer", "basic", "header"]} disabled={off} />
      <PairsField
        label="Headers"
        pairs={v.headers}
        onChange={(p) => form.set("headers", p)}
        disabled={off}
        error={issue("headers")}
      />
      {v.method !== "GET" && (
        <div class={issue("body") ? "field wrong" : "field"}>
          <span class="label">Body</span>
          <Code
            language="json"
            label="Body"
            rows={4}
            value={v.body}
            onInput={(b) => form.set("body", b)}
            readonly={off}
            invalid={Boolean(issue("body"))}
          />
          {issue("body") ? (
            <small class="issue" role="alert">
              {issue("body")}
            </small>
          ) : (
            <small class="muted">JSON, with arguments as {"{{name}}"}; nothing when empty.</small>
          )}
        </div>
      )}
      {v.method !== "GET" && (
        <SelectField
          label="Sent as"
          disabled={off}
          options={[
            ["", "JSON"],
            ["form", "Form fields"],
            ["multipart", "Form fields and files"],
          ]}
          {...form.choice("body_type")}
          error={issue("body_type")}
        />
      )}
      {v.method !== "GET" && v.body_type === "multipart" && (
        <PairsField
          label="Files"
          pairs={v.files}
          onChange={(p) => form.set("files", p)}
          disabled={off}
          error={issue("files")}
        />
      )}
      <details open={more}>
        <summary>More</summary>
        <div class="stack">
          <PairsField
            label="Query"
            pairs={v.query}
            onChange={(p) => form.set("query", p)}
            disabled={off}
            error={issue("query")}
          />
          <div class="row">
            <TextField
              label="Part of the response"
              placeholder="data.items"
              hint="Empty: all of it."
              {...text("response_path")}
            />
            <TextField label="Time limit in ms" type="number" placeholder="30000" {...text("timeout_ms")} />
          </div>
        </div>
      </details>
    </>
  );
}
