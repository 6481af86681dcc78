package store

import (
	"cmp"
	"sync"
)

// codeMemory bounds the segments that are kept in memory, over all agents: they
// take 80 bytes for a vector of 512 dimensions, so three million fit. Of an
// agent with more, what does not fit is read for each search.
const codeMemory = 256 << 20

// codeCache keeps segments in memory. Those of the agent whose last search is
// longest ago make room for others.
type codeCache struct {
	mu     sync.Mutex
	limit  int64 // 0: codeMemory
	held   int64
	clock  int64 // counts lookups
	agents map[*DB]*agentCodes
}

// agentCodes are the segments in memory of one agent.
type agentCodes struct {
	loading  sync.Mutex // held by the one who reads what is missing
	segments map[int64]*keptSegment
	turn     int64 // counts its lookups
	used     int64 // the clock at the last of them
	held     int64
}

type keptSegment struct {
	*segment
	bytes int64
	turn  int64 // when it was listed last
}

// keptLookups is after how many of its agent's lookups a segment is dropped
// that none of them listed: it was merged or swept. Searches that began before
// are still under way, few at a time.
const keptLookups = 16

// segments returns those that heads lists, of which it reads with load what is
// missing. One that there is no room for is nil.
func (c *codeCache) segments(db *DB, dims int, heads []segmentHead, load func(segmentHead) (*segment, error)) ([]*segment, error) {
	a, list, missing := c.lookup(db, heads)
	if missing == 0 {
		return list, nil
	}
	a.loading.Lock()
	defer a.loading.Unlock()
	_, list, _ = c.lookup(db, heads) // another may have read them
	for i, h := range heads {
		size := segmentBytes(dims, h.n)
		if list[i] != nil || !c.reserve(db, size) {
			continue
		}
		s, err := load(h)
		c.keep(db, a, h.id, s, size, err)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// lookup finds what is in memory, and drops of the agent what is out of date.
func (c *codeCache) lookup(db *DB, heads []segmentHead) (a *agentCodes, list []*segment, missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a = c.agents[db]
	if a == nil {
		a = &agentCodes{segments: map[int64]*keptSegment{}}
		if c.agents == nil {
			c.agents = map[*DB]*agentCodes{}
		}
		c.agents[db] = a
	}
	c.clock++
	a.turn++
	a.used = c.clock
	list = make([]*segment, len(heads))
	for i, h := range heads {
		if k := a.segments[h.id]; k != nil {
			k.turn = a.turn
			list[i] = k.segment
		} else {
			missing++
		}
	}
	for id, k := range a.segments {
		if a.turn-k.turn > keptLookups {
			delete(a.segments, id)
			a.held -= k.bytes
			c.held -= k.bytes
		}
	}
	return a, list, missing
}

// reserve makes room for a segment at the cost of other agents, and tells
// whether there is.
func (c *codeCache) reserve(db *DB, size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held+size > cmp.Or(c.limit, codeMemory) {
		var oldest *DB
		for other, a := range c.agents {
			if other != db && (oldest == nil || a.used < c.agents[oldest].used) {
				oldest = other
			}
		}
		if oldest == nil {
			return false
		}
		c.held -= c.agents[oldest].held
		delete(c.agents, oldest)
	}
	c.held += size
	return true
}

// keep enters what reserve made room for, or gives the room back.
func (c *codeCache) keep(db *DB, a *agentCodes, id int64, s *segment, size int64, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed != nil || c.agents[db] != a || a.segments[id] != nil { // or it made room for another meanwhile
		c.held -= size
		return
	}
	a.segments[id] = &keptSegment{segment: s, bytes: size, turn: a.turn}
	a.held += size
}

// drop forgets an agent.
func (c *codeCache) drop(db *DB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.agents[db]; a != nil {
		c.held -= a.held
		delete(c.agents, db)
	}
}

// bytes is the memory that is held.
func (c *codeCache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}
