package schedule

import (
	"context"
	"time"

	"satchel/store"
)

// noteAfter is how long an execution goes on before the run's row tells of it:
// one that ends sooner is told of by the run's end.
const noteAfter = 500 * time.Millisecond

// note writes which execution a run started, while that goes on.
type note struct {
	scheduler *Scheduler
	ctx       context.Context
	db        *store.DB
	id        string // of the run or the occurrence
	free      func() // gives the run's slot free

	timer   *time.Timer
	written chan struct{}
}

func (s *Scheduler) noted(ctx context.Context, db *store.DB, id string, free func()) *note {
	return &note{scheduler: s, ctx: ctx, db: db, id: id, free: free}
}

// began hears what the run started.
func (n *note) began(executionID string) {
	n.free()
	if n.timer != nil || executionID == "" {
		return
	}
	n.written = make(chan struct{})
	n.timer = time.AfterFunc(noteAfter, func() {
		defer close(n.written)
		if err := n.db.NoteExecution(n.ctx, n.id, executionID); err != nil && n.ctx.Err() == nil {
			n.scheduler.log.Error("note what a run started", "agent", n.db.ID(), "run", n.id, "error", err)
		}
	})
}

// end is called when the run has ended: nothing is written from then on.
func (n *note) end() {
	if n.timer != nil && !n.timer.Stop() {
		<-n.written
	}
}
