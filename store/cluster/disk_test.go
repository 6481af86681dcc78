package cluster

import (
	"sync/atomic"
	"testing"

	"satchel/agent"
)

// A server whose disk is full moves its agents to a server that has room, is given none,
// and rejoins when there is room again, unless the operator has drained it.
func testFullDisk(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	var free atomic.Int64
	free.Store(diskRoom)
	a.stepping.Lock() // no poll runs
	a.free = func(string) (int64, error) { return free.Load(), nil }
	a.stepping.Unlock()
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	id := db.ID()
	note := mustWrite(t, db, "before")
	free.Store(diskFull - 1)
	a.eventually(t, "to have tried to move its agents", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.undrained != nil
	})
	mustWrite(t, a.agent(t, id), "there is no other server")

	b := serve(t, url, "b", t.TempDir())
	leaving := func() bool { return b.leavingServer("a") == DiskFull }
	a.eventually(t, "to have moved its agents", func() bool { return a.Stats().Owned == 0 })
	if lost := missing(t, b.agent(t, id), []string{note}); lost != nil {
		t.Errorf("acknowledged writes are lost: %v", lost)
	}
	b.eventually(t, "to see that the other is leaving", leaving)

	free.Store(diskFull + 1) // too little to rejoin
	if err := a.step(t.Context()); err != nil || !a.isLeaving() {
		t.Errorf("a server with little room rejoins: %v", err)
	}
	free.Store(diskRoom)
	a.eventually(t, "to rejoin", func() bool { return !a.isLeaving() })
	b.eventually(t, "to see that the other has rejoined", func() bool { return !leaving() })
	if err := b.Move(t.Context(), id, "a"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, a.agent(t, id), "goes on")

	if err := a.Drain(t.Context(), Drained); err != nil {
		t.Fatal(err)
	}
	b.eventually(t, "to see that the other was drained", func() bool { return b.leavingServer("a") == Drained })
	for _, bytes := range []int64{0, diskRoom} {
		free.Store(bytes)
		if err := a.step(t.Context()); err != nil || !a.isLeaving() {
			t.Errorf("a server that was drained rejoins with %d bytes free: %v", bytes, err)
		}
	}
	session := a.Self().Session
	a.die(t)
	a.eventually(t, "to begin a new session", func() bool { return a.Self().Session != session && a.Ready() == nil })
	b.eventually(t, "to see that the other is still drained", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		n := b.nodes[a.Self().Session]
		if n != nil && !n.Leaving {
			t.Fatal("a server that was drained rejoins in a new session")
		}
		return n != nil && n.Reason == Drained
	})
}

func (s *server) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// leavingServer returns the reason for which another server is leaving, as this one sees
// it.
func (s *server) leavingServer(name string) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		if n.Name == name && n.Alive {
			return n.Reason
		}
	}
	return ""
}

func TestFreeSpace(t *testing.T) {
	if free, err := freeSpace(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("%d bytes are free: %v", free, err)
	}
}
