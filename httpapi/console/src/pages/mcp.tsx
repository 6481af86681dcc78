// MCP servers: programs whose tools the agent may use, and the agent's own address for others.
import { useEffect, useState } from "preact/hooks";

import {
  agent,
  agentId,
  ApiError,
  go,
  href,
  listHref,
  invalidate,
  mayEdit,
  path,
  post,
  put,
  remove,
  route,
  session,
  setQuery,
  useQuery,
  type API,
  type Result,
} from "../data";
import {
  Badge,
  Button,
  confirm,
  CopyField,
  Empty,
  ErrorCard,
  FormDialog,
  Icon,
  LinkButton,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SelectField,
  Skeleton,
  tell,
  TextField,
  When,
  type MenuItem,
} from "../ui";
import {
  authOf,
  credentialOf,
  credentialTitle,
  CredentialFields,
  CredentialSelect,
  type AuthValues,
} from "../parts/credentials";
import { connectServer } from "../parts/connect";
import { useFollow } from "../parts/follow";
import { TryTool } from "../parts/try";
import { Catalogue } from "./mcp/catalogue";

const mcpAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "mcp", ...more);

export default function MCP() {
  const [id] = route.value.rest;
  if (id === "catalogue") return <Catalogue />;
  return id ? <Server key={id} id={id} /> : <List />;
}

const State = ({ s }: { s: API.MCPServer }) => (
  <Badge tone={s.status === "connected" ? "good" : s.status === "error" ? "bad" : "warn"}>
    {s.status.replace("_", " ")}
  </Badge>
);

const Where = ({ s }: { s: API.MCPServer }) =>
  s.command ? (
    <>
      program <bdi>{s.command}</bdi>
    </>
  ) : (
    <bdi>{s.url}</bdi>
  );

/** How the agent shows the server who it is. */
const authText = (s: API.MCPServer) =>
  s.command
    ? s.credential
      ? "with a stored environment"
      : "no credentials"
    : s.auth_type === "login"
      ? s.status === "needs_login"
        ? "not logged in"
        : "logged in"
      : s.credential
        ? "a stored credential"
        : s.auth_type === "none"
          ? "no credentials"
          : `${credentialTitle(s.auth_type)}, set`;

const LogIn = ({ s, primary }: { s: API.MCPServer; primary?: boolean }) =>
  mayEdit.value &&
  s.auth_type === "login" &&
  s.status === "needs_login" && (
    <Button kind={primary ? "primary" : undefined} icon="LogIn" onClick={() => connectServer(s)}>
      Log in
    </Button>
  );

function List() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery(mcpAt(), { limit: 50, offset });
  useFollow("mcp", found.reload);
  const add = mayEdit.value && (
    <Button
      kind="primary"
      icon="Plus"
      onClick={() => {
        openDialog((close) => (
          <Edit
            commands={found.data.value?.commands ?? []}
            close={close}
            done={(s) => {
              go(href(agentId.value, "mcp", s.id));
              if (s.status === "needs_login" && s.auth_type === "login") void connectServer(s);
            }}
          />
        ));
      }}
    >
      Add server
    </Button>
  );
  const own = new URL(
    `mcp/${agent.value?.name ?? agentId.value}`,
    session.value?.public_url ? `${session.value.public_url}/` : document.baseURI,
  ).href;
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
        {({ servers, meta }) =>
          servers.length ? (
            <>
              <ul class="sources">
                {servers.map((s) => (
                  <li key={s.id} class="source-row">
                    <span class="tile">
                      <Icon name="Plug" />
                    </span>
                    <div class="grow">
                      <a href={href(agentId.value, "mcp", s.id)}>
                        <Name>{s.name}</Name>
                      </a>
                      <p class="muted small">
                        <Where s={s} /> · {authText(s)} · seen <When time={s.checked_at} />
                      </p>
                      {s.last_error && s.status !== "needs_login" && (
                        <p class="issue small">
                          <bdi>{s.last_error}</bdi>
                        </p>
                      )}
                    </div>
                    <State s={s} />
                    <LogIn s={s} />
                  </li>
                ))}
              </ul>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="Plug" title="No MCP servers yet" action={add}>
              MCP servers offer tools, such as those of your ticket system. Add one by its address and choose which
              tools the agent may call.
            </Empty>
          )
        }
      </Load>
      <section class="card stack" aria-label="This agent as an MCP server">
        <h2>This agent is an MCP server too</h2>
        <p class="muted">
          MCP clients such as Claude or an editor can search the agent's knowledge, run its workflows, send messages and
          use its browser at this address, with an API key as bearer token.
        </p>
        <CopyField label="Address" text={own} />
      </section>
    </div>
  );
}

