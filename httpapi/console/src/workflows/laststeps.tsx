// The last steps of a template: its gateways are verified, its sources are read, and then it goes live.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { absolute, agent, agentId, type API, asError, get, href, mayEdit, onChange, path, post, put } from "../data";
import { Button, CopyButton, ErrorCard, Icon, type IconName, Name, Skeleton, showToast, TextField } from "../ui";

const agentPath = <const M extends string[]>(...more: M) => path("agents", agentId.value, ...more);

/** The ids of what a template was set up as, in the address. */
export type CreatedRecords = { workflow: string; gateways: string[]; sources: string[]; schedules: string[] };

type Records = { workflow: API.Workflow; gateways: API.Gateway[]; sources: API.Source[]; schedules: API.Schedule[] };

async function loadRecords(created: CreatedRecords): Promise<Records> {
  const getAll = <const K extends string>(kind: K, ids: string[]) =>
    Promise.all(ids.map((id) => get(agentPath(kind, id))));
  const [workflow, gateways, sources, schedules] = await Promise.all([
    get(agentPath("workflows", created.workflow)),
    getAll("gateways", created.gateways),
    getAll("sources", created.sources),
    getAll("schedules", created.schedules),
  ]);
  return { workflow, gateways, sources, schedules };
}

/** The last steps of the records that a template made. */
export function LastSteps({ created }: { created: CreatedRecords }) {
  const [records, setRecords] = useState<Records>();
  const [error, setError] = useState<Error>();
  const load = async () => {
    try {
      setError(undefined);
      setRecords(await loadRecords(created));
    } catch (thrown) {
      setError(asError(thrown));
    }
  };
  useEffect(() => {
    void load();
  }, [created.workflow]);
  useEffect(
    () =>
      onChange("source", ({ id }) => {
        if (created.sources.includes(id)) void load();
      }),
    [created.workflow],
  );
  if (error) return <ErrorCard error={error} retry={load} />;
  if (!records) return <Skeleton />;
  return <Steps records={records} load={load} />;
}

type StepProps = {
  state: "open" | "failed" | "done";
  /** The icon of an open step. */
  icon: IconName;
  title: ComponentChildren;
  children?: ComponentChildren;
};

function Step({ state, icon, title, children }: StepProps) {
  const icons: Record<StepProps["state"], IconName> = { open: icon, failed: "CircleAlert", done: "CircleCheck" };
  const isDone = state === "done";
  return (
    <li class={`last-step ${isDone ? "done" : ""}`}>
      <Icon name={icons[state]} size={20} label={isDone ? "Done" : undefined} />
      <div class="grow stack tight">
        <strong>{title}</strong>
        {children}
      </div>
    </li>
  );
}

type StepsProps = { records: Records; load: () => Promise<void> };

function Steps({ records, load }: StepsProps) {
  const { workflow, gateways, sources, schedules } = records;
  const live = workflow.status === "active" && schedules.every((schedule) => schedule.status === "active");
  const trigger = workflow.nodes.find((node) => node.type === "trigger")?.data ?? {};
  const workflows = href(agentId.value, "workflows");
  return (
    <section class="stack" aria-label="Last steps">
      <h2>{live ? "It is live" : "Last steps"}</h2>
      <ol class="last-steps">
        {gateways.map((gateway) => (
          <GatewayStep key={gateway.id} gateway={gateway} receives={trigger.gateway_id === gateway.id} load={load} />
        ))}
        {sources.map((source) => (
          <SourceStep key={source.id} source={source} />
        ))}
        {trigger.event === "webhook" && <IncomingWebhookStep workflow={workflow} live={live} />}
        {live ? <Step state="done" icon="Zap" title="Go live" /> : <GoLiveStep records={records} load={load} />}
      </ol>
      <div class="row">
        <a class="button" href={href(agentId.value, "workflows", workflow.id)}>
          Open the workflow
        </a>
        {live && (
          <a class="button" href={`${workflows}?tab=executions&workflow=${encodeURIComponent(workflow.id)}`}>
            Executions
          </a>
        )}
      </div>
    </section>
  );
}

function SourceStep({ source: { name, status, error } }: { source: API.Source }) {
  const states: Record<string, StepProps["state"]> = { ready: "done", error: "failed" };
  const title = (
    <>
      Read <Name>{name}</Name>
    </>
  );
  return (
    <Step state={states[status] ?? "open"} icon="BookOpen" title={title}>
      {status === "error" && (
        <p class="issue small">
          <bdi>{error?.message}</bdi>
        </p>
      )}
      {status !== "error" && status !== "ready" && <p class="muted small">Processing…</p>}
    </Step>
  );
}

