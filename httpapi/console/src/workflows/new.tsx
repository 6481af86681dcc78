// Creating a workflow.
import { agentId, go, href, invalidate, path, post } from "../data";
import { Button, FormDialog, SelectField, showToast, TextField } from "../ui";

const triggers: [event: string, label: string][] = [
  ["manual", "by hand, or from other programs"],
  ["webhook", "when an address is called"],
  ["form", "when someone sends a form"],
  ["message.received", "when a message comes in"],
  ["row.created", "when a row is added to a table"],
  ["contact.created", "when a contact is created"],
  ["schedule", "by a schedule"],
  ["calendar", "by a calendar task"],
];

/** The first field of a form, without which it cannot go live. */
const fieldsOfForm = (event: string) =>
  event === "form" ? { fields: [{ name: "message", label: "Message", type: "long_text", required: true }] } : {};

const workflowsPath = () => path("agents", agentId.value, "workflows");

/** Creates a workflow with a trigger and opens its editor. */
export function NewWorkflow({ close }: { close: () => void }) {
  const run = async ({ name, event }: { name: string; event: string }) => {
    const created = await post(workflowsPath(), {
      name,
      edges: [{ id: "e", source: "start", target: "hello" }],
      nodes: [
        {
          id: "start",
          type: "trigger",
          position: { x: 0, y: 0 },
          data: { label: "Start", event, ...fieldsOfForm(event) },
        },
        {
          id: "hello",
          type: "set",
          position: { x: 300, y: 0 },
          data: { label: "Say hello", values: { text: 'Hello {{contact.name | default:"you"}}' } },
        },
      ],
    });
    invalidate(workflowsPath());
    go(href(agentId.value, "workflows", created.id));
  };
  const draft = async (name: string) => {
    try {
      const created = await post(workflowsPath(), { name: name.trim() || "New workflow", nodes: [], edges: [] });
      invalidate(workflowsPath());
      close();
      go(`${href(agentId.value, "workflows", created.id)}?draft=ai`);
    } catch (error) {
      showToast(error);
    }
  };
  return (
    <FormDialog title="New workflow" close={close} action="Create" initial={{ name: "", event: "manual" }} run={run}>
      {(form) => (
        <>
          <TextField label="Name" autoFocus required {...form.text("name")} />
          <SelectField label="It begins" options={triggers} {...form.choice("event")} />
          <div class="row">
            <span class="muted grow">Or describe in a sentence what it should do:</span>
            <Button icon="Sparkles" onClick={() => draft(form.values.name)}>
              Draft with AI
            </Button>
          </div>
        </>
      )}
    </FormDialog>
  );
}
