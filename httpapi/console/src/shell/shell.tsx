// The frame: the rail of sections, what is said about the connection, and the page.
import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";

import {
  agent,
  agentId,
  counts,
  forgetAll,
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
  LinkButton,
  openDialog,
  Skeleton,
  tell,
  Toasts,
} from "../ui";
import { AgentSwitcher } from "./switcher";
import { KeyCard, KeyDialog } from "./key";
import { startKeys } from "./keys";
import { keepFocus, Page } from "./page";
import { LaterPalette, LaterTray, loadPalette, loadTray, paletteOpen } from "./later";
import { mainSections, moved, railOf, sections } from "./sections";
import { nextTheme, theme } from "./theme";

/** The frame of the console: the navigation and the current page. */
export function Shell() {
  useEffect(() => {
    startKeys();
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
          <Current />
        </main>
      </div>
      <BottomBar />
      {paletteOpen.value && <LaterPalette />}
      <Dialogs />
      <Toasts />
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

/** What the address points to. */
function Current() {
  const { page, agent: id, section, rest } = route.value;
  useEffect(keepFocus, [page, id, section, rest.join("/")]);
  useEffect(() => {
    if (page === "start" && session.value) go(href(startAgent()), true);
    else if (page === "agent" && moved[section]) go(href(id, ...moved[section], ...rest), true);
  }, [page, section, id, session.value]);
  useEffect(() => {
    document.title = title();
  });
  if (!session.value) {
    const error = sessionError.value;
    if (!error)
      return (
        <div class="page">
          <Skeleton title="Satchel" />
        </div>
      );
    return (
      <div class="page narrow">
        {"status" in error && error.status === 401 ? (
          <KeyCard error={error} />
        ) : (
          <ErrorCard error={error} retry={loadSession} />
        )}
      </div>
    );
  }
  if (page === "start" || (page === "agent" && moved[section]))
    return (
      <div class="page">
        <Skeleton title="Satchel" />
      </div>
    );
  if (page === "agents") return <Page name="agents" title="Agents" />;
  if (page === "keys") return <Page name="keys" title="Access & keys" />;
  if (page === "cluster") return <Page name="cluster" title="Servers" />;
  const found = sections.find((s) => s.id === section);
  if (page === "unknown" || !found) {
    return (
      <div class="page">
        <Empty
          icon="CircleHelp"
          title="Page not found"
          action={
            <LinkButton href="#/" kind="primary">
              Go home
            </LinkButton>
          }
        >
          Check the address for typos.
        </Empty>
      </div>
    );
  }
  if (!agent.value && !session.value.more_agents)
    return (
      <div class="page narrow">
        <Stranger id={id} />
      </div>
    );
  return <Page key={`${id}/${found.page}`} name={found.page} title={found.title} section={section} />;
}

/** The agent of the address cannot be seen. */
function Stranger({ id }: { id: string }) {
  return (
    <>
      <Empty icon="ShieldAlert" title="Agent not found" action={<LinkButton href="#/agents">All agents</LinkButton>}>
        <bdi>{id}</bdi> does not exist, or you have no role on it.
      </Empty>
      <KeyCard />
    </>
  );
}

function startAgent() {
  const all = session.value!.agents;
  const last = rememberedAgent();
  return (
    (all.find((a) => a.id === last || a.name === last) ?? all.find((a) => a.id === "default") ?? all[0])?.id ??
    "default"
  );
}

function title() {
  const { page, section } = route.value;
  const found =
    page === "agent"
      ? sections.find((s) => s.id === section)?.title
      : (({ agents: "Agents", keys: "API keys", cluster: "Servers" } as Record<string, string>)[page] ?? "");
  const name = agent.value?.name; // an agent may be called as a section is
  return [found, name?.toLowerCase() === found?.toLowerCase() ? "" : name, "Satchel"].filter(Boolean).join(" · ");
}

/** How many things of a section wait for the person. */
const countOf = (id: string) => (id === "home" ? counts.value.waiting : id === "inbox" ? counts.value.unread : 0);

function Rail() {
  const { agent: id, section, rest } = route.value;
  const current = id || rememberedAgent();
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
      <ul>
        {sections.map(
          (s, i) =>
            !s.of && (
              <li key={s.id} class={s.group && sections[i - 1]?.group !== s.group ? "group" : ""} data-group={s.group}>
                <a
                  href={section === s.id && !rest.length ? href(current, s.id) : listHref(current, s.id)}
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
      <footer class="rail-foot">
        <span
          class={`dot ${live.value}`}
          title={{ open: "Live", connecting: "Connecting…", off: "Not live" }[live.value]}
        />
        {session.value?.open && (
          <Badge tone="warn" title="No access control: anyone who reaches this server acts as owner.">
            open
          </Badge>
        )}
        <LaterTray />
        <span class="grow" />
        <button
          type="button"
          class="button quiet only"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={nextTheme}
        >
          <Icon name={theme.value === "system" ? "SunMoon" : theme.value === "dark" ? "Moon" : "Sun"} size={16} />
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
    </nav>
  );
}

/** The sections on a phone. */
function BottomBar() {
  const { agent: id, section, rest } = route.value;
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
            tray={() => loadTray().then((f) => f.openTray(), tell)}
          />
        )),
      tell,
    );
  return (
    <nav class="bottom" aria-label="Sections">
      {sections
        .filter((s) => mainSections.includes(s.id))
        .map((s) => (
          <a
            href={section === s.id && !rest.length ? href(current, s.id) : listHref(current, s.id)}
            aria-current={section === s.id ? "page" : undefined}
          >
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

/** What is wrong with the connection, above the page. */
function Banner() {
  useEffect(
    () =>
      effect(() => {
        if (online.value) {
          if (sessionError.value) forgetAll();
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
