package gateways

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Answerer lets agents answer by themselves what comes in over gateways and no
// workflow listens to. The messages that wait are rows of the agent's file;
// memory holds what is under way. A turn with a model takes long, so it runs
// here and not in the dispatcher's turn. Of a conversation one message is
// answered after the other.
type Answerer struct {
	gateways *Gateways
	folder   *store.Folder
	answer   AnswerFunc
	log      *slog.Logger
	ended    func(agent.Message) // is told of each message that is done with; tests set it

	mu      sync.Mutex
	ctx     context.Context // nil: not started
	agents  map[*store.DB]*answering
	busy    int          // answers under way
	waiting []*answering // that have more to answer than there was room for

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// AnswerFunc answers a stored message and hands the answer to keep, which
// stores it.
type AnswerFunc func(ctx context.Context, db *store.DB, said agent.Message, keep func(agent.Message) error) error

// answering is an agent with messages to answer.
type answering struct {
	db      *store.DB
	busy    map[string]bool // conversations with an answer under way
	looking bool
	again   bool // look once more
	waits   bool // in waiting
}

// Bounds of answering.
const (
	answersAtOnce  = 64
	answersOfAgent = 4
	answerTimeout  = 10 * time.Minute // of a whole turn, its tools included
)

// NewAnswerer makes what answers for the agents of g's folder.
func NewAnswerer(g *Gateways, answer AnswerFunc) *Answerer {
	return &Answerer{gateways: g, folder: g.folder, answer: answer, log: g.log, ended: func(agent.Message) {}, agents: map[*store.DB]*answering{}}
}

// Start begins to answer, first what was left. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (a *Answerer) Start(ctx context.Context) error {
	a.startMu.Lock()
	defer a.startMu.Unlock()
	if a.stop != nil {
		return nil
	}
	ctx, a.stop = context.WithCancel(ctx)
	a.mu.Lock()
	a.ctx = ctx
	for db := range a.agents {
		a.lookAt(db)
	}
	a.mu.Unlock()
	for _, db := range a.folder.Agents() {
		if db.MayAnswer() {
			a.Kick(db)
		}
	}
	return nil
}

// Stop cuts the answers under way, which begin anew with the next Start, and
// waits until nothing runs.
func (a *Answerer) Stop() {
	a.startMu.Lock()
	defer a.startMu.Unlock()
	if a.stop == nil {
		return
	}
	a.stop()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	a.running.Wait()
	a.mu.Lock()
	a.agents, a.waiting = map[*store.DB]*answering{}, nil
	a.mu.Unlock()
	a.stop = nil
}

// Handle notes which messages the agent is to answer: it is the consumer that
// the dispatcher calls.
func (a *Answerer) Handle(ctx context.Context, db *store.DB, events []agent.Event) (int, error) {
	noted, err := db.EnqueueAnswers(ctx, events)
	if err != nil {
		return 0, err
	}
	if noted > 0 {
		a.Kick(db)
	}
	return len(events), nil
}

// Kick tells that messages of an agent may wait for an answer. It returns at
// once. Before Start the work waits for it.
func (a *Answerer) Kick(db *store.DB) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lookAt(db)
}

// lookAt sees to it that an agent is looked at. The caller holds mu.
func (a *Answerer) lookAt(db *store.DB) {
	one := a.agents[db]
	if one == nil {
		one = &answering{db: db, busy: map[string]bool{}}
		a.agents[db] = one
	}
	switch {
	case a.ctx == nil: // Start does
	case one.looking:
		one.again = true
	default:
		one.looking = true
		ctx := a.ctx
		a.running.Go(func() { a.look(ctx, one) })
	}
}

