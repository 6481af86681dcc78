package gateways

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Answerer answers inbound messages that no workflow handles. The messages to
// answer are rows of the agent's file, written together with the messages. The
// messages of a conversation are answered one after another.
type Answerer struct {
	gateways *Gateways
	answer   AnswerFunc
	log      *slog.Logger
	queue    *conversationQueue
	ended    func(agent.Message) // called for each finished message; for tests
}

// AnswerFunc answers a stored message and passes the answer to keep, which
// stores it.
type AnswerFunc func(
	ctx context.Context,
	db *store.DB,
	message agent.Message,
	how agent.AnswerOptions,
	keep func(agent.Message) error,
) error

// Limits of answering.
const (
	answersAtOnce   = 64
	answersPerAgent = 4
	answerTimeout   = 10 * time.Minute // for a whole answer, including tools
)

// NewAnswerer returns an Answerer for the agents of gateways's folder.
func NewAnswerer(gateways *Gateways, answer AnswerFunc) *Answerer {
	answerer := &Answerer{
		gateways: gateways,
		answer:   answer,
		log:      gateways.log,
		ended:    func(agent.Message) {},
	}
	answerer.queue = newConversationQueue(conversationOptions{
		task:     "answer messages",
		limit:    answersAtOnce,
		perAgent: answersPerAgent,
		now:      time.Now,
		log:      gateways.log,
		step:     answerer.answerNext,
		due: func(ctx context.Context, db *store.DB, limit int) ([]string, agent.Time, error) {
			ids, err := db.DueAnswers(ctx, limit)
			return ids, agent.Time{}, err
		},
	})
	gateways.folder.OnPending(func(db *store.DB, p store.Pending) {
		answerer.queue.agents.Notify(db, p.Answers.Time, p.Changed)
	})
	return answerer
}

// Start begins to answer, beginning with pending messages. It returns
// immediately and may be called twice. The work ends with ctx or Stop.
func (a *Answerer) Start(ctx context.Context) error {
	a.queue.start(ctx)
	return nil
}

// Stop cancels answers in progress, which start over with the next Start, and
// waits until nothing runs.
func (a *Answerer) Stop() { a.queue.stop() }

// answerNext answers the first pending message of a conversation.
func (a *Answerer) answerNext(ctx context.Context, key conversation) error {
	message, err := key.db.BeginAnswer(ctx, key.id)
	if err != nil || message == nil {
		return err
	}
	stored := context.WithoutCancel(ctx)
	if err = a.generate(ctx, key.db, *message); err != nil && ctx.Err() != nil {
		if err := key.db.CancelAnswer(stored, message.ID); err != nil {
			a.log.Warn("cancel answer", "agent", key.db.ID(), "message", message.ID, "error", err)
		}
		return ctx.Err()
	}
	if err != nil {
		if err := agent.IgnoreNotFound(key.db.DropAnswer(
			stored,
			*message,
			a.failureText(stored, key.db, message, err),
		)); err != nil {
			return err
		}
		a.notifyVisitor(stored, key.db, message)
	}
	a.ended(*message)
	return nil
}

// generate answers a message. The answer is stored even if the timeout expires
// in the meantime.
func (a *Answerer) generate(ctx context.Context, db *store.DB, message agent.Message) error {
	stored := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var handedOver atomic.Bool
	how, end, err := a.answering(ctx, db, message, &handedOver)
	if err != nil {
		return err
	}
	defer end()
	return a.answer(ctx, db, message, how, func(answer agent.Message) error {
		if handedOver.Load() && strings.TrimSpace(answer.Content) == "" {
			answer.Content = handoverText
		}
		_, err := db.SendAnswer(stored, answer, message.ID, handedOver.Load())
		return err
	})
}

// handoverText is sent when the model hands over without any text.
const handoverText = "I have asked a person to answer you here."

// answering returns how a message is answered. Visitors of websites see the answer
// as it is generated, and may be handed over to a person. The caller calls end when
// the answer is complete.
func (a *Answerer) answering(
	ctx context.Context,
	db *store.DB,
	m agent.Message,
	handedOver *atomic.Bool,
) (how agent.AnswerOptions, end func(), err error) {
	gateway, thread, visitor, err := db.VisitorOf(ctx, m.ConversationID)
	if err != nil || !visitor {
		return how, func() {}, err
	}
	key, visitors := visitKey{db.ID(), gateway, thread}, a.gateways.visitors
	how = agent.AnswerOptions{
		Public:   true,
		Handover: func() { handedOver.Store(true) },
		OnText:   func(piece string) { visitors.appendPartial(key, piece) },
	}
	return how, func() { visitors.clearPartial(key) }, nil
}

// notifyVisitor notifies the visitor of a website that there will be no answer.
func (a *Answerer) notifyVisitor(ctx context.Context, db *store.DB, m *agent.Message) {
	if gateway, thread, visitor, err := db.VisitorOf(ctx, m.ConversationID); err == nil && visitor {
		a.gateways.visitors.notify(visitKey{db.ID(), gateway, thread})
	}
}

// failureText returns the text about a failure for the agent's log, or "". An error
// of the gateway is also recorded on the gateway.
func (a *Answerer) failureText(ctx context.Context, db *store.DB, m *agent.Message, err error) string {
	c, _, lost := db.Conversation(ctx, m.ConversationID, 1)
	if agent.ErrorCode(err) == agent.CodeConflict && lost == nil && c.Muted {
		return "" // a person has taken over
	}
	a.log.Info("answer message", "agent", db.ID(), "message", m.ID, "error", err)
	problem := agent.Explain(err)
	var e *agent.Error
	if errors.As(err, &e) && e.Details["field"] == "send" && lost == nil {
		if err := db.NoteGatewayError(ctx, c.GatewayID, "an answer could not be sent: "+problem); err != nil {
			a.log.Warn("store error of gateway", "agent", db.ID(), "gateway", c.GatewayID, "error", err)
		}
	}
	return problem
}
