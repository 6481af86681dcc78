// Servers: those that share the agents with this one, and which has which.
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
  tell,
  When,
} from "../ui";

type Node = API.ClusterNode;

const refreshEvery = 3000;

export default function Cluster() {
  const found = useQuery<{ nodes: Node[] }>("cluster");
  const alone = found.error.value instanceof ApiError && found.error.value.status === 404 && !found.data.value;
  useEffect(() => {
    if (alone) return;
    const timer = setInterval(() => {
      if (!document.hidden) void found.reload();
    }, refreshEvery);
    return () => clearInterval(timer);
  }, [found, alone]);
  if (alone)
    return (
      <div class="page">
        <h1 tabIndex={-1}>Servers</h1>
        <Empty icon="Database" title="One server">
          This server keeps all agents itself. Several can share them, and take over from each other, if each is started
          with <code>--cluster</code> and the address of one PostgreSQL database.
        </Empty>
      </div>
    );
  return (
    <div class="page">
      <h1 tabIndex={-1}>Servers</h1>
      <Load of={found}>
        {({ nodes }) => {
          const alive = nodes.filter((n) => n.alive);
          return (
            <>
              <p class="muted">
                {plural(alive.length, "server")} {alive.length === 1 ? "has" : "share"}{" "}
                {plural(
                  alive.reduce((sum, n) => sum + n.agents, 0),
                  "agent",
                )}
                . Any of them can serve any agent.
              </p>
              <Servers nodes={nodes} reload={found.reload} />
              <Agents nodes={nodes} moved={found.reload} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

/** The servers that an agent can be given to. */
const takers = (nodes: Node[], but?: string) => nodes.filter((n) => n.alive && !n.leaving && n.id !== but);

function Servers({ nodes, reload }: { nodes: Node[]; reload: () => Promise<void> }) {
  const drain = (n: Node) =>
    confirm({
      title: `Drain ${n.name}?`,
      action: "Drain",
      text: (
        <>
          {n.agents ? (
            <>
              {plural(n.agents, "agent")} of <Name>{n.name}</Name> {n.agents === 1 ? "is" : "are"} moved to the other
              servers.
            </>
          ) : (
            <>
              <Name>{n.name}</Name> has no agents.
            </>
          )}{" "}
          It gets no more until it is restarted.
        </>
      ),
      run: async () => {
        await post(path("cluster", "nodes", n.id, "drain"));
        tell(`${n.name} gives its agents to the others.`);
        await reload();
      },
    });
  return (
    <Table
      rows={nodes}
      keyOf={(n) => n.id}
      columns={[
        {
          title: "Server",
          class: "title",
          cell: (n) => (
            <>
              <strong>
                <Name>{n.name}</Name>
              </strong>{" "}
              {n.self && <Badge title="The server that sent this page">this one</Badge>}
              <br />
              <span class="small muted">
                <bdi>{n.url}</bdi>
              </span>
            </>
          ),
        },
        { title: "State", cell: (n) => <State n={n} /> },
        { title: "Agents", class: "number", cell: (n) => n.agents.toLocaleString() },
        {
          title: "Lag",
          class: "number",
          cell: (n) =>
            n.alive ? (
              <span title="Longest wait of a commit for the database in the last second">{span(n.lag_ms)}</span>
            ) : (
              "–"
            ),
        },
        { title: "Last seen", cell: (n) => <When time={n.seen_at} /> },
        { title: "Version", cell: (n) => <bdi>{n.version}</bdi> },
        {
          title: "",
          class: "actions",
          cell: (n) =>
            n.alive &&
            !n.leaving &&
            takers(nodes, n.id).length > 0 && (
              <Button label={`Drain ${n.name}`} onClick={() => drain(n)}>
                Drain
              </Button>
            ),
        },
      ]}
    />
  );
}

/** A lag of this many milliseconds holds people up. */
const slow = 1000;

function State({ n }: { n: Node }) {
  if (!n.alive) return <Badge tone="bad">gone</Badge>;
  if (n.leaving && n.reason === "disk_full")
    return (
      <Badge tone="bad" title="It gives its agents to the others, and gets some again once there is room.">
        disk full
      </Badge>
    );
  if (n.leaving && n.reason === "stopping") return <Badge tone="busy">stopping</Badge>;
  if (n.leaving)
    return n.agents ? (
      <Badge tone="busy">draining</Badge>
    ) : (
      <Badge tone="warn" title="It gets no agents until it restarts.">
        drained
      </Badge>
    );
  return n.lag_ms > slow ? <Badge tone="warn">slow</Badge> : <Badge tone="good">alive</Badge>;
}

function Agents({ nodes, moved }: { nodes: Node[]; moved: () => Promise<void> }) {
  const { query } = route.value;
  const [search, node, offset] = [query.get("q") ?? "", query.get("server") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery<{ agents: API.ClusterAgent[]; meta: { total: number; limit: number; offset: number } }>(
    "cluster/agents",
    { search, node, limit: 25, offset },
  );
  const counts = nodes.map((n) => `${n.id}:${n.agents}`).join(" ");
  const known = useRef(counts);
  useEffect(() => {
    // agents have moved
    if (known.current !== counts) void found.reload();
    known.current = counts;
  }, [counts, found]);
  const nameOf = (id: string) => nodes.find((n) => n.id === id)?.name;
  const move = (a: API.ClusterAgent) =>
    openDialog((close) => (
      <Move
        a={a}
        to={takers(nodes, a.node)}
        close={close}
        done={async () => {
          await Promise.all([moved(), found.reload()]);
        }}
      />
    ));
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
          {[["", "All servers"], ...nodes.filter((n) => n.alive || n.agents > 0).map((n) => [n.id, n.name])].map(
            ([id, text]) => (
              <option value={id} selected={id === node}>
                {text}
              </option>
            ),
          )}
        </select>
      </div>
      <Load of={found}>
        {({ agents, meta }) =>
          agents.length ? (
            <>
              <Table
                rows={agents}
                keyOf={(a) => a.id}
                columns={[
                  {
                    title: "Agent",
                    class: "title",
                    cell: (a) => (
                      <a href={href(a.id)}>
                        <Name>{a.name}</Name>
                      </a>
                    ),
                  },
                  {
                    title: "Server",
                    cell: (a) =>
                      nameOf(a.node) ? (
                        <Name>{nameOf(a.node)}</Name>
                      ) : a.node === "stopped" ? (
                        <Badge tone="bad" title="The database lost changes to it.">
                          stopped
                        </Badge>
                      ) : (
                        <Badge tone="warn">being taken over</Badge>
                      ),
                  },
                  {
                    title: "",
                    class: "actions",
                    cell: (a) =>
                      a.node !== "stopped" &&
                      takers(nodes, a.node).length > 0 && (
                        <Button
                          label={`Move ${a.name}`}
                          onClick={() => {
                            move(a);
                          }}
                        >
                          Move
                        </Button>
                      ),
                  },
                ]}
              />
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="Bot" title={search ? "No agent matches" : "It has no agents"} />
          )
        }
      </Load>
    </>
  );
}

function Move({
  a,
  to,
  close,
  done,
}: {
  a: API.ClusterAgent;
  to: Node[];
  close: () => void;
  done: () => Promise<void>;
}) {
  const run = async (v: { node: string }) => {
    await post(path("cluster", "agents", a.id, "move"), { node: v.node });
    tell(`${a.name} is with ${to.find((n) => n.id === v.node)?.name} now.`);
    void done();
  };
  return (
    <FormDialog
      title={`Move ${a.name}`}
      close={close}
      action="Move"
      run={run}
      initial={{ node: [...to].sort((x, y) => x.agents - y.agents)[0].id }}
    >
      {(f) => (
        <SelectField
          label="To"
          hint="Requests wait about a second while it moves. Its browser sessions end."
          options={to.map((n): [string, string] => [n.id, `${n.name} (${plural(n.agents, "agent")})`])}
          {...f.choice("node")}
        />
      )}
    </FormDialog>
  );
}
