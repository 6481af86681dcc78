package script

import (
	"bytes"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/memory"
)

// heap is the memory of an engine: a region of consecutive blocks, and an
// allocator for what does not fit. An engine has no other state, so restoring
// its heap restores the engine.
type heap struct {
	start, top, end uintptr // the region; used up to top
	image           []byte  // the region when it was saved
	fallback        memory.Allocator
}

const (
	regionBytes = 2 << 20
	maxBlock    = 64 << 10 // bytes of a block in the region
	blockHeader = 16       // bytes before a block, which hold its size
)

func newHeap(tls *libc.TLS) *heap {
	start := libc.Xmalloc(tls, regionBytes)
	if start == 0 {
		return nil
	}
	return &heap{start: start, top: start, end: start + regionBytes}
}

// save saves the heap for restore. All blocks must be in the region.
func (h *heap) save() {
	h.image = bytes.Clone(h.bytes())
}

// restore restores the saved heap. Nothing written since then remains.
func (h *heap) restore() error {
	used := h.bytes()
	clear(used[copy(used, h.image):])
	h.top = h.start + uintptr(len(h.image))
	return h.fallback.Close()
}

// bytes returns the used part of the region.
func (h *heap) bytes() []byte {
	return unsafe.Slice((*byte)(at(h.start)), h.top-h.start)
}

func (h *heap) allocate(size uintptr) uintptr {
	size = (size + blockHeader - 1) &^ (blockHeader - 1)
	if size <= maxBlock && h.top+blockHeader+size <= h.end {
		p := h.top + blockHeader
		*(*uintptr)(at(h.top)) = size
		h.top = p + size
		return p
	}
	p, err := h.fallback.UintptrMalloc(int(size))
	if err != nil {
		return 0
	}
	return p
}

// free frees a block. In the region, only the space of the last block is
// reused.
func (h *heap) free(p uintptr) {
	switch {
	case !h.contains(p):
		_ = h.fallback.UintptrFree(p) // fails if p is not a block
	case p+h.size(p) == h.top:
		h.top = p - blockHeader
	}
}

func (h *heap) resize(address, size uintptr) uintptr {
	if !h.contains(address) {
		p, err := h.fallback.UintptrRealloc(address, int(size))
		if err != nil {
			return 0
		}
		return p
	}
	old := h.size(address)
	if size <= old {
		return address
	}
	if address+old == h.top {
		h.top = address - blockHeader // the content stays
	}
	moved := h.allocate(size)
	if moved == 0 {
		h.top = max(h.top, address+old)
		return 0
	}
	if moved != address {
		copy(unsafe.Slice((*byte)(at(moved)), old), unsafe.Slice((*byte)(at(address)), old))
	}
	return moved
}

func (h *heap) size(p uintptr) uintptr {
	if h.contains(p) {
		return *(*uintptr)(at(p - blockHeader))
	}
	return uintptr(memory.UintptrUsableSize(p))
}

// contains reports whether a block is in the region.
func (h *heap) contains(p uintptr) bool {
	return p > h.start && p < h.end
}

// at converts an address outside Go's memory to a pointer.
func at(address uintptr) unsafe.Pointer { return unsafe.Add(nil, address) }

// address returns a function as the engine's library expects it.
func address[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// allocation are the functions with which the engine's library allocates memory
// from the heap of the current machine, within the engine's limit.
var allocation = lib.TJSMallocFunctions{
	Fjs_malloc:             address(jsMalloc),
	Fjs_free:               address(jsFree),
	Fjs_realloc:            address(jsRealloc),
	Fjs_malloc_usable_size: address(jsSize),
}

func jsMalloc(_ *libc.TLS, state uintptr, size lib.Tsize_t) uintptr {
	s := (*lib.TJSMallocState)(at(state))
	if !fits(s, size) {
		return 0
	}
	p := current.heap.allocate(uintptr(size))
	if p != 0 {
		s.Fmalloc_count++
		s.Fmalloc_size += lib.Tsize_t(current.heap.size(p)) + lib.MMALLOC_OVERHEAD
	}
	return p
}

func fits(s *lib.TJSMallocState, more lib.Tsize_t) bool {
	return more < 1<<40 && s.Fmalloc_size <= s.Fmalloc_limit && more <= s.Fmalloc_limit-s.Fmalloc_size
}

func jsFree(_ *libc.TLS, state, p uintptr) {
	if p == 0 {
		return
	}
	s := (*lib.TJSMallocState)(at(state))
	s.Fmalloc_count--
	s.Fmalloc_size -= lib.Tsize_t(current.heap.size(p)) + lib.MMALLOC_OVERHEAD
	current.heap.free(p)
}

func jsRealloc(tls *libc.TLS, state, address uintptr, size lib.Tsize_t) uintptr {
	switch {
	case size == 0:
		jsFree(tls, state, address)
		return 0
	case address == 0:
		return jsMalloc(tls, state, size)
	}
	s := (*lib.TJSMallocState)(at(state))
	old := lib.Tsize_t(current.heap.size(address))
	if size > old && !fits(s, size-old) {
		return 0
	}
	moved := current.heap.resize(address, uintptr(size))
	if moved != 0 {
		s.Fmalloc_size += lib.Tsize_t(current.heap.size(moved)) - old
	}
	return moved
}

func jsSize(_ *libc.TLS, p uintptr) lib.Tsize_t {
	return lib.Tsize_t(current.heap.size(p))
}
