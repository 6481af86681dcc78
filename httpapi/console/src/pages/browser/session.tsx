// One session: its live view with what was done in it; when it has ended, its last picture.
import { useEffect, useMemo, useState } from "preact/hooks";

import {
  absolute,
  agentId,
  ApiError,
  get,
  go,
  href,
  mayEdit,
  onChange,
  onReset,
  post,
  remove,
  useQuery,
} from "../../data";
import {
  Badge,
  Button,
  confirm,
  copyText,
  deleteLater,
  Empty,
  Icon,
  LinkButton,
  Load,
  Menu,
  openDialog,
  showToast,
  When,
  type MenuItem,
} from "../../ui";
import { openLive, LiveViewEnded, type Grant, type Live } from "../../parts/live/connection";
import { Lines, LiveView, TimeLeft } from "../../parts/live/view";
import { Actions, copySteps } from "./actions";
import { Connect } from "./connect";
import { at, ended, nameOf, tokenOf, useReloading, type OpenSession, type Takeover } from "./data";
import { Files } from "./files";
import { Goals } from "./goal";
import { TakeoverDialog } from "./takeoverdialog";
import { Instruct } from "./instruct";
import { Thumbnail } from "./thumbnail";

const reloadDelay = 1_500; // milliseconds

/** Loads a session, and loads it again after changes of it and of takeovers. */
function useSession(id: string) {
  const found = useQuery<OpenSession>(at(id));
  useReloading(id, found, reloadDelay);
  useEffect(() => {
    const unsubscribe = [onChange("takeover", found.reloadThrottled), onReset(() => void found.reload())];
    return () => unsubscribe.forEach((stop) => stop());
  }, [found]);
  return found;
}

/** One session; tab is the one of its tabs that the address names. */
export function SessionView({ id, tab }: { id: string; tab: string }) {
  const found = useSession(id);
  const error = found.error.value;
  if (error instanceof ApiError && error.status === 404) {
    return (
      <section class="session-none">
        <Empty
          icon="Globe"
          title="Session not found"
          action={<LinkButton href={href(agentId.value, "browser")}>All sessions</LinkButton>}
        >
          It was deleted, or ended more than 30 days ago.
        </Empty>
      </section>
    );
  }
  return (
    <section class="session">
      <Load of={found} lines={8} title="Browser session">
        {(session) => <LoadedSession session={session} tab={tab} reload={() => found.reload()} />}
      </Load>
    </section>
  );
}

/**
 * Opens the live view of a session that is open, and again when its link changes. own is the takeover of the person at
 * this console.
 */
function useLive(session: OpenSession, tab: string, own?: Takeover): Live | undefined {
  const over = ended(session);
  const link = own?.takeover_url ?? "";
  const grant = async (): Promise<Grant> => {
    const url = link || (await getLiveLink(session.id));
    return {
      token: tokenOf(url),
      control: mayEdit.value,
      takeover_id: own?.takeover_id ?? "",
      viewport: session.viewport,
    };
  };
  const live = useMemo(() => {
    if (over) return undefined;
    const root = new URL(absolute().replace(/api\/?$/, ""));
    return openLive({ root, session: session.id, page: mayEdit.value ? "" : tab, grant });
  }, [session.id, over, link]);
  useEffect(() => () => live?.close(), [live]);
  useEffect(() => {
    if (live && tab) showTab(live, tab);
  }, [live, tab, live?.state.value, live?.tabs.value.length]);
  return live;
}

/** Returns a new link to the live view; throws LiveViewEnded where it can be had no more. */
async function getLiveLink(id: string) {
  try {
    return (await get(at(id, "live-view"))).url;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 404) throw new LiveViewEnded("This session has ended.");
    throw error.status === 403 ? new LiveViewEnded(error.message) : error;
  }
}

/** Brings a tab to the front. */
function showTab(live: Live, tab: string) {
  if (live.state.value !== "open" || live.active.value === tab) return;
  if (live.tabs.value.some(({ pageId }) => pageId === tab)) live.send({ type: "selectTab", pageId: tab });
}

type LoadedProps = { session: OpenSession; tab: string; reload: () => Promise<void> };

