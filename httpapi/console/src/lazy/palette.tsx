// Finds pages, agents and records: what is known at once, records after a pause.
// And the list of keys, and what a phone has below More.
import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, get, go, href, path, rememberedAgent, route, running, session } from "../data";
import { Dialog, Icon, type IconName, unmarked, useBack } from "../ui";
import type { Section } from "../shell/sections";

/** What the frame gives: its sections, what changes the theme, and what closes the palette. */
export type PaletteProps = { sections: Section[]; nextTheme: () => void; close: () => void };

type Hit = { icon: IconName; title: string; kind: string; to?: string; run?: () => void };

/** The lists that are searched, with where a row is shown. */
const records: [list: string, kind: string, icon: IconName, section: (row: Row) => string][] = [
  ["workflows", "Workflow", "Workflow", () => "workflows"],
  ["contacts", "Contact", "User", () => "contacts"],
  ["sources", "Source", "BookOpen", () => "knowledge"],
  ["conversations", "Conversation", "MessageSquare", (r) => (r.metadata?.via === "chat" ? "chat" : "inbox")],
  ["schedules", "Schedule", "CalendarClock", () => "calendar/schedules"],
];

/** A row of a list: a conversation has a title or what was said last in place of a name. */
type Row = {
  id: string;
  name?: string;
  metadata?: { title?: string; via?: string };
  contact?: { name: string } | null;
  last_message?: { content: string } | null;
};

const titleOf = (r: Row) =>
  r.name || r.metadata?.title || r.contact?.name || unmarked(r.last_message?.content ?? "") || "Conversation";

/** The pages of the settings. */
const settings: [part: string, title: string][] = [
  ["model", "Language model"],
  ["agent", "Agent"],
  ["access", "Access"],
  ["copies", "Backup"],
];

function known(text: string, current: string, { sections, nextTheme }: PaletteProps): Hit[] {
  const all: Hit[] = [
    ...sections.map((s) => ({ icon: s.icon, title: s.title, kind: "Page", to: href(current, s.id) })),
    ...(session.value?.agents ?? []).map((a) => ({
      icon: "Bot" as const,
      title: a.name,
      kind: "Agent",
      to: href(a.id),
    })),
    { icon: "Layers", title: "All agents", kind: "Page", to: "#/agents" },
    { icon: "KeyRound", title: "API keys", kind: "Page", to: "#/keys" },
    ...settings.map(([part, title]) => ({
      icon: "Settings" as const,
      title: `${title} settings`,
      kind: "Settings",
      to: href(current, "settings", part),
    })),
    { icon: "SunMoon", title: "Change theme", kind: "Action", run: nextTheme },
    { icon: "Plus", title: "New agent", kind: "Action", to: "#/agents?new=1" },
    { icon: "MessageSquare", title: "New chat", kind: "Action", to: href(current, "chat") },
  ];
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((h) => wanted.every((w) => h.title.toLowerCase().includes(w))).slice(0, 8);
}

async function search(text: string, current: string, signal: AbortSignal): Promise<Hit[]> {
  const lists = await Promise.all(
    records.map(async ([list, kind, icon, section]) => {
      const answer = await get(path("agents", current, list), { search: text, limit: 4 }, signal).catch(() => ({
        [list]: [],
      }));
      return (((answer as Record<string, unknown>)[list] ?? []) as Row[]).map((row): Hit => ({
        icon,
        title: titleOf(row),
        kind,
        to: href(current, ...section(row).split("/"), row.id),
      }));
    }),
  );
  return lists.flat();
}

export function Palette(props: PaletteProps) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Hit[]>([]);
  const [at, setAt] = useState(0);
  const ref = useRef<HTMLDialogElement>(null);
  const current = agentId.value || rememberedAgent();
  useEffect(() => {
    ref.current!.showModal();
  }, []);
  useEffect(() => {
    setFound([]);
    setAt(0);
    if (text.trim().length < 2) return;
    const abort = new AbortController();
    const timer = setTimeout(() => search(text.trim(), current, abort.signal).then(setFound, () => {}), 200);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const hits = [...known(text, current, props), ...found];
  const { close } = props;
  useBack(close);
  const choose = (hit?: Hit) => {
    if (!hit) return;
    close();
    if (hit.to) go(hit.to);
    else hit.run?.();
  };
  const keys = (e: KeyboardEvent) => {
    e.stopPropagation();
    if (e.key === "ArrowDown") setAt((at + 1) % Math.max(1, hits.length));
    else if (e.key === "ArrowUp") setAt((at + hits.length - 1) % Math.max(1, hits.length));
    else if (e.key === "Enter") choose(hits[at]);
    else if ((e.ctrlKey || e.metaKey) && e.key === "k") close();
    else return;
    e.preventDefault();
  };
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label="Find"
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current) close();
      }}
      onKeyDown={keys}
    >
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-hits"
        aria-activedescendant={hits[at] ? `hit-${at}` : undefined}
        aria-label="Find pages, agents and records"
        placeholder="Find pages, agents and records"
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        autoFocus
      />
      <ul id="palette-hits" role="listbox" aria-label="Found">
        {hits.map((h, i) => (
          <li
            key={`${h.kind}${h.to ?? h.title}`}
            id={`hit-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseMove={() => setAt(i)}
            onClick={() => choose(h)}
          >
            <Icon name={h.icon} size={16} />
            <bdi class="grow">{h.title}</bdi>
            <span class="muted small">{h.kind}</span>
          </li>
        ))}
        {hits.length === 0 && <li class="muted">No results</li>}
      </ul>
    </dialog>
  );
}

/** The keys of one section. */
const pageKeys: Record<string, [key: string, what: string][]> = {
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
        {(pageKeys[route.value.section] ?? []).map(([k, what]) => (
          <>
            <dt>
              <kbd>{k}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

type MoreProps = {
  sections: Section[];
  links: (section: string) => string;
  theme: Signal<string>;
  nextTheme: () => void;
  find: () => void;
  /** Shows what runs. */ tray: () => void;
  close: () => void;
};

/** On a phone, all that the bottom bar has no place for. */
export function More({ sections, links, theme, nextTheme, find, tray, close }: MoreProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useBack(close);
  useEffect(() => {
    ref.current!.showModal();
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog sheet"
      aria-label="More"
      onClick={close}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onKeyDown={(e) => e.stopPropagation()}
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
          {sections.map((s) => (
            <li>
              <a href={links(s.id)}>
                <Icon name={s.icon} />
                <span>{s.title}</span>
              </a>
            </li>
          ))}
          <li>
            <a href="#/agents">
              <Icon name="Layers" />
              <span>Agents</span>
            </a>
          </li>
          <li>
            <a href="#/keys">
              <Icon name="KeyRound" />
              <span>API keys</span>
            </a>
          </li>
          {session.value?.cluster && (
            <li>
              <a href="#/cluster">
                <Icon name="Database" />
                <span>Servers</span>
              </a>
            </li>
          )}
          <li>
            <a href="docs">
              <Icon name="Code" />
              <span>API documentation</span>
            </a>
          </li>
        </ul>
        <div class="row center">
          <button
            type="button"
            class="button"
            onClick={(e) => {
              e.stopPropagation();
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
