// API keys: by which programs, and this console, use the server.
import { get, key, loadSession, path, post, remove, session, setQuery, route, strangersText, useQuery } from "../data";
import { Badge, Button, confirm, Empty, FormDialog, Load, Name, openDialog, Pager, SelectField, showOnce, Switch, Table, TextField, When } from "../ui";

const roles: [string, string][] = [["viewer", "Viewer: reads"], ["admin", "Admin: works with it"], ["owner", "Owner: also gives roles, and deletes it"]];

const closing = "The first key closes this server at once and for good: from then on every program needs a key or an identity, this console too, and revoking all keys does not open it again. (A server that was started with --no-auth stays open.)";

export default function Keys() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery("keys", { limit: 50, offset });
  const { open, default_role: role } = session.value!;
  const first = open && found.data.value?.meta.total === 0;
  const strangers = open && !first ? "" : strangersText(role);
  const create = async () => {
    const { agents } = await get("agents", { limit: 200 });
    openDialog((close) => <NewKey close={close} first={first} strangers={strangers} agents={agents} done={found.reload} />);
  };
  return (
    <div class="page">
      <div class="page-head"><h1 class="grow" tabIndex={-1}>API keys</h1>{found.data.value && <Button kind="primary" icon="Plus" onClick={create}>{first ? "Create the first key" : "New key"}</Button>}</div>
      {first ? <div class="card warn stack"><p><strong>This server is open: everyone who reaches it acts as owner.</strong></p><p>{closing}</p><p>{strangers}</p></div> : strangers && <p class="muted">{strangers}</p>}
      <Load of={found}>{({ keys, meta }) => keys.length ? (
        <>
          <Table rows={keys as any[]} keyOf={(k) => k.id} columns={[
            { title: "Name", cell: (k) => <Name>{k.name}</Name> }, { title: "Key", cell: (k) => <code>{k.prefix}…</code> }, { title: "Role", cell: (k) => <Badge>{k.role}</Badge> },
            { title: "Agents", cell: (k) => (k.agents.includes("*") ? "all" : <Agents ids={k.agents} />) }, { title: "Made", cell: (k) => <When time={k.created_at} /> },
            { title: "Ends", cell: (k) => (k.expires_at ? <When time={k.expires_at} full /> : <span class="muted">never</span>) },
            { title: "", class: "actions", cell: (k) => <Button kind="danger" onClick={() => confirm({ title: `Revoke ${k.name}?`, text: "Whoever uses this key, or a key that was made with it, is refused from now on. This cannot be undone.", action: "Revoke", typed: k.name, run: async () => { await remove(path("keys", k.id)); await found.reload(); } })}>Revoke</Button> },
          ]} />
          <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
        </>
      ) : <Empty icon="KeyRound" title={first ? "No keys yet" : "There are no keys that you may see"}>A key lets a program use the API with a role, on all agents or on one.</Empty>}</Load>
    </div>
  );
}

/** Agents by their names, where the person may see them. */
const Agents = ({ ids }: { ids: string[] }) => <Name>{ids.map((id) => session.value!.agents.find((a) => a.id === id)?.name ?? id).join(", ")}</Name>;

function NewKey({ close, first, strangers, agents, done }: { close: () => void; first: boolean; strangers: string; agents: any[]; done: () => Promise<void> }) {
  const run = async (v: Record<string, any>) => {
    const made = await post("keys", { name: v.name, role: v.role, agents: [v.agents], expires_at: v.expires_at ? new Date(v.expires_at).toISOString() : undefined });
    if (first) key.set(made.key); // else this tab would be shut out
    void showOnce("The key", `It is shown only now. Keep it where secrets are kept.${first ? " This tab uses it until the tab is closed." : ""}`, made.key)
      .then(async () => { await loadSession(); await done(); });
  };
  return (
    <FormDialog title={first ? "Create the first key" : "New key"} close={close} action={first ? "Close the server and create the key" : "Create the key"} run={run}
      initial={{ name: first ? "console" : "", role: first ? "owner" : "viewer", agents: "*", expires_at: "", sure: !first }} ready={(v) => v.sure}>
      {(f) => (
        <>
          {first ? <div class="card warn stack"><p>{closing}</p><p>{strangers}</p></div> : <p class="muted">{strangers}</p>}
          <TextField label="Name" required autoFocus hint="What the key is for." {...f.text("name")} />
          <SelectField label="Role" options={roles} hint={first ? "A key of an owner for all agents can make other keys; without one, only the server's operator can." : undefined} {...f.choice("role")} />
          <SelectField label="Agents" options={[["*", "All agents"], ...agents.map((a: any): [string, string] => [a.id, a.name])]} {...f.choice("agents")} />
          <TextField label="Ends" type="datetime-local" hint="Never, without a time." {...f.text("expires_at")} />
          {first && <Switch label="I know that this closes the server for good" checked={f.values.sure} onChange={(on) => f.set("sure", on)} />}
        </>
      )}
    </FormDialog>
  );
}
