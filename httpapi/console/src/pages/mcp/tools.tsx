// The tools of an MCP server, which can be given to the agent.
import { useState } from "preact/hooks";

import { agentId, href, mayEdit, path, post, useQuery, type API, type Result } from "../../data";
import { Button, ErrorCard, Icon, plural, Skeleton, showToast } from "../../ui";
import { TryTool } from "../../parts/trytool";
import { mcpAt } from "./paths";

const toolsAt = () => path("agents", agentId.value, "tools");

/** The limits of the service for the name and the description of a tool. */
const maxNameLength = 64;
const maxDescriptionLength = 4000;

/** The name of the agent's tool that calls a tool of a server. */
const agentToolName = (tool: API.MCPTool) => tool.name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, maxNameLength);

/** Finds the agent's tool that calls a tool of a server. */
const findAgentTool = (tool: API.MCPTool, agentTools: API.ToolItem[]) =>
  agentTools.find(({ type, name }) => type === "mcp" && name === agentToolName(tool));

/** Lets the agent call a tool of a server. */
const addToAgent = (server: string, tool: API.MCPTool) =>
  post(toolsAt(), {
    name: agentToolName(tool),
    description: [...tool.description].slice(0, maxDescriptionLength).join(""),
    type: "mcp",
    config: { server_id: server, tool_name: tool.name, parameters: tool.parameters },
  });

type Props = {
  /** The id of the server. */
  id: string;
  found: Result<API.MCPToolList>;
  /** The server did not answer. */
  failing: boolean;
};

/** The tools of a server. */
export function ServerTools({ id, found, failing }: Props) {
  const agentTools = useQuery(toolsAt(), { limit: 200 });
  const data = found.data.value;
  if (!data && found.error.value) {
    if (failing) return <p class="muted">Tools unknown: the server hasn't answered yet.</p>;
    return <ErrorCard error={found.error.value} retry={found.reload} />;
  }
  if (!data) return <Skeleton />;
  const known = agentTools.data.value?.tools;
  const missing = known ? data.tools.filter((tool) => !findAgentTool(tool, known)) : [];
  const addAll = async () => {
    try {
      for (const tool of missing) await addToAgent(id, tool);
    } finally {
      await agentTools.reload();
    }
    showToast(`The agent may call ${plural(missing.length, "more tool")}`);
  };
  return (
    <section class="stack" aria-label="Tools">
      <div class="row">
        <h2 class="grow">Tools</h2>
        {mayEdit.value && missing.length > 1 && (
          <Button icon="Plus" onClick={addAll}>{`Let the agent call all ${missing.length}`}</Button>
        )}
      </div>
      {data.stale && <p class="warn-text">The server isn't answering; these are its last known tools.</p>}
      {data.tools.length > 0 ? (
        <ul class="tool-list">
          {data.tools.map((tool) => (
            <ToolItem key={tool.name} server={id} tool={tool} agentTools={known ?? []} changed={agentTools.reload} />
          ))}
        </ul>
      ) : (
        <p class="muted">No tools.</p>
      )}
    </section>
  );
}

type ToolItemProps = {
  server: string;
  tool: API.MCPTool;
  agentTools: API.ToolItem[];
  changed: () => Promise<void>;
};

/** A tool of a server: it can be given to the agent, and tried. */
function ToolItem({ server, tool, agentTools, changed }: ToolItemProps) {
  const [open, setOpen] = useState(false);
  const agentTool = findAgentTool(tool, agentTools);
  const add = async () => {
    await addToAgent(server, tool);
    showToast(`The agent may call ${tool.name}`);
    await changed();
  };
  return (
    <li class="card stack tight">
      <div class="row offered">
        <code class="grow">{tool.name}</code>
        {agentTool && (
          <a class="button quiet" href={href(agentId.value, "tools", agentTool.id)}>
            <Icon name="Check" size={16} />
            <span>The agent may call it</span>
          </a>
        )}
        {!agentTool && mayEdit.value && (
          <Button icon="Plus" onClick={add}>
            Let the agent call it
          </Button>
        )}
        {mayEdit.value && (
          <Button icon="Play" pressed={open} onClick={() => setOpen(!open)}>
            Try
          </Button>
        )}
      </div>
      {tool.description && (
        <p class="muted">
          <bdi>{tool.description}</bdi>
        </p>
      )}
      {open && (
        <TryTool
          schema={tool.parameters}
          run={(args) => post(mcpAt(server, "call"), { tool: tool.name, arguments: args })}
        />
      )}
    </li>
  );
}
