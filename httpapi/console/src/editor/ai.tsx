// A workflow drafted by the agent's model from a sentence. The draft is shown
// on the canvas; nothing is stored before it is saved.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, asError, get, href, path, post, useQuery } from "../data";
import { Button, Dialog, Icon, Load, tell } from "../ui";
import {
  catalog,
  type Doc,
  type Editor,
  type Issue,
  readGraph,
  type Schema,
  type StoredGraph,
  tidy,
  writeGraph,
} from "./index";

const longestSentence = 4000;
const listed = 30; // records of a kind that the model is given

type Answer = Required<Pick<StoredGraph, "nodes" | "edges">> & { name: string; summary: string };
/** What the list of something in the agent has of one. */
type Listed = { id?: string; type?: string; name: string; columns?: { name: string }[] };

const shape = {
  type: "object",
  required: ["name", "summary", "nodes", "edges"],
  properties: {
    name: { type: "string" },
    summary: { type: "string" },
    nodes: {
      type: "array",
      items: {
        type: "object",
        required: ["id", "type", "data"],
        properties: { id: { type: "string" }, type: { type: "string" }, data: { type: "object" } },
      },
    },
    edges: {
      type: "array",
      items: {
        type: "object",
        required: ["source", "target"],
        properties: { source: { type: "string" }, target: { type: "string" }, sourceHandle: { type: "string" } },
      },
    },
  },
};

const field = (name: string, s: Schema, required: boolean) =>
  `${name}${required ? "*" : ""}: ${s.enum ? s.enum.join("|") : [s.type].flat().join("|") || "any"}${s["x-ref"] ? ` (id of a ${s["x-ref"]})` : ""}${s.description ? ` - ${s.description}` : ""}`;

/** The types of nodes, as the model reads them. */
const typesText = () =>
  catalog.value.types
    .map((t) =>
      [
        `## ${t.type}: ${t.summary}`,
        t.handles_from
          ? `outputs: the ids of ${t.handles_from}${t.handles.length ? `, ${t.handles.join(", ")}` : ""}`
          : t.handles.length
            ? `outputs: ${t.handles.join(", ")}`
            : "",
        ...Object.entries(t.data.properties ?? {})
          .filter(([, s]) => !s.writeOnly)
          .map(([name, s]) => `- ${field(name, s, Boolean(t.data.required?.includes(name)))}`),
        `example: ${JSON.stringify(t.example)}`,
      ]
        .filter(Boolean)
        .join("\n"),
    )
    .join("\n");

/** What the agent has that nodes can name. */
async function recordsText(signal: AbortSignal): Promise<string> {
  const kinds: [string, (r: Listed) => string][] = [
    ["gateways", (r) => `${r.id}: ${r.type} ${r.name}`],
    ["tables", (r) => `${r.name}(${r.columns!.map((c) => c.name).join(", ")})`],
    ["tools", (r) => `${r.id}: ${r.name}`],
    ["sources", (r) => `${r.id}: ${r.name}`],
    ["credentials", (r) => r.name],
  ];
  const lists = await Promise.all(
    kinds.map(([kind, say]) =>
      get(path("agents", agentId.value, kind), { limit: listed }, signal).then(
        (d) => `${kind}: ${(d as Record<string, Listed[]>)[kind].map(say).join("; ") || "none"}`,
      ),
    ),
  );
  return lists.join("\n");
}

const rules = `You write workflows of the agent server Satchel as JSON.
- nodes: {id, type, data}. ids are short and in snake_case. data.label says in a few words what the node does. Exactly one node of type trigger, which has no edge to it.
- edges: {source, target, sourceHandle}. sourceHandle is an output of the source's type, "error" for what happens when it fails, and is left out where the type has no outputs.
- Values come from templates: {{contact.name}}, {{trigger.amount}}, {{nodes.ID.field}}, with filters such as {{x | default:"none"}}. Code reads the same names as variables.
- Use only the types and fields below, and ids that are listed under Records; where one is missing, leave the field out.
- Never write a password, key or token.
- name: a short title. summary: one or two sentences for the person: what it does, and what is still to be filled in.
Answer with the JSON alone.`;

/** Asks the model for a workflow; once more when the service finds problems in it. */
async function draft(
  sentence: string,
  editor: Editor,
  signal: AbortSignal,
): Promise<{ answer: Answer; issues: Issue[] }> {
  const now = editor.doc.value.nodes.length
    ? `\nThe workflow now, which your answer replaces as a whole:\n${JSON.stringify({ name: editor.doc.value.name, ...writeGraph(editor.doc.value) })}`
    : "";
  const messages: unknown[] = [
    { role: "system", content: `${rules}\n\n# Types\n${typesText()}\n\n# Records\n${await recordsText(signal)}` },
    { role: "user", content: sentence + now },
  ];
  for (let last = false; ; last = true) {
    const said = await post(
      path("agents", agentId.value, "v1", "chat", "completions"),
      {
        model: "default",
        messages,
        temperature: 0.2,
        response_format: { type: "json_schema", json_schema: { name: "workflow", schema: shape } },
      },
      signal,
    );
    const content: string = said.choices?.[0]?.message?.content ?? "";
    const answer = read(content);
    const { issues } = await post(
      path("agents", agentId.value, "workflows", "validate"),
      { nodes: answer.nodes, edges: answer.edges },
      signal,
    );
    if (!issues.length || last) return { answer, issues };
    messages.push(
      { role: "assistant", content },
      {
        role: "user",
        content: `The service found these problems:\n${issues.map((i: Issue) => `${i.node_id ?? i.edge_id ?? ""} ${i.field}: ${i.issue}`).join("\n")}\nAnswer with the whole workflow, corrected.`,
      },
    );
  }
}

