// The palette, which finds pages, agents and records; the list of keyboard shortcuts; and the menu
// More of phones.
import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, get, go, href, path, rememberedAgent, route, running, session } from "../data";
import { Dialog, Icon, type IconName, unmarked, useBack } from "../ui";
import type { Section } from "../shell/sections";

/** What the frame of the console passes to the palette. */
export type PaletteProps = { sections: Section[]; nextTheme: () => void; close: () => void };

type Hit = { icon: IconName; title: string; kind: string; to?: string; run?: () => void };

const maxKnown = 8; // pages, agents and actions that are shown
const maxRecords = 4; // of each list
const minSearch = 2; // characters with which records are searched
const searchDelay = 200; // milliseconds after the last key

/** The lists that are searched, and the section in which a row is shown. */
const searchedLists: [list: string, kind: string, icon: IconName, sectionOf: (row: Row) => string[]][] = [
  ["workflows", "Workflow", "Workflow", () => ["workflows"]],
  ["contacts", "Contact", "User", () => ["contacts"]],
  ["sources", "Source", "BookOpen", () => ["knowledge"]],
  ["conversations", "Conversation", "MessageSquare", (row) => [row.metadata?.via === "chat" ? "chat" : "inbox"]],
  ["schedules", "Schedule", "CalendarClock", () => ["calendar", "schedules"]],
];

/** A row of a list. A conversation has no name, but a title, a contact or a last message. */
type Row = {
  id: string;
  name?: string;
  metadata?: { title?: string; via?: string };
  contact?: { name: string } | null;
  last_message?: { content: string } | null;
};

const titleOf = (row: Row) =>
  row.name || row.metadata?.title || row.contact?.name || unmarked(row.last_message?.content ?? "") || "Conversation";

/** The pages of the settings. */
const settingsPages: [part: string, title: string][] = [
  ["model", "Language model"],
  ["agent", "Agent"],
  ["access", "Access"],
  ["copies", "Backup"],
];

/** Returns the pages, agents and actions whose title has every word of a text. */
function searchKnown(text: string, agent: string, { sections, nextTheme }: PaletteProps): Hit[] {
  const pages = sections.map(({ id, title, icon }): Hit => ({ icon, title, kind: "Page", to: href(agent, id) }));
  const agents = (session.value?.agents ?? []).map(({ id, name }): Hit => ({
    icon: "Bot",
    title: name,
    kind: "Agent",
    to: href(id),
  }));
  const settings = settingsPages.map(([part, title]): Hit => ({
    icon: "Settings",
    title: `${title} settings`,
    kind: "Settings",
    to: href(agent, "settings", part),
  }));
  const hits: Hit[] = [
    ...pages,
    ...agents,
    { icon: "Layers", title: "All agents", kind: "Page", to: "#/agents" },
    { icon: "KeyRound", title: "API keys", kind: "Page", to: "#/keys" },
    ...settings,
    { icon: "SunMoon", title: "Change theme", kind: "Action", run: nextTheme },
    { icon: "Plus", title: "New agent", kind: "Action", to: "#/agents?new=1" },
    { icon: "MessageSquare", title: "New chat", kind: "Action", to: href(agent, "chat") },
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ title }: Hit) => words.every((word) => title.toLowerCase().includes(word));
  return hits.filter(matches).slice(0, maxKnown);
}

/** Returns the records of an agent that a search finds. A list that fails is left out. */
async function searchRecords(text: string, agent: string, signal: AbortSignal): Promise<Hit[]> {
  const lists = searchedLists.map(async ([list, kind, icon, sectionOf]) => {
    const query = { search: text, limit: maxRecords };
    const response: unknown = await get(path("agents", agent, list), query, signal).catch(() => ({}));
    const rows = (response as Record<string, Row[] | undefined>)[list] ?? [];
    return rows.map((row): Hit => ({ icon, title: titleOf(row), kind, to: href(agent, ...sectionOf(row), row.id) }));
  });
  return (await Promise.all(lists)).flat();
}

/** Searches records shortly after the text changes. */
function useRecords(text: string, agent: string): Hit[] {
  const [found, setFound] = useState<Hit[]>([]);
  useEffect(() => {
    setFound([]);
    if (text.trim().length < minSearch) return;
    const abort = new AbortController();
    const search = () =>
      searchRecords(text.trim(), agent, abort.signal).then(setFound, () => {
        /* nothing is found */
      });
    const timer = setTimeout(search, searchDelay);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return found;
}

/** Opens a dialog element when it is first rendered. */
function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current!.showModal();
  }, []);
  return dialog;
}

