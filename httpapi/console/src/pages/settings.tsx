// Settings: the model, the agent itself, who may use it, and copies of it.
import {
  agent,
  agentId,
  type API,
  ApiError,
  download,
  go,
  href,
  loadSession,
  mayEdit,
  path,
  post,
  put,
  remove,
  route,
  session,
  strangersText,
  useQuery,
} from "../data";
import {
  Badge,
  Button,
  confirm,
  CopyButton,
  Empty,
  FormDialog,
  Icon,
  intoView,
  LinkButton,
  Load,
  Name,
  openDialog,
  SelectField,
  span,
  Switch,
  Table,
  tell,
  TextArea,
  TextField,
  useForm,
  When,
} from "../ui";
import { type FormProps, ModelForm, saveSettings } from "../parts/model";

const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, ...more);

const tabs: [string, string][] = [
  ["model", "Model"],
  ["agent", "Agent"],
  ["access", "Access & keys"],
  ["copies", "Backup & copies"],
];

export default function Settings() {
  const tab = route.value.rest[0] ?? "model";
  return (
    <div class="page settings" key={tab}>
      <h1 tabIndex={-1}>Settings</h1>
      <nav class="tabs" aria-label="Settings">
        {tabs.map(([id, title]) => (
          <a
            ref={tab === id ? intoView : undefined}
            href={href(agentId.value, "settings", id)}
            aria-current={tab === id ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab === "model" && <Model />}
      {tab === "agent" && <Agent />}
      {tab === "access" && <Access />}
      {tab === "copies" && <Copies />}
      {!tabs.some(([id]) => id === tab) && (
        <Empty
          icon="CircleHelp"
          title="Page not found"
          action={<LinkButton href={href(agentId.value, "settings")}>All settings</LinkButton>}
        />
      )}
    </div>
  );
}

function Model() {
  const found = useQuery(at("settings"));
  return (
    <Load of={found} lines={8}>
      {(s) => (
        <>
          <ModelForm key={s.updated_at} s={s} done={found.reload} />
          <AnswerForm key={`a${s.updated_at}`} s={s} done={found.reload} />
          <EmbeddingForm key={`e${s.updated_at}`} s={s} done={found.reload} />
        </>
      )}
    </Load>
  );
}

function AnswerForm({ s, done }: FormProps) {
  const names = ["system_prompt", "llm_temperature", "llm_max_tokens", "auto_reply", "chat_browser"] as const;
  const form = useForm(Object.fromEntries(names.map((n) => [n, s[n] ?? ""])));
  const number = (name: string) => ({
    value: String(form.values[name] ?? ""),
    onInput: (v: string) => form.set(name, v === "" ? "" : Number(v)),
    error: form.issue(name),
  });
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        saveSettings(form, s, names, done).catch(() => {});
      }}
    >
      <h2>Answers</h2>
      <TextArea
        label="System prompt"
        rows={4}
        disabled={!mayEdit.value}
        hint="Who the agent is and how it should answer."
        {...form.text("system_prompt")}
      />
      <div class="row">
        <TextField label="Temperature" type="number" disabled={!mayEdit.value} {...number("llm_temperature")} />
        <TextField
          label="Maximum answer length, in tokens"
          type="number"
          disabled={!mayEdit.value}
          hint="0: the provider's default."
          {...number("llm_max_tokens")}
        />
      </div>
      <Switch
        label="Answer messages on channels automatically"
        hint="When no workflow handles them."
        disabled={!mayEdit.value}
        checked={Boolean(form.values.auto_reply)}
        onChange={(on) => form.set("auto_reply", on)}
      />
      <Switch
        label="Use the browser while answering"
        hint="The model may open pages, click and type, also in automatic replies, so anyone who writes to the agent can make it browse. Uses time and tokens."
        disabled={!mayEdit.value}
        checked={Boolean(form.values.chat_browser)}
        onChange={(on) => form.set("chat_browser", on)}
      />
      {mayEdit.value && (
        <div class="row end">
          <Button kind="primary" submit>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}

function EmbeddingForm({ s, done }: FormProps) {
  const form = useForm({
    embedding_provider: s.embedding_provider || "local",
    embedding_model: s.embedding_model,
    embedding_base_url: s.embedding_base_url,
    embedding_api_key: "",
    embedding_query_prefix: s.embedding_query_prefix ?? "",
    embedding_passage_prefix: s.embedding_passage_prefix ?? "",
  });
  const names = [
    "embedding_provider",
    "embedding_model",
    "embedding_base_url",
    "embedding_query_prefix",
    "embedding_passage_prefix",
  ];
  const installed = useQuery<{ models: { name: string; kind: string; dimensions: number }[] }>(
    mayEdit.value ? at("embedding-models") : null,
  );
  const embedders = (installed.data.value?.models ?? [])
    .filter((m) => m.kind === "embedder")
    .map((m): [string, string] => [m.name, `${m.name} (${m.dimensions} dimensions)`]);
  const provider = form.values.embedding_provider;
  const kinds: [string, string][] = [
    ["local", "Built-in: English, no key, no network"],
    ["openai-compatible", "A provider (OpenAI-compatible)"],
  ];
  if (embedders.length || provider === "file") kinds.splice(1, 0, ["file", "A model installed on this server"]);
  if (
    provider === "file" &&
    s.embedding_model &&
    s.embedding_provider === "file" &&
    installed.data.value &&
    !embedders.some(([name]) => name === s.embedding_model)
  )
    embedders.unshift([s.embedding_model, `${s.embedding_model} (no longer installed)`]);
  const choose = (to: string) => {
    form.set("embedding_provider", to as API.Settings["embedding_provider"]);
    if (to === "file" && !embedders.some(([name]) => name === form.values.embedding_model))
      form.set("embedding_model", embedders[0]?.[0] ?? "");
    if (to === "openai-compatible" && provider === "file") form.set("embedding_model", "");
  };
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        saveSettings(form, s, form.values.embedding_api_key ? [...names, "embedding_api_key"] : names, done).catch(
          () => {},
        );
      }}
    >
      <h2>Search by meaning</h2>
      <SelectField
        label="Embedding"
        disabled={!mayEdit.value}
        options={kinds}
        {...form.choice("embedding_provider")}
        onChange={choose}
      />
      {provider === "file" && (
        <SelectField label="Model" disabled={!mayEdit.value} options={embedders} {...form.choice("embedding_model")} />
      )}
      {provider === "openai-compatible" && (
        <>
          <TextField
            label="API key"
            type="password"
            placeholder={
              s.configured_credentials?.includes("embedding_api_key") ? "Saved; enter a new one to replace it" : ""
            }
            {...form.text("embedding_api_key")}
          />
          <TextField label="Address" placeholder="https://…/v1" {...form.text("embedding_base_url")} />
          <TextField label="Model" {...form.text("embedding_model")} />
          <details>
            <summary>Prefixes</summary>
            <div class="stack">
              <TextField
                label="Before each query"
                placeholder="query: "
                hint="Some models expect prefixes. Empty: chosen by the model's name."
                {...form.text("embedding_query_prefix")}
              />
              <TextField
                label="Before each passage"
                placeholder="passage: "
                {...form.text("embedding_passage_prefix")}
              />
            </div>
          </details>
        </>
      )}
      <p class="muted small">
        {provider === "openai-compatible" ? (
          "Changing the model marks sources as stale until they are embedded again."
        ) : (
          <>
            After a change, sources are embedded again in the background and stay searchable.
            {embedders.length ? (
              ""
            ) : (
              <>
                {" "}
                <code>satchel model install multilingual-e5-small</code> on the server adds a model for a hundred
                languages.
              </>
            )}
          </>
        )}
      </p>
      {mayEdit.value && (
        <div class="row end">
          <Button kind="primary" submit>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}

function Agent() {
  const found = useQuery(at());
  const settings = useQuery(at("settings"));
  return (
    <Load of={found}>
      {(a) => (
        <>
          <AboutForm
            key={a.updated_at}
            a={a}
            done={async () => {
              await Promise.all([found.reload(), loadSession()]);
            }}
          />
          {settings.data.value && (
            <TimesForm key={settings.data.value.updated_at} s={settings.data.value} done={settings.reload} />
          )}
          <dl class="facts-list card">
            <dt>ID</dt>
            <dd>
              <code>{a.id}</code> <CopyButton text={a.id} />
            </dd>
            <dt>Owner</dt>
            <dd>{a.owner_email ? <Name>{a.owner_email}</Name> : "None: created without identity"}</dd>
            <dt>Created</dt>
            <dd>
              <When time={a.created_at} full />
            </dd>
            <dt>Server</dt>
            <dd>Satchel {session.value?.version}</dd>
          </dl>
          {a.role === "owner" && a.id !== "default" && (
            <section class="card stack">
              <h2>Delete</h2>
              <p class="muted">
                Its knowledge, contacts, conversations and everything else are deleted. This cannot be undone.
              </p>
              <div class="row">
                <Button
                  kind="danger"
                  icon="Trash2"
                  onClick={() =>
                    confirm({
                      title: `Delete ${a.name}?`,
                      text: "This cannot be undone.",
                      action: "Delete",
                      typed: a.name,
                      run: async () => {
                        await remove(at());
                        await loadSession();
                        go("#/agents");
                      },
                    })
                  }
                >
                  Delete agent
                </Button>
              </div>
            </section>
          )}
        </>
      )}
    </Load>
  );
}

function AboutForm({ a, done }: { a: API.AgentDetails; done: () => Promise<void> }) {
  const form = useForm({ name: a.name, description: a.description });
  const set = async (change: Record<string, unknown>) => {
    form.setIssues({});
    try {
      await put(at(), change);
      tell("Saved");
      await done();
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
      else tell(error);
    }
  };
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        void set(form.values);
      }}
    >
      <div class="row">
        <h2 class="grow">About</h2>
        <Badge>{a.status}</Badge>
      </div>
      <TextField
        label="Name"
        required
        disabled={!mayEdit.value}
        hint="Letters, digits and single hyphens."
        {...form.text("name")}
      />
      <TextArea label="Description" rows={2} disabled={!mayEdit.value} {...form.text("description")} />
      {a.status === "paused" && (
        <p class="muted">While paused, triggers, schedules and automatic replies stop; the API keeps working.</p>
      )}
      {mayEdit.value && (
        <div class="row end">
          {a.status === "active" ? (
            <Button icon="Pause" onClick={() => set({ status: "paused" })}>
              Pause
            </Button>
          ) : (
            <Button icon="Play" onClick={() => set({ status: "active" })}>
              {a.status === "paused" ? "Resume" : "Enable"}
            </Button>
          )}
          <Button kind="primary" submit>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}

function TimesForm({ s, done }: FormProps) {
  const form = useForm({ timezone: s.timezone, retention_days: s.retention_days });
  const zones: string[] = Intl.supportedValuesOf?.("timeZone") ?? [];
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        saveSettings(form, s, ["timezone", "retention_days"], done).catch(() => {});
      }}
    >
      <h2>Time</h2>
      <TextField
        label="Time zone"
        list={zones}
        disabled={!mayEdit.value}
        hint="Such as Europe/Berlin. Used by schedules and the calendar."
        {...form.text("timezone")}
      />
      <TextField
        label="Days to keep logs and finished work"
        type="number"
        disabled={!mayEdit.value}
        value={String(form.values.retention_days)}
        onInput={(v) => form.set("retention_days", Number(v))}
        error={form.issue("retention_days")}
      />
      {mayEdit.value && (
        <div class="row end">
          <Button kind="primary" submit>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}

const roles: [string, string][] = [
  ["viewer", "Viewer: read-only"],
  ["admin", "Admin: can change everything"],
  ["owner", "Owner: can also manage roles and delete it"],
];

function Access() {
  const role = agent.value?.role;
  const found = useQuery(at("admins"), { limit: 200 });
  const change = async (a: API.Admin, to: string) => {
    await put(at("admins", a.id), { role: to });
    tell(`${a.email} is now ${to === "viewer" ? "a viewer" : `an ${to}`}`);
    await found.reload();
    await loadSession(); // it may be one's own
  };
  const give = () =>
    openDialog((close) => (
      <FormDialog
        title="Add person"
        close={close}
        action="Add"
        initial={{ email: "", role: "viewer" }}
        run={async (v) => {
          await post(at("admins"), v);
          await found.reload();
        }}
      >
        {(f) => (
          <>
            <TextField label="Email" type="email" autoFocus required {...f.text("email")} />
            <SelectField label="Role" options={roles} {...f.choice("role")} />
          </>
        )}
      </FormDialog>
    ));
  return (
    <>
      <section class="stack">
        <div class="row">
          <h2 class="grow">People</h2>
          <span class="muted">
            Your role: <Badge>{role ?? "none"}</Badge>
          </span>
          {role === "owner" && (
            <Button
              icon="Plus"
              onClick={() => {
                give();
              }}
            >
              Add person
            </Button>
          )}
        </div>
        <Load of={found}>
          {({ admins }) =>
            admins.length ? (
              <Table
                rows={admins}
                keyOf={(a) => a.id}
                columns={[
                  { title: "Email", cell: (a) => <Name>{a.email}</Name> },
                  ...(admins.some((a) => a.name)
                    ? [{ title: "Name", cell: (a: API.Admin) => a.name && <Name>{a.name}</Name> }]
                    : []),
                  {
                    title: "Role",
                    cell: (a) =>
                      role === "owner" ? (
                        <select
                          aria-label={`Role of ${a.email}`}
                          value={a.role}
                          onChange={(e) => {
                            const to = e.currentTarget.value;
                            e.currentTarget.value = a.role;
                            void change(a, to).catch(tell);
                          }}
                        >
                          {roles.map(([r, title]) => (
                            <option value={r} selected={r === a.role} title={title}>
                              {title.split(":")[0]}
                            </option>
                          ))}
                        </select>
                      ) : (
                        <Badge>{a.role}</Badge>
                      ),
                  },
                  { title: "Since", cell: (a) => <When time={a.created_at} /> },
                  {
                    title: "",
                    class: "actions",
                    cell: (a) =>
                      role === "owner" && (
                        <Button
                          kind="danger"
                          onClick={() =>
                            confirm({
                              title: `Remove ${a.email}?`,
                              text: "They will no longer have access to this agent.",
                              action: "Remove",
                              run: async () => {
                                await remove(at("admins", a.id));
                                await found.reload();
                              },
                            })
                          }
                        >
                          Remove
                        </Button>
                      ),
                  },
                ]}
              />
            ) : (
              <p class="muted">No one has a role yet. Roles apply to people who sign in through an identity proxy.</p>
            )
          }
        </Load>
      </section>
      <section class="card stack">
        <h2>Everyone else</h2>
        <p>
          {session.value?.open
            ? "This server is open: anyone who reaches it acts as owner until the first API key is created."
            : strangersText(session.value?.default_role)}
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

function Copies() {
  const a = agent.value;
  const may = mayEdit.value;
  const copy = () =>
    openDialog((close) => (
      <FormDialog
        title={`Copy ${a?.name}`}
        close={close}
        action="Copy"
        initial={{ name: `${a?.name}-copy` }}
        run={async (v) => {
          const from = location.hash;
          const made = await post(at("fork"), v);
          tell(`${made.name} is ready, and paused.`);
          await loadSession();
          if (location.hash === from) go(href(made.id));
        }}
      >
        {(f) => <TextField label="Name of the copy" required autoFocus {...f.text("name")} />}
      </FormDialog>
    ));
  return (
    <>
      <section class="card stack">
        <h2>Backup</h2>
        <p class="muted">
          A consistent copy of the agent's file, made while it runs. It contains everything; credentials stay encrypted
          with the server's master key.
        </p>
        <div class="row">
          <Button
            icon="Download"
            kind="primary"
            disabled={!may}
            reason="Viewers can't download backups."
            onClick={() => download("POST", at("backup"))}
          >
            Download backup
          </Button>
        </div>
      </section>
      <section class="card stack">
        <h2>Copy</h2>
        <p class="muted">Another agent with the same content, paused so that nothing is sent twice.</p>
        <div class="row">
          <Button
            icon="Copy"
            disabled={!may}
            reason="Viewers can't copy agents."
            onClick={() => {
              copy();
            }}
          >
            Copy agent
          </Button>
        </div>
      </section>
      <section class="card stack">
        <h2>Restore a backup</h2>
        <p class="muted">It becomes a new, paused agent.</p>
        <div class="row">
          <a class="button" href="#/agents">
            <Icon name="Upload" size={16} />
            <span>Import on the agents page</span>
          </a>
        </div>
      </section>
    </>
  );
}
