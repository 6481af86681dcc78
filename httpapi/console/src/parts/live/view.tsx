// The live view of a session: its tabs, address, picture and console. It is part
// of the console and the whole of the page that links lead to, so it uses
// nothing that could reach the API key.
import * as icons from "lucide";
import { type ComponentChildren, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { isErrorPage } from "./address";
import type { Live } from "./connection";
import { Stage } from "./stage";
import { clockTime, writeTime } from "../zone";

function Draw({ name }: { name: keyof typeof icons }) {
  const shapes = icons[name] as unknown as [string, Record<string, string>][];
  return (
    <svg
      class="icon"
      width="18"
      height="18"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {shapes.map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}

type Tool = { id: string; label: string; icon: keyof typeof icons; run: () => void; pressed?: boolean; class?: string };

const Tools = ({ list }: { list: Tool[] }) => (
  <>
    {list.map((t) => (
      <button
        key={t.id}
        id={t.id}
        type="button"
        class={`button quiet only ${t.class ?? ""}`}
        aria-label={t.label}
        title={t.label}
        aria-pressed={t.pressed}
        onClick={t.run}
      >
        <Draw name={t.icon} />
      </button>
    ))}
  </>
);

const isPicture = (url: string) => typeof url === "string" && url.startsWith("data:image/");
const nameOf = (t: { title: string; url: string }) =>
  t.title || (isErrorPage(t.url) ? "Not loaded" : t.url === "about:blank" ? "New tab" : t.url) || "New tab";

/** The tabs of a session; choose is what a click on one does beside bringing it to the front. */
function Tabs({ live, choose }: { live: Live; choose?: (page: string) => void }) {
  const control = Boolean(live.may.value?.control);
  return (
    <div id="tabs" role="group" aria-label="Tabs">
      {live.tabs.value.map((t) => (
        <div key={t.pageId} class={`tab ${t.pageId === live.active.value ? "active" : ""}`}>
          {isPicture(t.favicon) && <img src={t.favicon} alt="" />}
          <button
            type="button"
            class="name"
            aria-pressed={t.pageId === live.active.value}
            title={isErrorPage(t.url) ? undefined : t.url}
            onClick={() => {
              live.send({ type: "selectTab", pageId: t.pageId });
              choose?.(t.pageId);
            }}
          >
            {nameOf(t)}
          </button>
          {control && (
            <button
              type="button"
              class="shut"
              aria-label={`Close ${nameOf(t)}`}
              onClick={() => live.send({ type: "closeTab", pageId: t.pageId })}
            >
              <Draw name="X" />
            </button>
          )}
        </div>
      ))}
      {control && (
        <Tools list={[{ id: "new", label: "New tab", icon: "Plus", run: () => live.send({ type: "newTab" }) }]} />
      )}
    </div>
  );
}

/** The address of the tab in the picture, with what goes back, forward and again. */
function Bar({ live, tools }: { live: Live; tools: Tool[] }) {
  const field = useRef<HTMLInputElement>(null);
  const control = Boolean(live.may.value?.control);
  const url = live.url.value === "about:blank" ? "" : live.url.value;
  useEffect(() => {
    // Of a page that could not be loaded, the address that was entered stays.
    if (!isErrorPage(url) && document.activeElement !== field.current) field.current!.value = url;
  }, [url]);
  const go = (action: string) => () => live.send({ type: "navigation", action });
  return (
    <form
      id="bar"
      onSubmit={(e) => {
        e.preventDefault();
        const typed = field.current!.value.trim();
        if (!typed) return;
        live.send({ type: "navigation", action: "goto", url: typed }); // the server adds the scheme
        document.getElementById("stage")?.focus();
      }}
    >
      {control && (
        <Tools
          list={[
            { id: "back", label: "Back", icon: "ArrowLeft", run: go("back") },
            { id: "forward", label: "Forward", icon: "ArrowRight", run: go("forward") },
            { id: "refresh", label: "Reload", icon: "RefreshCw", run: go("refresh") },
          ]}
        />
      )}
      <input
        id="address"
        ref={field}
        type="text"
        inputMode="url"
        autocapitalize="off"
        autocomplete="off"
        spellcheck={false}
        aria-label="Address"
        placeholder="example.com"
        readOnly={!control}
        onFocus={(e) => e.currentTarget.select()}
      />
      {control && (
        <Tools
          list={[
            {
              id: "keys",
              label: "Keyboard",
              icon: "Keyboard",
              run: () => {
                const typing = document.getElementById("typing")!;
                if (document.activeElement === typing) typing.blur();
                else typing.focus();
              },
            },
          ]}
        />
      )}
      <Tools list={tools} />
    </form>
  );
}

type Line = { level: string; text: string; timestamp: string };
const levels = ["log", "debug", "info", "warn", "error"];
const maxLines = 500;

/** What the session's pages wrote to their consoles, live. */
export function Lines({ live }: { live: Live }) {
  const [lines, setLines] = useState<Line[]>([]);
  const frame = useRef<HTMLDivElement>(null);
  const ready = live.may.value !== null;
  useEffect(() => {
    setLines([]);
    return live.logs((more) => setLines((all) => [...all, ...more].slice(-maxLines)));
  }, [live, ready]);
  useEffect(() => {
    const el = frame.current!;
    if (el.scrollHeight - el.scrollTop - el.clientHeight < 120) el.scrollTop = el.scrollHeight;
  }, [lines]);
  return (
    <div id="logs" ref={frame} tabIndex={0} role="region" aria-label="Console">
      {lines.length === 0 && <p class="muted small">The console is empty.</p>}
      <ol id="lines">
        {lines.map((l) => (
          <li class={levels.includes(l.level) ? l.level : ""} title={writeTime(l.timestamp, undefined, clockTime)}>
            {l.text}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** A session's tabs, address and picture; with lines a button also shows its console. */
export function LiveView({
  live,
  choose,
  lines,
  children,
}: {
  live: Live;
  choose?: (page: string) => void;
  lines?: boolean;
  children?: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const tools: Tool[] = lines
    ? [{ id: "console", label: "Console", icon: "SquareTerminal", pressed: open, run: () => setOpen(!open) }]
    : [];
  return (
    <div class="live-view">
      <div id="strip">
        <Tabs live={live} choose={choose} />
        {children}
      </div>
      <Bar live={live} tools={tools} />
      <div class="live-body">
        <Stage live={live} />
        {open && <Lines live={live} />}
      </div>
    </div>
  );
}

/** How much time is left until a moment: 4:12. */
export function TimeLeft({ until }: { until: string }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.round((Date.parse(until) - now) / 1000));
  return (
    <span class="time-left" role="timer">
      {Math.floor(left / 60)}:{String(left % 60).padStart(2, "0")} left
    </span>
  );
}
