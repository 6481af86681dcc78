// Tools: what the agent's model and workflows may call.
import { useState } from "preact/hooks";

import { agentId, get, go, href, mayEdit, path, put, remove, route, setQuery, useQuery, type API } from "../data";
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
  tell,
  type IconName,
  type MenuItem,
} from "../ui";
import { useFollow } from "../parts/follow";
import { ToolPage } from "./tools/tool";

const toolsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "tools", ...more);

export const toolTypes: Record<string, { title: string; icon: IconName; about: string }> = {
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

export default function Tools() {
  const [id] = route.value.rest;
  return id ? <ToolPage key={id} id={id} /> : <List />;
}

function List() {
  const { query } = route.value;
  const [search, offset] = [query.get("q") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery(toolsAt(), { search, limit: 50, offset });
  const [hidden, setHidden] = useState<string[]>([]);
  useFollow("tool", found.reload);
  const to = href(agentId.value, "tools", "new");
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Tools
        </h1>
        {((found.data.value?.meta.total ?? 0) > 0 || search) && (
          <SearchField label="Search tools" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {mayEdit.value && (
          <LinkButton kind="primary" icon="Plus" href={to}>
            New tool
          </LinkButton>
        )}
      </div>
      <Load of={found}>
        {({ tools, meta }) => {
          const shown = tools.filter((t) => !hidden.includes(t.id));
          if (!shown.length && search)
            return (
              <Empty icon="Search" title="No tools match">
                Try different words.
              </Empty>
            );
          if (!shown.length)
            return (
              <>
                <Empty icon="Wrench" title="No tools yet">
                  Tools are what the agent can do while it answers, such as looking up an order. The model reads the
                  description and decides when to call one.
                </Empty>
                <ul class="cards">
                  {Object.entries(toolTypes).map(([type, t]) => (
                    <li key={type}>
                      {mayEdit.value ? (
                        <a
                          class="card"
                          href={
                            type === "mcp"
                              ? href(agentId.value, "mcp")
                              : type === "operation"
                                ? href(agentId.value, "apis")
                                : `${to}?type=${type}`
                          }
                        >
                          <Kind t={t} />
                        </a>
                      ) : (
                        <div class="card stack tight">
                          <Kind t={t} />
                        </div>
                      )}
                    </li>
                  ))}
                </ul>
              </>
            );
          return (
            <>
              <ul class="sources">
                {shown.map((t) => (
                  <Row
                    key={t.id}
                    t={t}
                    changed={found.reload}
                    hide={(on) => setHidden((h) => (on ? [...h, t.id] : h.filter((x) => x !== t.id)))}
                  />
                ))}
              </ul>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

const Kind = ({ t }: { t: (typeof toolTypes)[string] }) => (
  <>
    <span class="row">
      <span class="tile">
        <Icon name={t.icon} />
      </span>
      <strong>{t.title}</strong>
    </span>
    <span class="muted">{t.about}</span>
  </>
);

function Row({ t, changed, hide }: { t: API.ToolItem; changed: () => Promise<void>; hide: (on: boolean) => void }) {
  const may = mayEdit.value;
  const to = href(agentId.value, "tools", t.id);
  const set = async (enabled: boolean) => {
    try {
      await put(toolsAt(t.id), { enabled });
    } catch (error) {
      tell(error);
    }
    await changed();
  };
  const items: MenuItem[] = [
    { label: "Open", icon: "Pencil", run: () => go(to) },
    { label: "Try", icon: "Play", run: () => go(`${to}?try=1`) },
    {
      label: "Copy JSON",
      icon: "Copy",
      run: async () => {
        const { name, description, type, config } = await get(toolsAt(t.id));
        await copyText(JSON.stringify({ name, description, type, config }, null, 2));
        tell("Copied");
      },
    },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      disabled: !may,
      reason: may ? undefined : "You have read-only access.",
      run: () => {
        hide(true);
        deleteLater(
          `${t.name} deleted`,
          () => remove(toolsAt(t.id)).then(changed),
          () => hide(false),
        );
      },
    },
  ];
  return (
    <li class="source-row">
      <input
        class="workflow-switch"
        type="checkbox"
        role="switch"
        aria-label={`${t.name} may be called`}
        title={t.enabled ? "The agent may call it" : "Switched off"}
        checked={t.enabled}
        disabled={!may}
        onChange={(e) => void set(e.currentTarget.checked)}
      />
      <div class="grow">
        <a href={to}>
          <code>{t.name}</code>
        </a>
        <p class="muted small clip">
          <Name>{t.description || "No description: the model can't know when to call it."}</Name>
        </p>
      </div>
      {!t.enabled && <Badge tone="warn">off</Badge>}
      <Badge>{toolTypes[t.type]?.title ?? t.type}</Badge>
      <span class="row nowrap">
        {may && <Button kind="quiet" icon="Play" label={`Try ${t.name}`} onClick={() => go(`${to}?try=1`)} />}
        <Menu label={`Actions for ${t.name}`} items={items} />
      </span>
    </li>
  );
}