/** Registers a server, or changes one. Credentials are given as a whole. */
function Edit({
  now,
  commands,
  close,
  done,
}: {
  now?: API.MCPServer;
  commands: string[];
  close: () => void;
  done: (s: API.MCPServer) => unknown;
}) {
  const login = now?.auth_type === "login";
  const [replace, setReplace] = useState(!now || now.auth_type === "none" || (Boolean(now.credential) && !login));
  const initial: { name: string; url: string; command: string } & AuthValues = {
    name: now?.name ?? "",
    url: now?.url ?? "",
    command: now?.command ?? "",
    "auth.type": now?.credential && !login && !now.command ? "stored" : (now?.auth_type ?? "none"),
    "auth.credential": login ? "" : (now?.credential ?? ""),
  };
  const save = async (v: typeof initial) => {
    const body = v.command
      ? { name: v.name, url: "", command: v.command, auth: { type: "none" }, credential: v["auth.credential"] ?? "" }
      : { name: v.name, url: v.url, command: "", ...(replace && { auth: authOf(v), credential: credentialOf(v) }) };
    const s = await (now ? put(mcpAt(now.id), body) : post(mcpAt(), body)).catch((error) => {
      if (error instanceof ApiError && error.issues.auth) setReplace(true);
      throw error;
    });
    if (s.status !== "needs_login")
      tell(s.status === "connected" ? `${s.name} answers` : new Error(`${s.name} is ${s.status}: ${s.last_error}`));
    invalidate(mcpAt());
    await done(s);
  };
  return (
    <FormDialog
      title={now ? `Edit ${now.name}` : "Add MCP server"}
      close={close}
      action={now ? "Save" : "Add"}
      run={save}
      initial={initial}
    >
      {(f) => (
        <>
          <TextField label="Name" autoFocus required placeholder="Tickets" {...f.text("name")} />
          {(commands.length > 0 || now?.command) && (
            <SelectField
              label="Kind"
              options={[
                ["", "Server address"],
                ...[...new Set([...commands, ...(now?.command ? [now.command] : [])])].map(
                  (c) => [c, `Program: ${c}`] as [string, string],
                ),
              ]}
              {...f.choice("command")}
            />
          )}
          {f.values.command ? (
            <CredentialSelect
              env
              label="Environment"
              value={f.values["auth.credential"] ?? ""}
              error={f.issue("credential")}
              onChange={(id) => f.set("auth.credential", id)}
            />
          ) : (
            <TextField
              label="Address"
              type="url"
              required
              placeholder="https://mcp.example.com/mcp"
              {...f.text("url")}
            />
          )}
          {f.values.command ? (
            <p class="muted small">Started as the operator's file says. It runs with Satchel's own privileges.</p>
          ) : replace || !now ? (
            <CredentialFields form={f} kinds={["none", "login", "stored", "bearer", "basic", "header", "oauth2"]} />
          ) : (
            <div class="row">
              <span class="grow">Credentials: {credentialTitle(now.auth_type)}, set</span>
              <Button onClick={() => setReplace(true)}>Replace</Button>
            </div>
          )}
          {f.issue("auth") && (
            <p class="issue small" role="alert">
              Credentials {f.issue("auth")}.
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}

function Server({ id }: { id: string }) {
  const list = useQuery(mcpAt(), { limit: 200 });
  const tools = useQuery(mcpAt(id, "tools"));
  useFollow("mcp", list.reload);
  const status = list.data.value?.servers.find((x) => x.id === id)?.status;
  useEffect(() => {
    if (status === "connected" && tools.error.value) void tools.reload();
  }, [status]);
  const again = async () => {
    await tools.reload();
    await list.reload();
    const s = list.data.value?.servers.find((x) => x.id === id);
    if (s) tell(s.status === "connected" ? "It answers" : new Error(s.last_error));
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "mcp")}>MCP servers</a>
      </p>
      <Load of={list} title="MCP server">
        {({ servers }) => {
          const s = servers.find((x) => x.id === id);
          if (!s)
            return (
              <Empty icon="CircleHelp" title="Server not found">
                It may have been deleted.
              </Empty>
            );
          return (
            <>
              <div class="page-head">
                <h1 class="grow" tabIndex={-1}>
                  <Name>{s.name}</Name>
                </h1>
                <State s={s} />
                <LogIn s={s} primary />
                <Button icon="RefreshCw" onClick={again}>
                  Reconnect
                </Button>
                {mayEdit.value && (
                  <>
                    <Button
                      icon="Pencil"
                      onClick={() => {
                        openDialog((close) => (
                          <Edit
                            now={s}
                            commands={list.data.value?.commands ?? []}
                            close={close}
                            done={async () => {
                              await list.reload();
                              await tools.reload();
                            }}
                          />
                        ));
                      }}
                    >
                      Edit
                    </Button>
                    <Menu
                      label="More"
                      items={[
                        ...(s.auth_type === "login" && s.status === "connected"
                          ? ([{ label: "Log in again", icon: "LogIn", run: () => connectServer(s) }] as MenuItem[])
                          : []),
                        {
                          label: "Delete",
                          icon: "Trash2",
                          danger: true,
                          run: () =>
                            confirm({
                              title: `Delete ${s.name}?`,
                              text: "Tools that call it will fail.",
                              action: "Delete",
                              run: async () => {
                                await remove(mcpAt(), { id });
                                invalidate(mcpAt());
                                go(href(agentId.value, "mcp"));
                              },
                            }),
                        },
                      ]}
                    />
                  </>
                )}
              </div>
              <p class="muted">
                <Where s={s} /> · {authText(s)} · seen <When time={s.checked_at} />
              </p>
              {s.last_error && (
                <div class={s.status === "needs_login" ? "card" : "card bad"} role="status">
                  <p>
                    {s.status === "needs_login" && s.auth_type === "login" ? (
                      "The server requires a login. Use the account the agent should act as."
                    ) : (
                      <bdi>{s.last_error}</bdi>
                    )}
                  </p>
                </div>
              )}
              <ToolsOf id={id} found={tools} failing={Boolean(s.last_error)} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

function ToolsOf({ id, found, failing }: { id: string; found: Result<API.MCPToolList>; failing: boolean }) {
  const own = useQuery(path("agents", agentId.value, "tools"), { limit: 200 });
  const data = found.data.value;
  if (!data && found.error.value && failing) return <p class="muted">Tools unknown: the server hasn't answered yet.</p>;
  if (!data) return found.error.value ? <ErrorCard error={found.error.value} retry={found.reload} /> : <Skeleton />;
  const missing = own.data.value ? data.tools.filter((t) => !ownOf(t, own.data.value!.tools)) : [];
  const giveAll = async () => {
    try {
      for (const t of missing) await give(id, t);
    } finally {
      await own.reload();
    }
    tell(`The agent may call ${plural(missing.length, "tool")} more`);
  };
  return (
    <section class="stack" aria-label="Tools">
      <div class="row">
        <h2 class="grow">Tools</h2>
        {mayEdit.value && missing.length > 1 && (
          <Button icon="Plus" onClick={giveAll}>{`Let the agent call all ${missing.length}`}</Button>
        )}
      </div>
      {data.stale && <p class="warn-text">The server isn't answering; these are its last known tools.</p>}
      {data.tools.length ? (
        <ul class="tool-list">
          {data.tools.map((t) => (
            <Offered key={t.name} server={id} t={t} own={own.data.value?.tools ?? []} changed={own.reload} />
          ))}
        </ul>
      ) : (
        <p class="muted">No tools.</p>
      )}
    </section>
  );
}

const nameFor = (t: API.MCPTool) => t.name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);

/** The agent's own tool that calls one of a server. */
const ownOf = (t: API.MCPTool, own: API.ToolItem[]) => own.find((o) => o.type === "mcp" && o.name === nameFor(t));

/** Lets the agent call a tool of a server. */
const give = (server: string, t: API.MCPTool) =>
  post(path("agents", agentId.value, "tools"), {
    name: nameFor(t),
    description: [...t.description].slice(0, 4000).join(""),
    type: "mcp",
    config: { server_id: server, tool_name: t.name, parameters: t.parameters },
  });

/** A tool of a server: to be given to the agent, and to be tried. */
function Offered({
  server,
  t,
  own,
  changed,
}: {
  server: string;
  t: API.MCPTool;
  own: API.ToolItem[];
  changed: () => Promise<void>;
}) {
  const [open, setOpen] = useState(false);
  const given = ownOf(t, own);
  const add = async () => {
    await give(server, t);
    tell(`The agent may call ${t.name}`);
    await changed();
  };
  return (
    <li class="card stack tight">
      <div class="row offered">
        <code class="grow">{t.name}</code>
        {given ? (
          <a class="button quiet" href={href(agentId.value, "tools", given.id)}>
            <Icon name="Check" size={16} />
            <span>The agent may call it</span>
          </a>
        ) : (
          mayEdit.value && (
            <Button icon="Plus" onClick={add}>
              Let the agent call it
            </Button>
          )
        )}
        {mayEdit.value && (
          <Button icon="Play" pressed={open} onClick={() => setOpen(!open)}>
            Try
          </Button>
        )}
      </div>
      {t.description && (
        <p class="muted">
          <bdi>{t.description}</bdi>
        </p>
      )}
      {open && (
        <TryTool schema={t.parameters} run={(args) => post(mcpAt(server, "call"), { tool: t.name, arguments: args })} />
      )}
    </li>
  );
}
