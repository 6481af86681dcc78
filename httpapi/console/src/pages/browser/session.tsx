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
  tell,
  When,
} from "../../ui";
import { openLive, Over, type Grant, type Live } from "../../parts/live/connection";
import { Lines, LiveView, TimeLeft } from "../../parts/live/view";
import { Actions, copySteps } from "./actions";
import { Connect } from "./connect";
import { at, ended, nameOf, tokenOf, type OpenSession, type Takeover } from "./data";
import { Files } from "./files";
import { Goals } from "./goal";
import { HandOver } from "./handover";
import { Instruct } from "./instruct";
import { Thumbnail } from "./thumbnail";

const quiet = 1_500; // milliseconds between two looks at a session that changes

export function SessionView({ id, tab }: { id: string; tab: string }) {
  const found = useQuery<OpenSession>(at(id));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void found.reload();
      }, quiet);
    };
    const offs = [
      onChange("session", (c) => {
        if (c.id === id) soon();
      }),
      onChange("takeover", soon),
      onReset(() => {
        void found.reload();
      }),
    ];
    return () => {
      clearTimeout(timer);
      offs.forEach((off) => off());
    };
  }, [found, id]);
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
        {(s) => <Loaded s={s} tab={tab} reload={() => found.reload()} />}
      </Load>
    </section>
  );
}

/** Opens the live view, again when the link is to be another. mine is the link of a takeover that the person took. */
function useLive(s: OpenSession, tab: string, mine?: Takeover): Live | undefined {
  const over = ended(s);
  const link = mine?.takeover_url ?? "";
  const live = useMemo(
    () =>
      over
        ? undefined
        : openLive({
            root: new URL(absolute().replace(/api\/?$/, "")),
            session: s.id,
            page: mayEdit.value ? "" : tab,
            grant: async (): Promise<Grant> => {
              try {
                const url = link || (await get(at(s.id, "live-view"))).url;
                return {
                  token: tokenOf(url),
                  control: mayEdit.value,
                  takeover_id: mine?.takeover_id ?? "",
                  viewport: s.viewport,
                };
              } catch (error) {
                if (error instanceof ApiError && [403, 404].includes(error.status))
                  throw new Over(error.status === 404 ? "This session has ended." : error.message);
                throw error;
              }
            },
          }),
    [s.id, over, link],
  );
  useEffect(() => () => live?.close(), [live]);
  useEffect(() => {
    // a tab with an address is brought to the front
    if (
      live &&
      tab &&
      live.state.value === "open" &&
      live.active.value !== tab &&
      live.tabs.value.some((t) => t.pageId === tab)
    )
      live.send({ type: "selectTab", pageId: tab });
  }, [live, tab, live?.state.value, live?.tabs.value.length]);
  return live;
}

function Loaded({ s, tab, reload }: { s: OpenSession; tab: string; reload: () => Promise<void> }) {
  const [taken, setTaken] = useState<Takeover>();
  const [panel, setPanel] = useState("actions");
  const may = mayEdit.value;
  const over = ended(s);
  const open = s.takeover;
  const mine = taken && open?.takeover_id === taken.takeover_id ? taken : undefined;
  const live = useLive(s, tab, mine);
  const begin = async (t: Takeover) => {
    setTaken(t);
    await reload();
  };
  const takeOver = () => openDialog((close) => <HandOver id={s.id} close={close} begin={begin} reload={reload} />);
  const close = async () => {
    await post(at(s.id, "close"));
    await reload();
  };
  const forget = () => {
    go(href(agentId.value, "browser"));
    deleteLater(
      "Session deleted",
      () => remove(at(), { id: s.id }),
      () => {
        void reload();
      },
    );
  };
  const link = async (what: "open" | "copy") => {
    const { url } = await get(at(s.id, "live-view"));
    if (what === "open") window.open(url, "_blank", "noopener,noreferrer");
    else {
      await copyText(url);
      tell("Link copied. It works for an hour, for anyone who has it.");
    }
  };
  return (
    <>
      <header class="session-head row">
        <a class="button quiet only phone" href={href(agentId.value, "browser")} aria-label="All sessions">
          <Icon name="ArrowLeft" size={16} />
        </a>
        <h1 class="grow clip">
          <bdi>{nameOf(s)}</bdi>
        </h1>
        <Badge tone={s.status === "takeover" ? "warn" : undefined}>{s.status}</Badge>
        {open && (
          <span class="badge warn">
            <TimeLeft until={open.expires_at} />
          </span>
        )}
        {may && !over && !mine && (
          <Button
            kind="primary"
            icon="Hand"
            disabled={Boolean(open)}
            reason={open ? "A takeover is already pending: start it below, or cancel it." : undefined}
            onClick={takeOver}
          >
            Take over
          </Button>
        )}
        {may && !over && (
          <Button icon="X" onClick={close}>
            Close
          </Button>
        )}
        <Menu
          label="More"
          items={[
            ...(over
              ? []
              : [
                  {
                    label: may ? "Open in new window" : "Watch in new window",
                    icon: "ExternalLink" as const,
                    run: () => link("open"),
                  },
                  { label: "Copy link", icon: "Link" as const, run: () => link("copy") },
                  "-" as const,
                ]),
            { label: "Copy steps for a workflow", icon: "Workflow", run: () => copySteps(s.id) },
            ...(may
              ? [
                  "-" as const,
                  {
                    label: "Delete",
                    icon: "Trash2" as const,
                    danger: true,
                    run: over
                      ? forget
                      : () =>
                          confirm({
                            title: "Delete this session?",
                            text: "Its tabs close, and its log and screenshot are deleted. To keep them for 30 days, close it instead.",
                            action: "Delete",
                            run: async () => {
                              await remove(at(), { id: s.id });
                              go(href(agentId.value, "browser"));
                            },
                          }),
                  },
                ]
              : []),
          ]}
        />
      </header>
      {open && !over && <TakeoverCard t={open} mine={Boolean(mine)} id={s.id} begin={begin} reload={reload} />}
      {s.error && <p class="issue session-error">{s.error}</p>}
      <div class={["instruct", "goal", "code"].includes(panel) ? "session-body tall" : "session-body"}>
        <div class="session-picture">
          {live ? (
            <LiveView live={live} choose={(page) => go(href(agentId.value, "browser", s.id, page), true)} />
          ) : (
            <div class="session-last">
              <Thumbnail s={s} alt="Last screenshot" />
              <p class="muted">
                Ended <When time={s.closed_at} />, opened <When time={s.created_at} />
                {s.url && (
                  <>
                    ; it was at <bdi class="clip">{s.url}</bdi>
                  </>
                )}
              </p>
            </div>
          )}
        </div>
        <div class="session-side">
          <nav class="tabs" aria-label="About the session">
            {[
              ["actions", "Actions"],
              ...(live && may ? [["instruct", "Instruct"]] : []),
              ["goal", "Goal"],
              ...(live ? [["console", "Console"]] : []),
              ["files", "Files"],
              ...(s.cdp_url ? [["code", "Code"]] : []),
              ["about", "About"],
            ].map(([t, title]) => (
              <button type="button" aria-current={panel === t ? "page" : undefined} onClick={() => setPanel(t)}>
                {title}
              </button>
            ))}
          </nav>
          {panel === "actions" && <Actions id={s.id} />}
          {panel === "instruct" && live && may && <Instruct id={s.id} />}
          {panel === "goal" && <Goals id={s.id} open={!over} url={s.url} />}
          {panel === "console" && (live ? <Lines live={live} /> : null)}
          {panel === "files" && <Files id={s.id} />}
          {panel === "code" && s.cdp_url && <Connect address={s.cdp_url} />}
          {panel === "about" && <About s={s} />}
        </div>
      </div>
    </>
  );
}

