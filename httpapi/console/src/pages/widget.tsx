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
  showToast,
  When,
  type Column,
  type Values,
} from "../ui";
import { style } from "../parts/styles";
import { View, type Message, type State } from "../widget/view";
import { toColor, widgetDefaults, WidgetForm, type WidgetValues } from "./widget/form";
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

/** The page of widgets: the list, a new widget, or the widget of the address. */
export default function Widget() {
  const { agent: id, rest } = route.value;
  useWidgetStyle();
  if (rest[0] === "new")
    return (
      <div class="page">
        <Back id={id} />
        <h1 tabIndex={-1}>New widget</h1>
        <Warnings />
        <FormWithPreview id={id} done={(gateway) => go(href(id, "widget", gateway))} />
      </div>
    );
  return rest[0] ? <WidgetPage key={rest[0]} id={id} gateway={rest[0]} /> : <WidgetList id={id} />;
}

const Back = ({ id }: { id: string }) => (
  <p>
    <a href={href(id, "widget")}>
      <Icon name="ArrowLeft" size={16} /> All widgets
    </a>
  </p>
);

function WidgetList({ id }: { id: string }) {
  const found = useQuery(path("agents", id, "gateways"), { type: "web", limit: 100 });
  useEffect(() => onChange("gateway", found.reloadThrottled), [found]);
  const create = mayEdit.value && (
    <LinkButton kind="primary" icon="Plus" href={href(id, "widget", "new")}>
      New widget
    </LinkButton>
  );
  const columns: Column<API.Gateway>[] = [
    {
      title: "Name",
      cell: (gateway) => (
        <a href={href(id, "widget", gateway.id)}>
          <bdi>{gateway.name}</bdi>
        </a>
      ),
    },
    { title: "Status", cell: (gateway) => <Status gateway={gateway} /> },
    { title: "Messages today", cell: (gateway) => gateway.events_today.toLocaleString() },
    { title: "Last message", cell: (gateway) => <When time={gateway.last_event_at} /> },
  ];
  return (
    <div class="page">
      <div class="row">
        <h1 class="grow" tabIndex={-1}>
          Website widget
        </h1>
        {(found.data.value?.gateways.length ?? 0) > 0 && create}
      </div>
      <Load of={found}>
        {({ gateways }) => {
          if (gateways.length)
            return (
              <Table
                rows={gateways}
                keyOf={(gateway) => gateway.id}
                open={(gateway) => href(id, "widget", gateway.id)}
                columns={columns}
              />
            );
          return (
            <Empty icon="MessageCircle" title="No widget yet" action={create}>
              A chat on your website: the agent answers visitors from its knowledge, and you can take over in the Inbox.
            </Empty>
          );
        }}
      </Load>
    </div>
  );
}

function Status({ gateway }: { gateway: API.Gateway }) {
  return (
    <>
      <Badge>{gateway.status}</Badge>
      {!gateway.configured_fields.includes("allowedOrigins") && (
        <>
          {" "}
          <Badge tone="warn">no websites</Badge>
        </>
      )}
    </>
  );
}

function WidgetPage({ id, gateway: gatewayId }: { id: string; gateway: string }) {
  const found = useQuery(path("agents", id, "gateways", gatewayId));
  const options = useQuery(path("agents", id, "gateways", gatewayId, "widget"));
  const reload = async () => {
    await Promise.all([found.reload(), options.reload()]);
  };
  return (
    <div class="page">
      <Back id={id} />
      <Load of={found} title="Website widget">
        {(gateway) => (
          <>
            <Head id={id} gateway={gateway} />
            {gateway.last_error && (
              <p class="card bad">
                <span>
                  Last error, <When time={gateway.last_error_at} />: <bdi>{gateway.last_error}</bdi>
                </span>
              </p>
            )}
            <Warnings script={options.data.value?.script} />
            <Load of={options}>
              {(details) => (
                <>
                  <Snippet options={details} />
                  <FormWithPreview key={gatewayId} id={id} gateway={gateway} options={details} done={reload} />
                </>
              )}
            </Load>
          </>
        )}
      </Load>
    </div>
  );
}

