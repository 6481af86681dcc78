// A node that waits for an approval, a time, an event or another execution.
import { useState } from "preact/hooks";

import { agentId, asError, post } from "../data";
import { executionPath, iterationPath, type NodeResult } from "../editor/run";
import { Decision } from "../parts/decision";
import { Button, Dialog, openDialog, When } from "../ui";

type Resume = (data: unknown) => Promise<unknown>;

type WaitingNodeProps = { execution: string; result: NodeResult; editable: boolean };

/** What a node waits for, and what resumes it. */
export function WaitingNode({ execution, result, editable }: WaitingNodeProps) {
  const resume: Resume = (data) =>
    post(executionPath(agentId.value, execution, "resume"), {
      node_id: result.node_id,
      path: iterationPath(result) || undefined,
      data,
    });
  if (result.type === "workflow") return <p class="muted">Waiting for the execution it started.</p>;
  if (result.type === "approval") return <Approval execution={execution} result={result} editable={editable} />;
  if (!editable) return null;
  return (
    <Button icon="Play" onClick={() => openDialog((close) => <ContinueDialog close={close} resume={resume} />)}>
      Continue now
    </Button>
  );
}

function Approval({ execution, result, editable }: WaitingNodeProps) {
  return (
    <section class="card approval stack" aria-label="Approval">
      {result.approval?.title && (
        <h3>
          <bdi>{result.approval.title}</bdi>
        </h3>
      )}
      {result.approval?.message && (
        <p class="approval-text">
          <bdi>{result.approval.message}</bdi>
        </p>
      )}
      <p class="muted small">
        Waiting since <When time={result.started_at} full />.
      </p>
      {editable && (
        <Decision
          execution={execution}
          node={result.node_id}
          iterations={iterationPath(result)}
          answer={result.approval?.comment_required}
        />
      )}
    </section>
  );
}

/** Asks for the data with which a node continues at once. */
function ContinueDialog({ close, resume }: { close: () => void; resume: Resume }) {
  const [typed, setTyped] = useState("{}");
  const [issue, setIssue] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async () => {
    if (busy) return;
    let data: unknown;
    try {
      data = JSON.parse(typed);
    } catch {
      return setIssue("Not valid JSON.");
    }
    setBusy(true);
    try {
      await resume(data);
      close();
    } catch (error) {
      setIssue(asError(error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Continue now" close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <div class={issue ? "field wrong" : "field"}>
          <label for="resume-data">Data</label>
          <textarea
            id="resume-data"
            class="code"
            rows={4}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
          {issue ? (
            <small class="issue" role="alert">
              {issue}
            </small>
          ) : (
            <small class="muted">A JSON object; it becomes data in the node's output.</small>
          )}
        </div>
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit>
            Continue
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