function LoadedSession({ session, tab, reload }: LoadedProps) {
  const [taken, setTaken] = useState<Takeover>();
  const [panel, setPanel] = useState("actions");
  const { takeover } = session;
  const own = taken && takeover?.takeover_id === taken.takeover_id ? taken : undefined;
  const live = useLive(session, tab, own);
  const begin = async (begun: Takeover) => {
    setTaken(begun);
    await reload();
  };
  return (
    <>
      <Head session={session} inControl={Boolean(own)} begin={begin} reload={reload} />
      {takeover && !ended(session) && (
        <TakeoverCard takeover={takeover} own={Boolean(own)} id={session.id} begin={begin} reload={reload} />
      )}
      {session.error && <p class="issue session-error">{session.error}</p>}
      <div class={["instruct", "goal", "code"].includes(panel) ? "session-body tall" : "session-body"}>
        <div class="session-picture">
          {live ? (
            <LiveView live={live} choose={(page) => go(href(agentId.value, "browser", session.id, page), true)} />
          ) : (
            <LastPicture session={session} />
          )}
        </div>
        <div class="session-side">
          <PanelTabs session={session} live={Boolean(live)} panel={panel} choose={setPanel} />
          <Panel session={session} live={live} panel={panel} />
        </div>
      </div>
    </>
  );
}

type HeadProps = {
  session: OpenSession;
  /** The person at this console has taken over. */
  inControl: boolean;
  begin: (takeover: Takeover) => Promise<void>;
  reload: () => Promise<void>;
};

function Head({ session, inControl, begin, reload }: HeadProps) {
  const { id, status, takeover } = session;
  const mayControl = mayEdit.value && !ended(session);
  const takeOver = () => openDialog((close) => <TakeoverDialog id={id} close={close} begin={begin} reload={reload} />);
  const close = async () => {
    await post(at(id, "close"));
    await reload();
  };
  return (
    <header class="session-head row">
      <a class="button quiet only phone" href={href(agentId.value, "browser")} aria-label="All sessions">
        <Icon name="ArrowLeft" size={16} />
      </a>
      <h1 class="grow clip">
        <bdi>{nameOf(session)}</bdi>
      </h1>
      <Badge tone={status === "takeover" ? "warn" : undefined}>{status}</Badge>
      {takeover && (
        <span class="badge warn">
          <TimeLeft until={takeover.expires_at} />
        </span>
      )}
      {mayControl && !inControl && (
        <Button
          kind="primary"
          icon="Hand"
          disabled={Boolean(takeover)}
          reason={takeover ? "A takeover is already pending: start it below, or cancel it." : undefined}
          onClick={takeOver}
        >
          Take over
        </Button>
      )}
      {mayControl && (
        <Button icon="X" onClick={close}>
          Close
        </Button>
      )}
      <Menu label="More" items={menuItems(session, reload)} />
    </header>
  );
}

function menuItems(session: OpenSession, reload: () => Promise<void>): MenuItem[] {
  const { id } = session;
  const over = ended(session);
  const openLink = async () => {
    const { url } = await get(at(id, "live-view"));
    window.open(url, "_blank", "noopener,noreferrer");
  };
  const copyLink = async () => {
    const { url } = await get(at(id, "live-view"));
    await copyText(url);
    showToast("Link copied. It works for an hour, for anyone who has it.");
  };
  const items: MenuItem[] = [{ label: "Copy steps for a workflow", icon: "Workflow", run: () => copySteps(id) }];
  if (!over)
    items.unshift(
      { label: mayEdit.value ? "Open in new window" : "Watch in new window", icon: "ExternalLink", run: openLink },
      { label: "Copy link", icon: "Link", run: copyLink },
      "-",
    );
  if (mayEdit.value) {
    const run = () => (over ? deleteEnded(id, reload) : deleteOpen(id));
    items.push("-", { label: "Delete", icon: "Trash2", danger: true, run });
  }
  return items;
}

function deleteEnded(id: string, reload: () => Promise<void>) {
  go(href(agentId.value, "browser"));
  deleteLater(
    "Session deleted",
    () => remove(at(), { id }),
    () => void reload(),
  );
}

function deleteOpen(id: string) {
  confirm({
    title: "Delete this session?",
    text: "Its tabs close, and its log and screenshot are deleted. To keep them for 30 days, close it instead.",
    action: "Delete",
    run: async () => {
      await remove(at(), { id });
      go(href(agentId.value, "browser"));
    },
  });
}

function LastPicture({ session }: { session: OpenSession }) {
  const { url, created_at, closed_at } = session;
  return (
    <div class="session-last">
      <Thumbnail session={session} alt="Last screenshot" />
      <p class="muted">
        Ended <When time={closed_at} />, opened <When time={created_at} />
        {url && (
          <>
            ; it was at <bdi class="clip">{url}</bdi>
          </>
        )}
      </p>
    </div>
  );
}

type PanelTabsProps = { session: OpenSession; live: boolean; panel: string; choose: (panel: string) => void };

