package gateways

import (
	"context"
	"log/slog"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Limits of the queues of agents.
const (
	agentsAtOnce  = 4                    // agents whose due conversations are being read
	agentInterval = 5 * time.Millisecond // between two reads of an agent
	errorPause    = time.Minute          // after a failed step
)

// conversation identifies a conversation of an agent.
type conversation struct {
	db *store.DB
	id string
}

// conversationOptions configure a conversationQueue.
type conversationOptions struct {
	task     string // for the log
	limit    int    // concurrent steps
	perAgent int    // concurrent steps per agent
	now      func() time.Time
	log      *slog.Logger

	// due returns up to limit conversations of an agent that have work, and
	// when the next one will.
	due func(ctx context.Context, db *store.DB, limit int) (ids []string, next agent.Time, err error)
	// step does the next piece of a conversation's work, if any. After an error
	// it is called again later.
	step func(ctx context.Context, key conversation) error
}

// conversationQueue runs the work of conversations, such as answers: one step
// of a conversation at a time, many conversations concurrently.
type conversationQueue struct {
	conversationOptions
	agents *work.Queue[*store.DB] // agents whose conversations may have work
	steps  *work.Queue[conversation]
}

// conversationsEnqueued limits the enqueued conversations of an agent to
// several times those that run.
const conversationsEnqueued = 64

func newConversationQueue(options conversationOptions) *conversationQueue {
	queue := &conversationQueue{conversationOptions: options}
	queue.agents = work.New(work.Options[*store.DB]{
		Run:   queue.enqueueDue,
		Limit: agentsAtOnce,
		Now:   options.now,
		OnError: func(db *store.DB, err error) {
			queue.log.Error("read due conversations", "task", queue.task, "agent", db.ID(), "error", err)
		},
	})
	queue.steps = work.New(work.Options[conversation]{
		Run:        queue.run,
		Limit:      options.limit,
		Now:        options.now,
		Group:      func(key conversation) any { return key.db },
		GroupLimit: func(any) int { return options.perAgent },
		Backoff:    func(int, error) time.Duration { return errorPause },
		OnError: func(key conversation, err error) {
			queue.log.Error(
				"process conversation",
				"task", queue.task,
				"agent", key.db.ID(),
				"conversation", key.id,
				"error", err,
			)
		},
	})
	return queue
}

func (q *conversationQueue) start(ctx context.Context) {
	q.agents.Start(ctx)
	q.steps.Start(ctx)
}

// stop cancels the running steps and waits for them to return.
func (q *conversationQueue) stop() {
	q.agents.Stop()
	q.steps.Stop()
}

// enqueueDue enqueues the conversations of an agent that have work. Steps of
// conversations that are already enqueued request another turn.
func (q *conversationQueue) enqueueDue(ctx context.Context, db *store.DB) (work.Next, error) {
	if db.Gone() || db.Problem() != nil || len(q.steps.Keys(db)) >= conversationsEnqueued {
		return work.Next{}, nil
	}
	ids, next, err := q.due(ctx, db, conversationsEnqueued)
	if err != nil {
		return work.Next{}, agent.IgnoreNotFound(err)
	}
	for _, id := range ids {
		q.steps.Enqueue(conversation{db, id})
	}
	return work.Next{At: next.Time, Rest: agentInterval}, nil
}

func (q *conversationQueue) run(ctx context.Context, key conversation) (work.Next, error) {
	defer q.agents.Enqueue(key.db)
	return work.Next{}, agent.IgnoreNotFound(q.step(ctx, key))
}
