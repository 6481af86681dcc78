// One channel: how messages come in, a test, its credentials, and what happened there.
import { useState } from "preact/hooks";

import {
  agentId,
  ApiError,
  go,
  href,
  listHref,
  invalidate,
  mayEdit,
  path,
  post,
  put,
  remove,
  session,
  useQuery,
  type API,
} from "../../data";
import {
  Badge,
  Button,
  confirm,
  CopyField,
  FormDialog,
  Icon,
  LinkButton,
  Load,
  Menu,
  Moment,
  Name,
  openDialog,
  platformName,
  span,
  showToast,
  TextField,
  useForm,
  When,
  type MenuItem,
} from "../../ui";
import { useFollow } from "../../parts/follow";
import { aboutRecord } from "../../parts/records";
import { Simulate } from "../../parts/simulate";
import { channelsAt, verify } from "./api";
import { ChannelForm } from "./form";
import { platformOf, type Platform } from "./platforms";
import { ChannelState } from "./state";

export function Channel({ id }: { id: string }) {
  const found = useQuery(channelsAt(id));
  useFollow("gateway", found.reload);
  const [info, setInfo] = useState<Record<string, unknown>>();
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "channels")}>Channels</a>
      </p>
      <Load of={found} lines={8} title="Channel">
        {(g) => {
          const p = platformOf(g);
          const check = async () => {
            setInfo(undefined);
            try {
              setInfo(await verify(id));
              showToast("Registered with the platform");
            } finally {
              await found.reload();
            }
          };
          return (
            <>
              <Head g={g} p={p} check={check} changed={found.reload} />
              {g.last_error &&
                (g.status !== "active" ||
                  Date.parse(g.last_error_at ?? "1970-01-01") > Date.parse(g.last_event_at ?? "1970-01-01")) && (
                  <div key="error" class="card bad" role="status">
                    <p>
                      <bdi>{g.last_error}</bdi>
                    </p>
                    <p class="small muted">
                      Last error, <When time={g.last_error_at} />
                    </p>
                  </div>
                )}
              {info && Object.keys(info).length > 0 && (
                <section class="card" aria-label="Account">
                  <dl class="facts-list">
                    {Object.entries(info).map(([name, value]) => (
                      <>
                        <dt>{inWords(name)}</dt>
                        <dd>
                          <bdi>{typeof value === "object" ? JSON.stringify(value) : String(value)}</bdi>
                        </dd>
                      </>
                    ))}
                  </dl>
                </section>
              )}
              <div key="parts" class="split">
                <div class="stack">
                  {p && !p.section && (
                    <>
                      <Receiving g={g} p={p} changed={found.reload} />
                      <Test g={g} p={p} />
                    </>
                  )}
                  <Latest id={id} />
                </div>
                {p?.section && (
                  <section class="card stack">
                    <h2>Settings</h2>
                    <div class="row">
                      <LinkButton href={href(agentId.value, p.section, g.id)}>Open settings</LinkButton>
                    </div>
                  </section>
                )}
                {p && !p.section && (
                  <section class="card stack" aria-label="Credentials">
                    <h2>Name and credentials</h2>
                    <ChannelForm
                      key={g.id}
                      platform={p}
                      name={g.name}
                      stored={g.configured_fields}
                      action="Save"
                      save={async (name, config) => {
                        const given = Object.keys(config).length > 0;
                        await put(channelsAt(id), given ? { name, config } : { name });
                        setInfo(undefined);
                        try {
                          if (given) setInfo(await verify(id));
                          showToast("Saved");
                        } finally {
                          await found.reload();
                        }
                      }}
                    />
                  </section>
                )}
              </div>
            </>
          );
        }}
      </Load>
    </div>
  );
}

/** The name of a field of a platform, such as firstName, as people write it. */
const inWords = (name: string) =>
  name.replace(/^./, (first) => first.toUpperCase()).replace(/(?<=[a-z])[A-Z]/g, (next) => ` ${next.toLowerCase()}`);

function Head({
  g,
  p,
  check,
  changed,
}: {
  g: API.Gateway;
  p?: Platform;
  check: () => Promise<void>;
  changed: () => Promise<void>;
}) {
  const items: MenuItem[] = [
    {
      label: "Simulate a message",
      icon: "MessageSquare",
      disabled: g.status !== "active",
      reason: g.status === "active" ? undefined : "Verify the channel first.",
      run: () => {
        openDialog((close) => <Simulate id={agentId.value} gateway={g.id} close={close} />);
      },
    },
    {
      label: "Make default",
      icon: "Check",
      disabled: g.is_default,
      reason: g.is_default ? "This is the default." : undefined,
      run: async () => {
        await put(channelsAt(g.id), { is_default: true });
        await changed();
      },
    },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      run: () =>
        confirm({
          title: `Delete ${g.name}?`,
          text: "The channel and its credentials are deleted; its conversations stay.",
          action: "Delete",
          run: async () => {
            await remove(channelsAt(g.id));
            invalidate(channelsAt());
            go(href(agentId.value, "channels"));
          },
        }),
    },
  ];
  return (
    <div class="page-head">
      <span class="tile">
        <Icon name={p?.icon ?? "MessageCircle"} />
      </span>
      <h1 class="grow" tabIndex={-1}>
        <Name>{g.name}</Name>
      </h1>
      <span class="muted">{p?.title ?? platformName(g.type)}</span>
      <ChannelState g={g} />
      {g.is_default && <Badge>default</Badge>}
      {mayEdit.value && (
        <>
          <Button icon="RefreshCw" kind={g.status === "active" ? undefined : "primary"} onClick={check}>
            Verify
          </Button>
          <Menu label="More" items={items} />
        </>
      )}
    </div>
  );
}

