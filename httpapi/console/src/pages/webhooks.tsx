// Webhooks: addresses to which events are posted, and what became of each delivery.
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
  route,
  setQuery,
  useQuery,
  type API,
} from "../data";
import {
  Badge,
  Button,
  confirm,
  Empty,
  FormDialog,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  showOnce,
  showToast,
  TextField,
  When,
  type MenuItem,
} from "../ui";
import { Deliveries } from "../parts/deliveries";
import { useFollow } from "../parts/follow";
import { EventPicker } from "../parts/picker";
import { style } from "../parts/styles";
import "../css/activity.css";

export const styles = style("./webhooks.css");

const subscriptionsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "webhooks", ...more);
/** Shows the secret of a webhook once. */
const showSecret = (secret: string) =>
  showOnce("Secret", "Deliveries are signed with it (Standard Webhooks). It's shown only once.", secret);

/** The page of webhooks: the list, or the webhook of the address. */
export default function Webhooks() {
  const [id] = route.value.rest;
  return id ? <SubscriptionPage key={id} id={id} /> : <SubscriptionList />;
}

async function openCreated(webhook: API.Webhook | API.SecretWebhookDetails) {
  invalidate(subscriptionsAt());
  go(href(agentId.value, "webhooks", webhook.id));
  if ("secret" in webhook) await showSecret(webhook.secret);
}

/** From how many webhooks on the list has a search. */
const minSearched = 5;

