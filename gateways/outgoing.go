package gateways

import (
	"cmp"
	"context"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Limits of concurrent sending.
const (
	sendsAtOnce   = 64
	sendsPerAgent = 8
	drainTime     = 3 * time.Second // for the attempts in progress on Stop
)

// outgoing sends the messages of conversations. Their rows in the agent's file
// are the queue.
type outgoing struct {
	queue     *conversationQueue
	drain     time.Duration
	onAttempt func(attempt) // called after each attempt; for tests

	mu         sync.Mutex
	unrecorded map[conversation]*attempt // attempts whose outcomes could not be written yet
}

// attempt is one attempt to send a message, with its outcome.
type attempt struct {
	sending *store.Sending
	outcome store.Ended
}

func newOutgoing(gateways *Gateways) *outgoing {
	o := &outgoing{
		drain:      drainTime,
		onAttempt:  func(attempt) {},
		unrecorded: map[conversation]*attempt{},
	}
	o.queue = newConversationQueue(conversationOptions{
		task:     "send messages",
		limit:    sendsAtOnce,
		perAgent: sendsPerAgent,
		log:      gateways.log,
		now:      func() time.Time { return gateways.now() },
		due:      gateways.dueMessages,
		step:     gateways.sendNext,
	})
	return o
}

// Start begins to send pending messages and to download attachments. It returns
// immediately and may be called twice. The work ends with ctx or Stop.
func (g *Gateways) Start(ctx context.Context) error {
	g.out.queue.start(ctx)
	g.files.queue.start(ctx)
	return nil
}

// Stop starts no more attempts, gives those in progress three seconds, cancels
// the rest and waits until nothing runs. The outcome of a cancelled attempt is
// unknown.
func (g *Gateways) Stop() {
	g.files.queue.stop()
	g.out.queue.stop()
	g.Close()
}

// SendMessage adds a person's message, with the role assistant, to a
// conversation and sends it through the conversation's gateway. It returns once
// the message is stored with metadata.delivery "pending". The outcome is stored
// there as "sent" or "failed", and success emits the event message.sent.
func (g *Gateways) SendMessage(ctx context.Context, db *store.DB, m agent.Message) (agent.Message, error) {
	return db.SendMessage(ctx, m, false)
}

// Reply is SendMessage for an agent's automatic answers. It returns CONFLICT if
// a person has taken over the conversation.
func (g *Gateways) Reply(ctx context.Context, db *store.DB, m agent.Message) (agent.Message, error) {
	return db.SendMessage(ctx, m, true)
}

// dueMessages returns the conversations of an agent with a message to send.
// Those of a disabled agent wait until it is enabled.
func (g *Gateways) dueMessages(
	ctx context.Context,
	db *store.DB,
	limit int,
) (ids []string, next agent.Time, err error) {
	if db.Suspended() {
		return nil, next, nil
	}
	due, next, err := db.DueMessages(ctx, agent.At(g.now()), limit)
	for _, d := range due {
		if !d.Sending || !g.out.queue.steps.Busy(conversation{db, d.ConversationID}) {
			ids = append(ids, d.ConversationID)
		}
	}
	return ids, next, err
}

// sendNext attempts to send the first message of a conversation, if it is due,
// and records the outcome. An outcome that could not be recorded is the only
// work when the step runs again.
func (g *Gateways) sendNext(ctx context.Context, key conversation) error {
	attempt := g.out.takeUnrecorded(key)
	if attempt == nil {
		var err error
		if attempt, err = g.attempt(ctx, key); attempt == nil || err != nil {
			return err
		}
	}
	err := agent.IgnoreNotFound(key.db.EndSending(context.WithoutCancel(ctx), attempt.sending, attempt.outcome))
	if err != nil {
		g.out.putUnrecorded(key, attempt)
		return err
	}
	if c := &attempt.sending.Conversation; attempt.sending.Gateway.Type == agent.GatewayWeb {
		g.visitors.notify(visitKey{key.db.ID(), c.GatewayID, c.ExternalThreadID})
	}
	g.out.onAttempt(*attempt)
	return nil
}

func (o *outgoing) takeUnrecorded(key conversation) *attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.unrecorded[key]
	delete(o.unrecorded, key)
	return t
}

func (o *outgoing) putUnrecorded(key conversation, t *attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unrecorded[key] = t
}

// attempt sends the first message of a conversation. It returns nil if none is
// due. An attempt cancelled by Stop is handled by the next Start.
func (g *Gateways) attempt(ctx context.Context, key conversation) (*attempt, error) {
	if key.db.Suspended() {
		return nil, nil
	}
	sending, err := key.db.BeginSending(ctx, key.id, agent.At(g.now()))
	if err != nil || sending == nil {
		return nil, err
	}
	if sending.Interrupted {
		return g.resolveInterrupted(sending), nil
	}
	sendCtx, cancel := delayCancel(ctx, g.out.drain)
	defer cancel()
	sent, err := g.deliver(sendCtx, key.db, sending)
	if err != nil && sendCtx.Err() != nil && !isUnsent(err) {
		return nil, ctx.Err()
	}
	t := &attempt{
		sending,
		store.Ended{
			Parts:      max(sent.Parts, sending.Parts),
			ExternalID: cmp.Or(sending.ExternalID, sent.ID),
			Channel:    cmp.Or(sending.Channel, sent.Channel),
		},
	}
	if err != nil {
		t.outcome.Problem, t.outcome.Next = g.classify(err, sending, g.now())
		g.log.Info(
			"send message",
			"agent", key.db.ID(),
			"message", sending.MessageID,
			"gateway", sending.Gateway.ID,
			"error", key.db.HideLinks(err.Error()),
		)
	}
	return t, nil
}

// resolveInterrupted handles an attempt during which the program ended: the message is
// sent again if the platform recognizes repeats; otherwise it has failed.
func (g *Gateways) resolveInterrupted(s *store.Sending) *attempt {
	e := store.Ended{
		Parts:      s.Parts,
		ExternalID: s.ExternalID,
		Channel:    s.Channel,
		Problem:    "the server was stopped in the middle of sending",
	}
	if now := g.now(); g.deduplicates(s, now) {
		e.Next = agent.At(now)
	} else {
		e.Problem += outcomeUnknown
	}
	return &attempt{s, e}
}

// delayCancel returns a context that ends some time after ctx.
func delayCancel(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(after, cancel)
	})
	return longer, func() {
		stop()
		cancel()
	}
}
