package search

import (
	"cmp"
	"slices"
	"sync"

	"satchel/store/search/bitcode"
)

// indexMemory limits the memory for segments, of all agents together. A vector of
// 512 dimensions takes 80 bytes, so three million fit. Segments of an agent that do
// not fit are read for each search.
const indexMemory = 256 << 20

// Index keeps segments of agents, or other owners, in memory. The segments of the
// least recently searched owner are evicted to make room for others.
type Index[K comparable] struct {
	Limit int64 // bytes; 0: 256 MB

	mu     sync.Mutex
	used   int64
	clock  int64 // counts lookups
	owners map[K]*ownerSegments
}

// Nearest returns, in order, the keep chunks that are estimated to be nearest to
// vector; sources, unless nil, limits the search. heads lists the segments of the
// owner; load reads the data of one that is not in memory.
func (c *Index[K]) Nearest(
	owner K,
	vector []float32,
	heads []Head,
	sources map[uint32]bool,
	keep int,
	load func(Head) ([]byte, error),
) ([]int64, error) {
	read := func(h Head) (*segment, error) {
		data, err := load(h)
		if err != nil {
			return nil, err
		}
		return newSegment(len(vector), data)
	}
	segments, err := c.segments(owner, len(vector), heads, read)
	if err != nil {
		return nil, err
	}
	s := &scan{
		query:   bitcode.NewQuery(vector),
		sources: sources,
		keep:    keep,
	}
	found, err := s.run(segments, func(i int) (*segment, error) {
		return read(heads[i])
	})
	slices.Sort(found) // neighbours are read together
	return found, err
}

// ownerSegments holds one owner's segments in memory.
type ownerSegments struct {
	loading  sync.Mutex // held while missing segments are read
	segments map[int64]*cachedSegment
	turn     int64 // counts its lookups
	used     int64 // the clock at the last of them
	bytes    int64
}

type cachedSegment struct {
	*segment
	bytes int64
	turn  int64 // when it was last listed
}

// cachedLookups is how many lookups of its owner a segment that none of them listed
// survives: it has been merged or swept, but searches that began earlier may still
// use it.
const cachedLookups = 16

// segments returns the segments listed by heads; it reads missing ones with
// load. A segment for which there is no room is nil.
func (c *Index[K]) segments(owner K, dims int, heads []Head, load func(Head) (*segment, error)) ([]*segment, error) {
	ownerSegments, list, missing := c.lookup(owner, heads)
	if missing == 0 {
		return list, nil
	}
	ownerSegments.loading.Lock()
	defer ownerSegments.loading.Unlock()
	_, list, _ = c.lookup(owner, heads) // another search may have read them
	for i, h := range heads {
		size := segmentBytes(dims, h.Records)
		if list[i] != nil || !c.reserve(owner, size) {
			continue
		}
		s, err := load(h)
		c.keep(owner, ownerSegments, h.ID, s, size, err)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// lookup returns what is in memory, and drops the owner's outdated segments.
func (c *Index[K]) lookup(owner K, heads []Head) (segments *ownerSegments, list []*segment, missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	segments = c.owners[owner]
	if segments == nil {
		segments = &ownerSegments{segments: map[int64]*cachedSegment{}}
		if c.owners == nil {
			c.owners = map[K]*ownerSegments{}
		}
		c.owners[owner] = segments
	}
	c.clock++
	segments.turn++
	segments.used = c.clock
	list = make([]*segment, len(heads))
	for i, h := range heads {
		if k := segments.segments[h.ID]; k != nil {
			k.turn = segments.turn
			list[i] = k.segment
		} else {
			missing++
		}
	}
	for id, k := range segments.segments {
		if segments.turn-k.turn > cachedLookups {
			delete(segments.segments, id)
			segments.bytes -= k.bytes
			c.used -= k.bytes
		}
	}
	return segments, list, missing
}

// reserve makes room for a segment by evicting other owners, and reports whether
// there is room.
func (c *Index[K]) reserve(owner K, size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.used+size > cmp.Or(c.Limit, indexMemory) {
		var oldest *K
		for other, a := range c.owners {
			if other != owner && (oldest == nil || a.used < c.owners[*oldest].used) {
				oldest = &other
			}
		}
		if oldest == nil {
			return false
		}
		c.used -= c.owners[*oldest].bytes
		delete(c.owners, *oldest)
	}
	c.used += size
	return true
}

// keep stores a segment in the space from reserve, or frees the space.
func (c *Index[K]) keep(
	owner K,
	segments *ownerSegments,
	id int64,
	segment *segment,
	size int64,
	failed error,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// or it has been evicted in the meantime
	if failed != nil || c.owners[owner] != segments || segments.segments[id] != nil {
		c.used -= size
		return
	}
	segments.segments[id] = &cachedSegment{
		segment: segment,
		bytes:   size,
		turn:    segments.turn,
	}
	segments.bytes += size
}

// Drop removes an owner.
func (c *Index[K]) Drop(owner K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.owners[owner]; a != nil {
		c.used -= a.bytes
		delete(c.owners, owner)
	}
}

// Bytes returns how much memory is in use.
func (c *Index[K]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}