function SubscriptionList() {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery(subscriptionsAt(), { search, limit: 50, offset });
  useFollow("webhook", found.reload);
  const create = () => {
    openDialog((close) => <EditSubscription close={close} done={openCreated} />);
  };
  const add = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={create}>
      New webhook
    </Button>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Webhooks
        </h1>
        {((found.data.value?.meta.total ?? 0) > minSearched || search) && (
          <SearchField label="Search webhooks" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {add}
      </div>
      <Load of={found}>
        {({ webhooks, meta }) => {
          if (!webhooks.length)
            return (
              <Empty icon="Webhook" title={search ? "No webhooks match" : "No webhooks yet"} action={!search && add}>
                Tell other programs what happens here: events are posted to an address, signed, and retried until
                accepted.
              </Empty>
            );
          return (
            <>
              <ul class="sources">
                {webhooks.map((webhook) => (
                  <SubscriptionRow key={webhook.id} webhook={webhook} />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

const maxListedEvents = 4;

/** The events of a webhook, the first of them by name. */
function summaryOf(events: string[]) {
  if (events.includes("*")) return "All events";
  const others = events.length - maxListedEvents;
  return events.slice(0, maxListedEvents).join(", ") + (others > 0 ? ` and ${others} more` : "");
}

type SubscriptionProps = { webhook: API.Webhook };

function SubscriptionState({ webhook: { active, failure_count } }: SubscriptionProps) {
  if (!active) return <Badge tone="warn">off</Badge>;
  return failure_count > 0 ? <Badge tone="bad">failing</Badge> : <Badge tone="good">active</Badge>;
}

function SubscriptionRow({ webhook }: SubscriptionProps) {
  const { id, url, events, last_delivery_at, last_status, failure_count } = webhook;
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name="Webhook" />
      </span>
      <div class="grow">
        <a href={href(agentId.value, "webhooks", id)}>
          <Name>{url}</Name>
        </a>
        <p class="muted small">
          {summaryOf(events)}
          {last_delivery_at && (
            <>
              {" "}
              · last delivery <When time={last_delivery_at} />
              {last_status && ` (${last_status})`}
            </>
          )}
        </p>
        {failure_count > 0 && <p class="issue small">{plural(failure_count, "failed attempt")} in a row</p>}
      </div>
      <SubscriptionState webhook={webhook} />
    </li>
  );
}

type EditSubscriptionProps = {
  /** The webhook to change; without one a new one is created. */
  stored?: API.Webhook;
  close: () => void;
  done: (webhook: API.Webhook | API.SecretWebhookDetails) => unknown;
};

function EditSubscription({ stored, close, done }: EditSubscriptionProps) {
  const run = async (values: { url: string; events: string[] }) => {
    if (!values.events.length) {
      const issue = "Choose at least one event.";
      throw new ApiError(400, { error: { message: issue, details: { field: "events", issue } } });
    }
    const saved = await (stored ? put(subscriptionsAt(stored.id), values) : post(subscriptionsAt(), values));
    void Promise.resolve(done(saved)).catch(showToast);
  };
  return (
    <FormDialog
      title={stored ? "Edit webhook" : "New webhook"}
      close={close}
      action={stored ? "Save" : "Add"}
      wide
      initial={{ url: stored?.url ?? "", events: stored?.events ?? [] }}
      run={run}
    >
      {(form) => (
        <>
          <TextField
            label="Address"
            type="url"
            autoFocus
            required
            placeholder="https://example.com/hooks/satchel"
            {...form.text("url")}
          />
          <h3>Events</h3>
          <EventPicker
            value={form.values.events}
            onChange={(events) => form.set("events", events)}
            error={form.issue("events")}
          />
        </>
      )}
    </FormDialog>
  );
}

function SubscriptionPage({ id }: { id: string }) {
  const found = useQuery(subscriptionsAt(id));
  const [delivery, setDelivery] = useState<API.Delivery>();
  useFollow("webhook", found.reload);
  const test = async () => {
    setDelivery(undefined);
    setDelivery(await post(subscriptionsAt(id, "test")));
    await found.reload();
  };
  const setActive = async (active: boolean) => {
    await put(subscriptionsAt(id), { active });
    await found.reload();
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "webhooks")}>Webhooks</a>
      </p>
      <Load of={found} title="Webhook">
        {(webhook) => (
          <>
            <Head webhook={webhook} test={test} setActive={setActive} reload={found.reload} />
            <p class="muted">{summaryOf(webhook.events)}</p>
            {!webhook.active && (
              <div class="card warn row">
                <span class="grow">Switched off: events are not delivered, now or later.</span>
                {mayEdit.value && <Button onClick={() => setActive(true)}>Switch on</Button>}
              </div>
            )}
            {delivery && <TestOutcome delivery={delivery} />}
            <h2>Deliveries</h2>
            <Deliveries webhook={id} />
          </>
        )}
      </Load>
    </div>
  );
}

type HeadProps = SubscriptionProps & {
  test: () => Promise<void>;
  setActive: (active: boolean) => Promise<void>;
  reload: () => Promise<void>;
};

function Head({ webhook, test, setActive, reload }: HeadProps) {
  const edit = () => {
    openDialog((close) => <EditSubscription stored={webhook} close={close} done={reload} />);
  };
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <Name>{webhook.url}</Name>
      </h1>
      <SubscriptionState webhook={webhook} />
      {mayEdit.value && (
        <>
          <Button icon="Zap" kind="primary" onClick={test}>
            Send a test
          </Button>
          <Button icon="Pencil" onClick={edit}>
            Edit
          </Button>
          <Menu label="More" items={menuItems(webhook, setActive)} />
        </>
      )}
    </div>
  );
}

function menuItems({ id, active }: API.Webhook, setActive: (active: boolean) => Promise<void>): MenuItem[] {
  const askToRotate = () =>
    confirm({
      title: "Create a new secret?",
      text: "For one day, deliveries are signed with both secrets, so nothing is lost while you switch.",
      action: "Create",
      run: async () => {
        const { secret } = await post(subscriptionsAt(id, "rotate"));
        void showSecret(secret);
      },
    });
  const askToDelete = () =>
    confirm({
      title: "Delete this webhook?",
      text: "Nothing more is delivered to it, and its delivery log is deleted.",
      action: "Delete",
      run: async () => {
        await remove(subscriptionsAt(id));
        invalidate(subscriptionsAt());
        go(href(agentId.value, "webhooks"));
      },
    });
  return [
    { label: active ? "Switch off" : "Switch on", icon: "Power", run: () => setActive(!active) },
    { label: "New secret", icon: "KeyRound", run: askToRotate },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, run: askToDelete },
  ];
}

/** Whether a test event was delivered. */
function TestOutcome({ delivery: { status, response_status, error } }: { delivery: API.Delivery }) {
  if (status === "delivered")
    return (
      <div class="card row test-good" role="status">
        <Icon name="CircleCheck" /> Delivered. Response: {response_status}.
      </div>
    );
  return (
    <div class="card bad" role="status">
      <p>
        Not delivered: <bdi>{error}</bdi>
      </p>
    </div>
  );
}
