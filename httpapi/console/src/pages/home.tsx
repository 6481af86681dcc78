// Home: ask or add something, what waits for a person, and how the agent does.
import { useEffect, useRef, useState } from "preact/hooks";

import {
  agent,
  agentId,
  go,
  href,
  loadSession,
  mayEdit,
  onChange,
  path,
  post,
  put,
  useDraft,
  useQuery,
  type Result,
  type API,
} from "../data";
import {
  Badge,
  Button,
  ErrorCard,
  Icon,
  Name,
  openDialog,
  plural,
  Skeleton,
  span,
  showToast,
  When,
  type IconName,
} from "../ui";
import { Bars } from "../parts/spark";
import { Decision } from "../parts/decision";
import { FileButton } from "../parts/files";
import { UploadList, uploadFiles, useDrop } from "../parts/upload";
import { AgentName, Checklist, loadForms } from "./home/checklist";
import { style } from "../parts/styles";
import "../css/home.css";

export const styles = style("./home.css");

/** The page that an agent begins with. */
export default function Home() {
  const id = agentId.value;
  const drop = useDrop();
  const overview = useQuery(path("agents", id, "overview"), { days: 14 });
  const waiting = useQuery(path("agents", id, "waiting"));
  useEffect(() => {
    const unsubscribe = [
      onChange("execution", overview.reloadThrottled),
      onChange("source", overview.reloadThrottled),
      onChange("message", overview.reloadThrottled),
      onChange("execution", ({ row }) => {
        if (row?.status !== "complete") waiting.reloadThrottled();
      }),
      onChange("takeover", waiting.reloadThrottled),
      onChange("conversation", waiting.reloadThrottled),
    ];
    return () => {
      for (const stop of unsubscribe) stop();
    };
  }, [overview, waiting]);
  return (
    <div class="page home" {...drop.handlers}>
      <h1 class="hidden" tabIndex={-1}>
        Home
      </h1>
      <Ask id={id} over={drop.over} />
      <Paused />
      <WaitingSection found={waiting} />
      <Failures list={overview.data.value?.failures ?? []} />
      <Checklist overview={overview} />
      <LoadedFigures found={overview} />
    </div>
  );
}

/** Says that the agent is paused, as every restored or copied one is at first, and resumes it. */
function Paused() {
  if (agent.value?.status !== "paused") return null;
  const resume = async () => {
    await put(path("agents", agentId.value), { status: "active" });
    await loadSession();
  };
  return (
    <section class="card warn row" aria-label="Paused">
      <p class="grow">
        <AgentName /> is paused: triggers, schedules and automatic replies stop, so that nothing is sent.
      </p>
      {mayEdit.value && (
        <Button kind="primary" icon="Play" onClick={resume}>
          Resume
        </Button>
      )}
    </section>
  );
}

function LoadedFigures({ found }: { found: Result<API.Overview> }) {
  if (found.data.value) return <Figures overview={found.data.value} />;
  if (found.error.value) return <ErrorCard error={found.error.value} retry={found.reload} />;
  return <Skeleton />;
}

const isAddress = (text: string) => /^(https?:\/\/)?[\w-]+(\.[\w-]+)+(\/\S*)?$/i.test(text.trim());

async function openAddSite(url: string) {
  const { AddSite } = await loadForms();
  openDialog((close) => <AddSite close={close} url={url} />);
}

/** Asks a question in the chat; those who may not ask search the knowledge. */
function askQuestion(id: string, question: string) {
  if (!mayEdit.value) {
    go(`${href(id, "knowledge")}?q=${encodeURIComponent(question)}`);
    return;
  }
  sessionStorage.setItem("satchel.ask", question);
  go(href(id, "chat"));
}

/** One field for a question, a file or an address; over: files are being dragged over the page. */
function Ask({ id, over }: { id: string; over: boolean }) {
  const draft = useDraft(`home.${id}`);
  const field = useRef<HTMLTextAreaElement>(null);
  const may = mayEdit.value;
  useEffect(() => {
    if (document.activeElement?.matches("body, #main")) field.current?.focus({ preventScroll: true });
  }, []);
  const submit = async () => {
    const text = draft.value.trim();
    if (!text) return;
    if (isAddress(text) && may) await openAddSite(text);
    else askQuestion(id, text);
    draft.value = "";
  };
  const submitOrToast = () => void submit().catch(showToast);
  return (
    <section class="ask stack" aria-label="Ask">
      <h2>
        What can <AgentName /> do for you?
      </h2>
      <form
        class={over ? "composer over" : "composer"}
        role={may ? undefined : "search"}
        onSubmit={(e) => {
          e.preventDefault();
          submitOrToast();
        }}
      >
        <textarea
          ref={field}
          rows={1}
          value={draft.value}
          aria-label="Question, or address of a site"
          placeholder={may ? "Ask a question, drop a file, or paste an address" : "Search the knowledge"}
          onInput={(e) => {
            draft.value = e.currentTarget.value;
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
              e.preventDefault();
              submitOrToast();
            }
          }}
        />
        <div class="row nowrap">
          {may && (
            <FileButton field="Files" icon="Paperclip" kind="quiet" choose={(files) => void uploadFiles(files)}>
              Add files
            </FileButton>
          )}
          <span class="grow" />
          <Button kind="primary" icon="ArrowUp" label="Ask" submit disabled={!draft.value.trim()} />
        </div>
      </form>
      <UploadList maxShown={4} />
    </section>
  );
}

