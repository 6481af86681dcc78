// The values of a tool's form.
import type { API } from "../../data";
import { pairsOf, type Pair } from "../../ui";
import type { Schema } from "../../parts/arguments";
import { authValues, type AuthValues } from "../../parts/credentials";

/** What the config of a tool can have; each type has its own part. */
export type ToolConfig = Partial<{
  code: string;
  parameters: Schema;
  method: string;
  url: string;
  headers: Record<string, string>;
  query: Record<string, string>;
  body: unknown;
  body_type: string;
  files: Record<string, string>;
  response_path: string;
  timeout_ms: number;
  server_id: string;
  tool_name: string;
  workflow_id: string;
  api_id: string;
  operation: string;
  defaults: Record<string, unknown>;
  credential: string;
  auth: Record<string, string>;
  allow: { tags?: string[]; methods?: string[]; operations?: string[] };
}>;

/** The values of the form; each type of tool uses some. */
export type ToolValues = AuthValues & {
  name: string;
  description: string;
  code: string;
  parameters: Schema;
  method: string;
  url: string;
  headers: Pair[];
  query: Pair[];
  body: string;
  body_type: string;
  files: Pair[];
  response_path: string;
  timeout_ms: string;
  server_id: string;
  tool_name: string;
  workflow_id: string;
  api_id: string;
  operation: string;
  defaults: string;
  credential: string;
  tags: string;
  methods: string;
  operations: string;
};

const noParameters: Schema = { type: "object", properties: {} };
const json = (value: unknown) => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2));
const lines = (list?: string[]) => (list ?? []).join("\n");

/** The values for a tool, or for a new one. */
export function valuesOf(tool?: API.Tool): ToolValues {
  const config: ToolConfig = tool?.config ?? {};
  return {
    name: tool?.name ?? "",
    description: tool?.description ?? "",
    code: config.code ?? "return { sum: args.a + args.b };",
    parameters: config.parameters ?? noParameters,
    method: config.method || "GET",
    url: config.url ?? "",
    headers: pairsOf(config.headers),
    query: pairsOf(config.query),
    body: config.body === undefined ? "" : json(config.body),
    body_type: config.body_type ?? "",
    files: pairsOf(config.files),
    response_path: config.response_path ?? "",
    timeout_ms: config.timeout_ms ? String(config.timeout_ms) : "",
    server_id: config.server_id ?? "",
    tool_name: config.tool_name ?? "",
    workflow_id: config.workflow_id ?? "",
    api_id: config.api_id ?? "",
    operation: config.operation ?? "",
    defaults: json(config.defaults),
    credential: config.credential ?? "",
    tags: lines(config.allow?.tags),
    methods: (config.allow?.methods ?? []).join(" "),
    operations: lines(config.allow?.operations),
    ...authValues(config.auth, config.credential),
  };
}
