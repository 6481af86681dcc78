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
  tell,
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

const webhooksAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "webhooks", ...more);
const once = (secret: string) =>
  showOnce("Secret", "Deliveries are signed with it (Standard Webhooks). It's shown only once.", secret);

export default function Webhooks() {
  const [id] = route.value.rest;
  return id ? <Webhook key={id} id={id} /> : <List />;
}

function List() {
  const { query } = route.value;
  const [search, offset] = [query.get("q") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery(webhooksAt(), { search, limit: 50, offset });
  useFollow("webhook", found.reload);
  const create = () =>
    openDialog((close) => (
      <Edit
        close={close}
        done={async (made) => {
          invalidate(webhooksAt());
          go(href(agentId.value, "webhooks", made.id));
          if ("secret" in made) await once(made.secret);
        }}
      />
    ));
  const add = mayEdit.value && (
    <Button
      kind="primary"
      icon="Plus"
      onClick={() => {
        create();
      }}
    >
      New webhook
    </Button>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Webhooks
        </h1>
        {((found.data.value?.meta.total ?? 0) > 5 || search) && (
          <SearchField label="Search webhooks" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {add}
      </div>
      <Load of={found}>
        {({ webhooks, meta }) =>
          webhooks.length ? (
            <>
              <ul class="sources">
                {webhooks.map((w) => (
                  <Row key={w.id} w={w} />
                ))}
              </ul>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="Webhook" title={search ? "No webhooks match" : "No webhooks yet"} action={!search && add}>
              Tell other programs what happens here: events are posted to an address, signed, and retried until
              accepted.
            </Empty>
          )
        }
      </Load>
    </div>
  );
}

const summary = (events: string[]) =>
  events.includes("*")
    ? "All events"
    : events.slice(0, 4).join(", ") + (events.length > 4 ? ` and ${events.length - 4} more` : "");

const State = ({ w }: { w: API.Webhook }) => (
  <Badge tone={!w.active ? "warn" : w.failure_count > 0 ? "bad" : "good"}>
    {!w.active ? "off" : w.failure_count > 0 ? "failing" : "active"}
  </Badge>
);

function Row({ w }: { w: API.Webhook }) {
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name="Webhook" />
      </span>
      <div class="grow">
        <a href={href(agentId.value, "webhooks", w.id)}>
          <Name>{w.url}</Name>
        </a>
        <p class="muted small">
          {summary(w.events)}
          {w.last_delivery_at && (
            <>
              {" "}
              · last delivery <When time={w.last_delivery_at} />
              {w.last_status && ` (${w.last_status})`}
            </>
          )}
        </p>
        {w.failure_count > 0 && <p class="issue small">{plural(w.failure_count, "failed attempt")} in a row</p>}
      </div>
      <State w={w} />
    </li>
  );
}

function Edit({
  now,
  close,
  done,
}: {
  now?: API.Webhook;
  close: () => void;
  done: (w: API.Webhook | API.SecretWebhookDetails) => unknown;
}) {
  return (
    <FormDialog
      title={now ? "Edit webhook" : "New webhook"}
      close={close}
      action={now ? "Save" : "Add"}
      wide
      initial={{ url: now?.url ?? "", events: now?.events ?? [] }}
      run={async (v) => {
        if (!v.events.length)
          throw new ApiError(400, {
            error: {
              message: "Choose at least one event.",
              details: { field: "events", issue: "Choose at least one event." },
            },
          });
        const w = await (now ? put(webhooksAt(now.id), v) : post(webhooksAt(), v));
        void Promise.resolve(done(w)).catch(tell);
      }}
    >
      {(f) => (
        <>
          <TextField
            label="Address"
            type="url"
            autoFocus
            required
            placeholder="https://example.com/hooks/satchel"
            {...f.text("url")}
          />
          <h3>Events</h3>
          <EventPicker value={f.values.events} onChange={(v) => f.set("events", v)} error={f.issue("events")} />
        </>
      )}
    </FormDialog>
  );
}

function Webhook({ id }: { id: string }) {
  const found = useQuery(webhooksAt(id));
  const [outcome, setOutcome] = useState<API.Delivery>();
  useFollow("webhook", found.reload);
  const test = async () => {
    setOutcome(undefined);
    setOutcome(await post(webhooksAt(id, "test")));
    await found.reload();
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "webhooks")}>Webhooks</a>
      </p>
      <Load of={found} title="Webhook">
        {(w) => {
          const items: MenuItem[] = [
            {
              label: w.active ? "Switch off" : "Switch on",
              icon: "Power",
              run: async () => {
                await put(webhooksAt(id), { active: !w.active });
                await found.reload();
              },
            },
            {
              label: "New secret",
              icon: "KeyRound",
              run: () =>
                confirm({
                  title: "Create a new secret?",
                  text: "For one day, deliveries are signed with both secrets, so nothing is lost while you switch.",
                  action: "Create",
                  run: async () => {
                    const r = await post(webhooksAt(id, "rotate"));
                    void once(r.secret);
                  },
                }),
            },
            "-",
            {
              label: "Delete",
              icon: "Trash2",
              danger: true,
              run: () =>
                confirm({
                  title: "Delete this webhook?",
                  text: "Nothing more is delivered to it, and its delivery log is deleted.",
                  action: "Delete",
                  run: async () => {
                    await remove(webhooksAt(id));
                    invalidate(webhooksAt());
                    go(href(agentId.value, "webhooks"));
                  },
                }),
            },
          ];
          return (
            <>
              <div class="page-head">
                <h1 class="grow" tabIndex={-1}>
                  <Name>{w.url}</Name>
                </h1>
                <State w={w} />
                {mayEdit.value && (
                  <>
                    <Button icon="Zap" kind="primary" onClick={test}>
                      Send a test
                    </Button>
                    <Button
                      icon="Pencil"
                      onClick={() => {
                        openDialog((close) => <Edit now={w} close={close} done={found.reload} />);
                      }}
                    >
                      Edit
                    </Button>
                    <Menu label="More" items={items} />
                  </>
                )}
              </div>
              <p class="muted">{summary(w.events)}</p>
              {!w.active && (
                <div class="card warn row">
                  <span class="grow">Switched off: events are not delivered, now or later.</span>
                  {mayEdit.value && (
                    <Button
                      onClick={async () => {
                        await put(webhooksAt(id), { active: true });
                        await found.reload();
                      }}
                    >
                      Switch on
                    </Button>
                  )}
                </div>
              )}
              {outcome && (
                <div class={outcome.status === "delivered" ? "card row test-good" : "card bad"} role="status">
                  {outcome.status === "delivered" ? (
                    <>
                      <Icon name="CircleCheck" /> Delivered. Response: {outcome.response_status}.
                    </>
                  ) : (
                    <p>
                      Not delivered: <bdi>{outcome.error}</bdi>
                    </p>
                  )}
                </div>
              )}
              <h2>Deliveries</h2>
              <Deliveries webhook={id} />
            </>
          );
        }}
      </Load>
    </div>
  );
}