function GoLiveStep({ records: { workflow, gateways, schedules }, load }: StepsProps) {
  const verified = gateways.every((gateway) => gateway.status === "active");
  const goLive = async () => {
    await put(agentPath("workflows", workflow.id), { status: "active" });
    for (const schedule of schedules) await put(agentPath("schedules", schedule.id), { status: "active" });
    showToast("It is live");
    await load();
  };
  return (
    <Step state="open" icon="Zap" title="Go live">
      <p class="muted small">
        {schedules.length ? "The workflow and its schedule become active." : "The workflow becomes active."}
        {!verified && " Its channel is verified first."}
      </p>
      <div class="row">
        <Button kind="primary" disabled={!mayEdit.value || !verified} onClick={goLive}>
          Go live
        </Button>
      </div>
    </Step>
  );
}

/** The setting that has the token of a type of gateway; botToken for the others. */
const tokenFields: Record<string, string> = { email: "apiKey", sms: "authToken", chatbot_b: "authToken" };

/** Registers the webhook of a gateway with its platform; returns what is still to be done there. */
async function register(gateway: API.Gateway): Promise<string | undefined> {
  try {
    const { instructions, error } = await post(agentPath("gateways", gateway.id, "webhook", "register"));
    return instructions ?? error;
  } catch (error) {
    return asError(error).message;
  }
}

type Verification = { busy?: boolean; error?: string; instructions?: string };

type GatewayStepProps = { gateway: API.Gateway; receives: boolean; load: () => Promise<void> };

/** Verifies a gateway when it is first shown, and registers its webhook if messages are received by it. */
function GatewayStep({ gateway, receives, load }: GatewayStepProps) {
  const [{ busy, error, instructions }, setVerification] = useState<Verification>({});
  const [token, setToken] = useState("");
  const active = gateway.status === "active";
  const verify = async () => {
    setVerification({ busy: true });
    try {
      const config = { [tokenFields[gateway.type] ?? "botToken"]: token };
      if (token) await put(agentPath("gateways", gateway.id), { config });
      const result = await post(agentPath("gateways", gateway.id, "verify"));
      if (!result.success) return setVerification({ error: result.error });
      setVerification({ instructions: receives ? await register(gateway) : undefined });
      setToken("");
      await load();
    } catch (thrown) {
      setVerification({ error: asError(thrown).message });
    }
  };
  useEffect(() => {
    if (!active && mayEdit.value) void verify();
  }, []);
  const title = (
    <>
      Verify <Name>{gateway.name}</Name>
    </>
  );
  const unverified = error ? "failed" : "open";
  return (
    <Step state={active ? "done" : unverified} icon="Plug" title={title}>
      {busy && <p class="muted small">Verifying…</p>}
      {error && (
        <p class="issue small" role="alert">
          <bdi>{error}</bdi>
        </p>
      )}
      {instructions && (
        <p class="muted small">
          <bdi>{instructions}</bdi>
        </p>
      )}
      {!active && !busy && <TokenForm token={token} setToken={setToken} verify={verify} />}
    </Step>
  );
}

type TokenFormProps = { token: string; setToken: (token: string) => void; verify: () => Promise<void> };

function TokenForm({ token, setToken, verify }: TokenFormProps) {
  return (
    <form
      class="stack tight"
      onSubmit={(event) => {
        event.preventDefault();
        void verify();
      }}
    >
      <TextField
        label="Another token"
        type="password"
        value={token}
        onInput={setToken}
        hint="Empty: keep the saved one."
      />
      <div class="row">
        <Button submit disabled={!mayEdit.value}>
          Verify again
        </Button>
      </div>
    </form>
  );
}

function IncomingWebhookStep({ workflow, live }: { workflow: API.Workflow; live: boolean }) {
  const address = absolute("agents", agent.value?.id ?? agentId.value, "hooks", workflow.id);
  return (
    <Step state="open" icon="Webhook" title="Call the webhook">
      <p class="row nowrap copy">
        <code class="grow hook-address">{address}</code>
        <CopyButton text={address} />
      </p>
      {!live && <p class="muted small">It answers once the workflow is live.</p>}
    </Step>
  );
}
