import { agentId, go, href, invalidate, path, post } from "../data";
import { Button, FormDialog, SelectField, tell, TextField } from "../ui";

const beginnings: [string, string][] = [
  ["manual", "by hand, or from other programs"],
  ["webhook", "when an address is called"],
  ["message.received", "when a message comes in"],
  ["row.created", "when a row is added to a table"],
  ["contact.created", "when a contact is made"],
  ["schedule", "by a schedule"],
  ["calendar", "by a task of the calendar"],
];

/** Makes a workflow with a trigger and opens its editor. */
export function NewWorkflow({ close }: { close: () => void }) {
  const run = async ({ name, event }: { name: string; event: string }) => {
    const at = path("agents", agentId.value, "workflows");
    const made = await post(at, {
      name,
      edges: [{ id: "e", source: "start", target: "hello" }],
      nodes: [
        { id: "start", type: "trigger", position: { x: 0, y: 0 }, data: { label: "Start", event } },
        {
          id: "hello",
          type: "set",
          position: { x: 300, y: 0 },
          data: { label: "Say hello", values: { text: 'Hello {{contact.name | default:"you"}}' } },
        },
      ],
    });
    invalidate(at);
    go(href(agentId.value, "workflows", made.id));
  };
  const draft = async (name: string) => {
    const at = path("agents", agentId.value, "workflows");
    try {
      const made = await post(at, { name: name.trim() || "New workflow", nodes: [], edges: [] });
      invalidate(at);
      close();
      go(`${href(agentId.value, "workflows", made.id)}?draft=ai`);
    } catch (error) {
      tell(error);
    }
  };
  return (
    <FormDialog title="New workflow" close={close} action="Create" initial={{ name: "", event: "manual" }} run={run}>
      {(f) => (
        <>
          <TextField label="Name" autoFocus required {...f.text("name")} />
          <SelectField label="It begins" options={beginnings} {...f.choice("event")} />
          <div class="row">
            <span class="muted grow">Or describe in a sentence what it should do:</span>
            <Button icon="Sparkles" onClick={() => draft(f.values.name)}>
              Draft with AI
            </Button>
          </div>
        </>
      )}
    </FormDialog>
  );
}