/** How what people write reaches the agent. */
function Receiving({ g, p, changed }: { g: API.Gateway; p: Platform; changed: () => Promise<void> }) {
  const [said, setSaid] = useState<API.RegisteredDetails>();
  if (p.receives === "none")
    return (
      <section class="card stack" aria-label="Receiving">
        <h2>Receiving</h2>
        <p class="muted">This channel only sends. Resend receives as well.</p>
      </section>
    );
  const open = session.value?.public_url;
  const address =
    said?.webhookUrl ?? new URL(g.webhook_url.replace(/^\//, ""), open ? `${open}/` : document.baseURI).href;
  const register = () =>
    openDialog((close) => (
      <FormDialog
        title="Register webhook"
        close={close}
        action="Register"
        initial={{ baseUrl: open ?? "" }}
        run={async (v) => {
          setSaid(
            await post(
              channelsAt(g.id, "webhook", "register"),
              v.baseUrl && v.baseUrl !== open ? { baseUrl: v.baseUrl } : {},
            ),
          );
          await changed();
        }}
      >
        {(f) => (
          <>
            <p class="muted">{p.title} is told where to post what people write. It must reach this server there.</p>
            <TextField
              label="Public address of this server"
              type="url"
              placeholder="https://satchel.example.com"
              hint="Empty: the one the server was started with."
              {...f.text("baseUrl")}
            />
          </>
        )}
      </FormDialog>
    ));
  return (
    <section class="card stack" aria-label="Receiving">
      <h2>Receiving</h2>
      {p.receives === "poll" && (
        <p class="muted">
          {open
            ? "Register the webhook to get messages from Telegram instantly."
            : "Messages are fetched from Telegram by long polling; there's nothing to set up."}
        </p>
      )}
      {p.receives !== "poll" && !open && (
        <p class="warn-text">
          {p.id === "webhook"
            ? "The platform can only reach this server at a public address."
            : `${p.title} must reach this server. Start it with SATCHEL_PUBLIC_URL, or give its public address below.`}
        </p>
      )}
      <CopyField label="Webhook address" text={address} />
      {said && (
        <div class={said.success ? "card" : "card bad"} role="status">
          <p>{said.success ? said.instructions || "The platform now posts there." : said.error}</p>
        </div>
      )}
      {mayEdit.value && (
        <div class="row">
          <Button
            icon="Webhook"
            onClick={() => {
              register();
            }}
          >
            {p.receives === "manual" ? "Show what to enter" : "Register webhook"}
          </Button>
        </div>
      )}
    </section>
  );
}

/** Sends a message to try the channel. */
function Test({ g, p }: { g: API.Gateway; p: Platform }) {
  const form = useForm({ to: "", text: "Hello from Satchel" });
  const [done, setDone] = useState<API.TestGatewayDetails>();
  const [busy, setBusy] = useState(false);
  if (!mayEdit.value) return null;
  const send = async () => {
    setBusy(true);
    setDone(undefined);
    form.setIssues({});
    try {
      setDone(await post(channelsAt(g.id, "test"), form.values));
    } catch (error) {
      if (error instanceof ApiError && (error.issues.to || error.issues.text)) form.setIssues(error.issues);
      else showToast(error);
    }
    setBusy(false);
  };
  const ready = g.status === "active";
  return (
    <form
      class="card stack"
      aria-label="Test message"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
    >
      <h2>Send a test message</h2>
      <TextField label="To" placeholder={p.to} {...form.text("to")} />
      <TextField label="Text" {...form.text("text")} />
      {done && (
        <p class={done.success ? "row test-good" : "row issue"} role="status">
          <Icon name={done.success ? "CircleCheck" : "CircleAlert"} />
          <span class="grow">{done.success ? `Sent in ${span(done.duration_ms)}` : <bdi>{done.error}</bdi>}</span>
        </p>
      )}
      <div class="row end">
        <Button icon="Send" submit disabled={!ready || busy} reason="Verify the channel first.">
          Send
        </Button>
      </div>
    </form>
  );
}

/** What happened on the channel last. */
function Latest({ id }: { id: string }) {
  const found = useQuery(path("agents", agentId.value, "events"), { gateway_id: id, limit: 8 });
  useFollow("*", found.reload);
  return (
    <section class="card stack" aria-label="Events">
      <div class="row">
        <h2 class="grow">Events</h2>
        <a href={`${href(agentId.value, "activity", "events")}?gateway=${encodeURIComponent(id)}`}>All</a>
      </div>
      <Load of={found} lines={3}>
        {({ events, meta }) =>
          events.length === 0 ? (
            <p class="muted">{meta.next_cursor ? "None among the newest events." : "Nothing here yet."}</p>
          ) : (
            <ul class="plain">
              {events.map((e) => (
                <li key={e.id} class="row event-line">
                  <Moment time={e.created_at} />
                  <span class="muted">{e.type}</span>
                  <span class="grow clip">
                    <bdi>{aboutRecord(e)}</bdi>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Load>
    </section>
  );
}
