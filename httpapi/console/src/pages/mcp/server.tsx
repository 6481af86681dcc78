// One MCP server: its state and its tools.
import { useEffect } from "preact/hooks";

import { agentId, go, href, invalidate, listHref, mayEdit, remove, useQuery, type API } from "../../data";
import { Button, confirm, Empty, Load, Menu, Name, openDialog, showToast, type MenuItem } from "../../ui";
import { connectServer } from "../../parts/connect";
import { useFollow } from "../../parts/follow";
import { EditServer } from "./edit";
import { mcpAt } from "./paths";
import { LogIn, ServerState, ServerSummary } from "./state";
import { ServerTools } from "./tools";

/** The page of one server. */
export function ServerPage({ id }: { id: string }) {
  const list = useQuery(mcpAt(), { limit: 200 });
  const tools = useQuery(mcpAt(id, "tools"));
  useFollow("mcp", list.reload);
  const findServer = () => list.data.value?.servers.find((server) => server.id === id);
  const status = findServer()?.status;
  useEffect(() => {
    if (status === "connected" && tools.error.value) void tools.reload();
  }, [status]);
  const reconnect = async () => {
    await tools.reload();
    await list.reload();
    const server = findServer();
    if (server) showToast(server.status === "connected" ? "It answers" : new Error(server.last_error));
  };
  const reload = async () => {
    await list.reload();
    await tools.reload();
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "mcp")}>MCP servers</a>
      </p>
      <Load of={list} title="MCP server">
        {({ commands }) => {
          const server = findServer();
          if (!server)
            return (
              <Empty icon="CircleHelp" title="Server not found">
                It may have been deleted.
              </Empty>
            );
          return (
            <>
              <Head server={server} commands={commands ?? []} reconnect={reconnect} reload={reload} />
              <p class="muted">
                <ServerSummary server={server} />
              </p>
              {server.last_error && <Problem server={server} />}
              <ServerTools id={id} found={tools} failing={Boolean(server.last_error)} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

type HeadProps = {
  server: API.MCPServer;
  commands: string[];
  reconnect: () => Promise<void>;
  reload: () => Promise<void>;
};

function Head({ server, commands, reconnect, reload }: HeadProps) {
  const edit = () => {
    openDialog((close) => <EditServer stored={server} commands={commands} close={close} done={reload} />);
  };
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <Name>{server.name}</Name>
      </h1>
      <ServerState server={server} />
      <LogIn server={server} primary />
      <Button icon="RefreshCw" onClick={reconnect}>
        Reconnect
      </Button>
      {mayEdit.value && (
        <>
          <Button icon="Pencil" onClick={edit}>
            Edit
          </Button>
          <Menu label="More" items={menuItems(server)} />
        </>
      )}
    </div>
  );
}

function menuItems(server: API.MCPServer): MenuItem[] {
  const askToDelete = () =>
    confirm({
      title: `Delete ${server.name}?`,
      text: "Tools that call it will fail.",
      action: "Delete",
      run: async () => {
        await remove(mcpAt(), { id: server.id });
        invalidate(mcpAt());
        go(href(agentId.value, "mcp"));
      },
    });
  const items: MenuItem[] = [{ label: "Delete", icon: "Trash2", danger: true, run: askToDelete }];
  if (server.auth_type === "login" && server.status === "connected")
    items.unshift({ label: "Log in again", icon: "LogIn", run: () => connectServer(server) });
  return items;
}

function Problem({ server: { status, auth_type, last_error } }: { server: API.MCPServer }) {
  const needsLogin = status === "needs_login";
  return (
    <div class={needsLogin ? "card" : "card bad"} role="status">
      <p>
        {needsLogin && auth_type === "login" ? (
          "The server requires a login. Use the account the agent should act as."
        ) : (
          <bdi>{last_error}</bdi>
        )}
      </p>
    </div>
  );
}
