// Channels: the platforms on which people talk with the agent.

import { agentId, go, href, mayEdit, path, put, route, setQuery, useQuery, type API } from "../data";
import {
  Badge,
  Empty,
  Icon,
  LinkButton,
  Load,
  Name,
  Pager,
  platformName,
  plural,
  Switch,
  showToast,
  When,
} from "../ui";
import { useFollow } from "../parts/follow";
import { channelsAt } from "./channels/api";
import { Channel } from "./channels/channel";
import { ConnectForm } from "./channels/connect";
import { platformOf, platforms, type Platform } from "./channels/platforms";
import { ChannelState } from "./channels/state";

export default function Channels() {
  const [first, second] = route.value.rest;
  if (first !== "new") return first ? <Channel key={first} id={first} /> : <List />;
  const platform = platforms.find((p) => p.id === second && !p.section);
  if (platform) return <Connect key={second} platform={platform} />;
  return (
    <div class="page">
      <Empty
        icon="CircleHelp"
        title="Platform not found"
        action={<LinkButton href={href(agentId.value, "channels")}>All channels</LinkButton>}
      />
    </div>
  );
}

function List() {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery(channelsAt(), { limit: 50, offset });
  useFollow("gateway", found.reload);
  return (
    <div class="page">
      <h1 tabIndex={-1}>Channels</h1>
      <AutoReply />
      <Load of={found}>
        {({ gateways, meta }) => (
          <>
            {gateways.length > 0 ? (
              <ul class="sources">
                {gateways.map((g) => (
                  <Row key={g.id} g={g} />
                ))}
              </ul>
            ) : (
              <Empty icon="Plug" title="No channels yet">
                Channels let people message the agent where they already are. Telegram is the quickest: it needs no
                public address.
              </Empty>
            )}
            <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
          </>
        )}
      </Load>
      <section class="stack" aria-label="Platforms">
        <h2>{mayEdit.value ? "Connect a platform" : "Platforms"}</h2>
        <ul class="cards">
          {platforms.map((p) => (
            <li key={p.id}>
              <Card p={p} />
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

function Card({ p }: { p: Platform }) {
  const inside = (
    <>
      <span class="row">
        <span class="tile">
          <Icon name={p.icon} />
        </span>
        <strong class="grow">{p.title}</strong>
        {mayEdit.value && <Icon name="ChevronRight" />}
      </span>
      <span>{p.about}</span>
      <span class="small muted">You need: {p.needs}</span>
    </>
  );
  return mayEdit.value ? (
    <a
      class="card"
      href={p.section ? href(agentId.value, p.section, "new") : href(agentId.value, "channels", "new", p.id)}
    >
      {inside}
    </a>
  ) : (
    <div class="card stack tight">{inside}</div>
  );
}

/** Whether the agent answers by itself what comes in over its channels. */
function AutoReply() {
  const at = path("agents", agentId.value, "settings");
  const found = useQuery(at);
  const s = found.data.value;
  if (!s) return null;
  const set = async (on: boolean) => {
    try {
      await put(at, { auto_reply: on });
      showToast(on ? "Automatic replies are on" : "Automatic replies are off");
    } catch (error) {
      showToast(error);
    }
    await found.reload();
  };
  return (
    <section class="card row auto-reply" aria-label="Automatic replies">
      <div class="grow">
        <Switch
          label="Answer messages automatically"
          checked={Boolean(s.auto_reply)}
          disabled={!mayEdit.value}
          onChange={set}
        />
        <p class="small muted">
          From its knowledge, on all channels, unless an active workflow handles the message or a person has taken over.
        </p>
        {s.auto_reply && !s.llm_provider && <p class="small issue">Not possible yet: no model is set.</p>}
      </div>
      {!s.llm_provider && (
        <LinkButton href={href(agentId.value, "settings", "model")} icon="Sparkles">
          Choose a model
        </LinkButton>
      )}
    </section>
  );
}

function Row({ g }: { g: API.Gateway }) {
  const p = platformOf(g);
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name={p?.icon ?? "MessageCircle"} />
      </span>
      <div class="grow">
        <a href={href(agentId.value, p?.section ?? "channels", g.id)}>
          <Name>{g.name}</Name>
        </a>
        <p class="muted small">
          {p?.title ?? platformName(g.type)} ·{" "}
          {g.event_count ? (
            <>
              {plural(g.events_today, "event")} today · last <When time={g.last_event_at} />
            </>
          ) : p?.id === "smtp" ? (
            "sends only"
          ) : (
            "nothing has come in yet"
          )}
        </p>
        {g.status !== "active" && g.last_error && (
          <p class="issue small clip">
            <bdi>{g.last_error}</bdi>
          </p>
        )}
      </div>
      {g.is_default && <Badge title="Messages on this platform go here unless a channel is named">default</Badge>}
      <ChannelState g={g} />
    </li>
  );
}

/** Connects a platform: stored and verified in one step. */
function Connect({ platform: p }: { platform: Platform }) {
  const back = href(agentId.value, "channels");
  return (
    <div class="page">
      <p class="crumb">
        <a href={back}>Channels</a>
      </p>
      <h1 tabIndex={-1}>Connect {p.title}</h1>
      <div class="split">
        <section class="card stack" aria-label="Credentials">
          <ConnectForm
            platform={p}
            cancel={() => go(back)}
            done={(id) => go(href(agentId.value, "channels", id), true)}
          />
        </section>
        <aside class="stack" aria-label="What to do">
          <h2>What you need</h2>
          <p>{p.needs}</p>
          <ol class="steps">
            {p.steps.map((s) => (
              <li>{s}</li>
            ))}
          </ol>
          {p.link && (
            <p>
              <a href={p.link[0]} target="_blank" rel="noopener noreferrer">
                {p.link[1]} <Icon name="ExternalLink" size={14} />
              </a>
            </p>
          )}
          <p class="small muted">
            Credentials are encrypted in the agent's file, sent only to the platform, and never shown again.
          </p>
        </aside>
      </div>
    </div>
  );
}
