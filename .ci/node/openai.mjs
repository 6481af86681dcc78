// Talks to an agent through OpenAI's own client for JavaScript, unchanged. The
// address of a Satchel server is the argument; the language model behind it is
// played here.
import assert from "node:assert/strict";
import http from "node:http";
import OpenAI from "openai";

const satchel = process.argv[2];

// The model: calls a tool when it is offered one, else says hello.
const model = http.createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const asked = JSON.parse(body);
    const last = asked.messages.at(-1);
    if (last.content === "fail") {
      response.writeHead(401, { "Content-Type": "application/json" }).end('{"error":{"message":"no"}}');
      return;
    }
    const call = { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } };
    const calls = asked.tools && last.role !== "tool";
    const text = asked.response_format ? '```json\n{"mood":"fine"}\n```' : "Hello there.";
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    if (!asked.stream) {
      const message = calls
        ? { role: "assistant", content: null, tool_calls: [call] }
        : { role: "assistant", content: text };
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end(
        JSON.stringify({ choices: [{ index: 0, finish_reason: calls ? "tool_calls" : "stop", message }], usage }),
      );
      return;
    }
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const deltas = calls
      ? [{ tool_calls: [{ index: 0, ...call }] }]
      : text.split(/(?<= )/).map((content) => ({ content }));
    for (const delta of deltas) response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`);
    response.write(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: calls ? "tool_calls" : "stop" }] })}\n\n`,
    );
    response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
  });
});
await new Promise((ready) => model.listen(0, "127.0.0.1", ready));

const settings = {
  llm_provider: "openai-compatible",
  llm_model: "m",
  llm_base_url: `http://127.0.0.1:${model.address().port}/v1`,
};
const set = await fetch(`${satchel}/api/agents/default/settings`, {
  method: "PUT",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(settings),
});
assert.equal(set.status, 200, await set.text());

const client = new OpenAI({ baseURL: `${satchel}/api/agents/default/v1`, apiKey: "anything", maxRetries: 0 });
const messages = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Hi" }] },
];
const weather = {
  type: "function",
  function: {
    name: "weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    function: () => "sun",
    parse: JSON.parse,
  },
};

const checks = {
  async "models.list and retrieve"() {
    const names = [];
    for await (const one of client.models.list()) names.push(one.id);
    assert.deepEqual(names, ["default"]);
    assert.equal((await client.models.retrieve("default")).owned_by, "satchel");
    await assert.rejects(client.models.retrieve("other"), OpenAI.NotFoundError);
  },
  async "chat.completions.create"() {
    const answer = await client.chat.completions.create({ model: "gpt-5", messages, stop: null, seed: 7 });
    assert.equal(answer.choices[0].message.content, "Hello there.");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.total_tokens, 8);
  },
  async "chat.completions.create, streamed"() {
    const stream = await client.chat.completions.create({
      model: "x",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "",
      reason,
      usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      reason ??= chunk.choices[0]?.finish_reason;
      usage = chunk.usage ?? usage;
    }
    assert.deepEqual([text, reason, usage.total_tokens], ["Hello there.", "stop", 8]);
  },
  async "chat.completions.stream"() {
    const answer = await client.chat.completions.stream({ model: "x", messages }).finalChatCompletion();
    assert.equal(answer.choices[0].message.content, "Hello there.");
  },
  async "chat.completions.parse"() {
    const schema = {
      type: "object",
      properties: { mood: { type: "string" } },
      required: ["mood"],
      additionalProperties: false,
    };
    const format = { type: "json_schema", json_schema: { name: "mood", strict: true, schema } };
    const answer = await client.chat.completions.parse({
      model: "x",
      messages,
      response_format: { ...format, $brand: "auto-parseable-response-format", $parseRaw: JSON.parse },
    });
    assert.deepEqual(answer.choices[0].message.parsed, { mood: "fine" });
  },
  async "chat.completions.runTools"() {
    for (const stream of [false, true]) {
      const run = client.chat.completions.runTools({ model: "x", messages, tools: [weather], stream });
      assert.equal(await run.finalContent(), "Hello there.");
      assert.equal((await run.finalFunctionToolCall()).name, "weather");
    }
  },
  async "embeddings.create"() {
    const packed = await client.embeddings.create({ model: "x", input: ["bread", "whale"] }); // asks for base64
    const plain = await client.embeddings.create({ model: "x", input: "bread", encoding_format: "float" });
    assert.equal(packed.data.length, 2);
    assert.deepEqual(packed.data[0].embedding.map(Math.fround), plain.data[0].embedding.map(Math.fround));
    assert.equal(plain.data[0].embedding.length, 512);
  },
  async errors() {
    const refused = { status: 400, type: "invalid_request_error" };
    await assert.rejects(client.chat.completions.create({ model: "x", messages, n: 2 }), { ...refused, param: "n" });
    await assert.rejects(client.chat.completions.create({ model: "x", messages: [] }), {
      ...refused,
      param: "messages",
    });
    await assert.rejects(client.embeddings.create({ model: "x", input: [[1, 2]] }), refused);
    const failing = { model: "x", messages: [{ role: "user", content: "fail" }] };
    for (const stream of [false, true]) {
      await assert.rejects(client.chat.completions.create({ ...failing, stream }), {
        status: 500,
        code: "UPSTREAM_ERROR",
      });
    }
  },
};
for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name, "holds");
}
model.close();
