// MCP servers: programs whose tools the agent may use, and the agent's own address for MCP clients.
import { agent, agentId, go, href, mayEdit, route, session, setQuery, useQuery, type API } from "../data";
import { Button, CopyField, Empty, Icon, LinkButton, Load, Name, openDialog, Pager } from "../ui";
import { connectServer } from "../parts/connect";
import { useFollow } from "../parts/follow";
import { Catalogue } from "./mcp/catalogue";
import { EditServer } from "./mcp/edit";
import { mcpAt } from "./mcp/paths";
import { ServerPage } from "./mcp/server";
import { LogIn, ServerState, ServerSummary } from "./mcp/state";

/** The page of MCP servers: the list, the catalogue, or the server of the address. */
export default function MCP() {
  const [id] = route.value.rest;
  if (id === "catalogue") return <Catalogue />;
  return id ? <ServerPage key={id} id={id} /> : <ServerList />;
}

function openAdded(server: API.MCPServer) {
  go(href(agentId.value, "mcp", server.id));
  if (server.status === "needs_login" && server.auth_type === "login") void connectServer(server);
}

function ServerList() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery(mcpAt(), { limit: 50, offset });
  useFollow("mcp", found.reload);
  const openForm = () => {
    const commands = found.data.value?.commands ?? [];
    openDialog((close) => <EditServer commands={commands} close={close} done={openAdded} />);
  };
  const add = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={openForm}>
      Add server
    </Button>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          MCP servers
        </h1>
        <LinkButton icon="Search" href={href(agentId.value, "mcp", "catalogue")}>
          Catalogue
        </LinkButton>
        {add}
      </div>
      <Load of={found}>
        {({ servers, meta }) => {
          if (!servers.length)
            return (
              <Empty icon="Plug" title="No MCP servers yet" action={add}>
                MCP servers offer tools, such as those of your ticket system. Add one by its address and choose which
                tools the agent may call.
              </Empty>
            );
          return (
            <>
              <ul class="sources">
                {servers.map((server) => (
                  <ServerRow key={server.id} server={server} />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
      <OwnAddress />
    </div>
  );
}

function ServerRow({ server }: { server: API.MCPServer }) {
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name="Plug" />
      </span>
      <div class="grow">
        <a href={href(agentId.value, "mcp", server.id)}>
          <Name>{server.name}</Name>
        </a>
        <p class="muted small">
          <ServerSummary server={server} />
        </p>
        {server.last_error && server.status !== "needs_login" && (
          <p class="issue small">
            <bdi>{server.last_error}</bdi>
          </p>
        )}
      </div>
      <ServerState server={server} />
      <LogIn server={server} />
    </li>
  );
}

/** The address by which MCP clients use the agent. */
function OwnAddress() {
  const base = session.value?.public_url ? `${session.value.public_url}/` : document.baseURI;
  const address = new URL(`mcp/${agent.value?.name ?? agentId.value}`, base).href;
  return (
    <section class="card stack" aria-label="This agent as an MCP server">
      <h2>This agent is an MCP server too</h2>
      <p class="muted">
        MCP clients such as Claude or an editor can search the agent's knowledge, run its workflows, send messages and
        use its browser at this address, with an API key as bearer token.
      </p>
      <CopyField label="Address" text={address} />
    </section>
  );
}
