// Forms: pages that people fill in, each the beginning of a workflow.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  type API,
  ApiError,
  get,
  go,
  href,
  invalidate,
  mayEdit,
  onChange,
  path,
  post,
  put,
  route,
  useQuery,
  type Result,
} from "../data";
import {
  Badge,
  Button,
  CopyButton,
  Empty,
  FormDialog,
  Load,
  openDialog,
  SelectField,
  Switch,
  Table,
  tell,
  TextArea,
  TextField,
  type Values,
} from "../ui";
import { DataTabs } from "../parts/datatabs";
import { FormFields, FormPreview, type FormData, type FormField } from "../parts/formfields";
import { style } from "../parts/styles";
import { tablesAt, type DataTable } from "../parts/tables";
import "../css/tables.css";

export const styles = style("./forms.css");

type Form = API.FormItem;

const formsAt = () => path("agents", agentId.value, "forms");
const workflowAt = (id: string) => path("agents", agentId.value, "workflows", id);

export default function Forms() {
  const id = route.value.rest[0];
  const found = useQuery<{ forms: Form[] }>(formsAt(), { limit: 200 });
  useEffect(() => onChange("workflow", () => invalidate(formsAt())), []);
  if (!id) return <List found={found} />;
  return (
    <div class="page wide">
      <Load of={found} lines={6} title="Form">
        {({ forms }) => {
          const form = forms.find((f) => f.workflow_id === id);
          return form ? (
            <FormPage key={id} form={form} />
          ) : (
            <>
              <div class="page-head">
                <h1 class="grow" tabIndex={-1}>
                  Data
                </h1>
              </div>
              <DataTabs now="forms" />
              <Empty icon="CircleHelp" title="Form not found">
                It may have been deleted with its workflow.
              </Empty>
            </>
          );
        }}
      </Load>
    </div>
  );
}

const state = (f: Form) =>
  f.status === "active" ? (
    <Badge tone={f.auth ? "good" : "warn"} title={f.auth ? undefined : "Only people with the admin role see it."}>
      {f.auth === "none" ? "open" : f.auth ? "with a password" : "for admins"}
    </Badge>
  ) : (
    <Badge>{f.status}</Badge>
  );

function List({ found }: { found: Result<{ forms: Form[] }> }) {
  const add = () => {
    openDialog((close) => <NewForm close={close} />);
  };
  const to = (f: Form) => href(agentId.value, "forms", f.workflow_id);
  const action = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={add}>
      New form
    </Button>
  );
  return (
    <div class="page wide">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Data
        </h1>
        {action}
      </div>
      <DataTabs now="forms" />
      <Load of={found} lines={5}>
        {({ forms }) =>
          forms.length === 0 ? (
            <Empty icon="ListChecks" title="No forms yet" action={action}>
              A form is a page with its own address. A submission adds a row to a table or starts a workflow.
            </Empty>
          ) : (
            <Table
              rows={forms}
              keyOf={(f) => f.workflow_id + f.node_id}
              open={to}
              columns={[
                {
                  title: "Form",
                  class: "title",
                  cell: (f) => (
                    <a href={to(f)}>
                      <bdi>{f.title}</bdi>
                    </a>
                  ),
                },
                { title: "State", cell: state },
                { title: "Fields", class: "number", cell: (f) => f.fields?.length ?? 0 },
                {
                  title: "Address",
                  cell: (f) =>
                    f.status === "active" ? (
                      <Address url={f.url} />
                    ) : (
                      <span class="muted">none until its workflow is active</span>
                    ),
                },
              ]}
            />
          )
        }
      </Load>
    </div>
  );
}

const Address = ({ url }: { url: string }) => (
  <span class="address">
    <a href={url} target="_blank" rel="noopener">
      {url}
    </a>
    <CopyButton text={url} />
  </span>
);

const fieldOf: Record<string, FormField["type"]> = {
  text: "text",
  number: "number",
  boolean: "boolean",
  time: "date",
  choice: "choice",
  json: "long_text",
};

/** Makes a workflow that a form starts, and that writes a row. */
function NewForm({ close }: { close: () => void }) {
  const tables = useQuery<{ tables: DataTable[] }>(tablesAt(), { limit: 200 });
  const list = tables.data.value?.tables ?? [];
  const run = async ({ title, table, open }: { title: string; table: string; open: boolean }) => {
    const chosen = list.find((t) => t.name === table);
    const fields: FormField[] = chosen
      ? chosen.columns
          .filter((c) => c.type !== "json")
          .map((c) => ({
            name: c.name,
            label: c.name.replaceAll("_", " ").replace(/^./, (x) => x.toUpperCase()),
            type: /^e?_?mail$/i.test(c.name) ? "email" : fieldOf[c.type],
            ...(c.required && { required: true }),
            ...(c.options && { options: c.options }),
          }))
      : [
          { name: "email", label: "Your email", type: "email", required: true },
          { name: "message", label: "Message", type: "long_text", required: true },
        ];
    const data = { label: "Form", event: "form", title, fields, ...(open && { auth: { type: "none" } }) };
    const nodes: object[] = [{ id: "form", type: "trigger", position: { x: 0, y: 0 }, data }];
    const edges: object[] = [];
    if (chosen) {
      nodes.push({
        id: "row",
        type: "table",
        position: { x: 300, y: 0 },
        data: {
          label: `Add to ${chosen.name}`,
          table: chosen.name,
          operation: "insert",
          row: Object.fromEntries(fields.map((f) => [f.name, `{{values.${f.name}}}`])),
        },
      });
      edges.push({ id: "e", source: "form", target: "row" });
    }
    const made = await post(path("agents", agentId.value, "workflows"), {
      name: title,
      status: "active",
      settings: { on_conflict: "queue", concurrency: 5 },
      nodes,
      edges,
    });
    invalidate(formsAt());
    go(href(agentId.value, "forms", made.id));
  };
  return (
    <FormDialog
      title="New form"
      close={close}
      action="Create"
      initial={{ title: "", table: "", open: true }}
      run={run}
      ready={(v) => Boolean(v.title.trim())}
    >
      {(f) => (
        <>
          <TextField label="Title" autoFocus required placeholder="Contact us" {...f.text("title")} />
          <SelectField
            label="Submission"
            options={[
              ["", "starts a workflow that you build"],
              ...list.map((t): [string, string] => [t.name, `becomes a row of ${t.name}`]),
            ]}
            {...f.choice("table")}
            hint="Fields come from the table's columns. You can change both later."
          />
          <Switch
            label="Anyone with the address can use it"
            checked={f.values.open}
            onChange={(on) => f.set("open", on)}
          />
        </>
      )}
    </FormDialog>
  );
}

