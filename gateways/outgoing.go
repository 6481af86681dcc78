package gateways

import (
	"cmp"
	"context"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Bounds of the messages that are sent at once.
const (
	sendsAtOnce  = 64
	sendsOfAgent = 8
	drainTime    = 3 * time.Second // that Stop gives the tries under way
)

// outgoing sends the messages of conversations, whose rows in the agent's file
// are the queue.
type outgoing struct {
	queue *conversationQueue
	drain time.Duration
	tried func(try) // is called after each try; tests set it

	mu         sync.Mutex
	unrecorded map[conversation]*try // whose outcomes could not be written yet
}

// try is one of sending a message, with its outcome.
type try struct {
	sending *store.Sending
	outcome store.Ended
}

func newOutgoing(g *Gateways) *outgoing {
	o := &outgoing{drain: drainTime, tried: func(try) {}, unrecorded: map[conversation]*try{}}
	o.queue = newConversationQueue(conversationOptions{
		task: "send messages", limit: sendsAtOnce, ofAgent: sendsOfAgent, log: g.log,
		now: func() time.Time { return g.now() }, due: g.dueMessages, step: g.sendNext,
	})
	return o
}

// Start begins to send the messages that wait. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (g *Gateways) Start(ctx context.Context) error {
	g.out.queue.start(ctx)
	return nil
}

// Stop begins no more tries, gives those under way three seconds, cancels the
// rest and waits until nothing runs. The outcome of a try that was cancelled
// is unknown.
func (g *Gateways) Stop() {
	g.out.queue.stop()
	g.guard.CloseIdleConnections()
}

// SendMessage adds a person's message, which must be the assistant's, to a
// conversation and sends it over the conversation's gateway. It returns once
// the message is stored with metadata.delivery "pending"; what comes of it is
// noted there as "sent" or "failed", and the event message.sent follows a
// success.
func (g *Gateways) SendMessage(ctx context.Context, db *store.DB, m agent.Message) (agent.Message, error) {
	return db.SendMessage(ctx, m, false)
}

// Reply is SendMessage for what an agent says by itself. When a person answers
// the conversation by now it is a CONFLICT.
func (g *Gateways) Reply(ctx context.Context, db *store.DB, m agent.Message) (agent.Message, error) {
	return db.SendMessage(ctx, m, true)
}

// dueMessages returns the conversations of an agent with a message to send.
// Those of a disabled agent wait until it is enabled.
func (g *Gateways) dueMessages(ctx context.Context, db *store.DB, limit int) (ids []string, next agent.Time, err error) {
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

// sendNext tries the first message of a conversation once, if it is due, and
// records the outcome. One that could not be written is all that is left to do
// when the step comes again.
func (g *Gateways) sendNext(ctx context.Context, key conversation) error {
	t := g.out.takeUnrecorded(key)
	if t == nil {
		var err error
		if t, err = g.try(ctx, key); t == nil || err != nil {
			return err
		}
	}
	err := agent.IgnoreNotFound(key.db.EndSending(context.WithoutCancel(ctx), t.sending, t.outcome))
	if err != nil {
		g.out.keepUnrecorded(key, t)
		return err
	}
	if c := &t.sending.Conversation; t.sending.Gateway.Type == agent.GatewayWeb {
		g.visitors.wake(visitKey{key.db.ID(), c.GatewayID, c.ExternalThreadID})
	}
	g.out.tried(*t)
	return nil
}

func (o *outgoing) takeUnrecorded(key conversation) *try {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.unrecorded[key]
	delete(o.unrecorded, key)
	return t
}

func (o *outgoing) keepUnrecorded(key conversation, t *try) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unrecorded[key] = t
}

// try sends the first message of a conversation; nil when none is due. A try
// that Stop cancelled is left to the next Start to judge.
func (g *Gateways) try(ctx context.Context, key conversation) (*try, error) {
	if key.db.Suspended() {
		return nil, nil
	}
	s, err := key.db.BeginSending(ctx, key.id, agent.At(g.now()))
	if err != nil || s == nil {
		return nil, err
	}
	if s.Interrupted {
		return g.interrupted(s), nil
	}
	sendCtx, cancel := delayCancel(ctx, g.out.drain)
	defer cancel()
	sent, err := g.deliver(sendCtx, key.db.ID(), s)
	if err != nil && sendCtx.Err() != nil && !notSent(err) {
		return nil, ctx.Err()
	}
	t := &try{s, store.Ended{Parts: max(sent.Parts, s.Parts), ExternalID: cmp.Or(s.ExternalID, sent.ID), Channel: cmp.Or(s.Channel, sent.Channel)}}
	if err != nil {
		t.outcome.Problem, t.outcome.Next = g.classify(err, s, g.now())
		g.log.Info("send a message", "agent", key.db.ID(), "message", s.MessageID, "gateway", s.Gateway.ID, "error", err)
	}
	return t, nil
}

// interrupted judges a try that the program was ended in the middle of: the
// message is sent again where the platform recognizes a repeat, else it has
// failed.
func (g *Gateways) interrupted(s *store.Sending) *try {
	e := store.Ended{Parts: s.Parts, ExternalID: s.ExternalID, Channel: s.Channel, Problem: "the server was stopped in the middle of sending"}
	if now := g.now(); g.deduplicates(s, now) {
		e.Next = agent.At(now)
	} else {
		e.Problem += outcomeUnknown
	}
	return &try{s, e}
}

// delayCancel returns a context that ends a while after ctx.
func delayCancel(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return longer, func() { stop(); cancel() }
}
