package gateways

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/work"
	"satchel/store"
)

// Options say how a room of this package works.
type Options struct {
	store.Env
	Address string // this server's own, without a slash at its end
	Public  bool   // platforms can reach it there
}

// Webhooks delivers events to the subscriptions of all agents.
type Webhooks struct {
	guard   *egress.Client
	client  *http.Client
	own     *egress.Own
	version string
	log     *slog.Logger
	now     func() time.Time
	tried   func(store.Attempt) // is called after each try; tests set it

	agents     *work.Queue[*store.DB] // whose deliveries may be due
	deliveries *work.Queue[deliveryKey]

	mu    sync.Mutex                       // protects tries
	tries map[subscription]map[string]bool // deliveries that are being tried
}

// NewWebhooks makes the deliverer of a folder's subscriptions.
func NewWebhooks(o Options) *Webhooks { return newWebhooks(o, time.Now) }

func newWebhooks(o Options, now func() time.Time) *Webhooks {
	w := &Webhooks{own: o.Own, version: o.Version, log: o.Logger(), now: now, tried: func(store.Attempt) {},
		guard: egress.New(egress.Policy{Allow: o.Allow, HeaderTimeout: tryTimeout}), tries: map[subscription]map[string]bool{}}
	w.client = w.guard.HTTP()
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w.makeQueues()
	o.Folder.OnPending(w.notify)
	return w
}

// Start begins to deliver, first what was left. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (w *Webhooks) Start(ctx context.Context) error {
	w.agents.Start(ctx)
	w.deliveries.Start(ctx)
	return nil
}

// Stop cuts the tries under way, which count for nothing, and waits until
// nothing runs. What is left goes on with the next Start.
func (w *Webhooks) Stop() {
	w.agents.Stop()
	w.deliveries.Stop()
	w.guard.CloseIdleConnections()
}

// Handle makes the deliveries of an agent's events: it is the consumer that
// the dispatcher calls.
func (w *Webhooks) Handle(ctx context.Context, db *store.DB, events []agent.Event) (int, error) {
	if _, err := db.EnqueueDeliveries(ctx, events, agent.At(w.now())); err != nil {
		return 0, err
	}
	return len(events), nil
}

// Create adds a subscription and returns it with its secret, which is shown
// only now.
func (w *Webhooks) Create(ctx context.Context, db *store.DB, change agent.WebhookChange) (agent.Webhook, string, error) {
	made := agent.Webhook{Active: true}
	change.Apply(&made)
	if err := made.Validate(); err != nil {
		return made, "", err
	}
	if err := w.checkURL(made.URL); err != nil {
		return made, "", err
	}
	secret := agent.NewWebhookSecret()
	made, err := db.CreateWebhook(ctx, made, secret)
	return made, secret, err
}

// Update changes the given fields of a subscription.
func (w *Webhooks) Update(ctx context.Context, db *store.DB, id string, change agent.WebhookChange) (agent.Webhook, error) {
	if change.URL.Given && change.URL.Value != "" {
		if err := w.checkURL(change.URL.Value); err != nil {
			return agent.Webhook{}, err
		}
	}
	return db.UpdateWebhook(ctx, id, change)
}

// Delete removes a subscription with its deliveries.
func (w *Webhooks) Delete(ctx context.Context, db *store.DB, id string) error {
	return db.DeleteWebhook(ctx, id)
}

// formerSecretFor is how long the secret before a new one signs along.
const formerSecretFor = 24 * time.Hour

// Rotate gives a subscription a new secret and returns it; for a day the one
// before signs too.
func (w *Webhooks) Rotate(ctx context.Context, db *store.DB, id string) (agent.Webhook, string, error) {
	secret := agent.NewWebhookSecret()
	changed, err := db.RotateWebhookSecret(ctx, id, secret, agent.At(w.now().Add(formerSecretFor)))
	return changed, secret, err
}

// checkURL refuses addresses that can never be reached.
func (w *Webhooks) checkURL(raw string) error {
	_, err := w.guard.CheckField("url", raw)
	return err
}

// EventTest is the type of the event that Test sends.
const EventTest = "webhook.test"

// Test sends a subscription an event of its own, once and at once, and returns
// what came of it. It works on one that is switched off and counts for nothing.
func (w *Webhooks) Test(ctx context.Context, db *store.DB, id string) (agent.Delivery, error) {
	hook, err := db.Webhook(ctx, id)
	if err != nil {
		return agent.Delivery{}, err
	}
	now := agent.At(w.now())
	secrets, err := db.WebhookSecrets(ctx, id, now)
	if err != nil {
		secrets = nil // sealed with another master key: the delivery says so
	}
	e := agent.Event{ID: agent.NewID(agent.KindEvent), Type: EventTest, CreatedAt: now,
		Data: []byte(`{"webhook":{"id":"` + hook.ID + `"}}`)}
	body, err := store.EventBody(e, db.ID())
	if err != nil {
		return agent.Delivery{}, err
	}
	a, _ := w.post(ctx, hook.URL, secrets, e.ID, body)
	if ctx.Err() != nil {
		return agent.Delivery{}, ctx.Err()
	}
	ms := int(a.Duration.Milliseconds())
	d := agent.Delivery{ID: agent.NewID(agent.KindDelivery), Event: e.Type, EventID: e.ID, WebhookID: id, Attempt: 1,
		Status: agent.DeliveryDelivered, DurationMS: &ms, Error: a.Error, CreatedAt: now}
	if a.Status != 0 {
		d.ResponseStatus = &a.Status
	}
	if a.Error != "" {
		d.Status = agent.DeliveryFailed
	}
	return d, db.NoteDelivery(ctx, d, body)
}

// Redeliver makes a delivery due again under the same webhook-id.
func (w *Webhooks) Redeliver(ctx context.Context, db *store.DB, webhookID, id string) (agent.Delivery, error) {
	return db.Redeliver(ctx, webhookID, id, agent.At(w.now()))
}