/** The form of a workflow's trigger, changed beside how it looks. */
function FormPage({ form }: { form: Form }) {
  const kept = {
    title: form.title === form.workflow_name ? "" : form.title,
    description: form.description,
    submit: form.submit,
    success: form.success,
    fields: form.fields ?? [],
  };
  const [data, setData] = useState<FormData>(kept);
  const [auth, setAuth] = useState(form.auth);
  const [issues, setIssues] = useState<Record<string, string>>({});
  const may = mayEdit.value;
  const dirty = JSON.stringify(clean(data)) !== JSON.stringify(clean(kept)) || auth !== form.auth;
  const set = (change: FormData) => setData({ ...data, ...change });
  const change = async (more: object, edit: (trigger: Values) => object = (t) => t) => {
    const workflow = await get(workflowAt(form.workflow_id));
    const nodes = workflow.nodes.map((n) => (n.id === form.node_id ? { ...n, data: edit(n.data ?? {}) } : n));
    await put(workflowAt(form.workflow_id), { nodes, ...more });
    invalidate(formsAt());
  };
  const save = async () => {
    setIssues({});
    try {
      await change({}, (old) => {
        const { title: _t, description: _d, submit: _s, success: _u, fields: _f, ...rest } = old;
        const next = { ...rest, ...clean(data) };
        if (auth === form.auth) return next;
        if (auth) return { ...next, auth: { type: auth } };
        const { auth: _a, ...open } = next as Values;
        return open;
      });
      tell("Saved");
    } catch (error) {
      if (!(error instanceof ApiError) || !Object.keys(error.issues).length) throw error;
      setIssues(
        Object.fromEntries(
          Object.entries(error.issues).map(([f, issue]) => [f.replace(/^nodes\[\d+\]\.data\./, ""), issue]),
        ),
      );
    }
  };
  const active = form.status === "active";
  return (
    <>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          <a class="muted" href={href(agentId.value, "forms")}>
            Forms
          </a>{" "}
          <span class="muted">/</span> <bdi>{form.title}</bdi>
        </h1>
        {state(form)}
        <a class="button" href={href(agentId.value, "workflows", form.workflow_id)}>
          Open workflow
        </a>
        {may && (
          <Button onClick={() => change({ status: active ? "paused" : "active" })}>
            {active ? "Close the form" : "Open the form"}
          </Button>
        )}
        {may && (
          <Button kind="primary" disabled={!dirty} onClick={save}>
            Save
          </Button>
        )}
      </div>
      <DataTabs now="forms" />
      <div class="form-page">
        <div class="stack">
          {active ? (
            <div class="card">
              <b>Address</b>
              <Address url={form.url} />
              {!form.auth && <p class="small muted">Only people with the admin role see it.</p>}
            </div>
          ) : (
            <p class="card warn">The workflow is {form.status}, so the form isn't online yet.</p>
          )}
          <fieldset class="nested stack" disabled={!may}>
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
            readonly={!may}
            issue={(p) => issues[`fields${p}`]}
            onChange={(fields) => set({ fields })}
          />
          {issues.fields && (
            <p class="issue" role="alert">
              Fields {issues.fields}
            </p>
          )}
          <fieldset class="nested stack" disabled={!may}>
            <TextField
              label="Button"
              value={data.submit ?? ""}
              placeholder="Send"
              onInput={(submit) => set({ submit })}
            />
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
              options={[
                ["none", "Anyone with the address"],
                ["", "People with the admin role"],
                ...(form.auth && form.auth !== "none"
                  ? [[form.auth, `As the workflow says: ${form.auth}`] as [string, string]]
                  : []),
              ]}
              hint="The password is set in the workflow's trigger."
            />
          </fieldset>
          {Object.entries(issues)
            .filter(([f]) => !/^(title|fields)/.test(f))
            .map(([f, issue]) => (
              <p class="issue" role="alert">
                <code>{f}</code>: {issue}
              </p>
            ))}
        </div>
        <FormPreview form={data} name={form.workflow_name} />
      </div>
    </>
  );
}

/** A form without what is empty. */
function clean(f: FormData): FormData {
  const out: Values = {};
  for (const [key, value] of Object.entries(f)) if (value && key !== "fields") out[key] = value;
  out.fields = (f.fields ?? []).map((x) =>
    Object.fromEntries(
      Object.entries(x).filter(
        ([k, v]) =>
          v !== undefined &&
          v !== "" &&
          v !== false &&
          (k !== "options" || x.type === "choice" || x.type === "choices"),
      ),
    ),
  );
  return out;
}
