// How the webhook of a workflow is called.
import { absolute, agent, agentId, type API } from "../data";
import { CopyButton } from "../ui";
import type { GraphNode } from "./graph";

/** The properties of a workflow that its webhook depends on. */
export type WebhookWorkflow = Pick<API.Workflow, "id" | "status">;

/** Who may call a webhook, by the type of its authentication. */
const accessTexts: Record<string, string> = {
  "standard-webhooks": "Calls are signed as in Standard Webhooks.",
  hmac: "Calls are signed with an HMAC of the body.",
  header: "Calls include a secret header.",
  bearer: "Calls include a bearer token.",
  basic: "Calls include a user name and password.",
  none: "Anyone who knows the address can call it.",
};

/** The address of a webhook trigger, who may call it, and a command that calls it. */
export function IncomingWebhook({ workflow, trigger }: { workflow: WebhookWorkflow; trigger: GraphNode }) {
  const address = absolute("agents", agent.value?.id ?? agentId.value, "hooks", workflow.id);
  const authType = (trigger.data?.auth as { type?: string } | undefined)?.type;
  const access =
    authType && Object.hasOwn(accessTexts, authType)
      ? accessTexts[authType]
      : "The caller needs an identity or an API key with the admin role. " +
        "To let others in, change “Who may call the webhook” in the trigger.";
  const curl = `curl -X POST ${address} \\\n  -H 'Content-Type: application/json' \\\n  -d '{}'`;
  return (
    <>
      <p class="row nowrap copy">
        <code class="grow hook-address">{address}</code>
        <CopyButton text={address} />
      </p>
      <p class="muted">
        A POST to this address starts the workflow. {access}
        {workflow.status === "active" ? "" : " It answers once the workflow is active."}
      </p>
      <pre class="card">{curl}</pre>
      <div class="row end">
        <CopyButton text={curl}>Copy command</CopyButton>
      </div>
    </>
  );
}