/** Reads the model's answer; throws when it is no graph. */
function read(content: string): Answer {
  let value: (StoredGraph & { name?: unknown; summary?: unknown }) | undefined;
  try {
    value = JSON.parse(content.replace(/^\s*```(json)?|```\s*$/g, ""));
  } catch {
    /* said below */
  }
  const objects = <T extends object>(list?: T[]): list is T[] =>
    Array.isArray(list) && list.every((v) => v && typeof v === "object" && !Array.isArray(v));
  if (
    !objects(value?.nodes) ||
    !objects(value?.edges) ||
    !value.nodes.length ||
    value.nodes.some((n) => typeof n.id !== "string" || !n.id || typeof n.type !== "string")
  )
    throw new Error("The model's answer is not a workflow. Rephrase it, or choose another model.");
  const text = (v: unknown) => (typeof v === "string" ? v : "");
  return {
    name: text(value.name),
    summary: text(value.summary),
    nodes: value.nodes.map(({ id, type, data }) => ({ id, type, data: data ?? {} })),
    edges: value.edges.map(({ source, target, sourceHandle }) => ({
      source,
      target,
      ...(sourceHandle && { sourceHandle }),
    })),
  };
}

/** A graph that the model drafted: what it says about it, and the document before. */
export type AIDraft = { summary: string; before: Doc };

/** Asks for a sentence and drafts the workflow from it. */
export function DraftDialog({
  editor,
  done,
  close,
}: {
  editor: Editor;
  done: (summary: string, before: Doc) => void;
  close: () => void;
}) {
  const settings = useQuery(path("agents", agentId.value, "settings"));
  const [sentence, setSentence] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const abort = useRef<AbortController>(undefined);
  useEffect(() => {
    void settings.reload();
    return () => abort.current?.abort();
  }, []);
  const run = async () => {
    abort.current = new AbortController();
    setBusy(true);
    setFailed("");
    try {
      const { answer, issues } = await draft(sentence, editor, abort.current.signal);
      const { nodes, edges } = await tidy(readGraph(answer));
      const before = editor.doc.value;
      editor.change({ nodes, edges, ...(!before.nodes.length && answer.name && { name: answer.name.slice(0, 100) }) });
      editor.select([]);
      editor.issues.value = issues;
      done(answer.summary, before);
      close();
    } catch (error) {
      if (asError(error).name !== "AbortError") setFailed(asError(error).message);
    }
    setBusy(false);
  };
  const replaces = editor.doc.value.nodes.length > 0;
  return (
    <Dialog title="Draft with AI" close={close}>
      <Load of={settings}>
        {(s) =>
          !s.llm_provider || !s.llm_model ? (
            <p>
              Drafting needs a language model, and this agent doesn't have one yet.{" "}
              <a href={href(agentId.value, "settings")} onClick={close}>
                Choose a model
              </a>
            </p>
          ) : (
            <form
              class="stack"
              onSubmit={(e) => {
                e.preventDefault();
                if (!busy && sentence.trim()) void run().catch(tell);
              }}
            >
              <div class="field">
                <label for="draft-sentence">{replaces ? "What should change?" : "What should the workflow do?"}</label>
                <textarea
                  id="draft-sentence"
                  rows={4}
                  maxLength={longestSentence}
                  autoFocus
                  value={sentence}
                  disabled={busy}
                  placeholder="When someone writes on Telegram about a refund, ask me to approve it, then answer them."
                  onInput={(e) => setSentence(e.currentTarget.value)}
                />
                <small class="muted">
                  {s.llm_model} gets this text{replaces && ", the workflow"}, the types of nodes, and the names of this
                  agent's channels, tables, tools, sources and credentials. Nothing is saved until you save it.
                </small>
              </div>
              {failed && (
                <p class="issue" role="alert">
                  {failed}
                </p>
              )}
              <div class="row end">
                <span class="muted grow" role="status">
                  {busy ? "Drafting…" : ""}
                </span>
                <Button onClick={close}>Cancel</Button>
                <Button kind="primary" icon="Sparkles" submit disabled={busy || !sentence.trim()}>
                  Draft
                </Button>
              </div>
            </form>
          )
        }
      </Load>
    </Dialog>
  );
}

/** Asks whether a graph that the model drafted is kept. */
export function AIDraftBanner({ editor, aiDraft, close }: { editor: Editor; aiDraft: AIDraft; close: () => void }) {
  const discard = () => {
    editor.change(aiDraft.before);
    close();
  };
  return (
    <div class="banner draft-offer" role="status">
      <Icon name="Sparkles" size={16} />
      <span class="grow">
        <bdi>{aiDraft.summary || "The draft is on the canvas."}</bdi> It isn't saved yet.
      </span>
      <Button onClick={discard}>Drop it</Button>
      <Button kind="primary" onClick={close}>
        Keep it
      </Button>
    </div>
  );
}
