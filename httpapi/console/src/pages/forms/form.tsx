// The form of a workflow's trigger, edited beside its preview.
import { useState } from "preact/hooks";

import { agentId, ApiError, get, href, mayEdit, path, put, type API } from "../../data";
import { Button, SelectField, showToast, TextArea, TextField, type Values } from "../../ui";
import { DataTabs } from "../../parts/datatabs";
import { FormFields, FormPreview, type FormData, type FormField } from "../../parts/formfields";
import { Address, FormState } from "./state";

type Form = API.FormItem;

const workflowAt = (id: string) => path("agents", agentId.value, "workflows", id);

/** The parts of a stored form that can be edited. */
function dataOf(form: Form): FormData {
  return {
    title: form.title === form.workflow_name ? "" : form.title,
    description: form.description,
    submit: form.submit,
    success: form.success,
    fields: form.fields ?? [],
  };
}

/** A form without empty values, as the trigger stores it. */
function withoutEmpty({ fields = [], ...texts }: FormData): FormData {
  const kept = Object.entries(texts).filter(([, value]) => value);
  return { ...Object.fromEntries(kept), fields: fields.map(fieldWithoutEmpty) };
}

/** A field without empty values, and without options that its type does not use. */
function fieldWithoutEmpty(field: FormField): FormField {
  const kept = Object.entries(field).filter(([name, value]) => {
    if (value === undefined || value === "" || value === false) return false;
    return name !== "options" || field.type === "choice" || field.type === "choices";
  });
  return Object.fromEntries(kept);
}

/** The trigger of a workflow with a form in place of its own; auth is undefined where it stays. */
function triggerWith(trigger: Values, data: FormData, auth?: string): Values {
  const { title: _t, description: _d, submit: _s, success: _u, fields: _f, ...others } = trigger;
  const changed: Values = { ...others, ...withoutEmpty(data) };
  if (auth) changed.auth = { type: auth };
  else if (auth === "") delete changed.auth;
  return changed;
}

/** Changes the trigger of a form's workflow. */
async function changeTrigger(form: Form, edit: (trigger: Values) => Values) {
  const workflow = await get(workflowAt(form.workflow_id));
  const nodes = workflow.nodes.map((node) =>
    node.id === form.node_id ? { ...node, data: edit(node.data ?? {}) } : node,
  );
  await put(workflowAt(form.workflow_id), { nodes });
}

/** The issues that the service found in a workflow, by the name in the trigger. */
const triggerIssues = (issues: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(issues).map(([field, issue]) => [field.replace(/^nodes\[\d+\]\.data\./, ""), issue]),
  );

type Props = { form: Form; formsChanged: () => void };

/** The page of one form. */
export function FormPage({ form, formsChanged }: Props) {
  const [data, setData] = useState(dataOf(form));
  const [auth, setAuth] = useState(form.auth);
  const [issues, setIssues] = useState<Record<string, string>>({});
  const unsaved =
    auth !== form.auth || JSON.stringify(withoutEmpty(data)) !== JSON.stringify(withoutEmpty(dataOf(form)));
  const save = async () => {
    setIssues({});
    try {
      await changeTrigger(form, (trigger) => triggerWith(trigger, data, auth === form.auth ? undefined : auth));
      formsChanged();
      showToast("Saved");
    } catch (error) {
      if (!(error instanceof ApiError) || !Object.keys(error.issues).length) throw error;
      setIssues(triggerIssues(error.issues));
    }
  };
  return (
    <>
      <Head form={form} formsChanged={formsChanged} save={unsaved ? save : undefined} />
      <DataTabs now="forms" />
      <div class="form-page">
        <div class="stack">
          <Online form={form} />
          <Editor
            form={form}
            data={data}
            set={(change) => setData({ ...data, ...change })}
            auth={auth}
            setAuth={setAuth}
            issues={issues}
          />
        </div>
        <FormPreview form={data} name={form.workflow_name} />
      </div>
    </>
  );
}

/** The head of the page; save is undefined while there is nothing to save. */
function Head({ form, formsChanged, save }: Props & { save?: () => Promise<void> }) {
  const active = form.status === "active";
  const setStatus = async (status: string) => {
    await put(workflowAt(form.workflow_id), { status });
    formsChanged();
  };
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <a class="muted" href={href(agentId.value, "forms")}>
          Forms
        </a>{" "}
        <span class="muted">/</span> <bdi>{form.title}</bdi>
      </h1>
      <FormState form={form} />
      <a class="button" href={href(agentId.value, "workflows", form.workflow_id)}>
        Open workflow
      </a>
      {mayEdit.value && (
        <>
          <Button onClick={() => setStatus(active ? "paused" : "active")}>
            {active ? "Close the form" : "Open the form"}
          </Button>
          <Button kind="primary" disabled={!save} onClick={save}>
            Save
          </Button>
        </>
      )}
    </div>
  );
}

function Online({ form: { status, url, auth } }: { form: Form }) {
  if (status !== "active") return <p class="card warn">The workflow is {status}, so the form isn't online yet.</p>;
  return (
    <div class="card">
      <b>Address</b>
      <Address url={url} />
      {!auth && <p class="small muted">Only people with the admin role see it.</p>}
    </div>
  );
}

type EditorProps = {
  form: Form;
  data: FormData;
  set: (change: FormData) => void;
  auth: string;
  setAuth: (auth: string) => void;
  issues: Record<string, string>;
};

function Editor({ form, data, set, auth, setAuth, issues }: EditorProps) {
  const readonly = !mayEdit.value;
  const otherIssues = Object.entries(issues).filter(([field]) => !/^(title|fields)/.test(field));
  return (
    <>
      <fieldset class="nested stack" disabled={readonly}>
        <TextField
          label="Title"
          value={data.title ?? ""}
          placeholder={form.workflow_name}
          error={issues.title}
          onInput={(title) => set({ title })}
        />
        <TextArea
          label="Text above the fields"
          rows={2}
          value={data.description ?? ""}
          onInput={(description) => set({ description })}
        />
      </fieldset>
      <h2>Fields</h2>
      <FormFields
        value={data.fields ?? []}
        readonly={readonly}
        issue={(field) => issues[`fields${field}`]}
        onChange={(fields) => set({ fields })}
      />
      {issues.fields && (
        <p class="issue" role="alert">
          Fields {issues.fields}
        </p>
      )}
      <fieldset class="nested stack" disabled={readonly}>
        <TextField label="Button" value={data.submit ?? ""} placeholder="Send" onInput={(submit) => set({ submit })} />
        <TextArea
          label="Confirmation message"
          rows={2}
          value={data.success ?? ""}
          placeholder="Thank you, this was sent."
          onInput={(success) => set({ success })}
          hint="A webhook-response node in the workflow overrides this."
        />
        <SelectField
          label="Who can use it"
          value={auth}
          onChange={setAuth}
          options={authOptions(form.auth)}
          hint="The password is set in the workflow's trigger."
        />
      </fieldset>
      {otherIssues.map(([field, issue]) => (
        <p class="issue" role="alert">
          <code>{field}</code>: {issue}
        </p>
      ))}
    </>
  );
}

/** Who may use a form; a kind that only the workflow can set is offered where it is set. */
function authOptions(stored: string): [string, string][] {
  const options: [string, string][] = [
    ["none", "Anyone with the address"],
    ["", "People with the admin role"],
  ];
  if (stored && stored !== "none") options.push([stored, `As the workflow says: ${stored}`]);
  return options;
}
