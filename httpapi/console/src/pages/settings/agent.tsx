// Settings of the agent itself.
import { ApiError, go, loadSession, mayEdit, put, remove, session, useQuery, type API } from "../../data";
import { Badge, Button, confirm, CopyButton, Load, Name, showToast, TextArea, TextField, When } from "../../ui";
import { changedValues, saveSettings, type FormProps } from "../../parts/model";
import { OwnZone } from "../../parts/ownzone";
import { useFollow } from "../../parts/follow";
import { Unsaved, usePageForm } from "../../parts/pageform";
import { zones } from "../../parts/zone";
import { agentAt } from "./paths";
import { SaveRow } from "./saverow";

/** The tab of the agent. */
export function AgentSettings() {
  const found = useQuery(agentAt());
  const settings = useQuery(agentAt("settings"));
  useFollow("agent", found.reload);
  useFollow("setting", settings.reload);
  const reload = async () => {
    await Promise.all([found.reload(), loadSession()]);
  };
  return (
    <Load of={found}>
      {(agent) => (
        <>
          <AboutForm agent={agent} done={reload} />
          {settings.data.value && <TimeForm s={settings.data.value} done={settings.reload} />}
          <Facts agent={agent} />
          {agent.role === "owner" && agent.id !== "default" && <DeleteAgent agent={agent} />}
        </>
      )}
    </Load>
  );
}

function Facts({ agent: { id, owner_email, created_at } }: { agent: API.AgentDetails }) {
  return (
    <dl class="facts-list card">
      <dt>ID</dt>
      <dd>
        <code>{id}</code> <CopyButton text={id} />
      </dd>
      <dt>Owner</dt>
      <dd>{owner_email ? <Name>{owner_email}</Name> : "None: created without identity"}</dd>
      <dt>Created</dt>
      <dd>
        <When time={created_at} full />
      </dd>
      <dt>Server</dt>
      <dd>Satchel {session.value?.version}</dd>
    </dl>
  );
}

function DeleteAgent({ agent: { name } }: { agent: API.AgentDetails }) {
  const run = async () => {
    await remove(agentAt());
    await loadSession();
    go("#/agents");
  };
  const ask = () =>
    confirm({ title: `Delete ${name}?`, text: "This cannot be undone.", action: "Delete", typed: name, run });
  return (
    <section class="card stack">
      <h2>Delete</h2>
      <p class="muted">
        Its knowledge, contacts, conversations and everything else are deleted. This cannot be undone.
      </p>
      <div class="row">
        <Button kind="danger" icon="Trash2" onClick={ask}>
          Delete agent
        </Button>
      </div>
    </section>
  );
}

function AboutForm({ agent, done }: { agent: API.AgentDetails; done: () => Promise<void> }) {
  const { name, description } = agent;
  const form = usePageForm({ name, description }, "about");
  const save = async (change: Record<string, unknown>) => {
    form.setIssues({});
    try {
      await put(agentAt(), change);
      showToast("Saved");
      await done();
      if (!("status" in change)) form.reset();
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
      else showToast(error);
    }
  };
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        void save(changedValues(form.values, agent, ["name", "description"]));
      }}
    >
      <div class="row">
        <h2 class="grow">About</h2>
        <Badge>{agent.status}</Badge>
      </div>
      <TextField
        label="Name"
        required
        disabled={!mayEdit.value}
        hint="Letters, digits and single hyphens."
        {...form.text("name")}
      />
      <TextArea label="Description" rows={2} disabled={!mayEdit.value} {...form.text("description")} />
      {agent.status === "paused" && (
        <p class="muted">While paused, triggers, schedules and automatic replies stop; the API keeps working.</p>
      )}
      {mayEdit.value && (
        <div class="row end">
          <Unsaved form={form} audit="agent updated" />
          {agent.status === "active" ? (
            <Button icon="Pause" onClick={() => save({ status: "paused" })}>
              Pause
            </Button>
          ) : (
            <Button icon="Play" onClick={() => save({ status: "active" })}>
              {agent.status === "paused" ? "Resume" : "Enable"}
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

function TimeForm({ s: settings, done }: FormProps) {
  const form = usePageForm({ timezone: settings.timezone, retention_days: settings.retention_days }, "time");
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        saveSettings(form, settings, ["timezone", "retention_days"], done).catch(() => {});
      }}
    >
      <h2>Time</h2>
      <TextField
        label="Time zone"
        list={zones()}
        disabled={!mayEdit.value}
        hint="Such as Europe/Berlin. Used by schedules and the calendar."
        {...form.text("timezone")}
      />
      <OwnZone zone={form.values.timezone} use={(timezone) => form.set("timezone", timezone)} />
      <TextField
        label="Days to keep logs and finished work"
        type="number"
        disabled={!mayEdit.value}
        {...form.text("retention_days")}
        onInput={(days) => form.set("retention_days", Number(days))}
      />
      <SaveRow form={form} />
    </form>
  );
}
