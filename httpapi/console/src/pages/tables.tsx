// Tables: the agent's own tables, each as a grid that is edited in place.
import { useEffect } from "preact/hooks";

import { agentId, href, invalidate, mayEdit, onChange, route, useQuery } from "../data";
import { Button, Empty, Load, openDialog, plural, Table } from "../ui";
import { DataTabs } from "../parts/datatabs";
import { style } from "../parts/styles";
import { tablesAt, type DataTable } from "../parts/tables";
import { TableDialog } from "./tables/columns";
import { TablePage } from "./tables/table";
import { NewFromFile } from "./tables/import";
import "../css/tables.css";

export const styles = style("./tables.css");

export default function Tables() {
  const name = route.value.rest[0];
  return name ? <TablePage key={name} name={name} /> : <List />;
}

function List() {
  const found = useQuery<{ tables: DataTable[] }>(tablesAt(), { limit: 200 });
  useEffect(() => onChange("table", () => invalidate(tablesAt())), []);
  const add = () => {
    openDialog((close) => <TableDialog close={close} />);
  };
  const importFile = () => {
    openDialog((close) => <NewFromFile close={close} />);
  };
  const actions = mayEdit.value && (
    <>
      <Button icon="Upload" onClick={importFile}>
        New from CSV
      </Button>
      <Button kind="primary" icon="Plus" onClick={add}>
        New table
      </Button>
    </>
  );
  return (
    <div class="page wide">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Data
        </h1>
        {actions}
      </div>
      <DataTabs now="tables" />
      <Load of={found} lines={5}>
        {({ tables }) =>
          tables.length > 0 ? (
            <TableList tables={tables} />
          ) : (
            <Empty icon="Table" title="No tables yet" action={actions}>
              Tables hold what workflows read and write: leads, orders, opening hours. New rows can start workflows, and
              forms can fill them.
            </Empty>
          )
        }
      </Load>
    </div>
  );
}

function TableList({ tables }: { tables: DataTable[] }) {
  const hrefOf = (table: DataTable) => href(agentId.value, "tables", table.name);
  return (
    <>
      <Table
        rows={tables}
        keyOf={(table) => table.name}
        open={hrefOf}
        columns={[
          {
            title: "Table",
            class: "title",
            cell: (table) => (
              <a href={hrefOf(table)}>
                <bdi>{table.name}</bdi>
              </a>
            ),
          },
          {
            title: "Columns",
            class: "columns-of",
            cell: (table) => (
              <span class="muted clip">
                <bdi>{table.columns.map((column) => column.name).join(", ")}</bdi>
              </span>
            ),
          },
          { title: "Rows", class: "number", cell: (table) => table.rows.toLocaleString() },
        ]}
      />
      <p class="muted small">
        {plural(tables.length, "table")}. In SQL, the name of each begins with <code>data_</code>.
      </p>
    </>
  );
}