function PanelTabs({ session, live, panel, choose }: PanelTabsProps) {
  const tabs: [name: string, title: string, shown: boolean][] = [
    ["actions", "Actions", true],
    ["instruct", "Instruct", live && mayEdit.value],
    ["goal", "Goal", true],
    ["console", "Console", live],
    ["files", "Files", true],
    ["code", "Code", Boolean(session.cdp_url)],
    ["about", "About", true],
  ];
  return (
    <nav class="tabs" aria-label="About the session">
      {tabs
        .filter(([, , shown]) => shown)
        .map(([name, title]) => (
          <button type="button" aria-current={panel === name ? "page" : undefined} onClick={() => choose(name)}>
            {title}
          </button>
        ))}
    </nav>
  );
}

function Panel({ session, live, panel }: { session: OpenSession; live?: Live; panel: string }) {
  const { id, url, cdp_url } = session;
  switch (panel) {
    case "actions":
      return <Actions id={id} />;
    case "instruct":
      return live && mayEdit.value ? <Instruct id={id} /> : null;
    case "goal":
      return <Goals id={id} open={!ended(session)} url={url} />;
    case "console":
      return live ? <Lines live={live} /> : null;
    case "files":
      return <Files id={id} />;
    case "code":
      return cdp_url ? <Connect address={cdp_url} /> : null;
    default:
      return <About session={session} />;
  }
}

type TakeoverCardProps = {
  takeover: Takeover;
  /** The person at this console has taken over. */
  own: boolean;
  id: string;
  begin: (takeover: Takeover) => Promise<void>;
  reload: () => Promise<void>;
};

/** A takeover that is pending or active: why a person is needed, and how it ends. */
function TakeoverCard({ takeover, own, id, begin, reload }: TakeoverCardProps) {
  const [note, setNote] = useState("");
  const { takeover_id, takeover_url, reason } = takeover;
  const active = takeover.status === "active";
  const endTakeover = async () => {
    await post(at(id, "takeover", takeover_id, "complete"), { note });
    showToast("Handed back: the agent continues.");
    await reload();
  };
  const cancel = async () => {
    await remove(at(id, "takeover", takeover_id));
    await reload();
  };
  const whoControls = active ? "A person is in control." : "Waiting for a person.";
  return (
    <div class="takeover-card row" role="status">
      <Icon name="Hand" size={18} />
      <p class="grow">
        <b>{own ? "You are in control." : whoControls}</b> <bdi class="reason">{reason}</bdi>
      </p>
      {own && (
        <>
          <input
            aria-label="A note for the agent"
            placeholder="Note for the agent (optional)"
            maxLength={2000}
            value={note}
            onInput={(e) => setNote(e.currentTarget.value)}
          />
          <Button kind="primary" onClick={endTakeover}>
            Hand back
          </Button>
        </>
      )}
      {mayEdit.value && !own && takeover_url && (
        <JoinTakeover action={active ? "Join" : "Take control"} link={takeover_url} begin={() => begin(takeover)} />
      )}
      {mayEdit.value && (
        <Button kind="danger" onClick={cancel}>
          Cancel takeover
        </Button>
      )}
    </div>
  );
}

function JoinTakeover({ action, link, begin }: { action: string; link: string; begin: () => Promise<void> }) {
  const copyLink = async () => {
    await copyText(link);
    showToast("Link copied.");
  };
  return (
    <>
      <Button kind="primary" onClick={begin}>
        {action}
      </Button>
      <Button icon="Link" onClick={copyLink}>
        Copy link
      </Button>
    </>
  );
}

function About({ session }: { session: OpenSession }) {
  return (
    <dl class="facts-list session-about">
      <dt>Opened</dt>
      <dd>
        <When time={session.created_at} full />
      </dd>
      {session.closed_at ? (
        <>
          <dt>Ended</dt>
          <dd>
            <When time={session.closed_at} full />
          </dd>
        </>
      ) : (
        <>
          <dt>Last used</dt>
          <dd>
            <When time={session.last_activity} />
          </dd>
        </>
      )}
      <dt>Size</dt>
      <dd>
        {session.viewport.width} × {session.viewport.height}
      </dd>
      <dt>Cookies</dt>
      <dd>{session.persist ? "kept for the next such session" : "forgotten at the end"}</dd>
      <dt>Window</dt>
      <dd>{session.headless ? "none" : "yes"}</dd>
      <dt>ID</dt>
      <dd>
        <code>{session.id}</code>
      </dd>
    </dl>
  );
}
