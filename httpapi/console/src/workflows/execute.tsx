import { agentId, ApiError, go, href, path, post, asError } from "../data";
import { FormDialog, TextArea } from "../ui";

/** Executes a workflow as it is stored, and shows the execution. */
export function Execute({
  workflow,
  unsaved,
  input,
  close,
}: {
  workflow: { id: string; name: string };
  unsaved?: boolean;
  input?: unknown;
  close: () => void;
}) {
  const run = async (values: { input: string }) => {
    const started = await post(path("agents", agentId.value, "workflows", "execute"), {
      workflow_id: workflow.id,
      input: readObject(values.input),
    });
    go(href(agentId.value, "workflows", "executions", started.id));
  };
  return (
    <FormDialog
      title={`Execute ${workflow.name}`}
      close={close}
      action="Execute"
      initial={{ input: JSON.stringify(input ?? {}, null, 2) }}
      run={run}
    >
      {(f) => (
        <>
          {unsaved && <p class="muted">Unsaved changes aren't included.</p>}
          <TextArea
            label="Input"
            code
            rows={8}
            hint="A JSON object: the trigger payload. Nodes use it in templates such as {{contact.name}}."
            {...f.text("input")}
          />
        </>
      )}
    </FormDialog>
  );
}

function readObject(text: string): unknown {
  const wrong = (issue: string) =>
    new ApiError(400, { error: { code: "VALIDATION_ERROR", message: issue, details: { field: "input", issue } } });
  let value: unknown;
  try {
    value = JSON.parse(text.trim() || "{}");
  } catch (error) {
    throw wrong(`is not valid JSON: ${asError(error).message}`);
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) throw wrong("must be a JSON object");
  return value;
}
