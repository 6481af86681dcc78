// Servers: those that share the agents with this one, and which server has which agents.
import { useEffect, useRef } from "preact/hooks";

import { ApiError, type API, href, path, post, route, setQuery, useQuery } from "../data";
import {
  Badge,
  Button,
  confirm,
  Empty,
  FormDialog,
  Load,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  SelectField,
  span,
  Table,
  showToast,
  When,
  type Column,
} from "../ui";

type Node = API.ClusterNode;

const refreshInterval = 3000; // milliseconds

/** The page of servers. */
export default function Cluster() {
  const found = useQuery<{ nodes: Node[] }>("cluster");
  const alone = found.error.value instanceof ApiError && found.error.value.status === 404 && !found.data.value;
  useEffect(() => {
    if (alone) return;
    const timer = setInterval(() => {
      if (!document.hidden) void found.reload();
    }, refreshInterval);
    return () => clearInterval(timer);
  }, [found, alone]);
  return (
    <div class="page">
      <h1 tabIndex={-1}>Servers</h1>
      {alone ? (
        <Empty icon="Database" title="One server">
          This server keeps all agents itself. Several can share them, and take over from each other, if each is started
          with <code>--cluster</code> and the address of one PostgreSQL database.
        </Empty>
      ) : (
        <Load of={found}>
          {({ nodes }) => (
            <>
              <Summary nodes={nodes} />
              <Servers nodes={nodes} reload={found.reload} />
              <Agents nodes={nodes} moved={found.reload} />
            </>
          )}
        </Load>
      )}
    </div>
  );
}

function Summary({ nodes }: { nodes: Node[] }) {
  const online = nodes.filter((node) => node.alive);
  const agents = online.reduce((sum, node) => sum + node.agents, 0);
  return (
    <p class="muted">
      {plural(online.length, "server")} {online.length === 1 ? "has" : "share"} {plural(agents, "agent")}. Any of them
      can serve any agent.
    </p>
  );
}

/** The servers to which an agent can be moved from a server. */
const targetsFor = (nodes: Node[], from: string) =>
  nodes.filter(({ id, alive: online, leaving }) => online && !leaving && id !== from);

function confirmDraining({ id, name, agents }: Node, reload: () => Promise<void>) {
  const consequence = agents ? (
    <>
      {plural(agents, "agent")} of <Name>{name}</Name> {agents === 1 ? "is" : "are"} moved to the other servers.
    </>
  ) : (
    <>
      <Name>{name}</Name> has no agents.
    </>
  );
  confirm({
    title: `Drain ${name}?`,
    action: "Drain",
    text: <>{consequence} It gets no more until it is restarted.</>,
    run: async () => {
      await post(path("cluster", "nodes", id, "drain"));
      showToast(`${name} gives its agents to the others.`);
      void reload();
    },
  });
}

function Servers({ nodes, reload }: { nodes: Node[]; reload: () => Promise<void> }) {
  const drainColumn: Column<Node> = {
    title: "",
    class: "actions",
    cell: (node) =>
      node.alive &&
      !node.leaving &&
      targetsFor(nodes, node.id).length > 0 && (
        <Button label={`Drain ${node.name}`} onClick={() => confirmDraining(node, reload)}>
          Drain
        </Button>
      ),
  };
  return <Table rows={nodes} keyOf={({ id }) => id} columns={[...serverColumns, drainColumn]} />;
}

const serverColumns: Column<Node>[] = [
  {
    title: "Server",
    class: "title",
    cell: ({ name, self, url }) => (
      <>
        <strong>
          <Name>{name}</Name>
        </strong>{" "}
        {self && <Badge title="The server that sent this page">this one</Badge>}
        <br />
        <span class="small muted">
          <bdi>{url}</bdi>
        </span>
      </>
    ),
  },
  { title: "State", cell: (node) => <State node={node} /> },
  { title: "Agents", class: "number", cell: ({ agents }) => agents.toLocaleString() },
  {
    title: "Lag",
    class: "number",
    cell: ({ alive: online, lag_ms }) =>
      online ? <span title="Longest wait of a commit for the database in the last second">{span(lag_ms)}</span> : "–",
  },
  { title: "Last seen", cell: ({ seen_at }) => <When time={seen_at} /> },
  { title: "Version", cell: ({ version }) => <bdi>{version}</bdi> },
];

/** The lag in milliseconds from which on a server is called slow. */
const maxLag = 1000;

