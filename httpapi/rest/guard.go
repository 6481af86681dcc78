package rest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
)

// GuardInterval is how often a guard checks an idle stream or socket.
const GuardInterval = 2 * time.Second

// Guard is the context of a request, a stream or a socket, which ends when the client has
// lost its access. Every stream, every socket and every request that may wait has one.
//
// Most requests are answered before anything waits for them, so the checks start only when
// something does: with the first call of Done, or of Err once the request lasts.
type Guard struct {
	context.Context // that the guard was made with
	access          Holder
	every           time.Duration
	began           time.Time

	watched atomic.Pointer[watched] // nil until the checks start
	mu      sync.Mutex              // held while they start or stop
	stopped bool
}

// watched is the context of a guard whose checks have started.
type watched struct {
	context.Context
	end   context.CancelCauseFunc
	timer *time.Timer   // begins the checks
	done  chan struct{} // closed after the last check, if the timer has fired
}

// Holder is the access of whoever is at the other end.
type Holder interface {
	// Check returns why the access has ended, or nil. It must be fast: it is called before
	// each event to the client and each message from it.
	Check() error
	// Identify returns why the credentials are not valid any more, or nil. It is called at
	// every interval before Check, and may take longer.
	Identify(ctx context.Context) error
}

// EndedError is the reason why a guard ended a stream or a socket.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return e.Err.Error() }

func (e *EndedError) Unwrap() error { return e.Err }

// Reason returns err, or why ctx was ended if what failed with err was cut by that: the
// client has lost its access, or the server is stopping.
func Reason(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var why *agent.Error
	if errors.As(context.Cause(ctx), &why) && StatusOf(AsError(err).Code) >= http.StatusInternalServerError {
		return why
	}
	return err
}

// Ended returns why a guard has ended ctx, or nil if none has.
func Ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	var ended *EndedError
	if errors.As(context.Cause(ctx), &ended) {
		return ended
	}
	return nil
}

// Interrupted returns why ctx has ended, or nil if it has not.
func Interrupted(ctx context.Context) error {
	return Reason(ctx, ctx.Err())
}

// NewGuard returns a guard of what ctx is for. When a check fails, the guard's context ends
// with an EndedError. The caller must stop the guard once.
func NewGuard(ctx context.Context, every time.Duration, access Holder) *Guard {
	return &Guard{
		Context: ctx,
		access:  access,
		every:   every,
		began:   time.Now(),
	}
}

// Done starts the checks.
func (g *Guard) Done() <-chan struct{} {
	return g.watch().Done()
}

// Err checks the access of a request that has lasted for an interval without waiting.
func (g *Guard) Err() error {
	if w := g.watched.Load(); w != nil {
		return w.Err()
	}
	if time.Since(g.began) < g.every {
		return g.Context.Err()
	}
	_ = g.Check()
	return g.watch().Err()
}

// Value returns the values of the context that the guard was made with.
func (g *Guard) Value(key any) any {
	if w := g.watched.Load(); w != nil {
		return w.Value(key) // for context.Cause
	}
	return g.Context.Value(key)
}

// watch starts the checks, unless they have started.
func (g *Guard) watch() *watched {
	if w := g.watched.Load(); w != nil {
		return w
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.watched.Load(); w != nil {
		return w
	}
	w := &watched{done: make(chan struct{})}
	w.Context, w.end = context.WithCancelCause(g.Context)
	if g.stopped {
		w.end(context.Canceled)
	} else {
		w.timer = time.AfterFunc(g.every-time.Since(g.began), func() { g.run(w) })
	}
	g.watched.Store(w)
	return w
}

func (g *Guard) run(watched *watched) {
	defer close(watched.done)
	ticker := time.NewTicker(g.every)
	defer ticker.Stop()
	for watched.Err() == nil {
		err := g.access.Identify(watched)
		if err == nil {
			err = g.access.Check()
		}
		if err != nil {
			watched.end(&EndedError{err})
		}
		select {
		case <-watched.Done():
		case <-ticker.C:
		}
	}
}

// Check returns an EndedError if the client has lost its access.
func (g *Guard) Check() error {
	if err := g.access.Check(); err != nil {
		ended := &EndedError{err}
		g.watch().end(ended)
		return ended
	}
	return nil
}

// Stop ends the context and the checks.
func (g *Guard) Stop() {
	g.mu.Lock()
	g.stopped = true
	w := g.watched.Load()
	g.mu.Unlock()
	if w == nil {
		return
	}
	w.end(context.Canceled)
	if !w.timer.Stop() {
		<-w.done
	}
}
