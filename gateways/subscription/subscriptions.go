package subscription

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/signature"
	"satchel/agent/work"
	"satchel/store"
)

// Subscriptions manages the subscriptions of all agents, and delivers events to
// them.
type Subscriptions struct {
	guard     *egress.Client
	own       *egress.OwnHosts
	version   string
	log       *slog.Logger
	now       func() time.Time
	onAttempt func(store.Attempt) // called after each attempt; for tests

	agents     *work.Queue[*store.DB] // agents whose deliveries may be due
	deliveries *work.Queue[deliveryKey]

	mu       sync.Mutex                       // protects tries
	attempts map[subscription]map[string]bool // deliveries with an attempt in progress
}

// New returns the subscriptions of a folder's agents.
func New(env store.Env) *Subscriptions { return newSubscriptions(env, time.Now) }

func newSubscriptions(env store.Env, now func() time.Time) *Subscriptions {
	s := &Subscriptions{
		own:       env.Own,
		version:   env.Version,
		log:       env.Logger(),
		now:       now,
		onAttempt: func(store.Attempt) {},
		guard:     egress.New(egress.Policy{Allow: env.Allow}),
		attempts:  map[subscription]map[string]bool{},
	}
	s.makeQueues()
	env.Folder.OnPending(s.notify)
	return s
}

// Start begins to deliver, beginning with pending deliveries. It returns
// immediately and may be called twice. The work ends with ctx or Stop.
func (s *Subscriptions) Start(ctx context.Context) error {
	s.agents.Start(ctx)
	s.deliveries.Start(ctx)
	return nil
}

// Stop cancels the attempts in progress, which then do not count, and waits
// until nothing runs. Pending deliveries continue with the next Start.
func (s *Subscriptions) Stop() {
	s.agents.Stop()
	s.deliveries.Stop()
	s.guard.CloseIdleConnections()
}

// Handle creates the deliveries for an agent's events. The dispatcher calls it
// as a consumer.
func (s *Subscriptions) Handle(ctx context.Context, db *store.DB, events []agent.Event) (int, error) {
	if _, err := db.EnqueueDeliveries(ctx, events, agent.At(s.now())); err != nil {
		return 0, err
	}
	return len(events), nil
}

// Create adds a subscription and returns it with its secret, which is not shown
// again.
func (s *Subscriptions) Create(
	ctx context.Context,
	db *store.DB,
	change agent.WebhookChange,
) (agent.Webhook, string, error) {
	made := agent.Webhook{Active: true}
	change.Apply(&made)
	if err := made.Validate(); err != nil {
		return made, "", err
	}
	if err := s.checkURL(made.URL); err != nil {
		return made, "", err
	}
	secret := signature.NewSecret()
	made, err := db.CreateWebhook(ctx, made, secret)
	return made, secret, err
}

// Update changes the given fields of a subscription.
func (s *Subscriptions) Update(
	ctx context.Context,
	db *store.DB,
	id string,
	change agent.WebhookChange,
) (agent.Webhook, error) {
	if change.URL.Given && change.URL.Value != "" {
		if err := s.checkURL(change.URL.Value); err != nil {
			return agent.Webhook{}, err
		}
	}
	return db.UpdateWebhook(ctx, id, change)
}

// Delete removes a subscription with its deliveries.
func (s *Subscriptions) Delete(ctx context.Context, db *store.DB, id string) error {
	return db.DeleteWebhook(ctx, id)
}

// formerSecretLifetime is how long the previous secret also signs after a
// rotation.
const formerSecretLifetime = 24 * time.Hour

// Rotate gives a subscription a new secret and returns it. For a day the
// previous secret also signs.
func (s *Subscriptions) Rotate(ctx context.Context, db *store.DB, id string) (agent.Webhook, string, error) {
	secret := signature.NewSecret()
	changed, err := db.RotateWebhookSecret(ctx, id, secret, agent.At(s.now().Add(formerSecretLifetime)))
	return changed, secret, err
}

// checkURL rejects URLs that can never be reached.
func (s *Subscriptions) checkURL(raw string) error {
	_, err := s.guard.CheckField("url", raw)
	return err
}

// EventTest is the type of the event that Test sends.
const EventTest = "webhook.test"

// Test sends a test event to a subscription, once and immediately, and returns
// the outcome. It also works for a subscription that is off, and does not
// count.
func (s *Subscriptions) Test(ctx context.Context, db *store.DB, id string) (agent.Delivery, error) {
	webhook, err := db.Webhook(ctx, id)
	if err != nil {
		return agent.Delivery{}, err
	}
	now := agent.At(s.now())
	secrets, err := db.WebhookSecrets(ctx, id, now)
	if err != nil {
		secrets = nil // encrypted with another master key: the delivery says so
	}
	event := agent.Event{
		ID:        agent.NewID(agent.KindEvent),
		Type:      EventTest,
		CreatedAt: now,
		Data:      []byte(`{"webhook":{"id":"` + webhook.ID + `"}}`),
	}
	body, err := store.EventBody(event, db.ID())
	if err != nil {
		return agent.Delivery{}, err
	}
	attempt, _ := s.post(ctx, webhook.URL, secrets, event.ID, body)
	if ctx.Err() != nil {
		return agent.Delivery{}, ctx.Err()
	}
	ms := int(attempt.Duration.Milliseconds())
	delivery := agent.Delivery{
		ID:         agent.NewID(agent.KindDelivery),
		Event:      event.Type,
		EventID:    event.ID,
		WebhookID:  id,
		Attempt:    1,
		Status:     agent.DeliveryDelivered,
		DurationMS: &ms,
		Error:      attempt.Error,
		CreatedAt:  now,
	}
	if attempt.Status != 0 {
		delivery.ResponseStatus = &attempt.Status
	}
	if attempt.Error != "" {
		delivery.Status = agent.DeliveryFailed
	}
	return delivery, db.NoteDelivery(ctx, delivery, body)
}

// Redeliver makes a delivery due again with the same webhook-id.
func (s *Subscriptions) Redeliver(ctx context.Context, db *store.DB, webhookID, id string) (agent.Delivery, error) {
	return db.Redeliver(ctx, webhookID, id, agent.At(s.now()))
}
