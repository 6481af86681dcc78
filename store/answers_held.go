package store

import (
	"context"
)

// In a cluster a commit is in the agent's file before the cluster has taken it, and
// readers see it there. What they read must not leave the program before, since
// it would never have been if the cluster refuses it.

// answers holds answers back while a commit is on its way to the cluster.
type answers struct {
	shipped chan struct{} // closed when it is known
	err     error         // why the cluster did not take it; set before shipped is closed
}

// holdAnswers holds back what reads return from now on; nil without a cluster. The
// caller leads, and is about to commit.
func (f *file) holdAnswers() *answers {
	if f.capture == nil || !f.capture.Durable() {
		return nil
	}
	a := &answers{shipped: make(chan struct{})}
	f.answers.Store(a)
	return a
}

// release lets what was held back go; with an error it fails, and so does all that
// is read later.
func (f *file) release(a *answers, err error) {
	if a == nil {
		return
	}
	a.err = err
	close(a.shipped)
}

// awaitShipped waits until the cluster has taken all that reads of the file have
// seen so far.
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

// eachShipped is each, whose first row waits as awaitShipped does: all rows are of
// one moment.
func (f *file) eachShipped(ctx context.Context, each func([]string, []any) error) func([]string, []any) error {
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

// useless returns why the file can no longer be used; nil: it can. The caller leads.
func (f *file) useless() error {
	if f.capture == nil {
		return nil
	}
	return f.capture.Err()
}