const shownAtFirst = 5;
const maxShown = 50;

/** Approvals, takeovers and handovers, which are decided here. */
function WaitingSection({ found }: { found: Result<API.WaitingList> }) {
  const [all, setAll] = useState(false);
  const list = found.data.value?.waiting ?? [];
  if (!list.length) return null;
  return (
    <section class="stack" aria-label="Waiting for you">
      <h2>Waiting for you</h2>
      <ul class="waiting-list">
        {list.slice(0, all ? maxShown : shownAtFirst).map((waiting) => (
          <WaitingRow key={waitingKey(waiting)} waiting={waiting} done={found.reload} />
        ))}
      </ul>
      {list.length > shownAtFirst && (
        <button type="button" class="link" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${list.length}`}
        </button>
      )}
    </section>
  );
}

const waitingKey = ({ execution_id, path: nodePath, node_id, takeover_id, conversation_id }: API.Waiting) =>
  `${execution_id}${nodePath ?? ""}${node_id}${takeover_id ?? ""}${conversation_id ?? ""}`;

const waitingKinds: Record<string, { title: string; icon: IconName }> = {
  approval: { title: "Decision", icon: "Hand" },
  takeover: { title: "A browser session needs you", icon: "MousePointerClick" },
  handover: { title: "Someone is waiting for an answer", icon: "MessageCircle" },
};
const otherKind: (typeof waitingKinds)[string] = { title: "Decision", icon: "MessageCircle" };

type WaitingRowProps = { waiting: API.Waiting; done: () => Promise<void> };

/** What waits for a person: an approval is decided here, for others a link leads to where it is done. */
function WaitingRow({ waiting, done }: WaitingRowProps) {
  const kind = waitingKinds[waiting.kind] ?? otherKind;
  return (
    <li class="card waiting-row">
      <Icon name={kind.icon} />
      <div class="grow">
        <strong>
          <Name>{waiting.title || kind.title}</Name>
        </strong>
        {waiting.message && (
          <p class="waiting-message">
            <bdi>{waiting.message}</bdi>
          </p>
        )}
        <WaitingFacts waiting={waiting} />
        {waiting.kind === "approval" && mayEdit.value && (
          <Decision
            execution={waiting.execution_id!}
            node={waiting.node_id!}
            iterations={waiting.path}
            answer={waiting.comment_required}
            done={done}
          />
        )}
      </div>
      <WaitingLink waiting={waiting} />
    </li>
  );
}

function WaitingFacts({ waiting }: { waiting: API.Waiting }) {
  const { workflow_name, contact_name, title, asked_at, expires_at } = waiting;
  return (
    <p class="muted small">
      {workflow_name && (
        <>
          <Name>{workflow_name}</Name> ·{" "}
        </>
      )}
      {contact_name && contact_name !== title && (
        <>
          <Name>{contact_name}</Name> ·{" "}
        </>
      )}
      <When time={asked_at} />
      {expires_at && (
        <>
          {" "}
          · until <When time={expires_at} full />
        </>
      )}
    </p>
  );
}

function WaitingLink({ waiting }: { waiting: API.Waiting }) {
  const { kind, execution_id, session_id, conversation_id } = waiting;
  const id = agentId.value;
  if (kind === "approval")
    return (
      <a class="button quiet" href={href(id, "workflows", "executions", execution_id!)}>
        Open
      </a>
    );
  if (kind === "takeover")
    return (
      <a class="button primary" href={href(id, "browser", session_id!)}>
        Take over
      </a>
    );
  if (kind === "handover")
    return (
      <a class="button primary" href={href(id, "inbox", conversation_id!)}>
        Answer
      </a>
    );
  return null;
}

/** Repeats the newest execution of a group of failures, and shows it. */
async function retry(failure: API.FailureGroup) {
  const { id } = await post(path("agents", agentId.value, "workflows", "executions", failure.execution_id, "retry"));
  go(href(agentId.value, "workflows", "executions", id));
}

function Failures({ list }: { list: API.FailureGroup[] }) {
  if (!list.length) return null;
  return (
    <section class="stack" aria-label="Failures">
      <h2>Failed in the last 24 hours</h2>
      <ul class="plain cards-list">
        {list.map((failure) => (
          <li key={failure.execution_id} class="card row">
            <Icon name="TriangleAlert" />
            <a href={href(agentId.value, "workflows", "executions", failure.execution_id)}>
              <Name>{failure.workflow_name}</Name>
              {failure.node_label && (
                <>
                  {" "}
                  › <Name>{failure.node_label}</Name>
                </>
              )}
            </a>
            <span class="muted small failure">{failure.error}</span>
            <Badge tone="bad">{plural(failure.count, "time")}</Badge>
            <When time={failure.last_at} />
            {mayEdit.value && (
              <Button icon="RotateCcw" onClick={() => retry(failure)}>
                Retry
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Figures({ overview }: { overview: API.Overview }) {
  return (
    <>
      <Charts series={overview.series} />
      <div class="home-foot">
        <Counts overview={overview} />
        {overview.next_runs?.length > 0 && <NextRuns runs={overview.next_runs} />}
      </div>
    </>
  );
}

const hasAny = (series: Record<string, number[]> = {}) => Object.values(series).flat().some(Boolean);

/** The executions and messages of the last days, where there were any. */
function Charts({ series }: { series: API.Overview["series"] }) {
  const { days = [], executions, messages, duration } = series ?? {};
  const ran = hasAny(executions);
  const wrote = hasAny(messages);
  if (!ran && !wrote) return null;
  return (
    <section class="plots" aria-label="The last 14 days">
      {ran && (
        <div class="card">
          <Bars
            label="Executions"
            days={days}
            series={[
              { name: "complete", tone: "good", values: executions.complete ?? [] },
              { name: "errored", tone: "bad", values: executions.errored ?? [] },
              { name: "terminated", tone: "warn", values: executions.terminated ?? [] },
            ]}
          />
          <LastDurations duration={duration} />
        </div>
      )}
      {wrote && (
        <div class="card">
          <Bars
            label="Messages"
            days={days}
            series={[
              { name: "in", tone: "busy", values: messages.in ?? [] },
              { name: "out", tone: "act", values: messages.out ?? [] },
            ]}
          />
        </div>
      )}
    </section>
  );
}

/** How long executions took on the last day that had any. */
function LastDurations({ duration }: { duration: API.Overview["series"]["duration"] }) {
  const median = duration?.p50?.findLast(Boolean);
  const percentile95 = duration?.p95?.findLast(Boolean);
  if (!median || !percentile95) return null;
  return (
    <p class="muted small">
      On the last day, the median took {span(median)} and the 95th percentile {span(percentile95)}.
    </p>
  );
}

const countedRecords: [count: string, noun: string, section: string][] = [
  ["sources", "source", "knowledge"],
  ["workflows", "workflow", "workflows"],
  ["conversations", "conversation", "inbox"],
  ["contacts", "contact", "contacts"],
];

/** How many records of each kind there are. */
function Counts({ overview: { counts, sessions_open, sources_at_work } }: { overview: API.Overview }) {
  const id = agentId.value;
  if (!countedRecords.some(([name]) => counts?.[name]) && !sessions_open) return null;
  return (
    <ul class="counts">
      {countedRecords.map(([name, noun, section]) => (
        <Count key={name} href={href(id, section)} count={counts?.[name] ?? 0} noun={noun} />
      ))}
      {sessions_open > 0 && <Count href={href(id, "browser")} count={sessions_open} noun="open browser session" />}
      {sources_at_work > 0 && (
        <Count
          href={href(id, "knowledge")}
          count={sources_at_work}
          noun="source being read"
          plural="sources being read"
        />
      )}
    </ul>
  );
}

type CountProps = { href: string; count: number; noun: string; plural?: string };

function Count({ href: to, count, noun, plural: nouns = `${noun}s` }: CountProps) {
  return (
    <li>
      <a href={to}>
        <b>{count.toLocaleString()}</b> {count === 1 ? noun : nouns}
      </a>
    </li>
  );
}

function NextRuns({ runs }: { runs: API.Overview["next_runs"] }) {
  return (
    <section class="card" aria-label="Next runs">
      <h2>Next</h2>
      <ul class="plain">
        {runs.map(({ schedule_id, name, at }) => (
          <li class="row">
            <Icon name="Clock" size={16} />
            <a class="grow" href={href(agentId.value, "calendar", "schedules", schedule_id)}>
              <Name>{name}</Name>
            </a>
            <When time={at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
