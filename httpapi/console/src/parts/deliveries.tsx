// Deliveries of events to webhooks: a table, and one of them beside it.
import { agentId, get, href, mayEdit, path, post, route, setQuery, useQuery, type API } from "../data";
import {
  Badge,
  Button,
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
  tell,
} from "../ui";
import { ExportMenu } from "./export";
import { useFollow } from "./follow";

const statuses: [string, string][] = [
  ["", "Any status"],
  ["pending", "Pending"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
];

/** The state of a delivery: one that failed and is tried again still pends. */
const State = ({ d }: { d: API.Delivery }) =>
  d.status === "pending" && d.attempt > 0 ? (
    <Badge tone="warn" title="It failed, and is tried again.">
      retrying
    </Badge>
  ) : (
    <Badge>{d.status}</Badge>
  );

const answer = (d: API.Delivery) =>
  d.response_status
    ? `${d.response_status}${d.duration_ms === null ? "" : ` in ${span(d.duration_ms)}`}`
    : d.attempt
      ? "none"
      : "";

/** The deliveries to one webhook, or to all; filters and the one that is open stand in the address. */
export function Deliveries({ webhook }: { webhook?: string }) {
  const { query } = route.value;
  const [status, to, search, open, offset] = [
    query.get("status") ?? "",
    webhook ?? query.get("webhook") ?? "",
    query.get("q") ?? "",
    query.get("delivery") ?? "",
    Number(query.get("offset")) || 0,
  ];
  const at = path("agents", agentId.value, "deliveries");
  const filters = { webhook_id: to, status, search };
  const found = useQuery(at, { ...filters, limit: 50, offset });
  const hooks = useQuery(path("agents", agentId.value, "webhooks"), { limit: 100 });
  useFollow("delivery", found.reload);
  const all = hooks.data.value?.webhooks ?? [];
  const address = (id: string) => all.find((w) => w.id === id)?.url ?? id;
  const again = async (d: API.Delivery) => {
    await redeliver(d);
    tell("On its way");
    await found.reload();
  };
  const redeliver = (d: API.Delivery) =>
    post(path("agents", agentId.value, "webhooks", d.webhook_id, "deliveries", d.id, "redeliver"));
  const againAll = async () => {
    const failed: API.Delivery[] = [];
    for await (const page of pages()) failed.push(...page);
    let sent = 0;
    try {
      for (const d of failed) {
        await redeliver(d);
        sent++;
      }
    } finally {
      await found.reload();
    }
    tell(`${plural(sent, "delivery", "deliveries")} on ${sent === 1 ? "its" : "their"} way`);
  };
  async function* pages() {
    for (let from = 0, more = true; more; from += 200) {
      const page = await get(at, { ...filters, limit: 200, offset: from });
      yield page.deliveries;
      more = from + 200 < page.meta.total;
    }
  }
  return (
    <div class={open ? "beside open" : "beside"}>
      <div class="stack">
        <div class="row filters" role="search">
          <select
            aria-label="Status"
            value={status}
            onChange={(e) => setQuery({ status: e.currentTarget.value, offset: null })}
          >
            {statuses.map(([v, t]) => (
              <option value={v} selected={v === status}>
                {t}
              </option>
            ))}
          </select>
          {!webhook && (
            <select
              aria-label="Webhook"
              value={to}
              onChange={(e) => setQuery({ webhook: e.currentTarget.value, offset: null })}
            >
              <option value="" selected={!to}>
                All webhooks
              </option>
              {all.map((w) => (
                <option key={w.id} value={w.id} selected={w.id === to}>
                  {w.url}
                </option>
              ))}
            </select>
          )}
          <span class="grow" />
          {mayEdit.value && status === "failed" && (found.data.value?.meta.total ?? 0) > 0 && (
            <Button
              icon="RotateCcw"
              onClick={againAll}
            >{`Redeliver all ${found.data.value!.meta.total.toLocaleString()}`}</Button>
          )}
          <ExportMenu name="deliveries" pages={pages} />
        </div>
        <Load of={found}>
          {({ deliveries, meta }) =>
            deliveries.length ? (
              <div class="event-names">
                <Table
                  rows={deliveries}
                  keyOf={(d) => d.id}
                  columns={[
                    { title: "Time", cell: (d) => <Moment time={d.created_at} /> },
                    {
                      title: "Event",
                      cell: (d) => (
                        <button
                          type="button"
                          class="link"
                          aria-expanded={open === d.id}
                          onClick={() => setQuery({ delivery: d.id })}
                        >
                          {d.event}
                        </button>
                      ),
                    },
                    ...(webhook
                      ? []
                      : [
                          {
                            title: "Webhook",
                            class: "wide",
                            cell: (d: API.Delivery) => (
                              <a class="clip" href={href(agentId.value, "webhooks", d.webhook_id)}>
                                <bdi>{address(d.webhook_id)}</bdi>
                              </a>
                            ),
                          },
                        ]),
                    {
                      title: "Status",
                      cell: (d) => (
                        <div class="delivery-state">
                          <span>
                            <State d={d} />
                            {d.next_attempt_at && d.status === "pending" && d.attempt > 0 && (
                              <span class="muted small">
                                {" "}
                                again at <Moment time={d.next_attempt_at} />
                              </span>
                            )}
                          </span>
                          {d.error && (
                            <p class="issue small">
                              <bdi>{d.error}</bdi>
                            </p>
                          )}
                        </div>
                      ),
                    },
                    { title: "Response", class: "wide", cell: answer },
                    ...(webhook
                      ? [{ title: "Attempts", class: "number wide", cell: (d: API.Delivery) => d.attempt }]
                      : []),
                    {
                      title: "",
                      class: "actions wide",
                      cell: (d) =>
                        mayEdit.value && d.status !== "pending" && <Button onClick={() => again(d)}>Redeliver</Button>,
                    },
                  ]}
                />
                <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
              </div>
            ) : (
              <Empty icon="Send" title={status || search ? "No deliveries match" : "No deliveries yet"}>
                Events that a webhook subscribes to are posted to it, and retried until accepted.
              </Empty>
            )
          }
        </Load>
      </div>
      {open && (
        <Delivery
          key={open}
          id={open}
          webhook={to || found.data.value?.deliveries.find((d) => d.id === open)?.webhook_id}
          again={again}
          address={address}
        />
      )}
    </div>
  );
}

function Delivery({
  id,
  webhook,
  again,
  address,
}: {
  id: string;
  webhook?: string;
  again: (d: API.Delivery) => Promise<void>;
  address: (id: string) => string;
}) {
  const found = useQuery(webhook ? path("agents", agentId.value, "webhooks", webhook, "deliveries", id) : null);
  useFollow("delivery", found.reload);
  const close = () => setQuery({ delivery: null });
  return (
    <Drawer title="Delivery" close={close}>
      {!webhook ? (
        <p class="muted">It isn't on this page of the list.</p>
      ) : (
        <Load of={found}>
          {(d) => (
            <div class="stack">
              <dl class="facts-list">
                <dt>Event</dt>
                <dd>{d.event}</dd>
                <dt>To</dt>
                <dd>
                  <Name>{address(d.webhook_id)}</Name>
                </dd>
                <dt>Status</dt>
                <dd>
                  <State d={d} />
                </dd>
                <dt>Made</dt>
                <dd>
                  <Moment time={d.created_at} />
                </dd>
                <dt>Tries</dt>
                <dd>{plural(d.attempt, "try", "tries")}</dd>
                <dt>Last response</dt>
                <dd>{answer(d) || "none yet"}</dd>
                {d.next_attempt_at && (
                  <>
                    <dt>Next try</dt>
                    <dd>
                      <Moment time={d.next_attempt_at} />
                    </dd>
                  </>
                )}
                <dt>webhook-id</dt>
                <dd>
                  <code>{d.event_id}</code>
                </dd>
              </dl>
              {d.error && (
                <p class="row issue">
                  <Icon name="CircleAlert" />
                  <bdi class="grow">{d.error}</bdi>
                </p>
              )}
              {mayEdit.value && d.status !== "pending" && (
                <div class="row">
                  <Button
                    icon="RotateCcw"
                    onClick={async () => {
                      await again(d);
                      await found.reload();
                    }}
                  >
                    Redeliver
                  </Button>
                </div>
              )}
              <h3>Payload</h3>
              <JsonTree value={d.body} />
            </div>
          )}
        </Load>
      )}
    </Drawer>
  );
}
