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

/** Loads the newest sessions, up to a limit, and keeps them current. */
function useSessions(limit: number) {
  const found = useQuery<{ sessions: Session[]; meta: { total: number } }>(at(), { limit });
  useEffect(() => {
    const unsubscribe = onChange("session", ({ id, row }) =>
      found.set((list) => {
        const sessions = list.sessions.filter((session) => session.id !== id);
        if (row) sessions.push(row as Session);
        return { ...list, sessions: sessions.sort((a, b) => (a.created_at < b.created_at ? 1 : -1)) };
      }),
    );
    const unsubscribeReset = onReset(() => void found.reload());
    return () => {
      unsubscribe();
      unsubscribeReset();
    };
  }, [found]);
  return found;
}

/** The ids of sessions that a person is asked to take over. */
function useRequested() {
  const waiting = useQuery(path("agents", agentId.value, "waiting"), { limit: 100 });
  useEffect(() => onChange("takeover", () => void waiting.reload()), [waiting]);
  return (waiting.data.value?.waiting ?? []).map(({ session_id }) => session_id);
}

/** The page of browser sessions: their list, and the session of the address. */
export default function Browser() {
  const [current = "", tab = ""] = route.value.rest;
  const [limit, setLimit] = useState(pageSize);
  const [missing, setMissing] = useState("");
  const found = useSessions(limit);
  const requested = useRequested();
  const opened = ({ id }: Session) => {
    setMissing("");
    void found.reload();
    go(href(agentId.value, "browser", id));
  };
  const open = () => openDialog((close) => <OpenSessionForm close={close} missing={setMissing} opened={opened} />);
  const none = found.data.value?.sessions.length === 0;
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
                {sessions.map((session) => (
                  <SessionItem
                    key={session.id}
                    session={session}
                    current={session.id === current}
                    requested={!ended(session) && requested.includes(session.id)}
                  />
                ))}
              </ul>
              {none && <p class="muted small none">No sessions open, and none ended in the last 30 days.</p>}
              {meta.total > sessions.length && <Button onClick={() => setLimit(limit + pageSize)}>More</Button>}
            </>
          )}
        </Load>
      </aside>
      {current ? (
        <SessionView key={current} id={current} tab={tab} />
      ) : (
        <section class="session-none">
          {missing && <ChromiumMissing text={missing} />}
          {!missing && found.data.value && <NoneShown none={none} open={open} />}
        </section>
      )}
    </div>
  );
}

/** Stands where a session would be shown; none: there is no session. */
function NoneShown({ none, open }: { none: boolean; open: () => void }) {
  if (!none)
    return (
      <Empty icon="Globe" title="Choose a session">
        See its page live, with a log of every action.
      </Empty>
    );
  const action = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={open}>
      Open session
    </Button>
  );
  return (
    <Empty icon="Globe" title="No browser sessions yet" action={action}>
      The agent opens pages in a real Chromium. Workflows use it to log in, read and download; you can watch or take
      over.
    </Empty>
  );
}

/** Says how to install Chromium. */
function ChromiumMissing({ text }: { text: string }) {
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

type SessionItemProps = {
  session: Session;
  current: boolean;
  /** A person is asked to take it over. */
  requested: boolean;
};

function SessionItem({ session, current, requested }: SessionItemProps) {
  const ref = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (current) ref.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const takenOver = session.status === "takeover";
  return (
    <li ref={ref} class={`${current ? "on" : ""} ${ended(session) ? "over" : ""}`}>
      <a href={href(agentId.value, "browser", session.id)} aria-current={current ? "true" : undefined}>
        <Thumbnail session={session} />
        <span class="session-name clip">
          <bdi>{nameOf(session)}</bdi>
        </span>
        <span class="row nowrap small muted">
          {requested && !takenOver ? (
            <Badge tone="warn" title="A person is asked to take it over">
              needs you
            </Badge>
          ) : (
            <Badge tone={takenOver ? "warn" : undefined}>{session.status}</Badge>
          )}
          <When time={session.closed_at ?? session.last_activity} />
        </span>
      </a>
    </li>
  );
}
