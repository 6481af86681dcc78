// Creates an agent, uploads a document, asks, executes a workflow and reads a page
// in a browser session: node walk.js ADDRESS [PAGE]
import { must, Satchel, SatchelError } from "satchel-client";

declare const process: { argv: string[]; env: Record<string, string | undefined> };

const [address = "http://127.0.0.1:8787", page] = process.argv.slice(2);
const satchel = new Satchel({ baseUrl: address, apiKey: process.env.SATCHEL_API_KEY });

const made = await satchel.createAgent(`bakery-ts-${Date.now()}`);
const agent = satchel.agent(made.id);

const source = await agent.upload(
  new Blob(["# Returns\nBring a loaf back within two days and get your money back.\n"]),
  "handbook.md",
);
console.log(`${source.name}: ${source.status}, ${source.chunks} chunks`);

for await (const event of agent.stream("How do I get a refund?", { fallback: "passages" })) {
  if (event.type === "delta") console.log(event.text);
  if (event.type === "done") {
    for (const passage of event.answer.sources)
      console.log(`[${passage.number}] ${passage.metadata.source_name}: ${passage.content}`);
  }
}

const workflow = await must(
  satchel.api.POST("/agents/{id}/workflows", {
    params: { path: { id: made.id } },
    body: {
      name: "Greet",
      status: "active",
      nodes: [
        { id: "t", type: "trigger" },
        { id: "w", type: "wait", data: { duration: 1, unit: "seconds" } },
        { id: "s", type: "set", data: { values: { hello: "{{name}}" } } },
      ],
      edges: [
        { source: "t", target: "w" },
        { source: "w", target: "s" },
      ],
    },
  }),
);
const execution = await agent.run(workflow.id, { name: "Ada" });
console.log(`workflow: ${execution.status} ${JSON.stringify(execution.output)}`);

if (page) {
  const results = await agent.browse((session) =>
    session.execute({ action: "navigate", url: page }, { action: "extract", selector: "h1" }),
  );
  console.log(`browser: ${JSON.stringify(results[1])}`);
}

try {
  await agent.run("workflow-nowhere");
} catch (error) {
  if (!(error instanceof SatchelError)) throw error;
  console.log(`error: ${error.code}`);
}
await must(satchel.api.DELETE("/agents/{id}", { params: { path: { id: made.id } } }));
