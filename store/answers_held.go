package store

import (
	"context"
)

// In a cluster, a commit is in the agent's file, where readers see it, before the
// cluster has accepted it. What they read must not leave the program until then: if
// the cluster refuses the commit, it never happened.

// answers holds back answers while a commit is being sent to the cluster.
type answers struct {
	shipped chan struct{} // closed once the outcome is known
	err     error         // why the cluster refused it; set before shipped is closed
}

// holdAnswers holds back everything that is read from now on. It returns nil without
// a cluster. The caller leads and is about to commit.
func (f *file) holdAnswers() *answers {
	if f.capture == nil || !f.capture.Durable() {
		return nil
	}
	a := &answers{shipped: make(chan struct{})}
	f.answers.Store(a)
	return a
}

// release lets what was held back go. With an error, it fails instead, and so does
// everything that is read later.
func (f *file) release(a *answers, err error) {
	if a == nil {
		return
	}
	a.err = err
	close(a.shipped)
}

// awaitShipped waits until the cluster has accepted everything that reads of the
// file have seen so far.
func (f *file) awaitShipped(ctx context.Context) error {
	a := f.answers.Load()
	if a == nil {
		return nil
	}
	select {
	case <-a.shipped:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitBeforeFirst returns each with its first call delayed as by awaitShipped. That is
// enough, since all rows come from one snapshot.
func (f *file) awaitBeforeFirst(ctx context.Context, each func([]string, []any) error) func([]string, []any) error {
	if each == nil || f.capture == nil || !f.capture.Durable() {
		return each
	}
	first := true
	return func(columns []string, row []any) error {
		if first {
			if err := f.awaitShipped(ctx); err != nil {
				return err
			}
			first = false
		}
		return each(columns, row)
	}
}

// refusedError returns why the file can no longer be used, or nil. The caller leads.
func (f *file) refusedError() error {
	if f.capture == nil {
		return nil
	}
	return f.capture.Err()
}