// look begins to answer what there is room for.
func (a *Answerer) look(ctx context.Context, one *answering) {
	due, err := one.db.Unanswered(ctx, 2*answersOfAgent)
	if err != nil && ctx.Err() == nil && agent.ErrorCode(err) != agent.CodeNotFound {
		a.log.Error("the messages that an agent has to answer could not be read", "agent", one.db.ID(), "error", err)
		if a.gateways.wait(ctx, lookAgainAfter) == nil {
			due, err = one.db.Unanswered(ctx, 2*answersOfAgent)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	one.looking = false
	if ctx.Err() != nil {
		return
	}
	for _, m := range due {
		if one.busy[m.ConversationID] {
			continue
		}
		if len(one.busy) >= answersOfAgent {
			break
		}
		if a.busy >= answersAtOnce {
			if !one.waits {
				one.waits = true
				a.waiting = append(a.waiting, one)
			}
			break
		}
		a.busy++
		one.busy[m.ConversationID] = true
		a.running.Go(func() {
			again := a.one(ctx, one.db, m.ID)
			a.end(one, m.ConversationID, again)
		})
	}
	if one.again {
		one.again = false
		a.lookAt(one.db)
	}
	a.forget(one)
}

// end gives a place to the next.
func (a *Answerer) end(one *answering, conversationID string, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
	delete(one.busy, conversationID)
	if again {
		a.lookAt(one.db)
	}
	if len(a.waiting) > 0 {
		next := a.waiting[0]
		a.waiting = a.waiting[1:]
		next.waits = false
		a.lookAt(next.db)
	}
	a.forget(one)
}

// forget drops an agent that has nothing under way.
func (a *Answerer) forget(one *answering) {
	if len(one.busy) == 0 && !one.looking && !one.waits && a.agents[one.db] == one {
		delete(a.agents, one.db)
	}
}

// one answers one message, and tells whether to look for more.
func (a *Answerer) one(ctx context.Context, db *store.DB, id int64) bool {
	m, err := db.BeginAnswer(ctx, id)
	if err != nil {
		if ctx.Err() == nil && agent.ErrorCode(err) != agent.CodeNotFound {
			a.log.Error("a message that is to be answered could not be read", "agent", db.ID(), "message", id, "error", err)
			return a.gateways.wait(ctx, lookAgainAfter) == nil
		}
		return false
	}
	if m == nil {
		return true
	}
	turn, cancel := context.WithTimeout(ctx, answerTimeout)
	err = a.answer(turn, db, *m, func(reply agent.Message) error {
		_, err := a.gateways.Reply(context.WithoutCancel(turn), db, reply, store.AnswerKey(id))
		return err
	})
	cancel()
	if err != nil && ctx.Err() != nil {
		if err := db.CutAnswer(context.WithoutCancel(ctx), id); err != nil {
			a.log.Warn("a cut answer counts as tried", "agent", db.ID(), "message", id, "error", err)
		}
		return false
	}
	if err := db.EndAnswer(context.WithoutCancel(ctx), *m, a.problem(ctx, db, m, err)); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		a.log.Error("an answer could not be written down", "agent", db.ID(), "message", id, "error", err)
		return a.gateways.wait(ctx, lookAgainAfter) == nil
	}
	a.ended(*m)
	return true
}

// problem is what the agent's log tells of a failure; "" for nothing. What is
// the gateway's fault is noted there too.
func (a *Answerer) problem(ctx context.Context, db *store.DB, m *agent.Message, err error) string {
	if err == nil {
		return ""
	}
	c, _, lost := db.Conversation(ctx, m.ConversationID, 1)
	if agent.ErrorCode(err) == agent.CodeConflict && lost == nil && c.Muted {
		return "" // a person took over meanwhile
	}
	a.log.Info("a message was not answered automatically", "agent", db.ID(), "message", m.ID, "error", err)
	problem := agent.Explain(err)
	var e *agent.Error
	if errors.As(err, &e) && e.Details["field"] == "send" && lost == nil {
		if err := db.NoteGatewayError(ctx, c.GatewayID, "an answer could not be sent: "+problem); err != nil {
			a.log.Warn("trouble with a gateway could not be noted", "agent", db.ID(), "gateway", c.GatewayID, "error", err)
		}
	}
	return problem
}
