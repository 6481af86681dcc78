// API keys: by which programs, and this console, use the server.
import {
  get,
  key,
  loadSession,
  path,
  post,
  remove,
  session,
  setQuery,
  route,
  strangersText,
  useQuery,
  type API,
} from "../data";
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
  SelectField,
  showOnce,
  Switch,
  Table,
  TextField,
  When,
} from "../ui";

const roles: [string, string][] = [
  ["viewer", "Viewer: read-only"],
  ["admin", "Admin: can change everything"],
  ["owner", "Owner: can also manage roles and delete it"],
];

const closing =
  "The first key closes this server for good, at once: every program, this console included, then needs a key or an identity, and revoking all keys doesn't reopen it. (A server started with --no-auth stays open.)";

export default function Keys() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery("keys", { limit: 50, offset });
  const { open, default_role: role } = session.value!;
  const first = open && found.data.value?.meta.total === 0;
  const strangers = open && !first ? "" : strangersText(role);
  const create = async () => {
    const { agents } = await get("agents", { limit: 200 });
    openDialog((close) => (
      <NewKey close={close} first={first} strangers={strangers} agents={agents} done={found.reload} />
    ));
  };
  const replace = (k: API.Key) =>
    openDialog((close) => (
      <FormDialog
        title={`Replace ${k.name}?`}
        close={close}
        action="Create the new key"
        initial={{}}
        run={async () => {
          const made = await post("keys", {
            name: k.name,
            role: k.role,
            agents: k.agents,
            expires_at: k.expires_at ?? undefined,
          });
          void showOnce(
            "The new key",
            `It's shown only once. Give it to the program, then revoke the old key, ${k.prefix}…`,
            made.key,
          ).then(() => found.reload());
        }}
      >
        {() => (
          <p>
            A new key with the same name, role, agents and end is created. The old one works until you revoke it, so
            programs can be switched over first.
          </p>
        )}
      </FormDialog>
    ));
  const all = found.data.value?.keys ?? [];
  const held: string[] = []; // the key of this tab and those that it was created with
  for (let k = all.find((x) => key.get().startsWith(x.prefix)); k; k = all.find((x) => x.id === k!.parent_id))
    held.push(k.id);
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          API keys
        </h1>
        {found.data.value && (
          <Button kind="primary" icon="Plus" onClick={create}>
            {first ? "Create the first key" : "New key"}
          </Button>
        )}
      </div>
      {first ? (
        <div class="card warn stack">
          <p>
            <strong>This server is open: anyone who reaches it acts as owner.</strong>
          </p>
          <p>{closing}</p>
          <p>{strangers}</p>
        </div>
      ) : (
        strangers && <p class="muted">{strangers}</p>
      )}
      <Load of={found}>
        {({ keys, meta }) =>
          keys.length ? (
            <>
              <Table
                rows={keys}
                keyOf={(k) => k.id}
                columns={[
                  { title: "Name", cell: (k) => <Name>{k.name}</Name> },
                  { title: "Key", cell: (k) => <code>{k.prefix}…</code> },
                  { title: "Role", cell: (k) => <Badge>{k.role}</Badge> },
                  { title: "Agents", cell: (k) => (k.agents.includes("*") ? "all" : <Agents ids={k.agents} />) },
                  { title: "Made", cell: (k) => <When time={k.created_at} /> },
                  {
                    title: "Ends",
                    cell: (k) => (k.expires_at ? <When time={k.expires_at} full /> : <span class="muted">never</span>),
                  },
                  {
                    title: "",
                    class: "actions",
                    cell: (k) => (
                      <>
                        <Button
                          disabled={held.includes(k.id)}
                          reason="This tab uses it, and keys that it creates end with it. Replace it with another owner key, or on the server."
                          onClick={() => {
                            replace(k);
                          }}
                        >
                          Replace
                        </Button>{" "}
                        <Button
                          kind="danger"
                          onClick={() =>
                            confirm({
                              title: `Revoke ${k.name}?`,
                              text: (
                                <>
                                  The key <code>{k.prefix}…</code>, and any key created with it, stops working at once.
                                  This cannot be undone.
                                </>
                              ),
                              action: "Revoke",
                              typed: k.name,
                              run: async () => {
                                await remove(path("keys", k.id));
                                await found.reload();
                              },
                            })
                          }
                        >
                          Revoke
                        </Button>
                      </>
                    ),
                  },
                ]}
              />
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="KeyRound" title={first ? "No keys yet" : "No keys that you can see"}>
              A key lets a program use the API with a role, on all agents or on one.
            </Empty>
          )
        }
      </Load>
    </div>
  );
}

/** Agents by their names, where the person may see them. */
const Agents = ({ ids }: { ids: string[] }) => (
  <Name>{ids.map((id) => session.value!.agents.find((a) => a.id === id)?.name ?? id).join(", ")}</Name>
);

function NewKey({
  close,
  first,
  strangers,
  agents,
  done,
}: {
  close: () => void;
  first: boolean;
  strangers: string;
  agents: API.Agent[];
  done: () => Promise<void>;
}) {
  const initial = {
    name: first ? "console" : "",
    role: first ? "owner" : "viewer",
    agents: "*",
    expires_at: "",
    sure: !first,
  };
  const run = async (v: typeof initial) => {
    const made = await post("keys", {
      name: v.name,
      role: v.role,
      agents: [v.agents],
      expires_at: v.expires_at ? new Date(v.expires_at).toISOString() : undefined,
    });
    if (first) key.set(made.key); // else this tab would be shut out
    void showOnce(
      "The key",
      `It's shown only once. Store it with your other secrets.${first ? " This tab uses it until the tab is closed." : ""}`,
      made.key,
    ).then(async () => {
      await loadSession();
      await done();
    });
  };
  return (
    <FormDialog
      title={first ? "Create the first key" : "New key"}
      close={close}
      action={first ? "Close the server and create the key" : "Create key"}
      run={run}
      initial={initial}
      ready={(v) => v.sure}
    >
      {(f) => (
        <>
          {first ? (
            <div class="card warn stack">
              <p>{closing}</p>
              <p>{strangers}</p>
            </div>
          ) : (
            <p class="muted">{strangers}</p>
          )}
          <TextField label="Name" required autoFocus hint="What the key is for." {...f.text("name")} />
          <SelectField
            label="Role"
            options={roles}
            hint={
              first
                ? "An owner key for all agents can create other keys; without one, only the server's operator can."
                : undefined
            }
            {...f.choice("role")}
          />
          <SelectField
            label="Agents"
            options={[["*", "All agents"], ...agents.map((a): [string, string] => [a.id, a.name])]}
            {...f.choice("agents")}
          />
          <TextField label="Ends" type="datetime-local" hint="Empty: never." {...f.text("expires_at")} />
          {first && (
            <Switch
              label="I understand that this closes the server for good"
              checked={f.values.sure}
              onChange={(on) => f.set("sure", on)}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}
