// Workflows that the agent's model drafts from a sentence. The draft is shown on the canvas; it is
// stored when the workflow is saved.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, asError, get, href, path, post, useQuery } from "../data";
import { Button, Dialog, Icon, Load, showToast } from "../ui";
import { catalog, type NodeType, type Schema } from "./catalog";
import { type Doc, type GraphNode, readGraph, type StoredGraph, writeGraph } from "./graph";
import { tidy } from "./layout";
import type { Editor, Issue } from "./state";

const maxSentence = 4000; // characters
const maxRecords = 30; // of each kind, listed for the model

type Answer = Required<Pick<StoredGraph, "nodes" | "edges">> & { name: string; summary: string };
/** A record of the agent as its list returns it. */
type ListedRecord = { id?: string; type?: string; name: string; columns?: { name: string }[] };

/** The JSON Schema of the model's answer. */
const answerSchema = {
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

function fieldText(name: string, schema: Schema, required: boolean): string {
  const type = schema.enum?.join("|") ?? ([schema.type].flat().join("|") || "any");
  const reference = schema["x-ref"] ? ` (id of a ${schema["x-ref"]})` : "";
  const description = schema.description ? ` - ${schema.description}` : "";
  return `${name}${required ? "*" : ""}: ${type}${reference}${description}`;
}

function outputsText({ handles, handles_from }: NodeType): string {
  const outputs = [...(handles_from ? [`the ids of ${handles_from}`] : []), ...handles];
  return outputs.length ? `outputs: ${outputs.join(", ")}` : "";
}

function typeText(type: NodeType): string {
  const fields = Object.entries(type.data.properties ?? {}).filter(([, schema]) => !schema.writeOnly);
  const required = new Set(type.data.required);
  const lines = [
    `## ${type.type}: ${type.summary}`,
    outputsText(type),
    ...fields.map(([name, schema]) => `- ${fieldText(name, schema, required.has(name))}`),
    `example: ${JSON.stringify(type.example)}`,
  ];
  return lines.filter(Boolean).join("\n");
}

/** Returns the records of the agent that nodes can refer to, for the model. */
async function recordsText(signal: AbortSignal): Promise<string> {
  const kinds: [kind: string, describe: (record: ListedRecord) => string][] = [
    ["gateways", (gateway) => `${gateway.id}: ${gateway.type} ${gateway.name}`],
    ["tables", (table) => `${table.name}(${table.columns!.map((column) => column.name).join(", ")})`],
    ["tools", (tool) => `${tool.id}: ${tool.name}`],
    ["sources", (source) => `${source.id}: ${source.name}`],
    ["credentials", (credential) => credential.name],
  ];
  const lines = kinds.map(async ([kind, describe]) => {
    const list = await get(path("agents", agentId.value, kind), { limit: maxRecords }, signal);
    const records = (list as Record<string, ListedRecord[]>)[kind];
    return `${kind}: ${records.map(describe).join("; ") || "none"}`;
  });
  return (await Promise.all(lines)).join("\n");
}

const rules = `You write workflows of the agent server Satchel as JSON.
- nodes: {id, type, data}. ids are short and in snake_case. data.label says in a few words what the node does. Exactly one node of type trigger, which has no edge to it.
- edges: {source, target, sourceHandle}. sourceHandle is one of the outputs of the source's type, "error" for what happens when it fails, and is left out where the type has no outputs.
- Values come from templates: {{contact.name}}, {{trigger.amount}}, {{nodes.ID.field}}, with filters such as {{x | default:"none"}}. Code reads the same names as variables.
- Use only the types and fields below, and ids that are listed under Records; where one is missing, leave the field out.
- Never write a password, key or token.
- name: a short title. summary: one or two sentences for the person: what it does, and what is still to be filled in.
Answer with the JSON alone.`;

type Message = { role: "system" | "user" | "assistant"; content: string };

/** Returns the model's answer to messages. */
async function complete(messages: Message[], signal: AbortSignal): Promise<string> {
  const completion = await post(
    path("agents", agentId.value, "v1", "chat", "completions"),
    {
      model: "default",
      messages,
      temperature: 0.2,
      response_format: { type: "json_schema", json_schema: { name: "workflow", schema: answerSchema } },
    },
    signal,
  );
  return completion.choices?.[0]?.message?.content ?? "";
}

async function firstMessages(sentence: string, doc: Doc, signal: AbortSignal): Promise<Message[]> {
  const types = catalog.value.types.map(typeText).join("\n");
  const system = `${rules}\n\n# Types\n${types}\n\n# Records\n${await recordsText(signal)}`;
  const current = JSON.stringify({ name: doc.name, ...writeGraph(doc) });
  const replaced = doc.nodes.length ? `\nThe workflow now, which your answer replaces as a whole:\n${current}` : "";
  return [
    { role: "system", content: system },
    { role: "user", content: sentence + replaced },
  ];
}

/** Asks the model for a workflow, and once more if the service finds problems in it. */
async function draft(sentence: string, doc: Doc, signal: AbortSignal): Promise<{ answer: Answer; issues: Issue[] }> {
  const messages = await firstMessages(sentence, doc, signal);
  for (let last = false; ; last = true) {
    const content = await complete(messages, signal);
    const answer = readAnswer(content);
    const { nodes, edges } = answer;
    const { issues } = await post(path("agents", agentId.value, "workflows", "validate"), { nodes, edges }, signal);
    if (!issues.length || last) return { answer, issues };
    const problems = issues.map(
      (issue: Issue) => `${issue.node_id ?? issue.edge_id ?? ""} ${issue.field}: ${issue.issue}`,
    );
    messages.push(
      { role: "assistant", content },
      {
        role: "user",
        content:
          `The service found these problems:\n${problems.join("\n")}\n` + "Answer with the whole workflow, corrected.",
      },
    );
  }
}

const isListOfObjects = <T extends object>(list?: T[]): list is T[] =>
  Array.isArray(list) && list.every((item) => item && typeof item === "object" && !Array.isArray(item));

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Parses JSON that may be in a Markdown code block; returns undefined for other text. */
function parseJson(content: string) {
  try {
    return JSON.parse(content.replace(/^\s*```(json)?|```\s*$/g, ""));
  } catch {
    return undefined;
  }
}

/** Reads the model's answer; throws an error if it is not a graph. */
function readAnswer(content: string): Answer {
  const value: (StoredGraph & { name?: unknown; summary?: unknown }) | undefined = parseJson(content);
  const isNode = ({ id, type }: GraphNode) => typeof id === "string" && id && typeof type === "string";
  if (
    !isListOfObjects(value?.nodes) ||
    !isListOfObjects(value?.edges) ||
    !value.nodes.length ||
    !value.nodes.every(isNode)
  )
    throw new Error("The model's answer is not a workflow. Rephrase it, or choose another model.");
  return {
    name: textOf(value.name),
    summary: textOf(value.summary),
    nodes: value.nodes.map(({ id, type, data }) => ({ id, type, data: data ?? {} })),
    edges: value.edges.map(({ source, target, sourceHandle }) => ({
      source,
      target,
      ...(sourceHandle && { sourceHandle }),
    })),
  };
}

/** A graph that the model drafted: what the model says about it, and the document that it replaced. */
export type AIDraft = { summary: string; before: Doc };

type DraftDialogProps = {
  editor: Editor;
  done: (summary: string, before: Doc) => void;
  close: () => void;
};

/** Asks for a sentence and drafts a workflow from it. */
export function DraftDialog(props: DraftDialogProps) {
  const settings = useQuery(path("agents", agentId.value, "settings"));
  useEffect(() => {
    void settings.reload();
  }, []);
  return (
    <Dialog title="Draft with AI" close={props.close}>
      <Load of={settings}>
        {({ llm_provider, llm_model }) =>
          llm_provider && llm_model ? (
            <DraftForm {...props} model={llm_model} />
          ) : (
            <p>
              Drafting needs a language model, and this agent doesn't have one yet.{" "}
              <a href={href(agentId.value, "settings")} onClick={props.close}>
                Choose a model
              </a>
            </p>
          )
        }
      </Load>
    </Dialog>
  );
}

/** Returns what drafts a workflow, whether it is busy, and why it failed. */
function useDrafting({ editor, done, close }: DraftDialogProps) {
  const [busy, setBusy] = useState(false);
  const [issue, setIssue] = useState("");
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const run = async (sentence: string) => {
    abort.current = new AbortController();
    setBusy(true);
    setIssue("");
    try {
      const { answer, issues } = await draft(sentence, editor.doc.value, abort.current.signal);
      const { nodes, edges } = await tidy(readGraph(answer));
      const before = editor.doc.value;
      const name = !before.nodes.length && answer.name && { name: answer.name.slice(0, 100) };
      editor.change({ nodes, edges, ...name });
      editor.select([]);
      editor.issues.value = issues;
      done(answer.summary, before);
      close();
    } catch (error) {
      if (asError(error).name !== "AbortError") setIssue(asError(error).message);
    }
    setBusy(false);
  };
  return { run, busy, issue };
}

function DraftForm(props: DraftDialogProps & { model: string }) {
  const { editor, close, model } = props;
  const [sentence, setSentence] = useState("");
  const { run, busy, issue } = useDrafting(props);
  const replaces = editor.doc.value.nodes.length > 0;
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!busy && sentence.trim()) void run(sentence).catch(showToast);
  };
  return (
    <form class="stack" onSubmit={onSubmit}>
      <div class="field">
        <label for="draft-sentence">{replaces ? "What should change?" : "What should the workflow do?"}</label>
        <textarea
          id="draft-sentence"
          rows={4}
          maxLength={maxSentence}
          autoFocus
          value={sentence}
          disabled={busy}
          placeholder="When someone writes on Telegram about a refund, ask me to approve it, then answer them."
          onInput={(event) => setSentence(event.currentTarget.value)}
        />
        <small class="muted">
          {model} gets this text{replaces && ", the workflow"}, the types of nodes, and the names of this agent's
          channels, tables, tools, sources and credentials. Nothing is saved until you save it.
        </small>
      </div>
      {issue && (
        <p class="issue" role="alert">
          {issue}
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
