// Executing a workflow by hand.
import { agentId, ApiError, asError, go, href, path, post } from "../data";
import { FormDialog, TextArea } from "../ui";

type ExecuteProps = {
  workflow: { id: string; name: string };
  /** Whether the editor has unsaved changes. */
  unsaved?: boolean;
  input?: unknown;
  close: () => void;
};

/** Executes the stored version of a workflow, and shows the execution. */
export function Execute({ workflow, unsaved, input, close }: ExecuteProps) {
  const run = async (values: { input: string }) => {
    const started = await post(path("agents", agentId.value, "workflows", "execute"), {
      workflow_id: workflow.id,
      input: parseObject(values.input),
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
      {(form) => (
        <>
          {unsaved && <p class="muted">Unsaved changes aren't included.</p>}
          <TextArea
            label="Input"
            code
            rows={8}
            hint="A JSON object: the trigger payload. Nodes use it in templates such as {{contact.name}}."
            {...form.text("input")}
          />
        </>
      )}
    </FormDialog>
  );
}

/** Parses a JSON object; throws an error of the field if it is another value. */
function parseObject(text: string): unknown {
  const invalid = (issue: string) =>
    new ApiError(400, { error: { code: "VALIDATION_ERROR", message: issue, details: { field: "input", issue } } });
  let value: unknown;
  try {
    value = JSON.parse(text.trim() || "{}");
  } catch (error) {
    throw invalid(`is not valid JSON: ${asError(error).message}`);
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) throw invalid("must be a JSON object");
  return value;
}
