package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"satchel/agent"
)

// GuardInterval is how often a guard checks an idle stream or socket.
const GuardInterval = 2 * time.Second

// Guard ends a request, a stream or a socket whose client has lost its access. Every
// stream, every socket and every request that may wait has one.
type Guard struct {
	check func() error
	end   context.CancelCauseFunc
	timer *time.Timer   // starts the checks; a short request ends before
	done  chan struct{} // closed after the last check, if the timer has fired
}

// EndedError is the reason why a guard ended a stream or a socket.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return e.Err.Error() }

func (e *EndedError) Unwrap() error { return e.Err }

// Reason returns err, or why ctx was ended if what failed with err was cut by that: the
// client has lost its access, or the server is stopping.
func Reason(ctx context.Context, err error) error {
	var why *agent.Error
	if err != nil && errors.As(context.Cause(ctx), &why) && StatusOf(AsError(err).Code) >= http.StatusInternalServerError {
		return why
	}
	return err
}

// Ended returns why a guard has ended ctx, or nil if none has.
func Ended(ctx context.Context) error {
	var ended *EndedError
	if errors.As(context.Cause(ctx), &ended) {
		return ended
	}
	return nil
}

// Interrupted returns why ctx has ended, or nil if it has not.
func Interrupted(ctx context.Context) error { return Reason(ctx, ctx.Err()) }

// NewGuard returns a guard and the context of what it guards. When a check fails, the
// context ends with an EndedError. check must be fast: it is called before each event to
// the client and each message from it. verify is called at every interval instead, and
// may take longer. The caller must stop the guard once.
func NewGuard(ctx context.Context, every time.Duration, check func() error, verify func(context.Context) error) (context.Context, *Guard) {
	ctx, end := context.WithCancelCause(ctx)
	g := &Guard{check: check, end: end, done: make(chan struct{})}
	g.timer = time.AfterFunc(every, func() {
		defer close(g.done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := verify(ctx); err != nil {
				end(&EndedError{err})
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
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
	if !g.timer.Stop() {
		<-g.done
	}
}