/** The palette: a field, and what is found below it. */
export function Palette(props: PaletteProps) {
  const { close } = props;
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const dialog = useModal();
  useBack(close);
  const agent = agentId.value || rememberedAgent();
  const hits = [...searchKnown(text, agent, props), ...useRecords(text, agent)];
  useEffect(() => setActive(0), [text]);
  const choose = (hit?: Hit) => {
    if (!hit) return;
    close();
    if (hit.to) go(hit.to);
    else hit.run?.();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    const count = Math.max(1, hits.length);
    if (event.key === "ArrowDown") setActive((active + 1) % count);
    else if (event.key === "ArrowUp") setActive((active + count - 1) % count);
    else if (event.key === "Enter") choose(hits[active]);
    else if ((event.ctrlKey || event.metaKey) && event.key === "k") close();
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) close();
      }}
      onKeyDown={onKeyDown}
    >
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-hits"
        aria-activedescendant={hits[active] ? `hit-${active}` : undefined}
        aria-label="Find pages, agents and records"
        placeholder="Find pages, agents and records"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        autoFocus
      />
      <HitList hits={hits} active={active} setActive={setActive} choose={choose} />
    </dialog>
  );
}

type HitListProps = {
  hits: Hit[];
  active: number;
  setActive: (index: number) => void;
  choose: (hit: Hit) => void;
};

function HitList({ hits, active, setActive, choose }: HitListProps) {
  return (
    <ul id="palette-hits" role="listbox" aria-label="Found">
      {hits.map((hit, index) => (
        <li
          key={`${hit.kind}${hit.to ?? hit.title}`}
          id={`hit-${index}`}
          role="option"
          aria-selected={index === active}
          onMouseMove={() => setActive(index)}
          onClick={() => choose(hit)}
        >
          <Icon name={hit.icon} size={16} />
          <bdi class="grow">{hit.title}</bdi>
          <span class="muted small">{hit.kind}</span>
        </li>
      ))}
      {hits.length === 0 && <li class="muted">No results</li>}
    </ul>
  );
}

/** The keys of each section. */
const pageKeys: Record<string, [key: string, action: string][]> = {
  chat: [
    ["n", "New chat, once Esc has left the field"],
    ["↑", "Write the last question again"],
    ["[", "Previous source"],
    ["]", "Next source"],
  ],
  knowledge: [["u", "Upload documents"]],
  inbox: [
    ["j", "Next conversation"],
    ["k", "Previous conversation"],
    ["r", "Reply"],
    ["n", "Note"],
    ["e", "Resolve and open the next, or reopen"],
    ["s", "Snooze until the next message, and open the next"],
    ["m", "Bot on or off"],
    ["a", "Assign to me, or to no one"],
    ["u", "Read or unread"],
  ],
  calendar: [
    ["t", "Today"],
    ["m", "Month"],
    ["w", "Week"],
    ["l", "List"],
    ["j", "Forward"],
    ["k", "Back"],
  ],
};

/** The keys that work on every page, and those of this one. */
export function KeyList({ sections, close }: { sections: Section[]; close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        <dt>
          <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Find pages, agents and records</dd>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search in this page</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close the open panel</dd>
        {sections
          .filter((s) => s.key)
          .map((s) => (
            <>
              <dt>
                <kbd>g</kbd> <kbd>{s.key}</kbd>
              </dt>
              <dd>{s.title}</dd>
            </>
          ))}
        {(pageKeys[route.value.section] ?? []).map(([key, action]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

type MoreProps = {
  sections: Section[];
  /** Returns the address of a section. */
  links: (section: string) => string;
  theme: Signal<string>;
  nextTheme: () => void;
  find: () => void;
  /** Shows what is running. */
  tray: () => void;
  close: () => void;
};

/** What the bottom bar of a phone has no room for. */
export function More({ sections, links, theme, nextTheme, find, tray, close }: MoreProps) {
  const dialog = useModal();
  useBack(close);
  return (
    <dialog
      ref={dialog}
      class="dialog sheet"
      aria-label="More"
      onClick={close}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <div class="dialog-frame">
        <button type="button" class="find" onClick={find}>
          <Icon name="Search" size={16} />
          <span>Find pages, agents and records</span>
        </button>
        <ul class="more">
          {running.value > 0 && (
            <li>
              <button type="button" onClick={tray}>
                <Icon name="LoaderCircle" />
                <span>{running.value} running now</span>
              </button>
            </li>
          )}
          {sections.map(({ id, title, icon }) => (
            <MoreLink key={id} href={links(id)} icon={icon} title={title} />
          ))}
          <MoreLink href="#/agents" icon="Layers" title="Agents" />
          <MoreLink href="#/keys" icon="KeyRound" title="API keys" />
          {session.value?.cluster && <MoreLink href="#/cluster" icon="Database" title="Servers" />}
          <MoreLink href="docs" icon="Code" title="API documentation" />
        </ul>
        <div class="row center">
          <button
            type="button"
            class="button"
            onClick={(event) => {
              event.stopPropagation();
              nextTheme();
            }}
          >
            <Icon name="SunMoon" size={16} />
            <span>Theme: {theme.value}</span>
          </button>
        </div>
      </div>
    </dialog>
  );
}

function MoreLink({ href: address, icon, title }: { href: string; icon: IconName; title: string }) {
  return (
    <li>
      <a href={address}>
        <Icon name={icon} />
        <span>{title}</span>
      </a>
    </li>
  );
}
