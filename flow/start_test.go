package flow

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/store"
)

// TestStarts starts executions of many agents at once: a few agents at a time
// have their turn, the starts of one agent share a turn, and every agent gets a
// turn.
func TestStarts(t *testing.T) {
	_, e := open(t)
	var all sync.WaitGroup
	var inside, most atomic.Int64
	agents := make([]*agentState, 3*startingAgents)
	gate := make(chan struct{})
	for i := range agents {
		agents[i] = &agentState{db: &store.DB{}}
		var within atomic.Int64
		for range 2*startsInTurn + 1 {
			all.Go(func() {
				<-gate
				started, err := e.awaitStart(t.Context(), agents[i])
				if err != nil {
					t.Error(err)
					return
				}
				if within.Add(1) > startsInTurn {
					t.Error("too many starts of one agent in one turn")
				}
				n := inside.Add(1)
				for known := most.Load(); n > known && !most.CompareAndSwap(known, n); known = most.Load() {
				}
				inside.Add(-1)
				within.Add(-1)
				started()
				started()
			})
		}
	}
	close(gate)
	all.Wait()
	if most.Load() > startingAgents*startsInTurn {
		t.Errorf("%d concurrent starts", most.Load())
	}
	for _, a := range agents {
		if err := e.starts.Wait(t.Context(), a); err != nil || a.turn != nil || len(a.waitingStarts) != 0 {
			t.Errorf("turn %v, %d waiting starts, %v", a.turn, len(a.waitingStarts), err)
		}
	}
}

// TestStartsCancelled cancels starts that wait for a turn, before and after
// others of their agent arrive.
func TestStartsCancelled(t *testing.T) {
	_, e := open(t)
	var all []func()
	for range startingAgents {
		started, err := e.awaitStart(t.Context(), &agentState{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, started)
	}
	late := &agentState{}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := e.awaitStart(cancelled, late); err == nil {
			t.Fatal("more turns than the limit")
		}
	}
	all[0]()
	started, err := e.awaitStart(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	for _, started := range append(all[1:], started) {
		started()
	}
	if err := e.starts.Wait(t.Context(), late); err != nil || late.turn != nil || len(late.waitingStarts) != 0 {
		t.Errorf("turn %v, %d waiting starts, %v", late.turn, len(late.waitingStarts), err)
	}
}
