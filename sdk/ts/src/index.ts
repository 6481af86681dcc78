/**
 * Client of Satchel. `new Satchel({ baseUrl, apiKey })` has every route, typed, as
 * `api`, and `agent(name)` with what takes more than one request: uploads,
 * streamed answers, workflows and browser sessions.
 */
import createClient, { type Client } from "openapi-fetch";
import { events } from "./events.js";
import { pause, retrying, type RetryOptions } from "./retry.js";
import type { components, paths } from "./schema.js";

export type { components, paths } from "./schema.js";
export { events, type ServerEvent } from "./events.js";
export { verifyWebhook, WebhookError, type WebhookEvent } from "./webhook.js";

type Schemas = components["schemas"];
export type Agent = Schemas["Agent"];
export type Source = Schemas["Source"];
export type Answer = Schemas["ChatDetails"];
export type Citation = Schemas["Citation"];
export type Execution = Schemas["ExecutionDetails"];
export type Action = Schemas["Action"];

export interface Options extends RetryOptions {
  /** Address of the server, such as https://agents.example.com. */
  baseUrl: string;
  /** API key; without one the caller is anonymous. */
  apiKey?: string;
}

/** An error that the server answered with. */
export class SatchelError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
    /** By which the server's log names the request. */
    readonly requestId = "",
  ) {
    super(`${message} (${status} ${code})`);
    this.name = "SatchelError";
  }
}

/** An execution that did not complete. */
export class ExecutionError extends Error {
  constructor(readonly execution: Execution) {
    super(`the execution ${execution.id} is ${execution.status}: ${execution.error?.message ?? ""}`);
    this.name = "ExecutionError";
  }
}

export class Satchel {
  /** Every route of the API, typed. Its answers have `data` or `error`; see `must`. */
  readonly api: Client<paths>;
  readonly fetch: typeof fetch;
  readonly root: string;
  /** Waits between requests. */
  readonly sleep: (seconds: number, signal?: AbortSignal) => Promise<void>;

  constructor(options: Options) {
    this.root = options.baseUrl.replace(/\/+$/, "").replace(/\/api$/, "") + "/api";
    this.sleep = options.sleep ?? pause;
    const send = retrying(options);
    this.fetch = ((input: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(input, init);
      if (options.apiKey) request.headers.set("Authorization", `Bearer ${options.apiKey}`);
      return send(request);
    }) as typeof fetch;
    this.api = createClient<paths>({ baseUrl: this.root, fetch: this.fetch });
  }

  /** What takes more than one request, for an agent by id or name. */
  agent(idOrName: string): AgentClient {
    return new AgentClient(this, idOrName);
  }

  async createAgent(name: string, description = ""): Promise<Agent> {
    return must(this.api.POST("/agents", { body: { name, description } }));
  }
}

/**
 * Yields the records of a list from all of its pages: `paged((cursor) => must(satchel.api.GET(…, { params: { query: {
 * cursor } } })), "contacts")`.
 */
export async function* paged<K extends string, T>(
  page: (
    cursor?: string,
  ) => Promise<{ [key in K]: T[] | null } & { meta: { cursor?: string } | { next_cursor: string | null } }>,
  key: K,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const { [key]: records, meta } = await page(cursor);
    yield* records ?? [];
    cursor = ("next_cursor" in meta ? meta.next_cursor : (meta as { cursor?: string }).cursor) ?? undefined;
  } while (cursor);
}

/** The data of an answer of `Satchel.api`; an error is thrown. */
export async function must<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw failure(response, error);
  return data as T;
}

function failure(response: Response, body: unknown): SatchelError {
  const error = (body as Schemas["Error"] | undefined)?.error;
  const requestId = response.headers.get("X-Request-Id") ?? "";
  return new SatchelError(
    response.status,
    error?.code ?? "HTTP",
    error?.message ?? "the server answers without an explanation",
    error?.details,
    requestId,
  );
}

/** A call that can be ended, such as by `AbortSignal.timeout(60_000)`. */
export interface CallOptions {
  signal?: AbortSignal;
}

export interface AskOptions extends CallOptions {
  conversationId?: string;
  /** "passages": without a language model, answer with the passages that were found. */
  fallback?: "passages";
  model?: string;
}

/** What happens while an answer is made; `done` is the last. */
export type AnswerEvent =
  | { type: "delta"; text: string }
  | { type: "sources"; sources: Citation[] }
  | { type: "tool_call" | "tool_result"; call: Record<string, unknown> }
  | { type: "done"; answer: Answer };

export class AgentClient {
  private readonly at: { path: { id: string } };

  constructor(
    private readonly client: Satchel,
    readonly id: string,
  ) {
    this.at = { path: { id } };
  }

