package flow

import (
	"context"
	"errors"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// budgetExecutions is how many executions one root may cause within
// budgetWindow.
const (
	budgetExecutions = 1000
	budgetWindow     = time.Minute
)

// budget counts the recent executions that each root caused.
type budget struct {
	limit int
	now   func() time.Time

	mu      sync.Mutex // protects the fields below
	roots   map[string]*rootUsage
	sweptAt time.Time
}

// rootUsage is what one root caused within the window.
type rootUsage struct {
	starts   []time.Time          // oldest first
	recorded map[string]time.Time // when a refusal was recorded, by workflow id
}

func newBudget() budget {
	return budget{
		limit: budgetExecutions,
		now:   time.Now,
		roots: map[string]*rootUsage{},
	}
}

// take counts an execution caused by a root. It returns false if the root has
// reached its limit.
func (b *budget) take(root string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.sweepLocked(now)
	s := b.of(root)
	s.forget(now)
	if len(s.starts) >= b.limit {
		return false
	}
	s.starts = append(s.starts, now)
	return true
}

// shouldRecord reports whether to record a refusal: one per workflow and
// window.
func (b *budget) shouldRecord(root, workflow string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	s := b.of(root)
	s.forget(now)
	if _, ok := s.recorded[workflow]; ok {
		return false
	}
	s.recorded[workflow] = now
	return true
}

func (b *budget) of(root string) *rootUsage {
	s := b.roots[root]
	if s == nil {
		s = &rootUsage{recorded: map[string]time.Time{}}
		b.roots[root] = s
	}
	return s
}

// sweepLocked drops roots that caused nothing within the window. It runs at
// most once per window.
func (b *budget) sweepLocked(now time.Time) {
	if now.Sub(b.sweptAt) < budgetWindow {
		return
	}
	b.sweptAt = now
	for root, s := range b.roots {
		if s.forget(now); len(s.starts) == 0 && len(s.recorded) == 0 {
			delete(b.roots, root)
		}
	}
}

func (s *rootUsage) forget(now time.Time) {
	n := 0
	for n < len(s.starts) && now.Sub(s.starts[n]) >= budgetWindow {
		n++
	}
	s.starts = s.starts[n:]
	for workflow, at := range s.recorded {
		if now.Sub(at) >= budgetWindow {
			delete(s.recorded, workflow)
		}
	}
}

// charge counts an execution that other executions caused, and returns the
// reason if it may not start.
func (engine *Engine) charge(execution *agent.Execution) *agent.Error {
	switch {
	case execution.Depth > agent.MaxEventDepth:
		return agent.Errorf(
			agent.CodeBudget,
			"workflows started each other %d times in a row, which is the limit of a chain",
			agent.MaxEventDepth,
		).With("depth", agent.MaxEventDepth).With("root_id", execution.RootID)
	case execution.Depth > 1 && !engine.budget.take(execution.RootID):
		return agent.Errorf(
			agent.CodeBudget,
			"one execution started %d others within a minute, which is the limit",
			engine.budget.limit,
		).With("limit", engine.budget.limit).With("root_id", execution.RootID)
	}
	return nil
}

// refuse records an execution that may not start as failed, and logs it, once a
// minute for each workflow and root. It returns the error.
func (engine *Engine) refuse(
	ctx context.Context,
	db *store.DB,
	execution *agent.Execution,
	program *program,
	key string,
	why *agent.Error,
) error {
	if !engine.budget.shouldRecord(execution.RootID, execution.WorkflowID) {
		return why
	}
	execution.Status, execution.CompletedAt = agent.ExecutionErrored, execution.StartedAt
	execution.Error = &agent.ExecutionError{
		Code:    string(why.Code),
		Message: why.Message,
		Details: why.Details,
	}
	execution.Depth = agent.MaxEventDepth + 1 // its events start nothing
	_, err := db.CommitExecution(ctx, store.ExecutionStep{
		Execution:      execution,
		Name:           program.workflow.Name,
		New:            true,
		IdempotencyKey: key,
	})
	if errors.Is(err, store.ErrRepeated) {
		return why
	}
	if err == nil {
		err = logRefusal(ctx, db, execution, why)
	}
	if err != nil {
		return err
	}
	return why
}

// logRefusal logs that an execution was not started.
func logRefusal(ctx context.Context, db *store.DB, x *agent.Execution, why *agent.Error) error {
	return db.Log(
		ctx,
		agent.LevelWarn,
		"flow",
		"an execution was not started: "+why.Message,
		map[string]any{
			"workflow_id": x.WorkflowID,
			"parent_id":   x.ParentID,
			"root_id":     x.RootID,
			"code":        why.Code,
		},
	)
}

// withChain returns a context in which everything a node does belongs to the
// chain: its writes and its requests to this server.
func (engine *Engine) withChain(ctx context.Context, c agent.Chain) context.Context {
	return engine.options.Own.Mark(store.WithChain(ctx, c), agent.ChainHeader, c.Signed())
}
