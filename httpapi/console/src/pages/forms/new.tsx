// The dialog that creates a form.
import { agentId, path, post, useQuery } from "../../data";
import { FormDialog, SelectField, Switch, TextField } from "../../ui";
import type { FormField } from "../../parts/formfields";
import { tablesAt, type DataTable, type TableColumn } from "../../parts/tables";

const fieldTypes: Record<string, FormField["type"]> = {
  text: "text",
  number: "number",
  boolean: "boolean",
  time: "date",
  choice: "choice",
  json: "long_text",
};

const contactFields: FormField[] = [
  { name: "email", label: "Your email", type: "email", required: true },
  { name: "message", label: "Message", type: "long_text", required: true },
];

/** The field of a form for a column of a table. */
function fieldOf({ name, type, required, options }: TableColumn): FormField {
  return {
    name,
    label: name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()),
    type: /^e?_?mail$/i.test(name) ? "email" : fieldTypes[type],
    ...(required && { required: true }),
    ...(options && { options }),
  };
}

type NewFormValues = {
  title: string;
  /** The name of the table to which a submission adds a row; "" is none. */
  table: string;
  open: boolean;
};

/** The workflow that a form starts, and that adds a row to a table if one is given. */
function workflowOf({ title, open }: NewFormValues, table?: DataTable) {
  const fields = table ? table.columns.filter(({ type }) => type !== "json").map(fieldOf) : contactFields;
  const trigger = { label: "Form", event: "form", title, fields, ...(open && { auth: { type: "none" } }) };
  const nodes: object[] = [{ id: "form", type: "trigger", position: { x: 0, y: 0 }, data: trigger }];
  const edges: object[] = [];
  if (table) {
    const row = Object.fromEntries(fields.map(({ name }) => [name, `{{values.${name}}}`]));
    const data = { label: `Add to ${table.name}`, table: table.name, operation: "insert", row };
    nodes.push({ id: "row", type: "table", position: { x: 300, y: 0 }, data });
    edges.push({ id: "e", source: "form", target: "row" });
  }
  return { name: title, status: "active", settings: { on_conflict: "queue", concurrency: 5 }, nodes, edges };
}

/** Creates a form with its workflow, whose id is passed to created. */
export function NewForm({ close, created }: { close: () => void; created: (workflow: string) => void }) {
  const found = useQuery<{ tables: DataTable[] }>(tablesAt(), { limit: 200 });
  const tables = found.data.value?.tables ?? [];
  const run = async (values: NewFormValues) => {
    const table = tables.find(({ name }) => name === values.table);
    const { id } = await post(path("agents", agentId.value, "workflows"), workflowOf(values, table));
    created(id);
  };
  const initial: NewFormValues = { title: "", table: "", open: true };
  return (
    <FormDialog
      title="New form"
      close={close}
      action="Create"
      initial={initial}
      run={run}
      ready={({ title }) => Boolean(title.trim())}
    >
      {(form) => (
        <>
          <TextField label="Title" autoFocus required placeholder="Contact us" {...form.text("title")} />
          <SelectField
            label="Submission"
            options={[
              ["", "starts a workflow that you build"],
              ...tables.map(({ name }): [string, string] => [name, `becomes a row of ${name}`]),
            ]}
            {...form.choice("table")}
            hint="Fields come from the table's columns. You can change both later."
          />
          <Switch
            label="Anyone with the address can use it"
            checked={form.values.open}
            onChange={(on) => form.set("open", on)}
          />
        </>
      )}
    </FormDialog>
  );
}
