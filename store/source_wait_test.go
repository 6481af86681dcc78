package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"satchel/agent"
)

// TestAwaitSource checks that a caller who waits for a source is woken by the commit that
// ends its processing, and by the deletion of the source or its agent.
func TestAwaitSource(t *testing.T) {
	setStatus := func(status agent.SourceStatus) func(*testing.T, *DB, string) {
		return func(t *testing.T, db *DB, id string) {
			do(t, db, "UPDATE sources SET status = ? WHERE id = ?", status, id)
		}
	}
	cases := map[string]struct {
		change func(t *testing.T, db *DB, id string)
		status agent.SourceStatus // none: the source is not found
	}{
		"ready":  {setStatus(agent.SourceReady), agent.SourceReady},
		"failed": {setStatus(agent.SourceFailed), agent.SourceFailed},
		"deleted": {change: func(t *testing.T, db *DB, id string) {
			if err := db.DeleteSource(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}},
		"agent-deleted": {change: func(t *testing.T, db *DB, _ string) {
			if err := db.folder.DeleteAgent(db); err != nil {
				t.Fatal(err)
			}
		}},
	}
	f := openFolder(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			db := createAgent(t, f, name)
			id := upload(t, db, "notes.txt", []byte("x")).ID
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			changed := db.sourceChanges.next()
			var source agent.Source
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				source, err = db.AwaitSource(ctx, id)
			}()
			c.change(t, db, id)
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatal("the change did not wake the caller")
			}
			<-done
			if c.status == "" {
				wantCode(t, err, agent.CodeNotFound)
			} else if err != nil || source.Status != c.status {
				t.Errorf("%s, %v; want %s", source.Status, err, c.status)
			}
		})
	}
	id := upload(t, f.Default(), "notes.txt", []byte("x")).ID
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Default().AwaitSource(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gives up gets %v", err)
	}
}