/** A takeover that waits or goes on: what is to be done, and how it ends. */
function TakeoverCard({
  t,
  mine,
  id,
  begin,
  reload,
}: {
  t: Takeover;
  mine: boolean;
  id: string;
  begin: (t: Takeover) => Promise<void>;
  reload: () => Promise<void>;
}) {
  const [note, setNote] = useState("");
  const may = mayEdit.value;
  const back = async () => {
    await post(at(id, "takeover", t.takeover_id, "complete"), { note });
    tell("Handed back: the agent continues.");
    await reload();
  };
  const off = async () => {
    await remove(at(id, "takeover", t.takeover_id));
    await reload();
  };
  return (
    <div class="takeover-card row" role="status">
      <Icon name="Hand" size={18} />
      <p class="grow">
        <b>
          {mine ? "You are in control." : t.status === "active" ? "A person is in control." : "Waiting for a person."}
        </b>{" "}
        <bdi class="reason">{t.reason}</bdi>
      </p>
      {mine && (
        <input
          aria-label="A note for the agent"
          placeholder="Note for the agent (optional)"
          maxLength={2000}
          value={note}
          onInput={(e) => setNote(e.currentTarget.value)}
        />
      )}
      {mine && (
        <Button kind="primary" onClick={back}>
          Hand back
        </Button>
      )}
      {may && !mine && t.takeover_url && (
        <Button kind="primary" onClick={() => begin(t)}>
          {t.status === "active" ? "Join" : "Take control"}
        </Button>
      )}
      {may && !mine && t.takeover_url && (
        <Button
          icon="Link"
          onClick={async () => {
            await copyText(t.takeover_url!);
            tell("Link copied.");
          }}
        >
          Copy link
        </Button>
      )}
      {may && (
        <Button kind="danger" onClick={off}>
          Cancel takeover
        </Button>
      )}
    </div>
  );
}

function About({ s }: { s: OpenSession }) {
  return (
    <dl class="facts-list session-about">
      <dt>Opened</dt>
      <dd>
        <When time={s.created_at} full />
      </dd>
      {s.closed_at ? (
        <>
          <dt>Ended</dt>
          <dd>
            <When time={s.closed_at} full />
          </dd>
        </>
      ) : (
        <>
          <dt>Last used</dt>
          <dd>
            <When time={s.last_activity} />
          </dd>
        </>
      )}
      <dt>Size</dt>
      <dd>
        {s.viewport.width} × {s.viewport.height}
      </dd>
      <dt>Cookies</dt>
      <dd>{s.persist ? "kept for the next such session" : "forgotten at the end"}</dd>
      <dt>Window</dt>
      <dd>{s.headless ? "none" : "yes"}</dd>
      <dt>ID</dt>
      <dd>
        <code>{s.id}</code>
      </dd>
    </dl>
  );
}
