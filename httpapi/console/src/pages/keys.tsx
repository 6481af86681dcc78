// API keys, by which programs and this console use the server.
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
  anonymousAccessText,
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
  type Column,
  type FormState,
} from "../ui";
import { DateTimeField, momentOf } from "../parts/timefield";
import { deviceZone } from "../parts/zone";

const roles: [string, string][] = [
  ["viewer", "Viewer: read-only"],
  ["admin", "Admin: can change everything"],
  ["owner", "Owner: can also manage roles and delete it"],
];

const anonymousOptions: [string, string][] = [
  ["", "Choose…"],
  ["none", "No: they may do nothing"],
  ["viewer", "Yes: they may read and search it"],
];

const closingText =
  "The first key closes this server for good, at once: every program, this console included, then needs a key " +
  "or an identity, and revoking all keys doesn't reopen it. (A server started with --no-auth stays open.)";
const inUseReason =
  "This tab uses it, and keys that it creates end with it. Replace it with another owner key, or on the server.";

/** The ids of the key that this tab uses and of those above it, by which it was created. */
function keysInUse(keys: API.Key[]) {
  const held: string[] = [];
  let current = keys.find(({ prefix }) => key.get().startsWith(prefix));
  while (current) {
    const { id, parent_id } = current;
    held.push(id);
    current = keys.find((other) => other.id === parent_id);
  }
  return held;
}

