package rest

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"satchel/agent"
)

// The memory for the bodies of all requests, and how long a request waits for a part of it.
const (
	BodyMemory   = 64 << 20 // bytes
	BodyPatience = 2 * time.Second
)

// networkShare is the part of the memory that requests without an identity may hold from
// one network, so that a stranger cannot keep others from sending.
const networkShare = 4 // a quarter

// Memory limits the bytes of request bodies that are in memory at the same time.
type Memory struct {
	limit    int64
	patience time.Duration // how long a body waits in all

	mu       sync.Mutex
	used     int64
	networks map[netip.Prefix]int64 // the part of used that is limited by network
	waiting  []*claim               // first come, first served

	joining sync.Mutex // held while a body is copied into one piece, so that only one is there twice
}

// claim is a request that waits for memory.
type claim struct {
	network netip.Prefix // invalid: not limited by network
	bytes   int64
	granted chan struct{} // closed once the bytes are counted as used
}

// NewMemory returns a limit on the bytes of bodies; a body waits for patience at most.
func NewMemory(limit int64, patience time.Duration) *Memory {
	return &Memory{
		limit:    limit,
		patience: patience,
		networks: map[netip.Prefix]int64{},
	}
}

// Used returns how many bytes are reserved.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Try reserves n bytes for a network, or for a known client if it is invalid, without
// waiting.
func (m *Memory) Try(network netip.Prefix, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tryLocked(network, n)
}

// tryLocked reserves bytes, but does not overtake requests that wait for more than the
// share of another network.
func (m *Memory) tryLocked(network netip.Prefix, n int64) bool {
	if m.used+n > m.limit || !m.inShareLocked(network, n) {
		return false
	}
	if slices.ContainsFunc(m.waiting, func(c *claim) bool {
		return c.network == network || m.inShareLocked(c.network, c.bytes)
	}) {
		return false
	}
	m.takeLocked(network, n)
	return true
}

func (m *Memory) inShareLocked(network netip.Prefix, n int64) bool {
	return !network.IsValid() || m.networks[network]+n <= m.limit/networkShare
}

func (m *Memory) takeLocked(network netip.Prefix, n int64) {
	m.used += n
	if !network.IsValid() {
		return
	}
	if m.networks[network] += n; m.networks[network] == 0 {
		delete(m.networks, network)
	}
}

// Release returns n reserved bytes.
func (m *Memory) Release(network netip.Prefix, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.takeLocked(network, -n)
	m.grantLocked()
}

// grantLocked grants claims in turn. One that waits for its network's share does not hold
// up those of others.
func (m *Memory) grantLocked() {
	full := false
	m.waiting = slices.DeleteFunc(m.waiting, func(c *claim) bool {
		if full || !m.inShareLocked(c.network, c.bytes) {
			return false
		}
		if full = m.used+c.bytes > m.limit; full {
			return false
		}
		m.takeLocked(c.network, c.bytes)
		close(c.granted)
		return true
	})
}

// wait reserves count bytes, or fails with UNAVAILABLE if they are not free in time.
func (m *Memory) wait(ctx context.Context, network netip.Prefix, count int64, patience time.Duration) error {
	m.mu.Lock()
	if m.tryLocked(network, count) {
		m.mu.Unlock()
		return nil
	}
	c := &claim{network, count, make(chan struct{})}
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
	i := slices.Index(m.waiting, c)
	if i < 0 {
		return false
	}
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.grantLocked() // the next one may need less
	return true
}
