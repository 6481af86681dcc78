// Home: ask or add something, what waits for a person, and how the agent does.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, go, href, mayEdit, onChange, path, post, useDraft, useQuery, type Result, type API } from "../data";
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
  tell,
  When,
  type IconName,
} from "../ui";
import { Bars } from "../parts/spark";
import { UploadList, uploadFiles, useDrop } from "../parts/upload";
import { AgentName, Checklist, loadForms } from "./home/checklist";

export default function Home() {
  const id = agentId.value;
  const drop = useDrop();
  const overview = useQuery(path("agents", id, "overview"), { days: 14 });
  const waiting = useQuery(path("agents", id, "waiting"));
  useEffect(() => {
    const offs = [
      onChange("execution", overview.soon),
      onChange("source", overview.soon),
      onChange("message", overview.soon),
      onChange("execution", (c) => {
        if (c.row?.status !== "complete") waiting.soon();
      }),
      onChange("takeover", waiting.soon),
      onChange("conversation", waiting.soon),
    ];
    return () => offs.forEach((off) => off());
  }, [overview, waiting]);
  return (
    <div class="page home" {...drop.handlers}>
      <h1 class="hidden" tabIndex={-1}>
        Home
      </h1>
      <Ask id={id} over={drop.over} />
      <Waiting found={waiting} />
      <Failures list={overview.data.value?.failures ?? []} />
      <Checklist overview={overview} />
      {overview.data.value ? (
        <Figures o={overview.data.value} />
      ) : overview.error.value ? (
        <ErrorCard error={overview.error.value} retry={overview.reload} />
      ) : (
        <Skeleton />
      )}
    </div>
  );
}

const isAddress = (text: string) => /^(https?:\/\/)?[\w-]+(\.[\w-]+)+(\/\S*)?$/i.test(text.trim());

/** One field for a question, a file or an address. */
function Ask({ id, over }: { id: string; over: boolean }) {
  const draft = useDraft(`home.${id}`);
  const file = useRef<HTMLInputElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (document.activeElement?.matches("body, #main")) field.current?.focus({ preventScroll: true });
  }, []);
  const submit = async () => {
    const text = draft.value.trim();
    if (!text) return;
    if (isAddress(text) && mayEdit.value) {
      try {
        const { AddSite } = await loadForms();
        draft.value = "";
        openDialog((close) => <AddSite close={close} url={text} />);
      } catch (error) {
        tell(error);
      }
      return;
    }
    draft.value = "";
    if (!mayEdit.value) {
      go(`${href(id, "knowledge")}?q=${encodeURIComponent(text)}`);
      return;
    }
    sessionStorage.setItem("satchel.ask", text);
    go(href(id, "chat"));
  };
  const take = (files: FileList | null | undefined) => {
    if (files?.length && mayEdit.value) void uploadFiles([...files]);
  };
  return (
    <section class="ask stack" aria-label="Ask">
      <h2>
        What can <AgentName /> do for you?
      </h2>
      <form
        class={over ? "composer over" : "composer"}
        role={mayEdit.value ? undefined : "search"}
        onSubmit={(e) => {
          e.preventDefault();
          void submit();
        }}
      >
        <textarea
          ref={field}
          rows={1}
          value={draft.value}
          aria-label="Question, or address of a site"
          placeholder={mayEdit.value ? "Ask a question, drop a file, or paste an address" : "Search the knowledge"}
          onInput={(e) => {
            draft.value = e.currentTarget.value;
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
              e.preventDefault();
              void submit();
            }
          }}
        />
        <div class="row nowrap">
          {mayEdit.value && (
            <>
              <input
                ref={file}
                type="file"
                multiple
                hidden
                aria-label="Files"
                onChange={(e) => {
                  take(e.currentTarget.files);
                  e.currentTarget.value = "";
                }}
              />
              <Button kind="quiet" icon="Paperclip" onClick={() => file.current?.click()}>
                Add files
              </Button>
            </>
          )}
          <span class="grow" />
          <Button kind="primary" icon="ArrowUp" label="Ask" submit disabled={!draft.value.trim()} />
        </div>
      </form>
      <UploadList most={4} />
    </section>
  );
}