/** The page of API keys. */
export default function Keys() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery("keys", { limit: 50, offset });
  const { open, default_role: role, default_role_decided: decided } = session.value!;
  const first = open && found.data.value?.meta.total === 0;
  const anonymousAccess = open && !first ? "" : anonymousAccessText(role);
  const openNewKey = async () => {
    const { agents } = await get("agents", { limit: 200 });
    openDialog((close) => (
      <NewKey
        close={close}
        first={first}
        asks={first && !decided}
        anonymousAccess={anonymousAccess}
        agents={agents}
        done={found.reload}
      />
    ));
  };
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          API keys
        </h1>
        {found.data.value && (
          <Button kind="primary" icon="Plus" onClick={openNewKey}>
            {first ? "Create the first key" : "New key"}
          </Button>
        )}
      </div>
      {first && (
        <div class="card warn stack">
          <p>
            <strong>This server is open: anyone who reaches it acts as owner.</strong>
          </p>
          <p>{closingText}</p>
          {decided && <p>{anonymousAccess}</p>}
        </div>
      )}
      {!first && anonymousAccess && <p class="muted">{anonymousAccess}</p>}
      <Load of={found}>
        {({ keys, meta }) => {
          if (!keys.length)
            return (
              <Empty icon="KeyRound" title={first ? "No keys yet" : "No keys that you can see"}>
                A key lets a program use the API with a role, on all agents or on one.
              </Empty>
            );
          return (
            <>
              <Table rows={keys} keyOf={({ id }) => id} columns={columns(keysInUse(keys), found.reload)} />
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

function columns(held: string[], reload: () => Promise<void>): Column<API.Key>[] {
  return [
    { title: "Name", cell: ({ name }) => <Name>{name}</Name> },
    { title: "Key", cell: ({ prefix }) => <code>{prefix}…</code> },
    { title: "Role", cell: ({ role }) => <Badge>{role}</Badge> },
    { title: "Agents", cell: ({ agents }) => (agents.includes("*") ? "all" : <Agents ids={agents} />) },
    { title: "Made", cell: ({ created_at }) => <When time={created_at} /> },
    {
      title: "Ends",
      cell: ({ expires_at }) => (expires_at ? <When time={expires_at} full /> : <span class="muted">never</span>),
    },
    {
      title: "",
      class: "actions",
      cell: (row) => (
        <>
          <Button
            disabled={held.includes(row.id)}
            reason={inUseReason}
            onClick={() => {
              openDialog((close) => <ReplaceKey replaced={row} close={close} reload={reload} />);
            }}
          >
            Replace
          </Button>{" "}
          <Button kind="danger" onClick={() => confirmRevoking(row, reload)}>
            Revoke
          </Button>
        </>
      ),
    },
  ];
}

function confirmRevoking({ id, name, prefix }: API.Key, reload: () => Promise<void>) {
  confirm({
    title: `Revoke ${name}?`,
    text: (
      <>
        The key <code>{prefix}…</code>, and any key created with it, stops working at once. This cannot be undone.
      </>
    ),
    action: "Revoke",
    typed: name,
    run: async () => {
      await remove(path("keys", id));
      await reload();
    },
  });
}

/** Agents by their names, where the person may see them. */
const Agents = ({ ids }: { ids: string[] }) => (
  <Name>{ids.map((id) => session.value!.agents.find((agent) => agent.id === id)?.name ?? id).join(", ")}</Name>
);

type ReplaceKeyProps = { replaced: API.Key; close: () => void; reload: () => Promise<void> };

/** Creates a key that is like another one, which is to be revoked later. */
function ReplaceKey({ replaced, close, reload }: ReplaceKeyProps) {
  const { name, role, agents, prefix, expires_at } = replaced;
  const run = async () => {
    const created = await post("keys", { name, role, agents, expires_at: expires_at ?? undefined });
    const text = `It's shown only once. Give it to the program, then revoke the old key, ${prefix}…`;
    void showOnce("The new key", text, created.key).then(reload);
  };
  return (
    <FormDialog title={`Replace ${name}?`} close={close} action="Create the new key" initial={{}} run={run}>
      {() => (
        <p>
          A new key with the same name, role, agents and end is created. The old one works until you revoke it, so
          programs can be switched over first.
        </p>
      )}
    </FormDialog>
  );
}

type NewKeyProps = {
  close: () => void;
  /** The server has no key yet, and is open until it has one. */
  first: boolean;
  /** What callers without a key may read is to be decided with the key. */
  asks: boolean;
  /** What those can do who have no key. */
  anonymousAccess: string;
  agents: API.Agent[];
  done: () => Promise<void>;
};

function NewKey({ close, first, asks, anonymousAccess, agents, done }: NewKeyProps) {
  const initial = {
    name: first ? "console" : "",
    role: first ? "owner" : "viewer",
    agents: "*",
    expires_at: "",
    anonymousAccess: "",
    sure: !first,
  };
  const run = async ({ name, role, agents, expires_at, anonymousAccess }: typeof initial) => {
    const created = await post("keys", {
      name,
      role,
      agents: [agents],
      expires_at: momentOf("expires_at", expires_at, deviceZone()),
      default_role: anonymousAccess ? (anonymousAccess as "viewer" | "none") : undefined,
    });
    if (first) key.set(created.key); // else this tab would be shut out
    const use = first ? " This tab uses it until the tab is closed." : "";
    const text = `It's shown only once. Store it with your other secrets.${use}`;
    void showOnce("The key", text, created.key).then(async () => {
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
      ready={({ sure, anonymousAccess }) =>
        asks && anonymousAccess === "" ? "Choose what callers without a key may do." : sure || "Confirm that it closes."
      }
    >
      {(form) => (
        <>
          {first ? (
            <div class="card warn stack">
              <p>{closingText}</p>
              {!asks && <p>{anonymousAccess}</p>}
            </div>
          ) : (
            <p class="muted">{anonymousAccess}</p>
          )}
          <NewKeyFields form={form} first={first} agents={agents} />
          {asks && (
            <SelectField
              label="May callers without a key read the agent default?"
              options={anonymousOptions}
              hint="Its conversations and contacts included."
              {...form.choice("anonymousAccess")}
            />
          )}
          {first && (
            <Switch
              label="I understand that this closes the server for good"
              checked={form.values.sure}
              onChange={(on) => form.set("sure", on)}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}

type NewKeyValues = {
  name: string;
  role: string;
  agents: string;
  expires_at: string;
  anonymousAccess: string;
  sure: boolean;
};

type FieldsProps = {
  form: FormState<NewKeyValues>;
  first: boolean;
  agents: API.Agent[];
};

function NewKeyFields({ form, first, agents }: FieldsProps) {
  const ownerHint = "An owner key for all agents can create other keys; without one, only the server's operator can.";
  return (
    <>
      <TextField label="Name" required autoFocus hint="What the key is for." {...form.text("name")} />
      <SelectField label="Role" options={roles} hint={first ? ownerHint : undefined} {...form.choice("role")} />
      <SelectField
        label="Agents"
        options={[["*", "All agents"], ...agents.map(({ id, name }): [string, string] => [id, name])]}
        {...form.choice("agents")}
      />
      <DateTimeField label="Ends" usual="23:59" hint="Empty: never." {...form.text("expires_at")} />
    </>
  );
}
