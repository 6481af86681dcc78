// The frame of the console: the navigation, the state of the connection, and the page.
import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";

import {
  agent,
  agentId,
  counts,
  clearCache,
  go,
  href,
  key,
  limitedUntil,
  listHref,
  live,
  loadSession,
  online,
  reloadFailed,
  rememberAgent,
  rememberedAgent,
  route,
  running,
  session,
  sessionError,
  unauthorized,
} from "../data";
import {
  Badge,
  Countdown,
  Dialogs,
  Empty,
  ErrorCard,
  Icon,
  type IconName,
  LinkButton,
  openDialog,
  Skeleton,
  showToast,
  Toasts,
} from "../ui";
import { AgentSwitcher } from "./switcher";
import { KeyCard, KeyDialog } from "./key";
import { startKeys } from "./keys";
import { keepFocus, Page } from "./page";
import { LazyPalette, LazyTray, loadPalette, loadTray, paletteOpen, startFocus } from "./lazy";
import { mainSections, moved, railOf, sections } from "./sections";
import { nextTheme, theme } from "./theme";

/** The frame of the console: the navigation and the current page. */
export function Shell() {
  useEffect(() => {
    startKeys();
    startFocus();
    for (const kind of ["dragover", "drop"] as const) addEventListener(kind, refuseFiles);
    let shown: string | undefined;
    return effect(() => {
      // another agent is shown: the list of agents is asked for again
      const id = agentId.value;
      if (id === shown) return;
      shown = id;
      if (id) rememberAgent(id);
      void loadSession();
    });
  }, []);
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to content
      </a>
      <Rail />
      <div class="content">
        <Banner />
        <main id="main" tabIndex={-1}>
          <CurrentPage />
        </main>
        <Toasts />
      </div>
      <BottomBar />
      {paletteOpen.value && <LazyPalette />}
      <Dialogs />
    </div>
  );
}

/** Keeps a file that is dropped beside its target from being opened in place of the console. */
function refuseFiles(e: DragEvent) {
  if (
    e.defaultPrevented ||
    !e.dataTransfer?.types.includes("Files") ||
    (e.target as Element).matches?.("input[type=file]")
  )
    return;
  e.preventDefault();
  e.dataTransfer.dropEffect = "none";
}

const PageSkeleton = () => (
  <div class="page">
    <Skeleton title="Satchel" />
  </div>
);

/** The page that the address points to. */
function CurrentPage() {
  const { page, agent: id, section, rest } = route.value;
  const isMoved = page === "agent" && Object.hasOwn(moved, section);
  useEffect(keepFocus, [page, id, section, rest.join("/")]);
  useEffect(() => {
    if (page === "start" && session.value) go(href(startAgent()), true);
    else if (isMoved) go(href(id, ...moved[section], ...rest), true);
  }, [page, section, id, session.value]);
  useEffect(() => {
    document.title = title();
  });
  if (!session.value) return sessionError.value ? <SessionError error={sessionError.value} /> : <PageSkeleton />;
  if (page === "start" || isMoved) return <PageSkeleton />;
  if (page === "agents") return <Page name="agents" title="Agents" />;
  if (page === "keys") return <Page name="keys" title="Access & keys" />;
  if (page === "cluster") return <Page name="cluster" title="Servers" />;
  const found = sections.find((s) => s.id === section);
  if (page === "unknown" || !found) return <NotFound />;
  if (!agent.value && !session.value.more_agents) return <UnknownAgent id={id} />;
  return <Page key={`${id}/${found.page}`} name={found.page} title={found.title} section={section} />;
}

function SessionError({ error }: { error: Error }) {
  const isUnauthorized = "status" in error && error.status === 401;
  return (
    <div class="page narrow">
      {isUnauthorized ? <KeyCard error={error} /> : <ErrorCard error={error} retry={loadSession} />}
    </div>
  );
}

function NotFound() {
  const home = (
    <LinkButton href="#/" kind="primary">
      Go home
    </LinkButton>
  );
  return (
    <div class="page">
      <Empty icon="CircleHelp" title="Page not found" action={home}>
        Check the address for typos.
      </Empty>
    </div>
  );
}

/** Says that the agent of the address does not exist or cannot be seen. */
function UnknownAgent({ id }: { id: string }) {
  return (
    <div class="page narrow">
      <Empty icon="ShieldAlert" title="Agent not found" action={<LinkButton href="#/agents">All agents</LinkButton>}>
        <bdi>{id}</bdi> does not exist, or you have no role on it.
      </Empty>
      <KeyCard />
    </div>
  );
}

/** Returns the id of the agent that is shown first: the last one, the default one, or any. */
function startAgent(): string {
  const { agents } = session.value!;
  const last = rememberedAgent();
  const start =
    agents.find(({ id, name }) => id === last || name === last) ??
    agents.find(({ id }) => id === "default") ??
    agents[0];
  return start?.id ?? "default";
}

const pageTitles: Record<string, string> = { agents: "Agents", keys: "API keys", cluster: "Servers" };

/** Returns the title of the browser's tab. */
function title(): string {
  const { page, section } = route.value;
  const pageTitle = page === "agent" ? sections.find((s) => s.id === section)?.title : (pageTitles[page] ?? "");
  const name = agent.value?.name;
  const isSame = name?.toLowerCase() === pageTitle?.toLowerCase();
  return [pageTitle, !isSame && name, "Satchel"].filter(Boolean).join(" · ");
}

/** Returns how many items of a section wait for the person. */
function countOf(id: string): number {
  if (id === "home") return counts.value.waiting;
  return id === "inbox" ? counts.value.unread : 0;
}

