package rest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
)

// access is one that can end.
type access struct {
	ended            error
	checks, identity int
}

func (a *access) Check() error {
	a.checks++
	return a.ended
}
func (a *access) Identify(context.Context) error {
	a.identity++
	return nil
}

// TestGuardStartsWithWaiting: a request that is answered at once has no checks; one that
// waits, or lasts, ends with its access, and what it called ends too.
func TestGuardStartsWithWaiting(t *testing.T) {
	lost := agent.Errorf(agent.CodeUnauthorized, "revoked")
	type key struct{}
	for name, c := range map[string]struct {
		wait   func(context.Context)
		checks bool
	}{
		"answered at once": {func(ctx context.Context) { _ = ctx.Err() }, false},
		"waits":            {func(ctx context.Context) { <-ctx.Done() }, true},
		"calls what waits": {func(ctx context.Context) {
			child, end := context.WithCancel(ctx)
			defer end()
			<-child.Done()
		}, true},
		"waits later": {func(ctx context.Context) {
			time.Sleep(5 * time.Second)
			<-ctx.Done()
		}, true},
		"computes": {func(context.Context) { time.Sleep(3 * time.Second) }, true},
		"computes between uses": {func(ctx context.Context) {
			_ = ctx.Value(key{})
			time.Sleep(GuardInterval)
			_ = ctx.Value(key{})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &access{ended: lost}
				began := time.Now()
				g := NewGuard(context.WithValue(t.Context(), key{}, "kept"), GuardInterval, a)
				defer g.Stop()
				c.wait(g)
				if err := Ended(g); (err != nil) != c.checks || c.checks && !errors.Is(err, lost) {
					t.Errorf("ended: %v", err)
				}
				if (a.checks > 0) != c.checks || time.Since(began) > 5*time.Second {
					t.Errorf("%d checks, ended after %s", a.checks, time.Since(began))
				}
				if g.Value(key{}) != "kept" {
					t.Error("the values are lost")
				}
			})
		})
	}
}

// TestGuardFollowsItsContext: the guard of a client that is gone ends with the reason, and
// one that is stopped has no checks any more.
func TestGuardFollowsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		for _, waiting := range []bool{false, true} {
			ctx, end := context.WithCancelCause(t.Context())
			a := &access{}
			g := NewGuard(ctx, GuardInterval, a)
			if waiting {
				_ = g.Done()
				time.Sleep(2*GuardInterval + 1)
			}
			if end(gone); !errors.Is(context.Cause(g), gone) || g.Err() == nil {
				t.Errorf("waiting %t: %v", waiting, context.Cause(g))
			}
			g.Stop()
			if <-g.Done(); waiting != (a.identity == 2) {
				t.Errorf("waiting %t: checked %d times", waiting, a.identity)
			}
		}
	})
}
