import assert from "node:assert/strict";
import test from "node:test";
import { must, paged, Satchel, SatchelError, verifyWebhook, WebhookError } from "satchel-client";

/** A client whose requests are answered by `answer`, and the seconds that it waits. */
function client(answer) {
  const waits = [];
  const sleep = async (seconds) => void waits.push(seconds);
  return {
    satchel: new Satchel({ baseUrl: "http://127.0.0.1:1", apiKey: "key", fetch: async (r) => answer(r), sleep }),
    waits,
  };
}

test("an upload is sent again, whole, after Retry-After", async () => {
  let posts = 0,
    got = "";
  const { satchel, waits } = client(async (request) => {
    if (++posts === 1) return new Response("{}", { status: 429, headers: { "Retry-After": "17" } });
    got = `${request.headers.get("Authorization")} ${await (await request.formData()).get("file").text()}`;
    return Response.json({ id: "source-1", status: "ready" }, { status: 201 });
  });
  const source = await satchel.agent("a").upload(new Blob(["all of it"]), "a.txt");
  assert.deepEqual([source.id, got, waits], ["source-1", "Bearer key all of it", [17]]);
});

test("only reads are repeated", async () => {
  for (const [send, tries] of [
    [(s) => s.api.GET("/agents"), 5],
    [(s) => s.api.POST("/agents", { body: { name: "x" } }), 1],
  ]) {
    let n = 0;
    const { satchel } = client(() => (n++, new Response("{}", { status: 503 })));
    await assert.rejects(must(send(satchel)), SatchelError);
    assert.equal(n, tries);
  }
});

test("a stream in pieces, and one that ends early", async () => {
  const parts = [
    ": hi\n\nevent: delta\nda",
    'ta: {"text":"On Thurs"}\n\nevent: delta\ndata: {"text":"days"}\n',
    '\nevent: done\ndata: {"message":{"content":"On Thursdays"}}\n\n',
  ];
  const stream = (texts) =>
    new Response(
      new ReadableStream({
        start(c) {
          for (const t of texts) c.enqueue(new TextEncoder().encode(t));
          c.close();
        },
      }),
    );
  const { satchel } = client(() => stream(parts));
  let text = "";
  for await (const event of satchel.agent("a").stream("When?")) if (event.type === "delta") text += event.text;
  assert.equal(text, "On Thursdays");
  await assert.rejects(
    client(() => stream(parts.slice(0, 2)))
      .satchel.agent("a")
      .ask("When?"),
    /ended early/,
  );
});

test("Retry-After may be a date, and an abort ends the wait", async () => {
  const date = new Date(Date.now() + 60_000).toUTCString();
  const refuse = () =>
    new Response("{}", { status: 429, headers: { "Retry-After": date, "X-Request-Id": "request-1" } });
  const { satchel, waits } = client(refuse);
  await assert.rejects(satchel.createAgent("x"), (error) => error.status === 429 && error.requestId === "request-1");
  assert.equal(waits.length, 4);
  assert.ok(
    waits.every((seconds) => seconds > 8 && seconds <= 60),
    String(waits),
  );
  const stop = new AbortController();
  const patient = new Satchel({
    baseUrl: "http://127.0.0.1:1",
    fetch: async () => (queueMicrotask(() => stop.abort(new Error("enough"))), refuse()),
  });
  await assert.rejects(patient.agent("a").run("workflow-1", {}, { signal: stop.signal }), /enough/);
});

test("a list is read page by page", async () => {
  const asked = [];
  const { satchel } = client((request) => {
    const cursor = new URL(request.url).searchParams.get("cursor");
    asked.push(cursor);
    return Response.json(
      cursor
        ? { contacts: [{ name: "Cid" }], meta: {} }
        : { contacts: [{ name: "Ada" }, { name: "Bob" }], meta: { cursor: "c+2" } },
    );
  });
  const names = [];
  const page = (cursor) =>
    must(satchel.api.GET("/agents/{id}/contacts", { params: { path: { id: "a" }, query: { cursor } } }));
  for await (const contact of paged(page, "contacts")) names.push(contact.name);
  assert.deepEqual(
    [names, asked],
    [
      ["Ada", "Bob", "Cid"],
      [null, "c+2"],
    ],
  );
});

test("a wait outlives a restart", async () => {
  let streams = 0;
  const { satchel, waits } = client((request) => {
    if (!request.url.endsWith("/events"))
      return Response.json({ id: "x", status: streams > 1 ? "complete" : "running" });
    if (++streams > 1) return new Response("event: execution.complete\ndata: {}\n\n");
    return new Response(new ReadableStream({ pull: (c) => c.error(new TypeError("terminated")) }));
  });
  const execution = await satchel.agent("a").wait("x");
  assert.deepEqual([execution.status, streams, waits], ["complete", 2, [1]]);
});

test("webhooks", async () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    body = '{"type":"contact.created"}',
    at = 1795273448;
  const key = await crypto.subtle.importKey(
    "raw",
    Uint8Array.from(atob(secret.slice(6)), (c) => c.charCodeAt(0)),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(`event-1.${at}.${body}`));
  const headers = {
    "webhook-id": "event-1",
    "webhook-timestamp": String(at),
    "webhook-signature": "v1,!! v1,AAAA v1," + btoa(String.fromCharCode(...new Uint8Array(mac))),
  };
  assert.equal((await verifyWebhook(secret, headers, body, at)).type, "contact.created");
  assert.equal((await verifyWebhook(secret, headers, new TextEncoder().encode(body), at)).type, "contact.created");
  await assert.rejects(verifyWebhook(secret, headers, body + " ", at), WebhookError);
  await assert.rejects(verifyWebhook(secret, headers, body, at + 3600), WebhookError);
});