/** The navigation beside the page. */
function Rail() {
  const current = route.value.agent || rememberedAgent();
  return (
    <nav class="rail" aria-label="Console">
      <AgentSwitcher current={current} />
      <button
        type="button"
        class="find"
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        <Icon name="Search" size={16} />
        <span>Find</span>
        <kbd>Ctrl K</kbd>
      </button>
      <SectionList current={current} />
      <RailFooter />
    </nav>
  );
}

/**
 * Returns the address of a section with the filters that its list had last, or without them if the list is shown
 * already.
 */
const sectionHref = (current: string, id: string) =>
  route.value.section === id && !route.value.rest.length ? href(current, id) : listHref(current, id);

function SectionList({ current }: { current: string }) {
  const { agent: id, section } = route.value;
  const startsGroup = (index: number) => {
    const { group } = sections[index];
    return group && sections[index - 1]?.group !== group;
  };
  return (
    <ul>
      {sections.map(
        (s, index) =>
          !s.of && (
            <li key={s.id} class={startsGroup(index) ? "group" : ""} data-group={s.group}>
              <a
                href={sectionHref(current, s.id)}
                aria-current={id && railOf(section) === s.id ? "page" : undefined}
                title={s.key ? `g ${s.key}` : undefined}
              >
                <Icon name={s.icon} />
                <span>{s.title}</span>
                {countOf(s.id) > 0 && <b class="count">{countOf(s.id)}</b>}
              </a>
            </li>
          ),
      )}
    </ul>
  );
}

const liveTitles = { open: "Live", connecting: "Connecting…", off: "Not live" };
const themeIcons: Record<string, IconName> = { system: "SunMoon", dark: "Moon" };

function RailFooter() {
  return (
    <footer class="rail-foot">
      <span class={`dot ${live.value}`} title={liveTitles[live.value]} />
      {session.value?.open && (
        <Badge tone="warn" title="No access control: anyone who reaches this server acts as owner.">
          open
        </Badge>
      )}
      <LazyTray />
      <span class="grow" />
      <button
        type="button"
        class="button quiet only"
        aria-label={`Theme: ${theme.value}`}
        title={`Theme: ${theme.value}`}
        onClick={nextTheme}
      >
        <Icon name={themeIcons[theme.value] ?? "Sun"} size={16} />
      </button>
      <button
        type="button"
        id="key"
        class={`button quiet only ${key.get() ? "on" : ""}`}
        aria-label="API key"
        title="API key"
        onClick={() => openDialog((close) => <KeyDialog close={close} />)}
      >
        <Icon name="KeyRound" size={16} />
      </button>
      <a class="button quiet only" href="docs" title="API documentation" aria-label="API documentation">
        <Icon name="Code" size={16} />
      </a>
    </footer>
  );
}

/** The sections on a phone. */
function BottomBar() {
  const { agent: id, section } = route.value;
  const current = id || rememberedAgent();
  const more = () =>
    loadPalette().then(
      ({ More }) =>
        openDialog((close) => (
          <More
            close={close}
            sections={sections.filter((s) => !s.of && !mainSections.includes(s.id))}
            links={(to) => listHref(current, to)}
            theme={theme}
            nextTheme={nextTheme}
            find={() => {
              paletteOpen.value = true;
            }}
            tray={() => loadTray().then((f) => f.openTray(), showToast)}
          />
        )),
      showToast,
    );
  return (
    <nav class="bottom" aria-label="Sections">
      {sections
        .filter((s) => mainSections.includes(s.id))
        .map((s) => (
          <a href={sectionHref(current, s.id)} aria-current={section === s.id ? "page" : undefined}>
            <Icon name={s.icon} />
            <span>{s.title}</span>
            {countOf(s.id) > 0 && <b class="count">{countOf(s.id)}</b>}
          </a>
        ))}
      <button
        type="button"
        onClick={more}
        aria-current={section && !mainSections.includes(section) ? "page" : undefined}
      >
        <Icon name="Menu" />
        <span>More</span>
        {running.value > 0 && <b class="dot busy" />}
      </button>
    </nav>
  );
}

/** Says above the page what is wrong with the connection. */
function Banner() {
  useEffect(
    () =>
      effect(() => {
        if (online.value) {
          if (sessionError.value) clearCache();
          else reloadFailed();
        }
      }),
    [],
  );
  useEffect(() => {
    // what failed is shown again without a click
    if (online.value) return;
    const timer = setInterval(loadSession, 5000);
    addEventListener("online", loadSession);
    return () => {
      clearInterval(timer);
      removeEventListener("online", loadSession);
    };
  }, [online.value]);
  useEffect(() => {
    const timer = setTimeout(() => {
      limitedUntil.value = 0;
    }, limitedUntil.value - Date.now());
    return () => clearTimeout(timer);
  }, [limitedUntil.value]);
  if (!online.value)
    return (
      <div class="banner bad" role="status">
        <Icon name="Unplug" size={16} /> Can't reach the server. Your input is kept.
        <button type="button" class="button" onClick={() => loadSession()}>
          Try again
        </button>
      </div>
    );
  if (limitedUntil.value > Date.now())
    return (
      <div class="banner" role="status">
        <Icon name="Timer" size={16} /> Too many requests. <Countdown until={limitedUntil.value} />
      </div>
    );
  if (session.value && unauthorized.value > Date.now() - 60_000)
    return (
      <div class="banner bad" role="status">
        <Icon name="KeyRound" size={16} /> The API key is not valid here.
        <button type="button" class="button" onClick={() => openDialog((close) => <KeyDialog close={close} />)}>
          Enter another
        </button>
      </div>
    );
  return null;
}
