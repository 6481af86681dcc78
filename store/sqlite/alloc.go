package sqlite

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
)

// SQLite's memory comes from spans: 64 KB of slots of one size. The sizes are close
// together, because each open file has thousands of small allocations, and each size
// has its own lock. libc's allocator, which provides the spans, rounds every size up
// to a power of two and has a single lock.

const (
	spanSize    = 64 << 10
	spansAtOnce = 15       // requested from libc: a megabyte, including one lost to alignment
	largestSlot = 16 << 10 // larger allocations have a span of their own
	sizeStep    = 8        // all sizes are multiples of it
	largeClass  = -1
)

// span is the header of a span, which is aligned to spanSize.
type span struct {
	class      int32
	used       int32   // slots
	fresh      uintptr // offset of the first slot that was never used
	free       uintptr // list of freed slots, each of which begins with the address of the next
	next, prev uintptr // spans of the class with free slots
	size       uintptr // of a slot, or of the only allocation
	base       uintptr // address from libc, for a span with a single allocation
}

const spanHead = (unsafe.Sizeof(span{}) + 63) &^ 63

// pageSlot is the size of a page of a file in the cache, including SQLite's data
// about it.
const pageSlot = 4360

// slotSizes are the sizes of slots, an eighth to a sixteenth apart.
var slotSizes = func() (sizes []uintptr) {
	size, step := uintptr(16), uintptr(sizeStep)
	for ; size <= largestSlot; size += step {
		if size > pageSlot && size-step < pageSlot {
			sizes = append(sizes, pageSlot)
		}
		sizes = append(sizes, size)
		if size >= 16*step {
			step *= 2
		}
	}
	return sizes
}()

// classOfSize is the index in slotSizes of the smallest size for a multiple of
// sizeStep.
var classOfSize = func() (classes [largestSlot/sizeStep + 1]uint8) {
	class := 0
	for i := range classes {
		for slotSizes[class] < uintptr(i)*sizeStep {
			class++
		}
		classes[i] = uint8(class)
	}
	return classes
}()

// slotClass has the spans of one size.
type slotClass struct {
	mu   sync.Mutex
	room uintptr // guarded by mu: the first of the spans with free slots
	_    [40]byte
}

var slotClasses [256]slotClass

// spareSpans are the spans without used slots.
var spareSpans struct {
	mu   sync.Mutex
	list []uintptr // guarded by mu
}

// allocate returns the address of size bytes, or 0 if there is no memory.
func allocate(tls *libc.TLS, size uintptr) uintptr {
	if size > largestSlot {
		return allocateLarge(tls, size)
	}
	class := classOfSize[(size+sizeStep-1)/sizeStep]
	slotClass := &slotClasses[class]
	slotClass.mu.Lock()
	defer slotClass.mu.Unlock()
	if slotClass.room == 0 {
		p := takeSpan(tls)
		if p == 0 {
			return 0
		}
		*at[span](p) = span{
			class: int32(class),
			size:  slotSizes[class],
			fresh: spanHead,
		}
		slotClass.room = p
	}
	head := slotClass.room
	s := at[span](head)
	slot := s.free
	if slot != 0 {
		s.free = *at[uintptr](slot)
	} else {
		slot = head + s.fresh
		s.fresh += s.size
	}
	s.used++
	if s.full() {
		slotClass.unlink(s)
	}
	return slot
}

func (s *span) full() bool {
	return s.free == 0 && s.fresh+s.size > spanSize
}

// unlink takes a span from the list of those with room. The caller holds mu.
func (c *slotClass) unlink(s *span) {
	if s.prev != 0 {
		at[span](s.prev).next = s.next
	} else {
		c.room = s.next
	}
	if s.next != 0 {
		at[span](s.next).prev = s.prev
	}
	s.next, s.prev = 0, 0
}

// deallocate frees memory that allocate returned.
func deallocate(tls *libc.TLS, address uintptr) {
	head := address &^ (spanSize - 1)
	s := at[span](head)
	if s.class == largeClass {
		libc.Xfree(tls, s.base)
		return
	}
	class := &slotClasses[s.class]
	class.mu.Lock()
	defer class.mu.Unlock()
	if s.full() {
		if s.next = class.room; s.next != 0 {
			at[span](s.next).prev = head
		}
		class.room = head
	}
	*at[uintptr](address) = s.free
	s.free = address
	if s.used--; s.used == 0 && (s.next != 0 || s.prev != 0) { // one is kept for the next
		class.unlink(s)
		spareSpans.mu.Lock()
		spareSpans.list = append(spareSpans.list, head)
		spareSpans.mu.Unlock()
	}
}

// reallocate returns the address of n bytes with the content of those at p, which it
// frees, or 0.
func reallocate(tls *libc.TLS, p, n uintptr) uintptr {
	have := allocated(p)
	if n <= have && n > have/2 {
		return p
	}
	to := allocate(tls, n)
	if to != 0 {
		copy(view(to, int(min(n, have))), view(p, int(min(n, have))))
		deallocate(tls, p)
	}
	return to
}

// allocated returns the size of the allocation at p.
func allocated(p uintptr) uintptr {
	return at[span](p &^ (spanSize - 1)).size
}

// allocateLarge makes a span for a single allocation.
func allocateLarge(tls *libc.TLS, n uintptr) uintptr {
	base := libc.Xmalloc(tls, types.Size_t(n+spanHead+spanSize))
	if base == 0 {
		return 0
	}
	head := (base + spanSize - 1) &^ (spanSize - 1)
	*at[span](head) = span{
		class: largeClass,
		size:  n,
		base:  base,
	}
	return head + spanHead
}

// takeSpan returns a spare span, whose content is undefined, or 0.
func takeSpan(tls *libc.TLS) uintptr {
	spareSpans.mu.Lock()
	defer spareSpans.mu.Unlock()
	if len(spareSpans.list) == 0 {
		base := libc.Xmalloc(tls, (spansAtOnce+1)*spanSize-4096)
		if base == 0 {
			return 0
		}
		first := (base + spanSize - 1) &^ (spanSize - 1)
		for i := range uintptr(spansAtOnce) {
			if p := first + i*spanSize; p+spanSize <= base+(spansAtOnce+1)*spanSize-4096 {
				spareSpans.list = append(spareSpans.list, p)
			}
		}
	}
	last := len(spareSpans.list) - 1
	p := spareSpans.list[last]
	spareSpans.list = spareSpans.list[:last]
	return p
}

// ReleaseMemory returns unused memory to the system.
func ReleaseMemory() {
	spareSpans.mu.Lock()
	defer spareSpans.mu.Unlock()
	for _, p := range spareSpans.list {
		releasePages(view(p, spanSize))
	}
}
