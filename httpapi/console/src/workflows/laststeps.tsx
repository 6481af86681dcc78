// The last steps of a template: its gateways are verified, its source is read,
// then it goes live.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { absolute, agent, agentId, get, href, mayEdit, onChange, path, post, put, type API, asError } from "../data";
import { Badge, Button, CopyButton, ErrorCard, Icon, Name, Skeleton, TextField, tell, type IconName } from "../ui";
import type { Made } from "../pages/templates";

const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, ...more);

type Records = { workflow: API.Workflow; gateways: API.Gateway[]; sources: API.Source[]; schedules: API.Schedule[] };

export function LastSteps({ made }: { made: Made }) {
  const [records, setRecords] = useState<Records>();
  const [error, setError] = useState<Error>();
  const load = async () => {
    try {
      setError(undefined);
      const many = <const K extends string>(kind: K, ids: string[]) => Promise.all(ids.map((id) => get(at(kind, id))));
      const [workflow, gateways, sources, schedules] = await Promise.all([
        get(at("workflows", made.workflow)),
        many("gateways", made.gateways),
        many("sources", made.sources),
        many("schedules", made.schedules),
      ]);
      setRecords({ workflow, gateways, sources, schedules });
    } catch (e) {
      setError(asError(e));
    }
  };
  useEffect(() => {
    void load();
  }, [made.workflow]);
  useEffect(
    () =>
      onChange("source", (c) => {
        if (made.sources.includes(c.id)) void load();
      }),
    [made.workflow],
  );
  if (error) return <ErrorCard error={error} retry={load} />;
  if (!records) return <Skeleton />;
  return <Steps records={records} load={load} />;
}

function Step({
  done,
  bad,
  icon,
  title,
  children,
}: {
  done: boolean;
  bad?: boolean;
  icon: IconName;
  title: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <li class={`last-step ${done ? "done" : ""}`}>
      <Icon name={done ? "CircleCheck" : bad ? "CircleAlert" : icon} size={20} label={done ? "Done" : undefined} />
      <div class="grow stack tight">
        <strong>{title}</strong>
        {children}
      </div>
    </li>
  );
}

function Steps({ records, load }: { records: Records; load: () => Promise<void> }) {
  const { workflow, gateways, sources, schedules } = records;
  const may = mayEdit.value;
  const live = workflow.status === "active" && schedules.every((s) => s.status === "active");
  const ready = gateways.every((g) => g.status === "active");
  const trigger = workflow.nodes.find((n) => n.type === "trigger")?.data ?? {};
  const goLive = async () => {
    await put(at("workflows", workflow.id), { status: "active" });
    for (const s of schedules) await put(at("schedules", s.id), { status: "active" });
    tell("It is live");
    await load();
  };
  return (
    <section class="stack" aria-label="Last steps">
      <h2>{live ? "It is live" : "Last steps"}</h2>
      <ol class="last-steps">
        {gateways.map((g) => (
          <GatewayStep key={g.id} gateway={g} receives={trigger.gateway_id === g.id} load={load} />
        ))}
        {sources.map((s) => (
          <Step
            key={s.id}
            done={s.status === "ready"}
            bad={s.status === "error"}
            icon="BookOpen"
            title={
              <>
                Read <Name>{s.name}</Name>
              </>
            }
          >
            {s.status === "error" ? (
              <p class="issue small">
                <bdi>{s.error?.message}</bdi>
              </p>
            ) : (
              s.status !== "ready" && <p class="muted small">Processing…</p>
            )}
          </Step>
        ))}
        {trigger.event === "webhook" && <HookStep workflow={workflow} live={live} />}
        <Step done={live} icon="Zap" title="Go live">
          {!live && (
            <p class="muted small">
              {schedules.length ? "The workflow and its schedule become active." : "The workflow becomes active."}
              {!ready && " Its channel is verified first."}
            </p>
          )}
          {!live && (
            <div class="row">
              <Button kind="primary" disabled={!may || !ready} onClick={goLive}>
                Go live
              </Button>
            </div>
          )}
        </Step>
      </ol>
      <div class="row">
        <a class="button" href={href(agentId.value, "workflows", workflow.id)}>
          Open the workflow
        </a>
        {live && (
          <a
            class="button"
            href={`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(workflow.id)}`}
          >
            Executions
          </a>
        )}
      </div>
    </section>
  );
}

/** Verifies a gateway at once; one that receives is registered with its platform. */
function GatewayStep({
  gateway,
  receives,
  load,
}: {
  gateway: API.Gateway;
  receives: boolean;
  load: () => Promise<void>;
}) {
  const [state, setState] = useState<{ busy?: boolean; error?: string; instructions?: string }>({});
  const [token, setToken] = useState("");
  const active = gateway.status === "active";
  const verify = async () => {
    setState({ busy: true });
    try {
      if (token)
        await put(at("gateways", gateway.id), {
          config: {
            [gateway.type === "email"
              ? "apiKey"
              : gateway.type === "sms" || gateway.type === "chatbot_b"
                ? "authToken"
                : "botToken"]: token,
          },
        });
      const answer = await post(at("gateways", gateway.id, "verify"));
      if (!answer.success) {
        setState({ error: answer.error });
        return;
      }
      const registered = receives
        ? await post(at("gateways", gateway.id, "webhook", "register")).catch((e) => ({
            instructions: asError(e).message,
            error: "",
          }))
        : undefined;
      setState({ instructions: registered?.instructions ?? registered?.error });
      setToken("");
      await load();
    } catch (e) {
      setState({ error: asError(e).message });
    }
  };
  useEffect(() => {
    if (!active && mayEdit.value) void verify();
  }, []);
  return (
    <Step
      done={active}
      bad={Boolean(state.error)}
      icon="Plug"
      title={
        <>
          Verify <Name>{gateway.name}</Name>
        </>
      }
    >
      {state.busy && <p class="muted small">Verifying…</p>}
      {state.error && (
        <p class="issue small" role="alert">
          <bdi>{state.error}</bdi>
        </p>
      )}
      {state.instructions && (
        <p class="muted small">
          <bdi>{state.instructions}</bdi>
        </p>
      )}
      {!active && !state.busy && (
        <form
          class="stack tight"
          onSubmit={(e) => {
            e.preventDefault();
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
      )}
    </Step>
  );
}

function HookStep({ workflow, live }: { workflow: API.Workflow; live: boolean }) {
  const address = absolute("agents", agent.value?.id ?? agentId.value, "hooks", workflow.id);
  return (
    <Step done={false} icon="Webhook" title="Call the webhook">
      <p class="row nowrap copy">
        <code class="grow hook-address">{address}</code>
        <CopyButton text={address} />
      </p>
      {!live && <p class="muted small">It answers once the workflow is live.</p>}
    </Step>
  );
}
