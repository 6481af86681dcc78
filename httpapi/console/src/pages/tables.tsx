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
  const bring = () => {
    openDialog((close) => <NewFromFile close={close} />);
  };
  const actions = mayEdit.value && (
    <>
      <Button icon="Upload" onClick={bring}>
        New from CSV
      </Button>
      <Button kind="primary" icon="Plus" onClick={add}>
        New table
      </Button>
    </>
  );
  const to = (t: DataTable) => href(agentId.value, "tables", t.name);
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
          tables.length === 0 ? (
            <Empty icon="Table" title="No tables yet" action={actions}>
              Tables hold what workflows read and write: leads, orders, opening hours. New rows can start workflows, and
              forms can fill them.
            </Empty>
          ) : (
            <Table
              rows={tables}
              keyOf={(t) => t.name}
              open={to}
              columns={[
                {
                  title: "Table",
                  class: "title",
                  cell: (t) => (
                    <a href={to(t)}>
                      <bdi>{t.name}</bdi>
                    </a>
                  ),
                },
                {
                  title: "Columns",
                  class: "columns-of",
                  cell: (t) => (
                    <span class="muted clip">
                      <bdi>{t.columns.map((c) => c.name).join(", ")}</bdi>
                    </span>
                  ),
                },
                { title: "Rows", class: "number", cell: (t) => t.rows.toLocaleString() },
              ]}
            />
          )
        }
      </Load>
      {found.data.value && found.data.value.tables.length > 0 && (
        <p class="muted small">
          {plural(found.data.value.tables.length, "table")}. In SQL each is called <code>data_</code> and its name.
        </p>
      )}
    </div>
  );
}
