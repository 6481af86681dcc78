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

const none: Schema = { type: "object", properties: {} };
const json = (v: unknown) => (v === undefined || v === null ? "" : JSON.stringify(v, null, 2));
const rows = (list?: string[]) => (list ?? []).join("\n");

/** The values for a tool, or for a new one. */
export function valuesOf(t?: API.Tool): ToolValues {
  const c: ToolConfig = t?.config ?? {};
  return {
    name: t?.name ?? "",
    description: t?.description ?? "",
    code: c.code ?? "return { sum: args.a + args.b };",
    parameters: c.parameters ?? none,
    method: c.method || "GET",
    url: c.url ?? "",
    headers: pairsOf(c.headers),
    query: pairsOf(c.query),
    body: c.body === undefined ? "" : json(c.body),
    body_type: c.body_type ?? "",
    files: pairsOf(c.files),
    response_path: c.response_path ?? "",
    timeout_ms: c.timeout_ms ? String(c.timeout_ms) : "",
    server_id: c.server_id ?? "",
    tool_name: c.tool_name ?? "",
    workflow_id: c.workflow_id ?? "",
    api_id: c.api_id ?? "",
    operation: c.operation ?? "",
    defaults: json(c.defaults),
    credential: c.credential ?? "",
    tags: rows(c.allow?.tags),
    methods: (c.allow?.methods ?? []).join(" "),
    operations: rows(c.allow?.operations),
    ...authValues(c.auth, c.credential),
  };
}
