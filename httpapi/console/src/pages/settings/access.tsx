// Who may use the agent, and with which role.
import { agent, loadSession, post, put, remove, session, anonymousAccessText, useQuery, type API } from "../../data";
import {
  Badge,
  Button,
  confirm,
  FormDialog,
  Icon,
  Load,
  Name,
  openDialog,
  SelectField,
  Table,
  showToast,
  TextField,
  When,
  type Column,
} from "../../ui";
import { agentAt } from "./paths";

const roles: [string, string][] = [
  ["viewer", "Viewer: read-only"],
  ["admin", "Admin: can change everything"],
  ["owner", "Owner: can also manage roles and delete it"],
];

/** The tab of access and keys. */
export function Access() {
  return (
    <>
      <People />
      <section class="card stack">
        <h2>Everyone else</h2>
        <p>
          {session.value?.open
            ? "This server is open: anyone who reaches it acts as owner until the first API key is created."
            : anonymousAccessText(session.value?.default_role)}
        </p>
        <div class="row">
          <a class="button" href="#/keys">
            <Icon name="KeyRound" size={16} />
            <span>API keys</span>
          </a>
        </div>
      </section>
    </>
  );
}

function People() {
  const role = agent.value?.role;
  const found = useQuery(agentAt("admins"), { limit: 200 });
  const add = () => {
    openDialog((close) => <AddPerson close={close} done={found.reload} />);
  };
  return (
    <section class="stack">
      <div class="row">
        <h2 class="grow">People</h2>
        <span class="muted">
          Your role: <Badge>{role ?? "none"}</Badge>
        </span>
        {role === "owner" && (
          <Button icon="Plus" onClick={add}>
            Add person
          </Button>
        )}
      </div>
      <Load of={found}>
        {({ admins }) =>
          admins.length ? (
            <Table
              rows={admins}
              keyOf={({ id }) => id}
              columns={columns(
                role === "owner",
                admins.some(({ name }) => name),
                found.reload,
              )}
            />
          ) : (
            <p class="muted">No one has a role yet. Roles apply to people who sign in through an identity proxy.</p>
          )
        }
      </Load>
    </section>
  );
}

function columns(mayChange: boolean, hasNames: boolean, reload: () => Promise<void>): Column<API.Admin>[] {
  const nameColumn: Column<API.Admin> = { title: "Name", cell: ({ name }) => name && <Name>{name}</Name> };
  return [
    { title: "Email", cell: ({ email }) => <Name>{email}</Name> },
    ...(hasNames ? [nameColumn] : []),
    {
      title: "Role",
      cell: (person) => (mayChange ? <RoleSelect person={person} reload={reload} /> : <Badge>{person.role}</Badge>),
    },
    { title: "Since", cell: ({ created_at }) => <When time={created_at} /> },
    {
      title: "",
      class: "actions",
      cell: (person) =>
        mayChange && (
          <Button kind="danger" onClick={() => confirmRemoval(person, reload)}>
            Remove
          </Button>
        ),
    },
  ];
}

type PersonProps = { person: API.Admin; reload: () => Promise<void> };

/** The role of a person; it changes here when the service has stored it. */
function RoleSelect({ person: { id, email, role }, reload }: PersonProps) {
  const change = async (next: string) => {
    await put(agentAt("admins", id), { role: next });
    showToast(`${email} is now ${next === "viewer" ? "a viewer" : `an ${next}`}`);
    await reload();
    await loadSession(); // the role may be one's own
  };
  return (
    <select
      aria-label={`Role of ${email}`}
      value={role}
      onChange={(e) => {
        const next = e.currentTarget.value;
        e.currentTarget.value = role;
        void change(next).catch(showToast);
      }}
    >
      {roles.map(([value, title]) => (
        <option value={value} selected={value === role} title={title}>
          {title.split(":")[0]}
        </option>
      ))}
    </select>
  );
}

function confirmRemoval({ id, email }: API.Admin, reload: () => Promise<void>) {
  confirm({
    title: `Remove ${email}?`,
    text: "They will no longer have access to this agent.",
    action: "Remove",
    run: async () => {
      await remove(agentAt("admins", id));
      await reload();
    },
  });
}

function AddPerson({ close, done }: { close: () => void; done: () => Promise<void> }) {
  const run = async (values: { email: string; role: string }) => {
    await post(agentAt("admins"), values);
    await done();
  };
  return (
    <FormDialog title="Add person" close={close} action="Add" initial={{ email: "", role: "viewer" }} run={run}>
      {(form) => (
        <>
          <TextField label="Email" type="email" autoFocus required {...form.text("email")} />
          <SelectField label="Role" options={roles} {...form.choice("role")} />
        </>
      )}
    </FormDialog>
  );
}
