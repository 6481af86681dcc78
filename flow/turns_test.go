package flow

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/store"
)

// TestTurns has many agents start something at once: a few at a time have
// their turn, those of one agent together, and all come to theirs.
func TestTurns(t *testing.T) {
	turns := turns{agents: map[*store.DB]*turn{}}
	var all sync.WaitGroup
	var inside, most atomic.Int64
	agents := make([]*store.DB, 3*maxTurns)
	gate := make(chan struct{})
	for i := range agents {
		agents[i] = &store.DB{}
		var within atomic.Int64
		for range 2*perTurn + 1 {
			all.Go(func() {
				<-gate
				leave, err := turns.take(t.Context(), agents[i])
				if err != nil {
					t.Error(err)
					return
				}
				if within.Add(1) > perTurn {
					t.Error("one agent started too many in one turn")
				}
				n := inside.Add(1)
				for known := most.Load(); n > known && !most.CompareAndSwap(known, n); known = most.Load() {
				}
				inside.Add(-1)
				within.Add(-1)
				leave()
			})
		}
	}
	close(gate)
	all.Wait()
	if most.Load() > maxTurns*perTurn || turns.open != 0 || len(turns.agents) != 0 || len(turns.line) != 0 {
		t.Errorf("%d at a time; left: %d open, %d agents, %d in line", most.Load(), turns.open, len(turns.agents), len(turns.line))
	}
}

// TestTurnsGivenUp has those that wait for a turn go away, before and after
// others of their agent come.
func TestTurnsGivenUp(t *testing.T) {
	turns := turns{agents: map[*store.DB]*turn{}}
	var leaves []func()
	for range maxTurns {
		leave, err := turns.take(t.Context(), &store.DB{})
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	late := &store.DB{}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := turns.take(gone, late); err == nil {
			t.Fatal("a turn beyond the most")
		}
	}
	got := make(chan func(), 1)
	go func() {
		leave, err := turns.take(t.Context(), late)
		if err != nil {
			t.Error(err)
		}
		got <- leave
	}()
	leaves[0]()
	(<-got)()
	for _, leave := range leaves[1:] {
		leave()
	}
	if turns.open != 0 || len(turns.agents) != 0 || len(turns.line) != 0 {
		t.Errorf("left: %d open, %d agents, %d in line", turns.open, len(turns.agents), len(turns.line))
	}
}
