// Tools: what the agent's model and workflows may call.
import { useState } from "preact/hooks";

import { agentId, get, go, href, mayEdit, put, remove, route, setQuery, useQuery, type API } from "../data";
import {
  Badge,
  Button,
  copyText,
  deleteLater,
  Empty,
  Icon,
  LinkButton,
  Load,
  Menu,
  Name,
  Pager,
  SearchField,
  showToast,
  type IconName,
  type MenuItem,
} from "../ui";
import { useFollow } from "../parts/follow";
import { toolsAt } from "./tools/paths";
import { ToolPage } from "./tools/tool";

const toolTypes: Record<string, { title: string; icon: IconName; about: string }> = {
  api: { title: "API", icon: "Globe", about: "Calls an HTTP API with arguments in its address, headers or body." },
  function: { title: "Code", icon: "Code", about: "Runs your JavaScript in a sandbox." },
  operation: { title: "Operation", icon: "Plug", about: "An operation of an imported API." },
  "api-set": {
    title: "API set",
    icon: "Plug",
    about: "All or some operations of an API: the model searches and calls them with two tools.",
  },
  workflow: {
    title: "Workflow",
    icon: "Workflow",
    about: "Runs an active workflow with the arguments and returns its output.",
  },
  mcp: { title: "MCP", icon: "Plug", about: "A tool of one of your MCP servers." },
};

/** The page of tools: the list, or the tool of the address. */
export default function Tools() {
  const [id] = route.value.rest;
  return id ? <ToolPage key={id} id={id} /> : <ToolList />;
}

const newToolHref = () => href(agentId.value, "tools", "new");

function ToolList() {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery(toolsAt(), { search, limit: 50, offset });
  const [hidden, setHidden] = useState<string[]>([]);
  useFollow("tool", found.reload);
  const setShown = (id: string, shown: boolean) =>
    setHidden((ids) => (shown ? ids.filter((other) => other !== id) : [...ids, id]));
  const searchable = search !== "" || (found.data.value?.meta.total ?? 0) > 0;
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Tools
        </h1>
        {searchable && (
          <SearchField label="Search tools" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {mayEdit.value && (
          <LinkButton kind="primary" icon="Plus" href={newToolHref()}>
            New tool
          </LinkButton>
        )}
      </div>
      <Load of={found}>
        {({ tools, meta }) => {
          const shown = tools.filter(({ id }) => !hidden.includes(id));
          if (!shown.length) return <NoTools search={search} />;
          return (
            <>
              <ul class="sources">
                {shown.map((tool) => (
                  <ToolRow key={tool.id} tool={tool} changed={found.reload} setShown={(on) => setShown(tool.id, on)} />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

function NoTools({ search }: { search: string }) {
  if (search)
    return (
      <Empty icon="Search" title="No tools match">
        Try different words.
      </Empty>
    );
  return (
    <>
      <Empty icon="Wrench" title="No tools yet">
        Tools are what the agent can do while it answers, such as looking up an order. The model reads the description
        and decides when to call one.
      </Empty>
      <ul class="cards">
        {Object.keys(toolTypes).map((type) => (
          <li key={type}>
            <TypeCard type={type} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Where a tool of a type is created. */
function createHref(type: string) {
  if (type === "mcp") return href(agentId.value, "mcp");
  if (type === "operation") return href(agentId.value, "apis");
  return `${newToolHref()}?type=${type}`;
}

/** A type of tool; for those who may create one, a link to where. */
function TypeCard({ type }: { type: string }) {
  const { title, icon, about } = toolTypes[type];
  const content = (
    <>
      <span class="row">
        <span class="tile">
          <Icon name={icon} />
        </span>
        <strong>{title}</strong>
      </span>
      <span class="muted">{about}</span>
    </>
  );
  if (!mayEdit.value) return <div class="card stack tight">{content}</div>;
  return (
    <a class="card" href={createHref(type)}>
      {content}
    </a>
  );
}

type RowProps = {
  tool: API.ToolItem;
  changed: () => Promise<void>;
  /** Shows or hides the row, until a deletion can no longer be undone. */
  setShown: (shown: boolean) => void;
};

function menuItems({ tool: { id, name }, changed, setShown }: RowProps): MenuItem[] {
  const may = mayEdit.value;
  const toolHref = href(agentId.value, "tools", id);
  const copyJson = async () => {
    const { name, description, type, config } = await get(toolsAt(id));
    await copyText(JSON.stringify({ name, description, type, config }, null, 2));
    showToast("Copied");
  };
  const deleteTool = () => {
    setShown(false);
    deleteLater(
      `${name} deleted`,
      () => remove(toolsAt(id)).then(changed),
      () => setShown(true),
    );
  };
  return [
    { label: "Open", icon: "Pencil", run: () => go(toolHref) },
    { label: "Try", icon: "Play", run: () => go(`${toolHref}?try=1`) },
    { label: "Copy JSON", icon: "Copy", run: copyJson },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      disabled: !may,
      reason: may ? undefined : "You have read-only access.",
      run: deleteTool,
    },
  ];
}

function ToolRow(props: RowProps) {
  const { id, name, type, description, enabled } = props.tool;
  const may = mayEdit.value;
  const toolHref = href(agentId.value, "tools", id);
  const setEnabled = async (on: boolean) => {
    try {
      await put(toolsAt(id), { enabled: on });
    } catch (error) {
      showToast(error);
    }
    await props.changed();
  };
  return (
    <li class="source-row">
      <input
        class="workflow-switch"
        type="checkbox"
        role="switch"
        aria-label={`${name} may be called`}
        title={enabled ? "The agent may call it" : "Switched off"}
        checked={enabled}
        disabled={!may}
        onChange={(e) => void setEnabled(e.currentTarget.checked)}
      />
      <div class="grow">
        <a href={toolHref}>
          <code>{name}</code>
        </a>
        <p class="muted small clip">
          <Name>{description || "No description: the model can't know when to call it."}</Name>
        </p>
      </div>
      {!enabled && <Badge tone="warn">off</Badge>}
      <Badge>{toolTypes[type]?.title ?? type}</Badge>
      <span class="row nowrap">
        {may && <Button kind="quiet" icon="Play" label={`Try ${name}`} onClick={() => go(`${toolHref}?try=1`)} />}
        <Menu label={`Actions for ${name}`} items={menuItems(props)} />
      </span>
    </li>
  );
}
