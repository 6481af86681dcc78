// One tool: its definition, and a try.
import {
  agentId,
  go,
  href,
  invalidate,
  mayEdit,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../../data";
import { Badge, confirm, Empty, Load, Menu, Switch, showToast } from "../../ui";
import type { Schema } from "../../parts/arguments";
import { useFollow } from "../../parts/follow";
import { TryTool } from "../../parts/trytool";
import { ToolEditor } from "./editor";
import { operationTypes, TryOperation } from "./operation";
import { toolsAt } from "./paths";
import type { ToolConfig } from "./values";
import { visibleArguments } from "./workflow";

/** The page of a tool, or with the id "new" of one to create. */
export function ToolPage({ id }: { id: string }) {
  return (
    <div class="page">
      <p class="crumb">
        <a href={href(agentId.value, "tools")}>Tools</a>
      </p>
      {id === "new" ? <NewTool /> : <StoredTool id={id} />}
    </div>
  );
}

function NewTool() {
  const created = ({ id }: API.Tool) => {
    invalidate(toolsAt());
    go(`${href(agentId.value, "tools", id)}?try=1`, true);
  };
  return (
    <>
      <h1 tabIndex={-1}>New tool</h1>
      {mayEdit.value ? (
        <ToolEditor initialType={route.value.query.get("type") ?? "api"} saved={created} />
      ) : (
        <Empty icon="Eye" title="Read-only access" />
      )}
    </>
  );
}

function StoredTool({ id }: { id: string }) {
  const found = useQuery(toolsAt(id));
  useFollow("tool", found.reload);
  return (
    <Load of={found} lines={8} title="Tool">
      {(tool) => <Tool key={tool.id} tool={tool} changed={found.reload} />}
    </Load>
  );
}

type ToolProps = { tool: API.Tool; changed: () => Promise<void> };

const tabs = [
  ["edit", "Definition"],
  ["try", "Try"],
];

function Tool({ tool, changed }: ToolProps) {
  const tab = route.value.query.has("try") ? "try" : "edit";
  return (
    <>
      <Head tool={tool} changed={changed} />
      <nav class="tabs" aria-label="Tool">
        {tabs.map(([id, title]) => (
          <button
            type="button"
            aria-current={tab === id ? "page" : undefined}
            onClick={() => setQuery({ try: id === "try" ? 1 : null })}
          >
            {title}
          </button>
        ))}
      </nav>
      {tab === "edit" ? (
        <ToolEditor tool={tool} initialType={tool.type} saved={changed} />
      ) : (
        <section class="card stack narrow-card" aria-label="Try">
          {tool.description && (
            <p class="muted">
              <bdi>{tool.description}</bdi>
            </p>
          )}
          <Try tool={tool} />
        </section>
      )}
    </>
  );
}

function Head({ tool: { id, name, enabled }, changed }: ToolProps) {
  const setEnabled = async (on: boolean) => {
    try {
      await put(toolsAt(id), { enabled: on });
    } catch (error) {
      showToast(error);
    }
    await changed();
  };
  const askToDelete = () =>
    confirm({
      title: `Delete ${name}?`,
      text: "The agent and its workflows can no longer call it.",
      action: "Delete",
      run: async () => {
        await remove(toolsAt(id));
        invalidate(toolsAt());
        go(href(agentId.value, "tools"));
      },
    });
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <code>{name}</code>
      </h1>
      {!enabled && <Badge tone="warn">off</Badge>}
      <Switch label="The agent may call it" checked={enabled} disabled={!mayEdit.value} onChange={setEnabled} />
      {mayEdit.value && (
        <Menu label="More" items={[{ label: "Delete", icon: "Trash2", danger: true, run: askToDelete }]} />
      )}
    </div>
  );
}

function Try({ tool }: { tool: API.Tool }) {
  const reason = tool.enabled ? undefined : "It's switched off.";
  if (!mayEdit.value) return <p class="muted">Read-only access: calling tools needs the admin role.</p>;
  if (operationTypes.includes(tool.type)) return <TryOperation tool={tool} reason={reason} />;
  const { parameters, defaults } = tool.config as ToolConfig;
  return (
    <TryTool
      schema={visibleArguments(parameters as Schema | undefined, defaults)}
      reason={reason}
      run={(args) => post(toolsAt(tool.id, "execute"), { arguments: args })}
    />
  );
}
