// Creates, lists, reads, changes and deletes a record of every resource with a
// client that is generated from the OpenAPI document. The address of the
// server is the argument.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };

const api = createClient<paths>({ baseUrl: process.argv[2] + "/api" });

type Answer<T> = { data?: T; error?: components["schemas"]["Error"]; response: Response };

// ok returns the data of a response, or fails with the server's error.
async function ok<T>(what: string, answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw new Error(`${what}: ${response.status} ${JSON.stringify(error)}`);
  walked++;
  return data as T;
}

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want))
    throw new Error(`${what} is ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

let walked = 0;
const agent = await ok("create agent", api.POST("/agents", { body: { name: `walk-${Date.now()}` } }));
const id = agent.id;
const of = { path: { id } };

async function agents(): Promise<void> {
  const list = await ok(
    "list agents",
    api.GET("/agents", { params: { query: { limit: 10, sort: ["name"], order: ["asc"] } } }),
  );
  same("total", list.meta.total, list.agents.length);
  same("status", (await ok("get agent", api.GET("/agents/{id}", { params: of }))).status, "active");
  const changed = await ok(
    "update agent",
    api.PUT("/agents/{id}", { params: of, body: { description: "Walks", status: "active" } }),
  );
  same("description", changed.description, "Walks");
  await ok(
    "update settings",
    api.PUT("/agents/{id}/settings", { params: of, body: { timezone: "Europe/Berlin", llm_temperature: 0.2 } }),
  );
  same(
    "timezone",
    (await ok("get settings", api.GET("/agents/{id}/settings", { params: of }))).timezone,
    "Europe/Berlin",
  );
  const admin = await ok(
    "create admin",
    api.POST("/agents/{id}/admins", { params: of, body: { email: "ada@example.com", role: "viewer" } }),
  );
  same("admins", (await ok("list admins", api.GET("/agents/{id}/admins", { params: of }))).admins.length, 1);
  await ok(
    "delete admin",
    api.DELETE("/agents/{id}/admins/{adminId}", { params: { path: { id, adminId: admin.id } } }),
  );
  await ok("list logs", api.GET("/agents/{id}/logs", { params: { ...of, query: { level: ["info"] } } }));
}

async function contactsAndConversations(): Promise<void> {
  const contact = await ok(
    "create contact",
    api.POST("/agents/{id}/contacts", { params: of, body: { name: "Ada", email: "ada@example.com", tags: ["vip"] } }),
  );
  const at = { path: { id, contactId: contact.id } };
  same(
    "contacts",
    (await ok("list contacts", api.GET("/agents/{id}/contacts", { params: { ...of, query: { search: "ada" } } })))
      .contacts[0]?.id,
    contact.id,
  );
  same(
    "notes",
    (
      await ok(
        "update contact",
        api.PUT("/agents/{id}/contacts/{contactId}", { params: at, body: { notes: "Calls often", tags: null } }),
      )
    ).tags,
    [],
  );
  same("name", (await ok("get contact", api.GET("/agents/{id}/contacts/{contactId}", { params: at }))).name, "Ada");
  const conversation = await ok(
    "create conversation",
    api.POST("/agents/{id}/conversations", { params: of, body: { contact_id: contact.id } }),
  );
  const there = { path: { id, conversationId: conversation.id } };
  await ok(
    "create message",
    api.POST("/agents/{id}/conversations/{conversationId}/messages", {
      params: there,
      body: { role: "user", content: "Hello" },
    }),
  );
  same(
    "messages",
    (await ok("list messages", api.GET("/agents/{id}/conversations/{conversationId}/messages", { params: there })))
      .messages.length,
    1,
  );
  same(
    "conversations",
    (await ok("list conversations", api.GET("/agents/{id}/conversations", { params: of }))).meta.total,
    1,
  );
  same(
    "muted",
    (
      await ok(
        "update conversation",
        api.PUT("/agents/{id}/conversations/{conversationId}", { params: there, body: { muted: true } }),
      )
    ).muted,
    true,
  );
  same(
    "message",
    (await ok("get conversation", api.GET("/agents/{id}/conversations/{conversationId}", { params: there })))
      .messages[0]?.content,
    "Hello",
  );
  await ok("delete conversation", api.DELETE("/agents/{id}/conversations/{conversationId}", { params: there }));
  await ok("delete contact", api.DELETE("/agents/{id}/contacts/{contactId}", { params: at }));
}

async function sources(): Promise<void> {
  const form = new FormData();
  form.append("file", new Blob(["# Handbook\nParcels leave at four.\n"]), "handbook.md");
  const upload = await ok(
    "create source",
    api.POST("/agents/{id}/sources", {
      params: of,
      body: { file: "handbook.md", type: "file" },
      bodySerializer: () => form,
    }),
  );
  const at = { path: { id, sourceId: upload.id } };
  await ok(
    "create source by JSON",
    api.POST("/agents/{id}/sources", {
      params: of,
      headers: { "Content-Type": "application/json" },
      body: { type: "database", name: "People", config: { query: "SELECT id, name FROM contacts", id_column: "id" } },
    }),
  );
  let source = await ok("get source", api.GET("/agents/{id}/sources/{sourceId}", { params: at }));
  while (source.status === "processing") {
    await new Promise((resolve) => setTimeout(resolve, 50));
    source = await ok("get source", api.GET("/agents/{id}/sources/{sourceId}", { params: at }));
  }
  same("status", source.status, "ready");
  same(
    "sources",
    (await ok("list sources", api.GET("/agents/{id}/sources", { params: { ...of, query: { type: ["file"] } } }))).meta
      .total,
    1,
  );
  same(
    "name",
    (await ok("update source", api.PUT("/agents/{id}/sources/{sourceId}", { params: at, body: { name: "Manual" } })))
      .name,
    "Manual",
  );
  const found = await ok(
    "search",
    api.POST("/agents/{id}/sources/search", { params: of, body: { query: "parcels", mode: "keyword" } }),
  );
  same("found", found.results[0]?.source_id, upload.id);
  const file = await ok("get file", api.GET("/agents/{id}/sources/{sourceId}/file", { params: at, parseAs: "text" }));
  same("file", String(file).startsWith("# Handbook"), true);
  await ok("delete source", api.DELETE("/agents/{id}/sources/{sourceId}", { params: at }));
}

async function schedulesAndCalendar(): Promise<void> {
  const made = await ok(
    "create schedule",
    api.POST("/agents/{id}/schedules", {
      params: of,
      body: {
        name: "Daily",
        type: "cron",
        cron_expression: "0 9 * * *",
        callback_type: "webhook",
        callback_id: "https://example.com/hook",
      },
    }),
  );
  const at = { path: { id, scheduleId: made.id } };
  same("schedules", (await ok("list schedules", api.GET("/agents/{id}/schedules", { params: of }))).meta.total, 1);
  same(
    "status",
    (
      await ok(
        "update schedule",
        api.PUT("/agents/{id}/schedules/{scheduleId}", { params: at, body: { status: "paused" } }),
      )
    ).status,
    "paused",
  );
  same(
    "executions",
    (await ok("get schedule", api.GET("/agents/{id}/schedules/{scheduleId}", { params: at }))).executions,
    [],
  );
  await ok("delete schedule", api.DELETE("/agents/{id}/schedules/{scheduleId}", { params: at }));

  const task = await ok(
    "create task",
    api.POST("/agents/{id}/calendar", {
      params: of,
      body: { title: "Review", start_time: "2027-01-04T09:00:00Z", recurrence: "weekly" },
    }),
  );
  const there = { path: { id, taskId: task.id } };
  const days = await ok(
    "list tasks",
    api.GET("/agents/{id}/calendar", { params: { ...of, query: { start: "2027-01-01", end: "2027-01-31" } } }),
  );
  same("occurrences", days.tasks.length, 4);
  same(
    "recurrence",
    (await ok("update task", api.PUT("/agents/{id}/calendar/{taskId}", { params: there, body: { recurrence: null } })))
      .recurrence,
    "none",
  );
  same("title", (await ok("get task", api.GET("/agents/{id}/calendar/{taskId}", { params: there }))).title, "Review");
  await ok("delete task", api.DELETE("/agents/{id}/calendar/{taskId}", { params: there }));
}

async function webhooksAndGateways(): Promise<void> {
  const hook = await ok(
    "create webhook",
    api.POST("/agents/{id}/webhooks", {
      params: of,
      body: { url: "https://example.com/hook", events: ["workflow.*"] },
    }),
  );
  const at = { path: { id, webhookId: hook.id } };
  same("webhooks", (await ok("list webhooks", api.GET("/agents/{id}/webhooks", { params: of }))).meta.total, 1);
  same(
    "active",
    (await ok("update webhook", api.PUT("/agents/{id}/webhooks/{webhookId}", { params: at, body: { active: false } })))
      .active,
    false,
  );
  same(
    "last try",
    (await ok("get webhook", api.GET("/agents/{id}/webhooks/{webhookId}", { params: at }))).last_delivery_at,
    null,
  );
  same(
    "deliveries",
    (await ok("list deliveries", api.GET("/agents/{id}/webhooks/{webhookId}/deliveries", { params: at }))).deliveries,
    [],
  );
  await ok("delete webhook", api.DELETE("/agents/{id}/webhooks/{webhookId}", { params: at }));

  const gateway = await ok(
    "create gateway",
    api.POST("/agents/{id}/gateways", {
      params: of,
      body: { type: "webhook", name: "Shop", config: { url: "https://example.com/in" } },
    }),
  );
  const there = { path: { id, gatewayId: gateway.id } };
  same(
    "gateways",
    (await ok("list gateways", api.GET("/agents/{id}/gateways", { params: { ...of, query: { type: ["webhook"] } } })))
      .meta.total,
    1,
  );
  same(
    "name",
    (
      await ok(
        "update gateway",
        api.PUT("/agents/{id}/gateways/{gatewayId}", { params: there, body: { name: "Store" } }),
      )
    ).name,
    "Store",
  );
  same(
    "fields",
    (await ok("get gateway", api.GET("/agents/{id}/gateways/{gatewayId}", { params: there }))).configured_fields,
    ["url"],
  );
  await ok("delete gateway", api.DELETE("/agents/{id}/gateways/{gatewayId}", { params: there }));
}

async function tools(): Promise<void> {
  const tool = await ok(
    "create tool",
    api.POST("/agents/{id}/tools", {
      params: of,
      body: { name: "add", type: "function", config: { code: "return args.a + 1" } },
    }),
  );
  const at = { path: { id, toolId: tool.id } };
  same("tools", (await ok("list tools", api.GET("/agents/{id}/tools", { params: of }))).meta.total, 1);
  same(
    "description",
    (await ok("update tool", api.PUT("/agents/{id}/tools/{toolId}", { params: at, body: { description: "Adds one" } })))
      .description,
    "Adds one",
  );
  same("type", (await ok("get tool", api.GET("/agents/{id}/tools/{toolId}", { params: at }))).type, "function");
  same(
    "result",
    (
      await ok(
        "execute tool",
        api.POST("/agents/{id}/tools/{toolId}/execute", { params: at, body: { arguments: { a: 1 } } }),
      )
    ).success,
    true,
  );
  await ok("delete tool", api.DELETE("/agents/{id}/tools/{toolId}", { params: at }));

  const server = await ok(
    "create MCP server",
    api.POST("/agents/{id}/mcp", { params: of, body: { name: "itself", url: `${process.argv[2]}/mcp/default` } }),
  );
  same("status", server.status, "connected");
  same("servers", (await ok("list MCP servers", api.GET("/agents/{id}/mcp", { params: of }))).servers.length, 1);
  await ok(
    "list MCP tools",
    api.GET("/agents/{id}/mcp/{serverId}/tools", { params: { path: { id, serverId: server.id } } }),
  );
  await ok("delete MCP server", api.DELETE("/agents/{id}/mcp", { params: { ...of, query: { id: server.id } } }));
}

async function workflows(): Promise<void> {
  const made = await ok(
    "create workflow",
    api.POST("/agents/{id}/workflows", {
      params: of,
      body: {
        name: "Welcome",
        status: "active",
        nodes: [
          { id: "t", type: "trigger" },
          { id: "s", type: "set", data: { values: { a: 1 } }, color: "red" },
        ],
        edges: [{ source: "t", target: "s" }],
      },
    }),
  );
  const at = { path: { id, workflowId: made.id } };
  same(
    "workflows",
    (
      await ok(
        "list workflows",
        api.GET("/agents/{id}/workflows", { params: { ...of, query: { status: ["active"] } } }),
      )
    ).meta.total,
    1,
  );
  same(
    "color",
    (await ok("get workflow", api.GET("/agents/{id}/workflows/{workflowId}", { params: at }))).nodes[1]?.color,
    "red",
  );
  same(
    "settings",
    (
      await ok(
        "update workflow",
        api.PUT("/agents/{id}/workflows/{workflowId}", { params: at, body: { settings: { on_conflict: "queue" } } }),
      )
    ).settings.on_conflict,
    "queue",
  );
  const done = await ok(
    "execute workflow",
    api.POST("/agents/{id}/workflows/execute", {
      params: { ...of, query: { wait: 30 } },
      body: { workflow_id: made.id, input: { a: 1 } },
    }),
  );
  same("status", done.status, "complete");
  same(
    "executions",
    (await ok("list executions", api.GET("/agents/{id}/workflows/executions", { params: of }))).executions[0]?.id,
    done.id,
  );
  await ok("delete workflow", api.DELETE("/agents/{id}/workflows/{workflowId}", { params: at }));
}

async function tables(): Promise<void> {
  const schema = await ok("get schema", api.GET("/agents/{id}/sql/schema", { params: of }));
  same(
    "contacts",
    schema.tables.some((t) => t.name === "contacts"),
    true,
  );
  same(
    "rows",
    (
      await ok(
        "execute SQL",
        api.POST("/agents/{id}/sql/execute", { params: of, body: { query: "SELECT ? AS a", params: [1] } }),
      )
    ).rows,
    [[1]],
  );
}

// keys comes last: the first key closes the server to callers without one.
async function keys(): Promise<void> {
  const key = await ok("create key", api.POST("/keys", { body: { name: "walk", role: "owner", agents: ["*"] } }));
  api.use({
    onRequest: ({ request }) => {
      request.headers.set("Authorization", `Bearer ${key.key}`);
      return request;
    },
  });
  same("keys", (await ok("list keys", api.GET("/keys"))).keys.length, 1);
  await ok("delete agent", api.DELETE("/agents/{id}", { params: of }));
  await ok("delete key", api.DELETE("/keys/{keyId}", { params: { path: { keyId: key.id } } }));
}

for (const part of [
  agents,
  contactsAndConversations,
  sources,
  schedulesAndCalendar,
  webhooksAndGateways,
  tools,
  workflows,
  tables,
  keys,
])
  await part();
console.log(`${walked} requests of the generated client answered as its types say`);