/** Approvals, takeovers and handovers, decided in their row. */
function Waiting({ found }: { found: Result<API.WaitingList> }) {
  const [all, setAll] = useState(false);
  const list = found.data.value?.waiting ?? [];
  if (!list.length) return null;
  return (
    <section class="stack" aria-label="Waiting for you">
      <h2>Waiting for you</h2>
      <ul class="waiting-list">
        {list.slice(0, all ? 50 : 5).map((w) => (
          <WaitingRow
            key={`${w.execution_id}${w.path ?? ""}${w.node_id}${w.takeover_id ?? ""}${w.conversation_id ?? ""}`}
            w={w}
            done={found.reload}
          />
        ))}
      </ul>
      {list.length > 5 && (
        <button type="button" class="link" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${list.length}`}
        </button>
      )}
    </section>
  );
}

function WaitingRow({ w, done }: { w: API.Waiting; done: () => Promise<void> }) {
  const [comment, setComment] = useState("");
  const [asking, setAsking] = useState(false);
  const decide = async (decision: string) => {
    await post(path("agents", agentId.value, "workflows", "executions", w.execution_id!, "resume"), {
      node_id: w.node_id,
      path: w.path || undefined,
      data: { decision, comment },
    });
    tell(decision === "approved" ? "Approved" : "Rejected");
    await done();
  };
  const icon: IconName = w.kind === "approval" ? "Hand" : w.kind === "takeover" ? "MousePointerClick" : "MessageCircle";
  return (
    <li class="card waiting-row">
      <Icon name={icon} />
      <div class="grow">
        <strong>
          <Name>
            {w.title ||
              { takeover: "A browser session needs you", handover: "Someone is waiting for an answer" }[
                w.kind as "takeover"
              ] ||
              "Decision"}
          </Name>
        </strong>
        {w.message && (
          <p>
            <bdi>{w.message}</bdi>
          </p>
        )}
        <p class="muted small">
          {w.workflow_name && (
            <>
              <Name>{w.workflow_name}</Name> ·{" "}
            </>
          )}
          {w.contact_name && w.contact_name !== w.title && (
            <>
              <Name>{w.contact_name}</Name> ·{" "}
            </>
          )}
          <When time={w.asked_at} />
          {w.expires_at && (
            <>
              {" "}
              · until <When time={w.expires_at} full />
            </>
          )}
        </p>
        {asking && (
          <input
            class="comment"
            placeholder="Comment"
            aria-label="Comment"
            value={comment}
            onInput={(e) => setComment(e.currentTarget.value)}
            autoFocus
          />
        )}
      </div>
      {w.kind === "approval" && mayEdit.value && (
        <div class="row nowrap">
          <Button kind="quiet" icon="MessageSquare" label="Add comment" onClick={() => setAsking(!asking)} />
          <Button onClick={() => decide("rejected")}>Reject</Button>
          <Button kind="primary" onClick={() => decide("approved")}>
            Approve
          </Button>
        </div>
      )}
      {w.kind === "approval" && (
        <a class="button quiet" href={href(agentId.value, "workflows", "executions", w.execution_id!)}>
          Open
        </a>
      )}
      {w.kind === "takeover" && (
        <a class="button primary" href={href(agentId.value, "browser", w.session_id!)}>
          Take over
        </a>
      )}
      {w.kind === "handover" && (
        <a class="button primary" href={href(agentId.value, "inbox", w.conversation_id!)}>
          Answer
        </a>
      )}
    </li>
  );
}

/** Repeats the newest execution of a failure, and shows it. */
async function retry(f: API.FailureGroup) {
  const made = await post(path("agents", agentId.value, "workflows", "executions", f.execution_id, "retry"));
  go(href(agentId.value, "workflows", "executions", made.id));
}

function Failures({ list }: { list: API.FailureGroup[] }) {
  if (!list.length) return null;
  return (
    <section class="stack" aria-label="Failures">
      <h2>Failed in the last 24 hours</h2>
      <ul class="plain cards-list">
        {list.map((f) => (
          <li key={f.execution_id} class="card row">
            <Icon name="TriangleAlert" />
            <a href={href(agentId.value, "workflows", "executions", f.execution_id)}>
              <Name>{f.workflow_name}</Name>
              {f.node_label && (
                <>
                  {" "}
                  › <Name>{f.node_label}</Name>
                </>
              )}
            </a>
            <span class="muted small failure">{f.error}</span>
            <Badge tone="bad">{plural(f.count, "time")}</Badge>
            <When time={f.last_at} />
            {mayEdit.value && (
              <Button icon="RotateCcw" onClick={() => retry(f)}>
                Retry
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Figures({ o }: { o: API.Overview }) {
  const s = o.series ?? {};
  const days: string[] = s.days ?? [];
  const ran = Object.values<number[]>(s.executions ?? {})
    .flat()
    .some(Boolean);
  const spoke = Object.values<number[]>(s.messages ?? {})
    .flat()
    .some(Boolean);
  const p50: number[] = (s.duration?.p50 ?? []).filter((n: number | null) => n);
  const p95: number[] = (s.duration?.p95 ?? []).filter((n: number | null) => n);
  const id = agentId.value;
  const counts: [string, string, string][] = [
    ["sources", "source", "knowledge"],
    ["workflows", "workflow", "workflows"],
    ["conversations", "conversation", "inbox"],
    ["contacts", "contact", "contacts"],
  ];
  return (
    <>
      {(ran || spoke) && (
        <section class="plots" aria-label="The last 14 days">
          {ran && (
            <div class="card">
              <Bars
                label="Executions"
                days={days}
                series={[
                  { name: "complete", tone: "good", values: s.executions.complete ?? [] },
                  { name: "errored", tone: "bad", values: s.executions.errored ?? [] },
                  { name: "terminated", tone: "warn", values: s.executions.terminated ?? [] },
                ]}
              />
              {p50.length > 0 && (
                <p class="muted small">
                  On the last day, the median took {span(p50.at(-1)!)} and the 95th percentile {span(p95.at(-1)!)}.
                </p>
              )}
            </div>
          )}
          {spoke && (
            <div class="card">
              <Bars
                label="Messages"
                days={days}
                series={[
                  { name: "in", tone: "busy", values: s.messages.in ?? [] },
                  { name: "out", tone: "act", values: s.messages.out ?? [] },
                ]}
              />
            </div>
          )}
        </section>
      )}
      <div class="home-foot">
        {(counts.some(([name]) => o.counts?.[name]) || o.sessions_open > 0) && (
          <ul class="counts">
            {counts.map(([name, noun, section]) => (
              <li>
                <a href={href(id, section)}>
                  <b>{(o.counts?.[name] ?? 0).toLocaleString()}</b> {o.counts?.[name] === 1 ? noun : `${noun}s`}
                </a>
              </li>
            ))}
            {o.sessions_open > 0 && (
              <li>
                <a href={href(id, "browser")}>
                  <b>{o.sessions_open}</b> open browser {o.sessions_open === 1 ? "session" : "sessions"}
                </a>
              </li>
            )}
            {o.sources_at_work > 0 && (
              <li>
                <a href={href(id, "knowledge")}>
                  <b>{o.sources_at_work}</b> {o.sources_at_work === 1 ? "source" : "sources"} being read
                </a>
              </li>
            )}
          </ul>
        )}
        {o.next_runs?.length > 0 && (
          <section class="card" aria-label="Next runs">
            <h2>Next</h2>
            <ul class="plain">
              {o.next_runs.map((r) => (
                <li class="row">
                  <Icon name="Clock" size={16} />
                  <a class="grow" href={href(id, "calendar", "schedules", r.schedule_id)}>
                    <Name>{r.name}</Name>
                  </a>
                  <When time={r.at} />
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </>
  );
}
