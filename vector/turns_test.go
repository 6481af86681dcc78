package vector

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// TestDeletedWhileWorking deletes the source, or its agent, at each step of the
// work. Nothing of it stays, nothing is logged as an error, and the other
// source becomes ready.
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
				start(t, ix, db)
				wait(t, ix, db)
				ix.Kick(other)
				wait(t, ix, other)
				counts(t, other, far.ID, "fake", 5)
				if what == "source" {
					ix.Kick(db)
					wait(t, ix, db)
					counts(t, db, next.ID, "fake", 5)
					if found := search(t, ix, db, Query{Text: "otter number", Mode: Keyword}); slices.ContainsFunc(found, func(r Result) bool { return r.SourceID == s.ID }) {
						t.Error("search finds chunks of the deleted source")
					}
					if more, err := db.Purge(context.Background()); more || err != nil {
						t.Errorf("chunks are left to purge: %v, %v", more, err)
					}
				}
				if seen := log.seen(); len(seen) > 0 {
					t.Errorf("errors are logged: %v", seen)
				}
			})
		}
	}
}

// TestDisabledAgentWaits leaves a disabled agent alone until it is enabled,
// and works for a paused one.
func TestDisabledAgentWaits(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "resting")
	ix := newIndex(t, folder, &fake{model: "fake"})
	s := upload(t, db, "a.txt", lines("otter", 5), small)
	setStatus := func(status agent.Status) {
		t.Helper()
		if _, err := folder.UpdateAgent(context.Background(), db, agent.AgentChange{Status: agent.Some(status)}); err != nil {
			t.Fatal(err)
		}
	}
	setStatus(agent.StatusDisabled)
	start(t, ix, db)
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceProcessing || got.Chunks != 0 {
		t.Fatalf("a disabled agent's source is %+v", got)
	}
	ix.sweep(time.Now())
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Chunks != 0 {
		t.Fatalf("a sweep works for a disabled agent: %+v", got)
	}
	setStatus(agent.StatusPaused)
	ix.sweep(time.Now())
	wait(t, ix, db)
	counts(t, db, s.ID, "fake", 5)
}

// TestAgentsTakeTurns gives one turn of each lane by turns, to an agent with a
// large import and, from its second batch on, to one with a small import too.
func TestAgentsTakeTurns(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	large, little := newAgent(t, folder, "large"), newAgent(t, folder, "little")
	ix := newIndex(t, folder, &fake{model: "fake"})
	turns := func() {
		for _, l := range []*lane{&ix.general, &ix.reading} {
			if len(l.queue) > 0 {
				w := ix.take(context.Background(), l)
				ix.end(context.Background(), w, ix.runOnce(context.Background(), w.db, l == &ix.reading))
			}
		}
	}
	first := upload(t, large, "a.txt", lines("large", 20*batchSize), small)
	ix.Kick(large)
	for range 3 { // find that it has to be read, and two batches
		turns()
	}
	second := upload(t, little, "b.txt", lines("little", 2*batchSize), small)
	ix.Kick(little)
	for range 9 { // four turns of the small agent, and one of the large before and after each
		turns()
	}
	counts(t, little, second.ID, "fake", 2*batchSize)
	if p := source(t, large, first.ID).Progress; p == nil || p.Done < 5*batchSize || p.Done > 8*batchSize {
		t.Errorf("the large import stands at %+v", p)
	}
}

// TestLongReadingKeepsNoOneWaiting holds up the cutting of a document by
// meaning, and another agent's source becomes ready meanwhile.
func TestLongReadingKeepsNoOneWaiting(t *testing.T) {
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
	start(t, ix, slow)
	<-hold.arrived
	q := upload(t, quick, "b.txt", lines("quick", 5), small)
	ix.Kick(quick)
	wait(t, ix, quick)
	counts(t, quick, q.ID, "fake", 5)
	close(hold.open)
	wait(t, ix, slow)
	if got := source(t, slow, s.ID); got.Status != agent.SourceReady {
		t.Errorf("the slow source is %+v", got)
	}
}

// TestRetries tries an agent whose store failed again, ever later.
func TestRetries(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	ix.Kick(db)
	ix.end(context.Background(), ix.take(context.Background(), &ix.remote), nothing)
	now := time.Now()
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		w := ix.take(context.Background(), &ix.general)
		ix.end(context.Background(), w, failed)
		if err := ix.Wait(context.Background(), db); err != nil {
			t.Fatal(err)
		}
		now = time.Now()
		if delay := w.retryAt.Sub(now).Round(time.Second); delay != want*time.Second {
			t.Errorf("the next try is in %v, want %v", delay, want*time.Second)
		}
		ix.sweep(w.retryAt.Add(-time.Millisecond))
		if len(ix.general.queue) != 0 {
			t.Error("a sweep before its time queues the agent")
		}
		ix.sweep(w.retryAt)
	}
	w := ix.take(context.Background(), &ix.general)
	ix.end(context.Background(), w, nothing)
	if len(ix.work) != 0 || w.failures != 0 {
		t.Errorf("after a success: %+v", w)
	}
}

// TestKickWhileRunning gives an agent another turn for what came during one.
func TestKickWhileRunning(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	ix.Kick(db)
	w := ix.take(context.Background(), &ix.general)
	ix.Kick(db)
	ix.Kick(db)
	ix.end(context.Background(), w, nothing)
	if len(ix.general.queue) != 1 || ix.work[workKey{db, false}] != w {
		t.Errorf("queue %v, work %v", ix.general.queue, ix.work)
	}
}
