// Messages of a chat: what was asked, and answers with their sources and tools.
import { useState } from "preact/hooks";

import { agentId, href, mayEdit, path, put } from "../../data";
import { Badge, Button, CopyButton, Icon, JsonTree, plural, span, showToast, TextArea, When } from "../../ui";
import { Highlighted } from "../../parts/highlight";
import { cited, citationsOf, placeOf, withCitations, type Citation, type Cited } from "../../parts/citations";
import { CodeBlock } from "../../parts/codeblock";
import { Markdown } from "../../parts/markdown";
import type { ToolRow } from "./turn";

type ToolCall = {
  id?: string;
  name: string;
  arguments?: unknown;
  result?: unknown;
  ms?: number;
  duration_ms?: number;
  error?: string | { message?: string };
};
/** What is kept with a message. */
export type MessageMetadata = {
  sources?: Cited[];
  tool_calls?: ToolCall[];
  queries?: string[];
  mode?: string;
  partial?: boolean;
  author?: string;
  model?: string;
  usage?: { total_tokens?: number };
  retry_of?: number;
};
/** A stored message. */
export type Message = {
  id: number;
  role: string;
  content: string;
  metadata: MessageMetadata | null;
  created_at: string;
  feedback?: { rating: 1 | -1 | null; comment?: string };
};

/** What a person asked. */
export function Question({ text, edit }: { text: string; edit?: () => void }) {
  return (
    <div class="turn mine">
      <div class="bubble">
        <bdi>{text}</bdi>
      </div>
      {edit && (
        <div class="turn-tools">
          <CopyButton text={text} />
          <Button kind="quiet" icon="Pencil" label="Edit and ask again" onClick={edit} />
        </div>
      )}
    </div>
  );
}

/** The calls of tools in an answer, a row each. */
export function Tools({ rows }: { rows: ToolRow[] }) {
  if (!rows.length) return null;
  return (
    <div class="stack tool-rows">
      {rows.map((t) => (
        <details key={t.id} class="tool-row">
          <summary>
            <Icon name="Wrench" size={14} /> <code>{t.name}</code>{" "}
            {t.error ? (
              <Badge tone="bad">error</Badge>
            ) : t.done ? (
              <Badge tone="good">ok</Badge>
            ) : (
              <Badge tone="busy">running</Badge>
            )}{" "}
            {t.ms !== undefined && <span class="muted small">{span(t.ms)}</span>}
          </summary>
          {t.error && <p class="issue">{t.error}</p>}
          {t.arguments !== undefined && <JsonTree name="arguments" value={t.arguments} depth={1} />}
          {t.result !== undefined && <JsonTree name="result" value={t.result} depth={1} />}
        </details>
      ))}
    </div>
  );
}

/** The passages in place of an answer, where no model can be called; the stored text says why. */
export function Passages({ list, text, open }: { list: Citation[]; text?: string; open: (c: Citation) => void }) {
  return (
    <div class="stack">
      <p class="muted">
        {text ?? "These are the closest passages."} <a href={href(agentId.value, "settings")}>Choose a model</a>
      </p>
      {list.slice(0, 5).map((c) => (
        <button type="button" class="card passage" onClick={() => open(c)}>
          <span class="row">
            <b class="cite">{c.n}</b>
            <bdi class="grow clip">{placeOf(c)}</bdi>
            {c.score > 0 && <span class="muted small">{c.score.toFixed(2)}</span>}
          </span>
          <span class="passage-text">
            <Highlighted text={c.content} ranges={c.matches} best={c.best} excerpt />
          </span>
        </button>
      ))}
    </div>
  );
}

