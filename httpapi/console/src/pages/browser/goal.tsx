// Goals that a model pursues in a session, with what it does step by step.
import { useEffect, useState } from "preact/hooks";

import { type API, mayEdit, onChange, post, useQuery } from "../../data";
import {
  Badge,
  Button,
  Empty,
  FormDialog,
  Icon,
  JsonTree,
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
import { at, stepIcons, toAddress } from "./data";

type Browse = API.BrowseDetails;
type Step = API.BrowseStep;

const quiet = 700; // milliseconds between two looks while it goes on

const states: Record<Browse["status"], [title: string, tone?: "good" | "bad" | "busy" | "warn"]> = {
  running: ["Running", "busy"],
  waiting: ["Waits for a person", "warn"],
  done: ["Done", "good"],
  stuck: ["Stuck", "warn"],
  limit: ["Limit reached", "warn"],
  error: ["Failed", "bad"],
  cancelled: ["Cancelled"],
};

export function Goals({ id, open, url }: { id: string; open: boolean; url: string }) {
  const [chosen, setChosen] = useState("");
  const found = useQuery<API.BrowseList>(at(id, "browse"), { limit: 50 });
  useEffect(() => again(id, found), [found, id]);
  const ask = () =>
    openDialog((close) => (
      <GoalForm
        id={id}
        url={url}
        close={close}
        begun={async () => {
          setChosen("");
          await found.reload();
        }}
      />
    ));
  const start = mayEdit.value && open;
  return (
    <div class="session-goals">
      <Load of={found}>
        {({ browses }) => {
          const b = browses.find((x) => x.id === chosen) ?? browses[0];
          if (!b)
            return (
              <Empty
                icon="Compass"
                title="No goal yet"
                action={
                  start && (
                    <Button kind="primary" icon="Play" onClick={ask}>
                      Set a goal
                    </Button>
                  )
                }
              >
                Describe what you want done. The agent's language model browses on its own; you can watch, stop it or
                take over.
              </Empty>
            );
          const busy = browses.some((x) => !x.ended_at);
          return (
            <>
              <div class="row nowrap">
                {browses.length > 1 && (
                  <SelectField
                    label="Goal"
                    value={b.id}
                    onChange={setChosen}
                    options={browses.map((x) => [
                      x.id,
                      `${x.goal.slice(0, 60)} (${states[x.status][0].toLowerCase()})`,
                    ])}
                  />
                )}
                <span class="grow" />
                {start && (
                  <Button
                    icon="Plus"
                    disabled={busy}
                    reason={busy ? "It already has a goal." : undefined}
                    onClick={ask}
                  >
                    New goal
                  </Button>
                )}
              </div>
              <Pursuit key={b.id} session={id} id={b.id} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

/** Asks again now and then while the session changes. */
function again(id: string, found: { reload: () => Promise<void>; soon: () => void }): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const off = onChange("session", (c) => {
    if (c.id === id)
      timer ??= setTimeout(() => {
        timer = undefined;
        void found.reload();
      }, quiet);
  });
  return () => {
    off();
    if (timer === undefined) return;
    clearTimeout(timer);
    found.soon();
  };
}

/** One goal: its state, what was done and what came of it. */
function Pursuit({ session, id }: { session: string; id: string }) {
  const found = useQuery<Browse>(at(session, "browse", id));
  useEffect(() => again(session, found), [found, session]);
  const stop = async () => {
    await post(at(session, "browse", id, "cancel"));
    await found.reload();
  };
  return (
    <Load of={found}>
      {(b) => (
        <>
          <p class="goal">
            <bdi>{b.goal}</bdi>
          </p>
          <div class="row small">
            <Badge tone={states[b.status][1]}>{states[b.status][0]}</Badge>
            <span class="muted grow">
              {b.step_count} of {plural(b.max_steps, "step")} · {plural(b.input_tokens + b.output_tokens, "token")} ·{" "}
              <When time={b.ended_at ?? b.created_at} />
            </span>
            {!b.ended_at && mayEdit.value && (
              <Button icon="Square" onClick={stop}>
                Stop
              </Button>
            )}
          </div>
          {b.reason && (
            <p class={b.status === "error" ? "issue" : "reason"}>
              <bdi>{b.reason}</bdi>
            </p>
          )}
          <ol class="plain steps" aria-live="polite">
            {b.steps.map((s) => (
              <StepLine key={s.step} s={s} />
            ))}
            {b.status === "running" && (
              <li class="muted">
                <Icon name="Ellipsis" size={14} />
                Reading the page
              </li>
            )}
          </ol>
          {b.result !== null && (
            <section class="result" aria-label="Result">
              <h2>Result</h2>
              {typeof b.result === "string" ? (
                <p class="pre">
                  <bdi>{b.result}</bdi>
                </p>
              ) : (
                <JsonTree value={b.result} />
              )}
            </section>
          )}
          <p class="muted small">
            May visit <bdi>{b.hosts.join(", ")}</bdi>
          </p>
        </>
      )}
    </Load>
  );
}

function StepLine({ s }: { s: Step }) {
  return (
    <li class={s.error ? "failed" : ""} title={`${s.url}\n${s.selector ?? ""}`}>
      <Icon
        name={s.error ? "CircleAlert" : (stepIcons[s.action] ?? "Check")}
        size={14}
        label={s.error ? "Failed" : s.action}
      />
      <span class="grow">
        <bdi>{s.description || s.action}</bdi>
        {s.text && (
          <>
            {" "}
            <bdi class="muted">{s.text}</bdi>
          </>
        )}
        {s.error && (
          <span class="issue">
            <bdi>{s.error}</bdi>
          </span>
        )}
      </span>
      <span class="muted small">{span(s.duration_ms)}</span>
    </li>
  );
}

/** Asks for a goal, and begins with it. */
function GoalForm({
  id,
  url,
  close,
  begun,
}: {
  id: string;
  url: string;
  close: () => void;
  begun: () => Promise<void>;
}) {
  const page = /^https?:/.test(url) ? url : "";
  const initial = { goal: "", url: "", hosts: "", max_steps: "25", takeover: true, variables: [] as Pair[] };
  const run = async (v: typeof initial) => {
    const hosts = v.hosts.split(/[\s,]+/).filter(Boolean);
    await post(at(id, "browse"), {
      goal: v.goal,
      takeover: v.takeover,
      max_steps: Number(v.max_steps),
      variables: objectOf(v.variables),
      ...(v.url.trim() && { url: toAddress(v.url) }),
      ...(hosts.length && { hosts }),
    });
    await begun();
  };
  return (
    <FormDialog title="Set a goal" action="Start" close={close} run={run} initial={initial}>
      {(f) => (
        <>
          <TextArea
            label="Goal"
            rows={3}
            placeholder="Find the latest invoice and report its total."
            {...f.text("goal")}
          />
          <TextField
            label="First page"
            placeholder={page || "example.com"}
            hint={page ? "Empty: the current page." : undefined}
            {...f.text("url")}
          />
          <Switch
            label="Ask for a person when stuck"
            hint="such as for a captcha; afterwards it goes on"
            checked={f.values.takeover}
            onChange={(on) => f.set("takeover", on)}
          />
          <details>
            <summary>More options</summary>
            <div class="stack">
              <TextField
                label="Hosts"
                placeholder="example.com, *.example.com"
                hint="Where it may go. Empty: the site of the first page."
                {...f.text("hosts")}
              />
              <PairsField
                label="Variables"
                pairs={f.values.variables}
                onChange={(v) => f.set("variables", v)}
                hint="Values the model types as %name% without seeing them, such as a login. They aren't stored."
                error={f.issue("variables")}
                placeholder={["password", "Value"]}
              />
              <TextField label="Steps" type="number" hint="At most 100." {...f.text("max_steps")} />
            </div>
          </details>
        </>
      )}
    </FormDialog>
  );
}
