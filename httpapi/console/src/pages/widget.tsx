// Website widget: the chat on websites, its form, its preview and its snippet.
import { useEffect, useState } from "preact/hooks";

import { go, href, mayEdit, onChange, path, remove, route, session, useQuery, type API } from "../data";
import {
  Badge,
  Button,
  confirm,
  CopyButton,
  Empty,
  Icon,
  LinkButton,
  Load,
  Segments,
  Table,
  tell,
  When,
  type Values,
} from "../ui";
import { style } from "../parts/styles";
import { View, type Message, type State } from "../widget/view";
import { usual, WidgetForm, type WidgetValues } from "./widget/form";
import "../css/widget.css";

export const styles = style("./widget.css");

export { WidgetForm };

/** The widget's own styles, for the preview. */
function useWidgetStyle() {
  useEffect(() => {
    const address = new URL("./widget-frame.css", import.meta.url).href;
    if ([...document.styleSheets].some((s) => s.href === address)) return;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: address }));
  }, []);
}

export default function Widget() {
  const { agent: id, rest } = route.value;
  useWidgetStyle();
  if (rest[0] === "new")
    return (
      <div class="page">
        <Back id={id} />
        <h1 tabIndex={-1}>New widget</h1>
        <Warnings />
        <Columns id={id} done={(g) => go(href(id, "widget", g))} />
      </div>
    );
  return rest[0] ? <One key={rest[0]} id={id} gateway={rest[0]} /> : <All id={id} />;
}

const Back = ({ id }: { id: string }) => (
  <p>
    <a href={href(id, "widget")}>
      <Icon name="ArrowLeft" size={16} /> All widgets
    </a>
  </p>
);

function All({ id }: { id: string }) {
  const found = useQuery(path("agents", id, "gateways"), { type: "web", limit: 100 });
  useEffect(() => onChange("gateway", found.soon), [found]);
  const make = (
    <LinkButton kind="primary" icon="Plus" href={href(id, "widget", "new")}>
      New widget
    </LinkButton>
  );
  return (
    <div class="page">
      <div class="row">
        <h1 class="grow" tabIndex={-1}>
          Website widget
        </h1>
        {mayEdit.value && (found.data.value?.gateways.length ?? 0) > 0 && make}
      </div>
      <Load of={found}>
        {({ gateways }) =>
          gateways.length ? (
            <Table
              rows={gateways}
              keyOf={(g) => g.id}
              open={(g) => href(id, "widget", g.id)}
              columns={[
                {
                  title: "Name",
                  cell: (g) => (
                    <a href={href(id, "widget", g.id)}>
                      <bdi>{g.name}</bdi>
                    </a>
                  ),
                },
                {
                  title: "Status",
                  cell: (g) => (
                    <>
                      <Badge>{g.status}</Badge>
                      {!g.configured_fields.includes("allowedOrigins") && (
                        <>
                          {" "}
                          <Badge tone="warn">no websites</Badge>
                        </>
                      )}
                    </>
                  ),
                },
                { title: "Messages today", cell: (g) => g.events_today.toLocaleString() },
                { title: "Last message", cell: (g) => <When time={g.last_event_at} /> },
              ]}
            />
          ) : (
            <Empty icon="MessageCircle" title="No widget yet" action={mayEdit.value && make}>
              A chat on your website: the agent answers visitors from its knowledge, and you can take over in the Inbox.
            </Empty>
          )
        }
      </Load>
    </div>
  );
}

function One({ id, gateway }: { id: string; gateway: string }) {
  const at = path("agents", id, "gateways", gateway);
  const found = useQuery(at);
  const options = useQuery(path("agents", id, "gateways", gateway, "widget"));
  const reload = async () => {
    await Promise.all([found.reload(), options.reload()]);
  };
  const drop = (g: API.Gateway) =>
    confirm({
      title: `Delete ${g.name}?`,
      text: "Pages no longer show the widget. Its conversations stay.",
      action: "Delete",
      run: async () => {
        await remove(at);
        go(href(id, "widget"));
      },
    });
  return (
    <div class="page">
      <Back id={id} />
      <Load of={found} title="Website widget">
        {(g) => (
          <>
            <div class="row">
              <h1 class="grow" tabIndex={-1}>
                <bdi>{g.name}</bdi> <Badge>{g.status}</Badge>
              </h1>
              <LinkButton icon="Inbox" href={`${href(id, "inbox")}?channel=${encodeURIComponent(g.id)}`}>
                Conversations
              </LinkButton>
              {mayEdit.value && <Button icon="Trash2" label="Delete" onClick={() => drop(g)} />}
            </div>
            {g.last_error && (
              <p class="card bad">
                <span>
                  Last error, <When time={g.last_error_at} />: <bdi>{g.last_error}</bdi>
                </span>
              </p>
            )}
            <Warnings script={options.data.value?.script} />
            <Load of={options}>
              {(o) => (
                <>
                  <section class="card stack" aria-label="Snippet">
                    <div class="row">
                      <h2 class="grow">Paste this into your pages, before &lt;/body&gt;</h2>
                      <CopyButton text={o.snippet}>Copy</CopyButton>
                    </div>
                    <pre class="widget-snippet">
                      <code>{o.snippet}</code>
                    </pre>
                    {!o.config.allowedOrigins?.length && (
                      <p class="issue">Not shown anywhere yet: add your website below.</p>
                    )}
                  </section>
                  <Columns key={g.id} id={id} gateway={g} options={o} done={reload} />
                </>
              )}
            </Load>
          </>
        )}
      </Load>
    </div>
  );
}

