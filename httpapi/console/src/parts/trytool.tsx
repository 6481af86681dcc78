// Calls a tool and shows what came of it.
import { useState } from "preact/hooks";

import { type API, ApiError } from "../data";
import { Button, Icon, JsonTree, span, showToast } from "../ui";
import { ArgumentsForm, defaultsOf, type Schema } from "./arguments";

type Outcome = API.ToolOutcome;

/** A form for a tool's arguments, and the outcome of a call with them. */
export function TryTool({
  schema,
  run,
  reason,
}: {
  schema?: Schema;
  run: (args: Record<string, unknown>) => Promise<Outcome>;
  reason?: string;
}) {
  const [value, setValue] = useState<Record<string, unknown>>(() => defaultsOf(schema));
  const [outcome, setOutcome] = useState<Outcome>();
  const [issue, setIssue] = useState("");
  const [busy, setBusy] = useState(false);
  const call = async () => {
    setBusy(true);
    setOutcome(undefined);
    setIssue("");
    try {
      setOutcome(await run(value));
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) setIssue(error.message);
      else showToast(error);
    }
    setBusy(false);
  };
  return (
    <form
      class="stack"
      aria-label="Try"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void call();
      }}
    >
      <ArgumentsForm schema={schema} value={value} onChange={setValue} issue={issue} />
      <div class="row end">
        <Button kind="primary" icon="Play" submit disabled={busy || Boolean(reason)} reason={reason}>
          {busy ? "Calling…" : "Call it"}
        </Button>
      </div>
      <div class="outcome stack" aria-live="polite">
        {outcome && (
          <>
            <p class={outcome.success ? "row test-good" : "row issue"}>
              <Icon name={outcome.success ? "CircleCheck" : "CircleAlert"} />
              {outcome.success ? " Answered in " : " Failed in "}
              {span(outcome.duration_ms)}
            </p>
            {outcome.error && (
              <div class="card bad">
                <p>
                  <bdi>{outcome.error.message}</bdi>
                </p>
                <p class="small muted">{outcome.error.code}</p>
              </div>
            )}
            {outcome.success && (
              <div class="card">
                <Result value={outcome.result} />
              </div>
            )}
          </>
        )}
      </div>
    </form>
  );
}

/** A result: text as text, the text of an MCP answer as text, anything else as a tree. */
function Result({ value }: { value: unknown }) {
  if (typeof value === "string")
    return (
      <pre>
        <bdi>{value}</bdi>
      </pre>
    );
  const content = (value as { content?: unknown } | null | undefined)?.content;
  const texts =
    Array.isArray(content) && content.every((c: { type?: string } | null) => c?.type === "text")
      ? content.map((c: { text?: string }) => c.text).join("\n")
      : undefined;
  return texts !== undefined ? (
    <pre>
      <bdi>{texts}</bdi>
    </pre>
  ) : value === undefined ? (
    <span class="muted">Nothing</span>
  ) : (
    <JsonTree value={value} />
  );
}
