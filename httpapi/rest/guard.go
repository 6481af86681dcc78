package rest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// GuardInterval is how often a guard checks an idle stream or socket.
const GuardInterval = 2 * time.Second

// Guard ends a stream or a socket whose client has lost its access. Every stream and
// every socket has one.
type Guard struct {
	check   func() error
	end     context.CancelCauseFunc
	running sync.WaitGroup
}

// EndedError is the reason why a guard ended a stream or a socket.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return e.Err.Error() }

func (e *EndedError) Unwrap() error { return e.Err }

// Reason returns err, or why the call's guard ended what failed with err.
func Reason(c *Call, err error) error {
	var ended *EndedError
	if err != nil && errors.As(context.Cause(c), &ended) {
		return ended.Err
	}
	return err
}

// NewGuard returns a guard and the context of what it guards. When a check fails, the
// context ends with an EndedError. check must be fast: it is called before each event to
// the client and each message from it. verify is called at every interval instead, and
// may take longer. The caller must stop the guard.
func NewGuard(ctx context.Context, every time.Duration, check func() error, verify func(context.Context) error) (context.Context, *Guard) {
	ctx, end := context.WithCancelCause(ctx)
	g := &Guard{check: check, end: end}
	g.running.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := verify(ctx); err != nil {
					end(&EndedError{err})
				}
			}
		}
	})
	return ctx, g
}

// Check returns an EndedError if the client has lost its access.
func (g *Guard) Check() error {
	if err := g.check(); err != nil {
		ended := &EndedError{err}
		g.end(ended)
		return ended
	}
	return nil
}

// Stop ends the context and the checks.
func (g *Guard) Stop() {
	g.end(context.Canceled)
	g.running.Wait()
}
