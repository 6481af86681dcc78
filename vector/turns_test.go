package vector

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestDeletedWhileWorking deletes the source, or its agent, at each step of the
// work. Nothing of it remains, no error is logged, and the other source becomes ready.
func TestDeletedWhileWorking(t *testing.T) {
	for _, what := range []string{"source", "agent"} {
		for _, step := range []string{"begin", "drop", "append", "put", "finish"} {
			t.Run(what+"/"+step, func(t *testing.T) {
				folder := openFolder(t, t.TempDir())
				db, other := newAgent(t, folder, "busy"), folder.Default()
				log := newErrorLog()
				ix := newIndex(t, folder, &fake{model: "fake"})
				ix.log = slog.New(log)
				s := upload(t, db, "a.txt", lines("otter", 150), small)
				next := upload(t, db, "b.txt", lines("heron", 5), small)
				far := upload(t, other, "c.txt", lines("stork", 5), small)
				var once sync.Once
				ix.step = func(name string) {
					if name != step {
						return
					}
					once.Do(func() {
						var err error
						if what == "source" {
							err = db.DeleteSource(context.Background(), s.ID)
						} else {
							err = folder.DeleteAgent(db)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				start(t, ix)
				wait(t, ix, db)
				wait(t, ix, other)
				counts(t, other, far.ID, "fake", 5)
				if what == "source" {
					wait(t, ix, db)
					counts(t, db, next.ID, "fake", 5)
					if found := search(t, ix, db, Query{Text: "otter number", Mode: Keyword}); slices.ContainsFunc(
						found,
						func(r Result) bool { return r.SourceID == s.ID },
					) {
						t.Error("search finds chunks of the deleted source")
					}
					if more, err := db.Purge(context.Background()); more || err != nil {
						t.Errorf("chunks remain to be purged: %v, %v", more, err)
					}
				}
				if seen := log.seen(); len(seen) > 0 {
					t.Errorf("errors were logged: %v", seen)
				}
			})
		}
	}
}

// TestStoppedWhileWorking stops a source at each step: it stays stopped, and can be
// read again.
func TestStoppedWhileWorking(t *testing.T) {
	for _, step := range []string{"begin", "drop", "append", "put", "finish"} {
		t.Run(step, func(t *testing.T) {
			folder := openFolder(t, t.TempDir())
			db := newAgent(t, folder, "busy")
			log := newErrorLog()
			ix := newIndex(t, folder, &fake{model: "fake"})
			ix.log = slog.New(log)
			s := upload(t, db, "a.txt", lines("otter", 150), small)
			next := upload(t, db, "b.txt", lines("heron", 5), small)
			var once sync.Once
			ix.step = func(name string) {
				if name == step {
					once.Do(func() {
						if _, err := db.StopSource(context.Background(), s.ID); err != nil {
							t.Error(err)
						}
					})
				}
			}
			start(t, ix)
			wait(t, ix, db)
			counts(t, db, next.ID, "fake", 5)
			if got := source(t, db, s.ID); got.Status != agent.SourceFailed || got.Error.Code != agent.SourceStopped {
				t.Errorf("%+v, error %+v", got, got.Error)
			}
			if got := events(t, db); !slices.Equal(slices.Sorted(slices.Values(got)), []string{
				agent.EventSourceError,
				agent.EventSourceReady,
			}) {
				t.Errorf("events %v", got)
			}
			if seen := log.seen(); len(seen) > 0 {
				t.Errorf("errors were logged: %v", seen)
			}
			if _, err := db.RestartSource(context.Background(), s.ID, agent.SourceUpdating); err != nil {
				t.Fatal(err)
			}
			wait(t, ix, db)
			counts(t, db, s.ID, "fake", 150)
		})
	}
}

// TestStopInterrupts stops a source while its text is being split, and while its
// provider is being asked: both are interrupted.
func TestStopInterrupts(t *testing.T) {
	hold := newGate()
	interrupted := make(chan struct{}, 10)
	held := func(ctx context.Context) error {
		err := hold.pass(ctx, "")
		if err != nil {
			interrupted <- struct{}{}
		}
		return err
	}
	for name, prepare := range map[string]func(db *store.DB, ix *Index) agent.Chunking{
		"splitting": func(*store.DB, *Index) agent.Chunking {
			return agent.Chunking{Size: 60, Method: "semantic"}
		},
		"asking": func(db *store.DB, ix *Index) agent.Chunking {
			remote(t, db, "far")
			ix.SetRemote(Remote{Provider: heldProvider{&provider{length: 3}, held}})
			return small
		},
	} {
		t.Run(name, func(t *testing.T) {
			hold = newGate()
			folder := openFolder(t, t.TempDir())
			db := newAgent(t, folder, "held")
			log := newErrorLog()
			ix := newIndex(t, folder, &fake{
				model:  "fake",
				before: func(ctx context.Context, _ string) error { return held(ctx) },
			})
			ix.log = slog.New(log)
			chunking := prepare(db, ix)
			s := upload(t, db, "a.txt", lines("otter", 20), chunking)
			start(t, ix)
			<-hold.arrived
			if _, err := db.StopSource(context.Background(), s.ID); err != nil {
				t.Fatal(err)
			}
			<-interrupted
			wait(t, ix, db)
			if got := source(t, db, s.ID); got.Status != agent.SourceFailed || got.Error.Code != agent.SourceStopped {
				t.Errorf("%+v, error %+v", got, got.Error)
			}
			if seen := log.seen(); len(seen) > 0 {
				t.Errorf("errors were logged: %v", seen)
			}
		})
	}
}

// heldProvider holds each request.
type heldProvider struct {
	*provider
	hold func(ctx context.Context) error
}

func (p heldProvider) Embed(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error) {
	if err := p.hold(ctx); err != nil {
		return nil, err
	}
	return p.provider.Embed(ctx, to, key, texts)
}

// TestDisabledAgentWaits: sources of a disabled agent wait until it is enabled, those
// of a paused one do not.
func TestDisabledAgentWaits(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "resting")
	ix := newIndex(t, folder, &fake{model: "fake"})
	s := upload(t, db, "a.txt", lines("otter", 5), small)
	setStatus := func(status agent.Status) {
		t.Helper()
		if _, err := folder.UpdateAgent(context.Background(), db, agent.AgentChange{
			Status: agent.Some(status),
		}); err != nil {
			t.Fatal(err)
		}
	}
	setStatus(agent.StatusDisabled)
	start(t, ix)
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceProcessing || got.Chunks != 0 {
		t.Fatalf("a disabled agent's source is %+v", got)
	}
	setStatus(agent.StatusPaused)
	wait(t, ix, db)
	counts(t, db, s.ID, "fake", 5)
}

// TestAgentsTakeTurns: a small import of one agent finishes long before a large import
// of another agent that started earlier.
func TestAgentsTakeTurns(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	large, little := newAgent(t, folder, "large"), newAgent(t, folder, "little")
	started, uploaded := make(chan struct{}), make(chan struct{})
	var second sync.Once
	ix := newIndex(t, folder, &fake{model: "fake", before: func(context.Context, string) error {
		second.Do(func() {
			close(started)
			<-uploaded
		})
		return nil
	}})
	ix.processors = make(chan struct{}, 1)
	first := upload(t, large, "a.txt", lines("large", 40*batchSize), small)
	start(t, ix)
	<-started // the first batch has started
	s := upload(t, little, "b.txt", lines("little", 2*batchSize), small)
	done := make(chan agent.Progress, 1)
	ix.step = func(name string) {
		if name != "finish" || source(t, little, s.ID).Status != agent.SourceProcessing {
			return
		}
		if p := source(t, large, first.ID).Progress; p != nil {
			done <- *p
		}
	}
	close(uploaded)
	wait(t, ix, little)
	counts(t, little, s.ID, "fake", 2*batchSize)
	select {
	case p := <-done:
		if p.Done > 20*batchSize {
			t.Errorf("the progress of the large import is %+v", p)
		}
	default:
		t.Error("the large import finished first")
	}
}

// TestLongReadingDelaysNoOne blocks the semantic splitting of a document, while
// another agent's source becomes ready.
func TestLongReadingDelaysNoOne(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	slow, quick := newAgent(t, folder, "slow"), newAgent(t, folder, "quick")
	hold := newGate()
	ix := newIndex(t, folder, &fake{model: "fake", before: func(ctx context.Context, text string) error {
		if strings.Contains(text, "slow") {
			return hold.pass(ctx, text)
		}
		return nil
	}})
	ix.processors = make(chan struct{}, runtime.GOMAXPROCS(0)+1)
	s := upload(t, slow, "a.txt", lines("slow", 30), agent.Chunking{Size: 60, Method: "semantic"})
	start(t, ix)
	<-hold.arrived
	q := upload(t, quick, "b.txt", lines("quick", 5), small)
	wait(t, ix, quick)
	counts(t, quick, q.ID, "fake", 5)
	close(hold.open)
	wait(t, ix, slow)
	if got := source(t, slow, s.ID); got.Status != agent.SourceReady {
		t.Errorf("the slow source is %+v", got)
	}
}
