// The goals of a session: a model pursues them step by step.
import { useState } from "preact/hooks";

import { mayEdit, post, useQuery, type API } from "../../data";
import {
  Badge,
  Button,
  Empty,
  FormDialog,
  Icon,
  Load,
  objectOf,
  openDialog,
  PairsField,
  plural,
  SelectField,
  span,
  Switch,
  TextArea,
  TextField,
  When,
  type Pair,
} from "../../ui";
import { at, stepIcons, toAddress, useReloading } from "./data";
import { TextOrJson } from "./value";

type Browse = API.BrowseDetails;

const reloadDelay = 700; // milliseconds

const states: Record<Browse["status"], [title: string, tone?: "good" | "bad" | "busy" | "warn"]> = {
  running: ["Running", "busy"],
  waiting: ["Waits for a person", "warn"],
  done: ["Done", "good"],
  stuck: ["Stuck", "warn"],
  limit: ["Limit reached", "warn"],
  error: ["Failed", "bad"],
  cancelled: ["Cancelled"],
};

/** The tab of a session's goals; open reports whether the session is open, url is the address of its page. */
export function Goals({ id, open, url }: { id: string; open: boolean; url: string }) {
  const [chosen, setChosen] = useState("");
  const found = useQuery<API.BrowseList>(at(id, "browse"), { limit: 50 });
  useReloading(id, found, reloadDelay);
  const started = async () => {
    setChosen("");
    await found.reload();
  };
  const openForm = () => openDialog((close) => <GoalForm id={id} url={url} close={close} started={started} />);
  const mayStart = mayEdit.value && open;
  return (
    <div class="session-goals">
      <Load of={found}>
        {({ browses }) => {
          const shown = browses.find((browse) => browse.id === chosen) ?? browses[0];
          if (!shown) return <NoGoal openForm={mayStart ? openForm : undefined} />;
          const busy = browses.some((browse) => !browse.ended_at);
          return (
            <>
              <div class="row nowrap">
                {browses.length > 1 && (
                  <SelectField label="Goal" value={shown.id} onChange={setChosen} options={browses.map(optionOf)} />
                )}
                <span class="grow" />
                {mayStart && (
                  <Button
                    icon="Plus"
                    disabled={busy}
                    reason={busy ? "It already has a goal." : undefined}
                    onClick={openForm}
                  >
                    New goal
                  </Button>
                )}
              </div>
              <Goal key={shown.id} session={id} id={shown.id} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

const optionOf = ({ id, goal, status }: API.Browse): [string, string] => {
  const [state] = states[status];
  return [id, `${goal.slice(0, 60)} (${state.toLowerCase()})`];
};

function NoGoal({ openForm }: { openForm?: () => void }) {
  const action = openForm && (
    <Button kind="primary" icon="Play" onClick={openForm}>
      Set a goal
    </Button>
  );
  return (
    <Empty icon="Compass" title="No goal yet" action={action}>
      Describe what you want done. The agent's language model browses on its own; you can watch, stop it or take over.
    </Empty>
  );
}

/** One goal: its state, the steps that were taken, and its result. */
function Goal({ session, id }: { session: string; id: string }) {
  const found = useQuery<Browse>(at(session, "browse", id));
  useReloading(session, found, reloadDelay);
  const stop = async () => {
    await post(at(session, "browse", id, "cancel"));
    await found.reload();
  };
  return (
    <Load of={found}>
      {(browse) => (
        <>
          <p class="goal">
            <bdi>{browse.goal}</bdi>
          </p>
          <GoalState browse={browse} stop={stop} />
          {browse.reason && (
            <p class={browse.status === "error" ? "issue" : "reason"}>
              <bdi>{browse.reason}</bdi>
            </p>
          )}
          <ol class="plain steps" aria-live="polite">
            {browse.steps.map((step) => (
              <StepItem key={step.step} step={step} />
            ))}
            {browse.status === "running" && (
              <li class="muted">
                <Icon name="Ellipsis" size={14} />
                Reading the page
              </li>
            )}
          </ol>
          {browse.result !== null && (
            <section class="result" aria-label="Result">
              <h2>Result</h2>
              <TextOrJson value={browse.result} />
            </section>
          )}
          <p class="muted small">
            May visit <bdi>{browse.hosts.join(", ")}</bdi>
          </p>
        </>
      )}
    </Load>
  );
}

function GoalState({ browse, stop }: { browse: Browse; stop: () => Promise<void> }) {
  const [title, tone] = states[browse.status];
  const tokens = browse.input_tokens + browse.output_tokens;
  return (
    <div class="row small">
      <Badge tone={tone}>{title}</Badge>
      <span class="muted grow">
        {browse.step_count} of {plural(browse.max_steps, "step")} · {plural(tokens, "token")} ·{" "}
        <When time={browse.ended_at ?? browse.created_at} />
      </span>
      {!browse.ended_at && mayEdit.value && (
        <Button icon="Square" onClick={stop}>
          Stop
        </Button>
      )}
    </div>
  );
}

function StepItem({ step }: { step: API.BrowseStep }) {
  return (
    <li class={step.error ? "failed" : ""} title={`${step.url}\n${step.selector ?? ""}`}>
      <Icon
        name={step.error ? "CircleAlert" : (stepIcons[step.action] ?? "Check")}
        size={14}
        label={step.error ? "Failed" : step.action}
      />
      <span class="grow">
        <bdi>{step.description || step.action}</bdi>
        {step.text && (
          <>
            {" "}
            <bdi class="muted">{step.text}</bdi>
          </>
        )}
        {step.error && (
          <span class="issue">
            <bdi>{step.error}</bdi>
          </span>
        )}
      </span>
      <span class="muted small">{span(step.duration_ms)}</span>
    </li>
  );
}

type GoalFormProps = { id: string; url: string; close: () => void; started: () => Promise<void> };

/** The dialog that sets a goal; url is the address of the session's page. */
function GoalForm({ id, url, close, started }: GoalFormProps) {
  const initial = { goal: "", url: "", hosts: "", max_steps: "25", takeover: true, variables: [] as Pair[] };
  const run = async (values: typeof initial) => {
    const hosts = values.hosts.split(/[\s,]+/).filter(Boolean);
    await post(at(id, "browse"), {
      goal: values.goal,
      takeover: values.takeover,
      max_steps: Number(values.max_steps),
      variables: objectOf(values.variables),
      ...(values.url.trim() && { url: toAddress(values.url) }),
      ...(hosts.length && { hosts }),
    });
    await started();
  };
  const currentPage = /^https?:/.test(url) ? url : "";
  return (
    <FormDialog title="Set a goal" action="Start" close={close} run={run} initial={initial}>
      {(form) => (
        <>
          <TextArea
            label="Goal"
            rows={3}
            placeholder="Find the latest invoice and report its total."
            {...form.text("goal")}
          />
          <TextField
            label="First page"
            placeholder={currentPage || "example.com"}
            hint={currentPage ? "Empty: the current page." : undefined}
            {...form.text("url")}
          />
          <Switch
            label="Ask for a person when stuck"
            hint="such as for a captcha; afterwards it goes on"
            checked={form.values.takeover}
            onChange={(on) => form.set("takeover", on)}
          />
          <details>
            <summary>More options</summary>
            <div class="stack">
              <TextField
                label="Hosts"
                placeholder="example.com, *.example.com"
                hint="Where it may go. Empty: the site of the first page."
                {...form.text("hosts")}
              />
              <PairsField
                label="Variables"
                pairs={form.values.variables}
                onChange={(pairs) => form.set("variables", pairs)}
                hint="Values the model types as %name% without seeing them, such as a login. They aren't stored."
                error={form.issue("variables")}
                placeholder={["password", "Value"]}
              />
              <TextField label="Steps" type="number" hint="At most 100." {...form.text("max_steps")} />
            </div>
          </details>
        </>
      )}
    </FormDialog>
  );
}