/** The text of an answer with its citations, and the passages that it did not cite. */
export function AnswerText({
  text,
  sources,
  queries,
  open,
}: {
  text: string;
  sources: Citation[];
  queries?: string[];
  open: (c: Citation) => void;
}) {
  const used = cited(text, sources);
  const others = sources.filter((c) => !used.has(c.n));
  return (
    <>
      <Markdown key={sources.length} text={text} Code={CodeBlock} inlineText={(t) => withCitations(t, sources, open)} />
      {text && sources.length > 0 && (
        <details class="also">
          <summary class="muted small">
            {used.size ? `${plural(used.size, "passage")} cited` : "No passage cited"}
            {others.length > 0 && `, ${others.length} more read`}
          </summary>
          {queries && queries.length > 0 && (
            <p class="muted small">
              Searched for{" "}
              {queries.map((q, i) => (
                <>
                  {i > 0 && ", "}
                  <bdi>“{q}”</bdi>
                </>
              ))}
            </p>
          )}
          <ul>
            {sources.map((c) => (
              <li>
                <button type="button" class="link" onClick={() => open(c)}>
                  <b class="cite">{c.n}</b> <bdi>{placeOf(c)}</bdi>
                </button>
                {!used.has(c.n) && <span class="muted small"> not cited</span>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** Returns the tool calls of a stored answer. */
export function toolRows(metadata: MessageMetadata | null | undefined): ToolRow[] {
  return (metadata?.tool_calls ?? []).map((t, i) => ({
    id: t.id ?? String(i),
    name: t.name,
    arguments: t.arguments,
    result: t.result,
    ms: t.ms ?? t.duration_ms,
    error: typeof t.error === "object" ? t.error.message : t.error,
    done: true,
  }));
}

type AnswerProps = {
  /** The answers to one question, oldest first. */
  versions: Message[];
  open: (c: Citation, among: Citation[]) => void;
  retry?: (m: Message) => void;
};

/** A stored answer; of several to one question, one at a time. */
export function Answer({ versions, open, retry }: AnswerProps) {
  const [at, setAt] = useState(versions.length - 1);
  const index = Math.min(at, versions.length - 1);
  const m = versions[index];
  const sources = citationsOf(m.metadata?.sources);
  return (
    <div class="turn" id={`message-${m.id}`}>
      <Tools rows={toolRows(m.metadata)} />
      {m.metadata?.mode === "passages" ? (
        <Passages list={sources} text={m.content} open={(c) => open(c, sources)} />
      ) : (
        <AnswerText text={m.content} sources={sources} queries={m.metadata?.queries} open={(c) => open(c, sources)} />
      )}
      {m.metadata?.partial && <p class="muted small">Stopped here.</p>}
      {m.metadata?.author === "human" && (
        <p class="muted small">
          <Icon name="User" size={14} /> Written by a person
        </p>
      )}
      <div class="turn-tools">
        {versions.length > 1 && (
          <span class="row nowrap">
            <Button
              kind="quiet"
              icon="ArrowLeft"
              label="Previous answer"
              disabled={index === 0}
              onClick={() => setAt(index - 1)}
            />
            <span class="muted small">
              {index + 1}/{versions.length}
            </span>
            <Button
              kind="quiet"
              icon="ArrowRight"
              label="Next answer"
              disabled={index === versions.length - 1}
              onClick={() => setAt(index + 1)}
            />
          </span>
        )}
        <CopyButton text={m.content || sources.map((c) => c.content).join("\n\n")} />
        {retry && (
          <Button
            kind="quiet"
            icon="RotateCcw"
            label="Regenerate"
            onClick={() => {
              setAt(versions.length);
              retry(m);
            }}
          />
        )}
        {mayEdit.value && <Feedback message={m} />}
        <span class="muted small">
          {[m.metadata?.model, m.metadata?.usage?.total_tokens && `${m.metadata.usage.total_tokens} tokens`, ""]
            .filter((t) => t !== undefined)
            .join(" · ")}
          <When time={m.created_at} />
        </span>
      </div>
    </div>
  );
}

/** What a person thinks of an answer; a bad one may say why. */
function Feedback({ message }: { message: Message }) {
  const [rating, setRating] = useState<1 | -1 | null>(message.feedback?.rating ?? null);
  const [comment, setComment] = useState<string>();
  const save = async (value: 1 | -1 | null, text?: string) => {
    setRating(value);
    try {
      await put(path("agents", agentId.value, "messages", message.id, "feedback"), {
        rating: value,
        comment: text ?? "",
      });
    } catch (error) {
      setRating(message.feedback?.rating ?? null);
      showToast(error);
    }
  };
  return (
    <>
      <Button
        kind="quiet"
        icon="ThumbsUp"
        label="Good answer"
        pressed={rating === 1}
        onClick={() => save(rating === 1 ? null : 1)}
      />
      <Button
        kind="quiet"
        icon="ThumbsDown"
        label="Bad answer"
        pressed={rating === -1}
        onClick={() => {
          setComment(rating === -1 ? undefined : "");
          void save(rating === -1 ? null : -1);
        }}
      />
      {comment !== undefined && (
        <form
          class="stack feedback"
          onSubmit={(e) => {
            e.preventDefault();
            void save(-1, comment);
            setComment(undefined);
            showToast("Thank you.");
          }}
        >
          <TextArea label="What's wrong with it?" value={comment} onInput={setComment} rows={2} />
          <div class="row end">
            <Button onClick={() => setComment(undefined)}>Cancel</Button>
            <Button kind="primary" submit>
              Send
            </Button>
          </div>
        </form>
      )}
    </>
  );
}