/** What keeps visitors from an answer, or lets them do too much. */
function Warnings({ script }: { script?: string }) {
  const { agent: id } = route.value;
  const settings = useQuery(path("agents", id, "settings"));
  const s = settings.data.value;
  const local = script && /^https?:\/\/(127\.|localhost|\[::1\])/.test(script);
  return (
    <>
      {session.value?.open && (
        <p class="card warn">
          <strong>This server has no login.</strong> Anyone who reaches it acts as owner, and the widget reveals its
          address to every visitor. <a href="#/keys">Create API key</a> before you put the widget on a public website.
        </p>
      )}
      {local && (
        <p class="card">
          The widget is loaded from <code>{new URL(script).host}</code>, which only this computer reaches. For visitors,
          set SATCHEL_PUBLIC_URL to the server's public address.
        </p>
      )}
      {s && (!s.llm_provider || !s.auto_reply) && (
        <p class="card">
          Every message waits for a person: {s.llm_provider ? "automatic answers are off" : "no language model is set"}.{" "}
          <a href={href(id, "settings")}>Settings</a>
        </p>
      )}
    </>
  );
}

/** The form beside its preview. */
function Columns({
  id,
  gateway,
  options,
  done,
}: {
  id: string;
  gateway?: API.Gateway;
  options?: API.WidgetDetails;
  done: (gateway: string) => unknown;
}) {
  const [look, setLook] = useState<Values>({ ...usual, ...options?.config });
  return (
    <div class="widget-columns">
      <WidgetForm id={id} gateway={gateway} options={options} done={done} onLook={setLook} />
      <Preview look={look} />
    </div>
  );
}

const state: State = {
  open: true,
  opens_at: "",
  bot: true,
  answering: false,
  needs_human: false,
  person: false,
  email: "",
};
const said = (id: number, from: Message["from"], text: string, more: Partial<Message> = {}): Message => ({
  id,
  from,
  text,
  created_at: "",
  ...more,
});
const question = said(1, "visitor", "Can I return bread?");
const scenes: Record<string, { state: State; messages: Message[] }> = {
  answer: {
    state,
    messages: [
      question,
      said(2, "bot", "Yes, within two days, with the receipt.", { sources: [{ n: 1, name: "Handbook" }] }),
    ],
  },
  person: {
    state: { ...state, person: true },
    messages: [
      question,
      said(2, "visitor", "A person, please"),
      said(3, "person", "Hello, this is Ada. How can I help?"),
    ],
  },
  away: {
    state: { ...state, open: false, person: true, needs_human: true },
    messages: [said(1, "visitor", "A person, please")],
  },
};

/** The widget as visitors see it; nothing in it can be used. */
function Preview({ look }: { look: Partial<WidgetValues> }) {
  const [scene, setScene] = useState("answer");
  const of = (name: keyof typeof usual) => look[name] || usual[name];
  const color = /^#[0-9a-f]{6}$/i.test(look.color ?? "") ? look.color! : usual.color;
  return (
    <section class="widget-preview" aria-label="Preview">
      <Segments
        label="Preview"
        value={scene}
        onChange={setScene}
        options={[
          ["answer", "Answer"],
          ["person", "Person"],
          ["away", "Away"],
        ]}
      />
      <div class="widget-frame" inert aria-hidden="true">
        <View
          key={scene}
          look={{
            title: String(of("title")),
            greeting: String(of("greeting")),
            color,
            ask_email: String(of("askEmail")),
            offline_message: String(of("offlineMessage")),
            files:
              String(look.files ?? usual.files) === "false"
                ? null
                : { max: Number(of("maxFiles")), max_size: Number(of("maxFileSize")) << 20, types: [] },
          }}
          {...scenes[scene]}
          partial=""
          send={() => tell("")}
          sendAgain={() => {}}
          giveEmail={async () => {}}
          close={() => {}}
        />
      </div>
    </section>
  );
}