function State({ node: { alive: online, leaving, reason, agents, lag_ms } }: { node: Node }) {
  if (!online) return <Badge tone="bad">gone</Badge>;
  if (!leaving) return lag_ms > maxLag ? <Badge tone="warn">slow</Badge> : <Badge tone="good">alive</Badge>;
  if (reason === "disk_full")
    return (
      <Badge tone="bad" title="It gives its agents to the others, and gets some again once there is room.">
        disk full
      </Badge>
    );
  if (reason === "stopping") return <Badge tone="busy">stopping</Badge>;
  if (agents) return <Badge tone="busy">draining</Badge>;
  return (
    <Badge tone="warn" title="It gets no agents until it restarts.">
      drained
    </Badge>
  );
}

type AgentList = { agents: API.ClusterAgent[]; meta: API.PageMeta };

/** The node of an agent that no server opens any more. */
const stoppedNode = "stopped";

/** Loads the agents that the address asks for, and loads them again when servers have other numbers of agents. */
function useAgents(nodes: Node[]) {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const node = query.get("server") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery<AgentList>("cluster/agents", { search, node, limit: 25, offset });
  const counts = nodes.map(({ id, agents }) => `${id}:${agents}`).join(" ");
  const loadedFor = useRef(counts);
  useEffect(() => {
    if (loadedFor.current !== counts) void found.reload();
    loadedFor.current = counts;
  }, [counts, found]);
  return { found, search, node };
}

function Agents({ nodes, moved }: { nodes: Node[]; moved: () => Promise<void> }) {
  const { found, search, node } = useAgents(nodes);
  const options = nodes.filter(({ alive: online, agents }) => online || agents > 0).map(({ id, name }) => [id, name]);
  const reload = async () => {
    await Promise.all([moved(), found.reload()]);
  };
  return (
    <>
      <div class="page-head">
        <h2 class="grow">Agents</h2>
        <SearchField label="Search agents" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        <select
          aria-label="Server"
          value={node}
          onChange={(e) => setQuery({ server: e.currentTarget.value, offset: null })}
        >
          {[["", "All servers"], ...options].map(([id, name]) => (
            <option value={id} selected={id === node}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <Load of={found}>
        {({ agents, meta }) => {
          if (!agents.length) return <Empty icon="Bot" title={search ? "No agent matches" : "It has no agents"} />;
          return (
            <>
              <Table rows={agents} keyOf={({ id }) => id} columns={agentColumns(nodes, reload)} />
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </>
  );
}

function agentColumns(nodes: Node[], reload: () => Promise<void>): Column<API.ClusterAgent>[] {
  return [
    {
      title: "Agent",
      class: "title",
      cell: ({ id, name }) => (
        <a href={href(id)}>
          <Name>{name}</Name>
        </a>
      ),
    },
    { title: "Server", cell: (agent) => <ServerOf agent={agent} nodes={nodes} /> },
    {
      title: "",
      class: "actions",
      cell: (agent) => {
        const targets = targetsFor(nodes, agent.node);
        if (agent.node === stoppedNode || !targets.length) return null;
        const openMove = () => {
          openDialog((close) => <Move agent={agent} targets={targets} close={close} done={reload} />);
        };
        return (
          <Button label={`Move ${agent.name}`} onClick={openMove}>
            Move
          </Button>
        );
      },
    },
  ];
}

/** The server that has an agent. */
function ServerOf({ agent, nodes }: { agent: API.ClusterAgent; nodes: Node[] }) {
  const server = nodes.find(({ id }) => id === agent.node);
  if (server?.name) return <Name>{server.name}</Name>;
  if (agent.node !== stoppedNode) return <Badge tone="warn">being taken over</Badge>;
  return (
    <Badge tone="bad" title="The database lost changes to it.">
      stopped
    </Badge>
  );
}

type MoveProps = { agent: API.ClusterAgent; targets: Node[]; close: () => void; done: () => Promise<void> };

/** Moves an agent to another server; the one with the fewest agents is offered first. */
function Move({ agent: { id, name }, targets, close, done }: MoveProps) {
  const [leastLoaded] = targets.toSorted((a, b) => a.agents - b.agents);
  const run = async ({ node }: { node: string }) => {
    await post(path("cluster", "agents", id, "move"), { node });
    showToast(`${name} is with ${targets.find((target) => target.id === node)?.name} now.`);
    void done();
  };
  return (
    <FormDialog title={`Move ${name}`} close={close} action="Move" run={run} initial={{ node: leastLoaded.id }}>
      {(form) => (
        <SelectField
          label="To"
          hint="Requests wait about a second while it moves. Its browser sessions end."
          options={targets.map((target): [string, string] => [
            target.id,
            `${target.name} (${plural(target.agents, "agent")})`,
          ])}
          {...form.choice("node")}
        />
      )}
    </FormDialog>
  );
}
