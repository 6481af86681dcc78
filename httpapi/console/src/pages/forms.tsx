// Forms: pages that people fill in, each of which starts a workflow.
import { useEffect } from "preact/hooks";

import {
  agentId,
  go,
  href,
  invalidate,
  mayEdit,
  onChange,
  path,
  route,
  useQuery,
  type API,
  type Result,
} from "../data";
import { Button, Empty, Load, openDialog, Table, type Column } from "../ui";
import { DataTabs } from "../parts/datatabs";
import { style } from "../parts/styles";
import { FormPage } from "./forms/form";
import { NewForm } from "./forms/new";
import { Address, FormState } from "./forms/state";
import "../css/tables.css";

export const styles = style("./forms.css");

type Form = API.FormItem;

const formsAt = () => path("agents", agentId.value, "forms");

/** The page of forms: the list, or the form of the address. */
export default function Forms() {
  const id = route.value.rest[0];
  const found = useQuery(formsAt(), { limit: 200 });
  useEffect(() => onChange("workflow", () => invalidate(formsAt())), []);
  if (!id) return <FormList found={found} />;
  return (
    <div class="page wide">
      <Load of={found} lines={6} title="Form">
        {({ forms }) => {
          const form = forms.find(({ workflow_id }) => workflow_id === id);
          return form ? <FormPage key={id} form={form} formsChanged={() => invalidate(formsAt())} /> : <NotFound />;
        }}
      </Load>
    </div>
  );
}

function NotFound() {
  return (
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
}

const formHref = ({ workflow_id }: Form) => href(agentId.value, "forms", workflow_id);

const columns: Column<Form>[] = [
  {
    title: "Form",
    class: "title",
    cell: (form) => (
      <a href={formHref(form)}>
        <bdi>{form.title}</bdi>
      </a>
    ),
  },
  { title: "State", cell: (form) => <FormState form={form} /> },
  { title: "Fields", class: "number", cell: (form) => form.fields?.length ?? 0 },
  {
    title: "Address",
    cell: ({ status, url }) =>
      status === "active" ? <Address url={url} /> : <span class="muted">none until its workflow is active</span>,
  },
];

function FormList({ found }: { found: Result<API.FormList> }) {
  const openNewForm = () => {
    openDialog((close) => <NewForm close={close} created={created} />);
  };
  const created = (workflow: string) => {
    invalidate(formsAt());
    go(href(agentId.value, "forms", workflow));
  };
  const action = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={openNewForm}>
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
        {({ forms }) => {
          if (forms.length)
            return <Table rows={forms} keyOf={(f) => f.workflow_id + f.node_id} open={formHref} columns={columns} />;
          return (
            <Empty icon="ListChecks" title="No forms yet" action={action}>
              A form is a page with its own address. A submission adds a row to a table or starts a workflow.
            </Empty>
          );
        }}
      </Load>
    </div>
  );
}
