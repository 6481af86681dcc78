package flow

import (
	"context"
	"errors"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// budgetExecutions is how many executions one root may lead to in
// budgetWindow.
const (
	budgetExecutions = 1000
	budgetWindow     = time.Minute
)

// budget counts what roots have led to of late.
type budget struct {
	most int
	now  func() time.Time

	mu    sync.Mutex // protects the rest
	roots map[string]*spending
	swept time.Time
}

// spending is what one root has led to within the window.
type spending struct {
	starts []time.Time          // oldest first
	shown  map[string]time.Time // when a refusal was entered, by workflow
}

func newBudget() budget {
	return budget{most: budgetExecutions, now: time.Now, roots: map[string]*spending{}}
}

// take counts an execution that a root leads to. It is false when there were
// too many.
func (b *budget) take(root string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.sweepLocked(now)
	s := b.of(root)
	s.forget(now)
	if len(s.starts) >= b.most {
		return false
	}
	s.starts = append(s.starts, now)
	return true
}

// show reports whether a refusal is to be entered: one of a workflow in a
// window is.
func (b *budget) show(root, workflow string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	s := b.of(root)
	s.forget(now)
	if _, ok := s.shown[workflow]; ok {
		return false
	}
	s.shown[workflow] = now
	return true
}

func (b *budget) of(root string) *spending {
	s := b.roots[root]
	if s == nil {
		s = &spending{shown: map[string]time.Time{}}
		b.roots[root] = s
	}
	return s
}

// sweepLocked forgets roots that have led to nothing within the window, once in
// each.
func (b *budget) sweepLocked(now time.Time) {
	if now.Sub(b.swept) < budgetWindow {
		return
	}
	b.swept = now
	for root, s := range b.roots {
		if s.forget(now); len(s.starts) == 0 && len(s.shown) == 0 {
			delete(b.roots, root)
		}
	}
}

func (s *spending) forget(now time.Time) {
	n := 0
	for n < len(s.starts) && now.Sub(s.starts[n]) >= budgetWindow {
		n++
	}
	s.starts = s.starts[n:]
	for workflow, at := range s.shown {
		if now.Sub(at) >= budgetWindow {
			delete(s.shown, workflow)
		}
	}
}

// spend counts an execution that others led to, and returns why it may not
// start.
func (e *Engine) spend(x *agent.Execution) *agent.Error {
	switch {
	case x.Depth > agent.MaxEventDepth:
		return agent.Errorf(agent.CodeBudget, "executions have started each other %d times in a row; a chain of them ends there", agent.MaxEventDepth).
			With("depth", agent.MaxEventDepth).With("root_id", x.RootID)
	case x.Depth > 1 && !e.budget.take(x.RootID):
		return agent.Errorf(agent.CodeBudget, "one execution has led to %d others within a minute; it may start no more", e.budget.most).
			With("limit", e.budget.most).With("root_id", x.RootID)
	}
	return nil
}

// refuse enters an execution that may not start, with the error, and logs it.
// Of the same workflow and root it does so once a minute. It returns the error.
func (e *Engine) refuse(ctx context.Context, db *store.DB, x *agent.Execution, p *program, key string, why *agent.Error) error {
	if !e.budget.show(x.RootID, x.WorkflowID) {
		return why
	}
	x.Status, x.CompletedAt = agent.ExecutionErrored, x.StartedAt
	x.Error = &agent.ExecutionError{Code: string(why.Code), Message: why.Message, Details: why.Details}
	x.Depth = agent.MaxEventDepth + 1 // its events start nothing
	_, err := db.CommitExecution(ctx, store.ExecutionStep{Execution: x, Name: p.workflow.Name, New: true, IdempotencyKey: key})
	if errors.Is(err, store.ErrRepeated) {
		return why
	}
	if err == nil {
		err = logRefusal(ctx, db, x, why)
	}
	if err != nil {
		return err
	}
	return why
}

// logRefusal logs that an execution was not started.
func logRefusal(ctx context.Context, db *store.DB, x *agent.Execution, why *agent.Error) error {
	return db.Log(ctx, agent.LevelWarn, "flow", "an execution was not started: "+why.Message,
		map[string]any{"workflow_id": x.WorkflowID, "parent_id": x.ParentID, "root_id": x.RootID, "code": why.Code})
}

// chained returns a context in which all that a node does belongs to a chain:
// what it writes, and what it asks of this server.
func (e *Engine) chained(ctx context.Context, c agent.Chain) context.Context {
	return e.options.Own.Mark(store.WithChain(ctx, c), agent.ChainHeader, c.Signed())
}