function Head({ id, gateway }: { id: string; gateway: API.Gateway }) {
  const askToDelete = () =>
    confirm({
      title: `Delete ${gateway.name}?`,
      text: "Pages no longer show the widget. Its conversations stay.",
      action: "Delete",
      run: async () => {
        await remove(path("agents", id, "gateways", gateway.id));
        go(href(id, "widget"));
      },
    });
  return (
    <div class="row">
      <h1 class="grow" tabIndex={-1}>
        <bdi>{gateway.name}</bdi> <Badge>{gateway.status}</Badge>
      </h1>
      <LinkButton icon="Inbox" href={`${href(id, "inbox")}?channel=${encodeURIComponent(gateway.id)}`}>
        Conversations
      </LinkButton>
      {mayEdit.value && <Button icon="Trash2" label="Delete" onClick={askToDelete} />}
    </div>
  );
}

/** The HTML that shows the widget on a website. */
function Snippet({ options: { snippet, config } }: { options: API.WidgetDetails }) {
  return (
    <section class="card stack" aria-label="Snippet">
      <div class="row">
        <h2 class="grow">Paste this into your pages, before &lt;/body&gt;</h2>
        <CopyButton text={snippet}>Copy</CopyButton>
      </div>
      <pre class="widget-snippet">
        <code>{snippet}</code>
      </pre>
      {!config.allowedOrigins?.length && <p class="issue">Not shown anywhere yet: add your website below.</p>}
    </section>
  );
}

/** Warns of settings by which visitors get no answer, or can do too much. */
function Warnings({ script }: { script?: string }) {
  const { agent: id } = route.value;
  const settings = useQuery(path("agents", id, "settings")).data.value;
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
          The widget is loaded from <code>{new URL(script).host}</code>, which only this computer can reach. For
          visitors, set SATCHEL_PUBLIC_URL to the server's public address.
        </p>
      )}
      {settings && (!settings.llm_provider || !settings.auto_reply) && (
        <p class="card">
          Every message waits for a person:{" "}
          {settings.llm_provider ? "automatic answers are off" : "no language model is set"}.{" "}
          <a href={href(id, "settings")}>Settings</a>
        </p>
      )}
    </>
  );
}

type FormWithPreviewProps = {
  id: string;
  gateway?: API.Gateway;
  options?: API.WidgetDetails;
  done: (gateway: string) => unknown;
};

function FormWithPreview({ id, gateway, options, done }: FormWithPreviewProps) {
  const [values, setValues] = useState<Values>({ ...widgetDefaults, ...options?.config });
  return (
    <div class="widget-columns">
      <WidgetForm id={id} gateway={gateway} options={options} done={done} onChange={setValues} />
      <Preview values={values} />
    </div>
  );
}

const botState: State = {
  open: true,
  opens_at: "",
  bot: true,
  answering: false,
  needs_human: false,
  person: false,
  email: "",
};

const message = (id: number, from: Message["from"], text: string, more: Partial<Message> = {}): Message => ({
  id,
  from,
  text,
  created_at: "",
  ...more,
});

const question = message(1, "visitor", "Can I return bread?");
const sources = [{ n: 1, name: "Handbook" }];

/** The conversations that the preview can show. */
const scenes: Record<string, { state: State; messages: Message[] }> = {
  answer: {
    state: botState,
    messages: [question, message(2, "bot", "Yes, within two days, with the receipt.", { sources })],
  },
  person: {
    state: { ...botState, person: true },
    messages: [
      question,
      message(2, "visitor", "A person, please"),
      message(3, "person", "Hello, this is Ada. How can I help?"),
    ],
  },
  away: {
    state: { ...botState, open: false, person: true, needs_human: true },
    messages: [message(1, "visitor", "A person, please")],
  },
};

/** What the service would give the widget for the values of the form. */
function appearanceOf(values: Partial<WidgetValues>) {
  const valueOf = (name: keyof typeof widgetDefaults) => values[name] || widgetDefaults[name];
  const allowsFiles = String(values.files ?? widgetDefaults.files) !== "false";
  return {
    title: String(valueOf("title")),
    greeting: String(valueOf("greeting")),
    color: toColor(values.color),
    ask_email: String(valueOf("askEmail")),
    offline_message: String(valueOf("offlineMessage")),
    files: allowsFiles
      ? { max: Number(valueOf("maxFiles")), max_size: Number(valueOf("maxFileSize")) << 20, types: [] }
      : null,
  };
}

/** The widget as visitors see it; nothing in it can be used. */
function Preview({ values }: { values: Partial<WidgetValues> }) {
  const [scene, setScene] = useState("answer");
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
          look={appearanceOf(values)}
          {...scenes[scene]}
          partial=""
          send={() => showToast("")}
          sendAgain={() => {}}
          giveEmail={async () => {}}
          close={() => {}}
        />
      </div>
    </section>
  );
}
