package rest

import (
	"context"
	"sync"
	"time"

	"satchel/agent"
)

// The memory for the bodies of all requests, and how long a request waits for a part of it.
const (
	BodyMemory   = 64 << 20 // bytes
	BodyPatience = 2 * time.Second
)

// Memory limits the bytes of request bodies that are in memory at the same time.
type Memory struct {
	limit    int64
	patience time.Duration // how long a body waits in all

	mu      sync.Mutex
	used    int64
	waiting []*claim // first come, first served

	joining sync.Mutex // held while a body is copied into one piece, so that only one is there twice
}

// claim is a request that waits for memory.
type claim struct {
	bytes   int64
	granted chan struct{} // closed once the bytes are counted as used
}

// NewMemory returns a limit on the bytes of bodies; a body waits for patience at most.
func NewMemory(limit int64, patience time.Duration) *Memory {
	return &Memory{limit: limit, patience: patience}
}

// Used returns how many bytes are reserved.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Try reserves n bytes if they are free, without waiting.
func (m *Memory) Try(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tryLocked(n)
}

func (m *Memory) tryLocked(n int64) bool {
	if len(m.waiting) > 0 || m.used+n > m.limit {
		return false
	}
	m.used += n
	return true
}

// Release returns n reserved bytes.
func (m *Memory) Release(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	m.grantLocked()
}

func (m *Memory) grantLocked() {
	for len(m.waiting) > 0 && m.used+m.waiting[0].bytes <= m.limit {
		m.used += m.waiting[0].bytes
		close(m.waiting[0].granted)
		m.waiting = m.waiting[1:]
	}
}

// wait reserves n bytes, or fails with UNAVAILABLE if they are not free in time.
func (m *Memory) wait(ctx context.Context, n int64, patience time.Duration) error {
	m.mu.Lock()
	if m.tryLocked(n) {
		m.mu.Unlock()
		return nil
	}
	c := &claim{n, make(chan struct{})}
	m.waiting = append(m.waiting, c)
	m.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.granted:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if m.withdraw(c) {
		return agent.Errorf(agent.CodeUnavailable, "the server is busy receiving other requests; try again")
	}
	return nil // granted at the last moment
}

// withdraw removes a claim, and returns false if it was granted before.
func (m *Memory) withdraw(c *claim) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, other := range m.waiting {
		if other == c {
			m.waiting = append(m.waiting[:i], m.waiting[i+1:]...)
			m.grantLocked() // the next one may need less
			return true
		}
	}
	return false
}
