// Browser: the sessions of the agent, and one of them live.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, go, href, mayEdit, onChange, onReset, path, route, useQuery } from "../data";
import { style } from "../parts/styles";
import { Badge, Button, CopyButton, Empty, Load, openDialog, When } from "../ui";
import { at, ended, nameOf, type Session } from "./browser/data";
import { OpenSessionForm } from "./browser/open";
import { SessionView } from "./browser/session";
import { Thumbnail } from "./browser/thumbnail";
import "../css/browser.css";
import "../css/live.css";

export const styles = style("./browser.css");

const pageSize = 30;

export default function Browser() {
  return <Sessions />;
}

function Sessions() {
  const [current = "", tab = ""] = route.value.rest;
  const [limit, setLimit] = useState(pageSize);
  const [missing, setMissing] = useState("");
  const found = useQuery<{ sessions: Session[]; meta: { total: number } }>(at(), { limit });
  useEffect(() => {
    const off = onChange("session", (c) => {
      found.set((d) => {
        const others = d.sessions.filter((s) => s.id !== c.id);
        return c.row
          ? { ...d, sessions: [...others, c.row as Session].sort((a, b) => (a.created_at < b.created_at ? 1 : -1)) }
          : { ...d, sessions: others };
      });
    });
    const reset = onReset(() => {
      void found.reload();
    });
    return () => {
      off();
      reset();
    };
  }, [found]);
  const waiting = useQuery(path("agents", agentId.value, "waiting"), { limit: 100 });
  useEffect(
    () =>
      onChange("takeover", () => {
        void waiting.reload();
      }),
    [waiting],
  );
  const needed = (waiting.data.value?.waiting ?? []).map((w) => w.session_id);
  const open = () =>
    openDialog((close) => (
      <OpenSessionForm
        close={close}
        missing={setMissing}
        made={(s) => {
          setMissing("");
          void found.reload();
          go(href(agentId.value, "browser", s.id));
        }}
      />
    ));
  const list = found.data.value?.sessions ?? [];
  const none = found.data.value && list.length === 0;
  return (
    <div class={`page full sessions ${current ? "reading" : ""} ${none || missing ? "nothing" : ""}`}>
      <aside class="session-list" aria-label="Sessions">
        <div class="row nowrap">
          <h1 class="grow" tabIndex={-1}>
            Browser
          </h1>
          {mayEdit.value && (
            <Button icon="Plus" kind={none ? undefined : "primary"} onClick={open}>
              Open
            </Button>
          )}
        </div>
        <Load of={found} lines={6}>
          {({ sessions, meta }) => (
            <>
              <ul class="session-entries">
                {sessions.map((s) => (
                  <Entry key={s.id} s={s} on={s.id === current} needed={!ended(s) && needed.includes(s.id)} />
                ))}
              </ul>
              {!sessions.length && (
                <p class="muted small none">No sessions open, and none ended in the last 30 days.</p>
              )}
              {meta.total > sessions.length && <Button onClick={() => setLimit(limit + pageSize)}>More</Button>}
            </>
          )}
        </Load>
      </aside>
      {current ? (
        <SessionView key={current} id={current} tab={tab} />
      ) : (
        <section class="session-none">
          {missing ? (
            <Missing text={missing} />
          ) : none ? (
            <Empty
              icon="Globe"
              title="No browser sessions yet"
              action={
                mayEdit.value && (
                  <Button kind="primary" icon="Plus" onClick={open}>
                    Open session
                  </Button>
                )
              }
            >
              The agent opens pages in a real Chromium. Workflows use it to log in, read and download; you can watch or
              take over.
            </Empty>
          ) : (
            found.data.value && (
              <Empty icon="Globe" title="Choose a session">
                See its page live, with a log of every action.
              </Empty>
            )
          )}
        </section>
      )}
    </div>
  );
}

/** Says how to get Chromium. */
function Missing({ text }: { text: string }) {
  return (
    <Empty
      icon="TriangleAlert"
      title="Chromium isn't installed yet"
      action={<CopyButton text="satchel browser install">satchel browser install</CopyButton>}
    >
      {text} Run this where the server runs, then open a session again.
    </Empty>
  );
}

function Entry({
  s,
  on,
  needed,
}: {
  s: Session;
  on: boolean;
  /** A person is asked to take it over. */ needed: boolean;
}) {
  const ref = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (on) ref.current?.scrollIntoView({ block: "nearest" });
  }, [on]);
  return (
    <li ref={ref} class={`${on ? "on" : ""} ${ended(s) ? "over" : ""}`}>
      <a href={href(agentId.value, "browser", s.id)} aria-current={on ? "true" : undefined}>
        <Thumbnail s={s} />
        <span class="session-name clip">
          <bdi>{nameOf(s)}</bdi>
        </span>
        <span class="row nowrap small muted">
          {needed && s.status !== "takeover" ? (
            <Badge tone="warn" title="A person is asked to take it over">
              needs you
            </Badge>
          ) : (
            <Badge tone={s.status === "takeover" ? "warn" : undefined}>{s.status}</Badge>
          )}
          <When time={s.closed_at ?? s.last_activity} />
        </span>
      </a>
    </li>
  );
}
