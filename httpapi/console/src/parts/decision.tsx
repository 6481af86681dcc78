// Decides an approval: approve or reject, with a comment.
import { useId, useState } from "preact/hooks";

import { agentId, path, post } from "../data";
import { Button, showToast } from "../ui";

const maxComment = 10_000; // characters

type DecisionProps = {
  execution: string;
  node: string;
  /** The iterations of the loops around the node. */
  iterations?: string;
  /** The comment is the answer: approving sends it. */
  answer?: boolean;
  done?: () => Promise<void>;
};

/** The comment and the buttons of an approval. Where the comment is the answer, an empty one cannot be sent. */
export function Decision({ execution, node, iterations, answer = false, done }: DecisionProps) {
  const [comment, setComment] = useState("");
  const id = useId();
  const decide = (decision: "approved" | "rejected") => async () => {
    await post(path("agents", agentId.value, "workflows", "executions", execution, "resume"), {
      node_id: node,
      path: iterations || undefined,
      data: { decision, comment },
    });
    const sent = answer ? "Sent" : "Approved";
    showToast(decision === "approved" ? sent : "Rejected");
    await done?.();
  };
  const field = {
    id,
    maxLength: maxComment,
    value: comment,
    onInput: (event: { currentTarget: { value: string } }) => setComment(event.currentTarget.value),
  };
  return (
    <div class="decision stack" role="group" aria-label="Decision">
      {answer ? (
        <div class="field">
          <label for={id}>Answer</label>
          <textarea rows={3} required {...field} />
        </div>
      ) : (
        <input aria-label="Comment" placeholder="Comment" {...field} />
      )}
      <div class="row">
        <Button
          kind="primary"
          icon={answer ? "Send" : "Check"}
          disabled={answer && !comment.trim()}
          reason="Write the answer first."
          onClick={decide("approved")}
        >
          {answer ? "Send" : "Approve"}
        </Button>
        <Button icon="X" onClick={decide("rejected")}>
          Reject
        </Button>
      </div>
    </div>
  );
}
