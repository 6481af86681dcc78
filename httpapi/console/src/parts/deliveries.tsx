// Deliveries of events to webhooks: a table, and the details of one beside it.
import { agentId, type API, href, mayEdit, path, post, route, setQuery, useQuery } from "../data";
import {
  Badge,
  Button,
  type Column,
  Drawer,
  Empty,
  Icon,
  JsonTree,
  Load,
  Moment,
  Name,
  Pager,
  plural,
  span,
  Table,
  showToast,
} from "../ui";
import { ExportMenu, pagesOf } from "./export";
import { useFollow } from "./follow";

const pageSize = 50;

const statuses: [status: string, label: string][] = [
  ["", "Any status"],
  ["pending", "Pending"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
];

const deliveriesPath = () => path("agents", agentId.value, "deliveries");

const redeliver = ({ id, webhook_id }: API.Delivery) =>
  post(path("agents", agentId.value, "webhooks", webhook_id, "deliveries", id, "redeliver"));

/** Reports whether a delivery failed and will be attempted again. */
const isRetrying = (delivery: API.Delivery) => delivery.status === "pending" && delivery.attempt > 0;

function StatusBadge({ delivery }: { delivery: API.Delivery }) {
  if (!isRetrying(delivery)) return <Badge>{delivery.status}</Badge>;
  return (
    <Badge tone="warn" title="It failed, and is tried again.">
      retrying
    </Badge>
  );
}

/** Returns the status and duration of the last response; empty before the first attempt. */
function responseText({ response_status, duration_ms, attempt }: API.Delivery): string {
  if (!response_status) return attempt ? "none" : "";
  return duration_ms === null ? String(response_status) : `${response_status} in ${span(duration_ms)}`;
}

type DeliveryQuery = { webhook_id: string; status: string; search: string };

/** The deliveries to one webhook, or to all. The filters and the delivery that is open are in the address. */
export function Deliveries({ webhook }: { webhook?: string }) {
  const { query } = route.value;
  const open = query.get("delivery") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const filters: DeliveryQuery = {
    webhook_id: webhook ?? query.get("webhook") ?? "",
    status: query.get("status") ?? "",
    search: query.get("q") ?? "",
  };
  const list = useQuery(deliveriesPath(), { ...filters, limit: pageSize, offset });
  const webhooks = useQuery(path("agents", agentId.value, "webhooks"), { limit: 100 });
  useFollow("delivery", list.reload);
  const allWebhooks = webhooks.data.value?.webhooks ?? [];
  const urlOf = (id: string) => allWebhooks.find((item) => item.id === id)?.url ?? id;
  const retry = async (delivery: API.Delivery) => {
    await redeliver(delivery);
    showToast("On its way");
    await list.reload();
  };
  const total = list.data.value?.meta.total ?? 0;
  const openDelivery = list.data.value?.deliveries.find((delivery) => delivery.id === open);
  return (
    <div class={open ? "beside open" : "beside"}>
      <div class="stack">
        <div class="row filters" role="search">
          <FilterFields filters={filters} webhooks={webhook ? undefined : allWebhooks} />
          <span class="grow" />
          {mayEdit.value && filters.status === "failed" && total > 0 && (
            <Button icon="RotateCcw" onClick={() => redeliverAll(filters).finally(list.reload)}>
              {`Redeliver all ${total.toLocaleString()}`}
            </Button>
          )}
          <ExportMenu name="deliveries" pages={() => deliveryPages(filters)} />
        </div>
        <Load of={list}>
          {({ deliveries, meta }) =>
            deliveries.length ? (
              <div class="event-names">
                <DeliveryTable deliveries={deliveries} open={open} retry={retry} urlOf={webhook ? undefined : urlOf} />
                <Pager meta={meta} go={(next) => setQuery({ offset: next || null })} />
              </div>
            ) : (
              <Empty icon="Send" title={filters.status || filters.search ? "No deliveries match" : "No deliveries yet"}>
                Events that a webhook subscribes to are posted to it, and retried until accepted.
              </Empty>
            )
          }
        </Load>
      </div>
      {open && (
        <DeliveryDrawer
          key={open}
          id={open}
          webhook={filters.webhook_id || openDelivery?.webhook_id}
          retry={retry}
          urlOf={urlOf}
        />
      )}
    </div>
  );
}

const deliveryPages = (filters: DeliveryQuery) => pagesOf(deliveriesPath(), filters, (page) => page.deliveries);

/** Redelivers all deliveries that match the filters. */
async function redeliverAll(filters: DeliveryQuery) {
  const deliveries: API.Delivery[] = [];
  for await (const page of deliveryPages(filters)) deliveries.push(...page);
  for (const delivery of deliveries) await redeliver(delivery);
  const count = deliveries.length;
  showToast(`${plural(count, "delivery", "deliveries")} on ${count === 1 ? "its" : "their"} way`);
}

type FilterFieldsProps = { filters: DeliveryQuery; webhooks?: API.Webhook[] };

function FilterFields({ filters: { status, webhook_id }, webhooks }: FilterFieldsProps) {
  return (
    <>
      <select
        aria-label="Status"
        value={status}
        onChange={(event) => setQuery({ status: event.currentTarget.value, offset: null })}
      >
        {statuses.map(([value, label]) => (
          <option value={value} selected={value === status}>
            {label}
          </option>
        ))}
      </select>
      {webhooks && (
        <select
          aria-label="Webhook"
          value={webhook_id}
          onChange={(event) => setQuery({ webhook: event.currentTarget.value, offset: null })}
        >
          <option value="" selected={!webhook_id}>
            All webhooks
          </option>
          {webhooks.map(({ id, url }) => (
            <option key={id} value={id} selected={id === webhook_id}>
              {url}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

type DeliveryTableProps = {
  deliveries: API.Delivery[];
  /** The id of the delivery that is open. */
  open: string;
  retry: (delivery: API.Delivery) => Promise<void>;
  /** Returns the URL of a webhook; not set if all deliveries are to the same webhook. */
  urlOf?: (webhook: string) => string;
};

function DeliveryTable({ deliveries, open, retry, urlOf }: DeliveryTableProps) {
  const webhookColumn: Column<API.Delivery> | undefined = urlOf && {
    title: "Webhook",
    class: "wide",
    cell: ({ webhook_id }) => (
      <a class="clip" href={href(agentId.value, "webhooks", webhook_id)}>
        <bdi>{urlOf(webhook_id)}</bdi>
      </a>
    ),
  };
  const attemptsColumn: Column<API.Delivery> = {
    title: "Attempts",
    class: "number wide",
    cell: ({ attempt }) => attempt,
  };
  const columns: Column<API.Delivery>[] = [
    { title: "Time", cell: ({ created_at }) => <Moment time={created_at} /> },
    {
      title: "Event",
      cell: ({ id, event }) => (
        <button type="button" class="link" aria-expanded={open === id} onClick={() => setQuery({ delivery: id })}>
          {event}
        </button>
      ),
    },
    ...(webhookColumn ? [webhookColumn] : []),
    { title: "Status", cell: (delivery) => <Status delivery={delivery} /> },
    { title: "Response", class: "wide", cell: responseText },
    ...(webhookColumn ? [] : [attemptsColumn]),
    {
      title: "",
      class: "actions wide",
      cell: (delivery) =>
        mayEdit.value && delivery.status !== "pending" && <Button onClick={() => retry(delivery)}>Redeliver</Button>,
    },
  ];
  return <Table rows={deliveries} keyOf={(delivery) => delivery.id} columns={columns} />;
}

function Status({ delivery }: { delivery: API.Delivery }) {
  return (
    <div class="delivery-state">
      <span>
        <StatusBadge delivery={delivery} />
        {delivery.next_attempt_at && isRetrying(delivery) && (
          <span class="muted small">
            {" "}
            again at <Moment time={delivery.next_attempt_at} />
          </span>
        )}
      </span>
      {delivery.error && (
        <p class="issue small">
          <bdi>{delivery.error}</bdi>
        </p>
      )}
    </div>
  );
}

type DeliveryDrawerProps = {
  id: string;
  webhook?: string;
  retry: (delivery: API.Delivery) => Promise<void>;
  urlOf: (webhook: string) => string;
};

function DeliveryDrawer({ id, webhook, retry, urlOf }: DeliveryDrawerProps) {
  const query = useQuery(webhook ? path("agents", agentId.value, "webhooks", webhook, "deliveries", id) : null);
  useFollow("delivery", query.reload);
  return (
    <Drawer title="Delivery" close={() => setQuery({ delivery: null })}>
      {webhook ? (
        <Load of={query}>
          {(delivery) => (
            <DeliveryDetails
              delivery={delivery}
              url={urlOf(delivery.webhook_id)}
              retry={() => retry(delivery).then(query.reload)}
            />
          )}
        </Load>
      ) : (
        <p class="muted">It isn't on this page of the list.</p>
      )}
    </Drawer>
  );
}

type DeliveryDetailsProps = { delivery: API.DeliveryDetails; url: string; retry: () => Promise<void> };

function DeliveryDetails({ delivery, url, retry }: DeliveryDetailsProps) {
  return (
    <div class="stack">
      <dl class="facts-list">
        <dt>Event</dt>
        <dd>{delivery.event}</dd>
        <dt>To</dt>
        <dd>
          <Name>{url}</Name>
        </dd>
        <dt>Status</dt>
        <dd>
          <StatusBadge delivery={delivery} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Moment time={delivery.created_at} />
        </dd>
        <dt>Tries</dt>
        <dd>{plural(delivery.attempt, "try", "tries")}</dd>
        <dt>Last response</dt>
        <dd>{responseText(delivery) || "none yet"}</dd>
        {delivery.next_attempt_at && (
          <>
            <dt>Next try</dt>
            <dd>
              <Moment time={delivery.next_attempt_at} />
            </dd>
          </>
        )}
        <dt>webhook-id</dt>
        <dd>
          <code>{delivery.event_id}</code>
        </dd>
      </dl>
      {delivery.error && (
        <p class="row issue">
          <Icon name="CircleAlert" />
          <bdi class="grow">{delivery.error}</bdi>
        </p>
      )}
      {mayEdit.value && delivery.status !== "pending" && (
        <div class="row">
          <Button icon="RotateCcw" onClick={retry}>
            Redeliver
          </Button>
        </div>
      )}
      <h3>Payload</h3>
      <JsonTree value={delivery.body} />
    </div>
  );
}