  /** Uploads a document and waits until it is read, at most `wait` seconds. */
  async upload(file: Blob, name: string, options: CallOptions & { wait?: number } = {}): Promise<Source> {
    const form = new FormData();
    form.append("type", "file");
    form.append("name", name);
    form.append("file", file, name);
    const { wait = 60, signal } = options;
    const source = await must(
      this.client.api.POST("/agents/{id}/sources", {
        params: { ...this.at, query: { wait } },
        body: { file: name },
        bodySerializer: () => form,
        signal,
      }),
    );
    if (source.status === "error")
      throw new SatchelError(200, source.error?.code ?? "ERROR", source.error?.message ?? "it cannot be read");
    return source;
  }

  /** Asks, and returns the complete answer. */
  async ask(message: string, options: AskOptions = {}): Promise<Answer> {
    let answer: Answer | undefined;
    for await (const event of this.stream(message, options)) if (event.type === "done") answer = event.answer;
    if (!answer) throw new Error("the stream of the answer ended early");
    return answer;
  }

  /** Asks, and yields the answer as it comes. Leaving the loop ends the turn. */
  async *stream(message: string, options: AskOptions = {}): AsyncGenerator<AnswerEvent> {
    const { conversationId, fallback, model, signal } = options;
    const body = { message, conversation_id: conversationId, fallback, model, stream: true };
    const response = await this.client.fetch(`${this.client.root}/agents/${encodeURIComponent(this.id)}/chat`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify(body),
      signal,
    });
    if (!response.ok) throw failure(response, await response.json().catch(() => undefined));
    for await (const event of events(response)) {
      const data = JSON.parse(event.data);
      switch (event.event) {
        case "delta":
          yield { type: "delta", text: data.text };
          break;
        case "sources":
          yield { type: "sources", sources: data.sources };
          break;
        case "tool_call":
        case "tool_result":
          yield { type: event.event, call: data };
          break;
        case "done":
          yield { type: "done", answer: data };
          return;
        case "error":
          throw failure(response, data);
      }
    }
    throw new Error("the stream of the answer ended early");
  }

  /** Executes a workflow and waits for its end; one that fails throws. */
  async run(workflowId: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Execution> {
    const started = await must(
      this.client.api.POST("/agents/{id}/workflows/execute", {
        params: this.at,
        body: { workflow_id: workflowId, input },
        ...options,
      }),
    );
    return this.wait(started.id, options);
  }

  /** Waits for the end of an execution, even if the server restarts in between. */
  async wait(executionId: string, { signal }: CallOptions = {}): Promise<Execution> {
    const path = { ...this.at.path, executionId };
    for (;;) {
      if (!(await this.ended(executionId, signal))) await this.client.sleep(1, signal);
      const execution = await must(
        this.client.api.GET("/agents/{id}/workflows/executions/{executionId}", { params: { path }, signal }),
      );
      if (execution.status === "complete") return execution;
      if (execution.status === "errored" || execution.status === "terminated") throw new ExecutionError(execution);
    }
  }

  /** Follows an execution to its end; false: its events were cut. */
  private async ended(executionId: string, signal?: AbortSignal): Promise<boolean> {
    const executions = `${this.client.root}/agents/${encodeURIComponent(this.id)}/workflows/executions`;
    const response = await this.client.fetch(`${executions}/${encodeURIComponent(executionId)}/events`, { signal });
    if (!response.ok) throw failure(response, await response.json().catch(() => undefined));
    try {
      for await (const event of events(response)) if (event.event.startsWith("execution.")) return true;
    } catch (error) {
      if (signal?.aborted) throw error;
    }
    return false;
  }

  /** Opens a browser session, calls `use` with it and closes it. */
  async browse<T>(use: (session: BrowserSession) => Promise<T>, options: Schemas["SessionOptions"] = {}): Promise<T> {
    const made = await must(this.client.api.POST("/agents/{id}/browser", { params: this.at, body: options }));
    try {
      return await use(new BrowserSession(this.client, this.id, made.id));
    } finally {
      await must(this.client.api.DELETE("/agents/{id}/browser", { params: { ...this.at, query: { id: made.id } } }));
    }
  }
}

export class BrowserSession {
  constructor(
    private readonly client: Satchel,
    readonly agentId: string,
    readonly id: string,
  ) {}

  /** Executes actions in their order and returns a result of each. */
  async execute(...actions: Action[]): Promise<NonNullable<Schemas["ExecuteActionList"]["results"]>> {
    const answer = await must(
      this.client.api.POST("/agents/{id}/browser/{sessionId}/execute", {
        params: { path: { id: this.agentId, sessionId: this.id } },
        body: { actions },
      }),
    );
    return (answer as Schemas["ExecuteActionList"]).results ?? [];
  }
}
