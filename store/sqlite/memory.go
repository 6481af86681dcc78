package sqlite

import (
	"encoding/binary"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
)

// All direct access to C memory goes through at and view in this file.

// peek reads the pointer at address p.
func peek(p uintptr) uintptr {
	b := libc.GoBytes(p, int(unsafe.Sizeof(p)))
	if len(b) == 4 {
		return uintptr(binary.NativeEndian.Uint32(b))
	}
	return uintptr(binary.NativeEndian.Uint64(b))
}

// poke writes a pointer to address p.
func poke(p, value uintptr) {
	b := libc.GoBytes(p, int(unsafe.Sizeof(p)))
	if len(b) == 4 {
		binary.NativeEndian.PutUint32(b, uint32(value))
		return
	}
	binary.NativeEndian.PutUint64(b, uint64(value))
}

// at returns a pointer to the value of type T at address p.
func at[T any](p uintptr) *T {
	return *(**T)(unsafe.Pointer(&p))
}

// view returns n bytes of C memory, valid as long as their owner says.
func view(p uintptr, n int) []byte {
	if p == 0 || n == 0 {
		return nil
	}
	return libc.GoBytes(p, n)
}

// putText copies a text to address p, followed by a zero byte.
func putText(p uintptr, s string) {
	b := libc.GoBytes(p, len(s)+1)
	copy(b, s)
	b[len(s)] = 0
}

// copyOf returns a copy of the n bytes at p that is never freed.
func copyOf(p, n uintptr) (uintptr, error) {
	return libc.CString(string(libc.GoBytes(p, int(n))))
}

// pointerTo returns a C function pointer for a top-level function, in the form that
// the transpiled code expects: the first word of the function value; see
// https://go.dev/s/go11func.
func pointerTo[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f}))
}

// funcAt returns the C function pointer at address p as a function of type F.
func funcAt[F any](p uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ p uintptr }{peek(p)}))
}

// buffer is C memory that grows as needed. Its zero value is empty.
type buffer struct {
	p    uintptr
	size int
}

// Sizes of buffers: the smallest, and the largest that is kept.
const (
	minBuffer     = 256
	largestBuffer = 16 << 10
)

// reserve returns the address of space for count bytes, which is never 0. The previous
// content is lost.
func (b *buffer) reserve(tls *libc.TLS, count int) (uintptr, error) {
	if b.p != 0 && count <= b.size {
		return b.p, nil
	}
	b.free(tls)
	size := minBuffer
	for size < count && size < largestBuffer {
		size *= 2
	}
	size = max(size, count)
	p := libc.Xmalloc(tls, types.Size_t(size))
	if p == 0 {
		return 0, errNoMemory
	}
	b.p, b.size = p, size
	return p, nil
}

// put copies a text into the buffer, followed by a zero byte.
func (b *buffer) put(tls *libc.TLS, s string) (uintptr, error) {
	p, err := b.reserve(tls, len(s)+1)
	if err == nil {
		putText(p, s)
	}
	return p, err
}

// shrink frees a buffer that is too large to be kept.
func (b *buffer) shrink(tls *libc.TLS) {
	if b.size > largestBuffer {
		b.free(tls)
	}
}

func (b *buffer) free(tls *libc.TLS) {
	if b.p != 0 {
		libc.Xfree(tls, b.p)
	}
	*b = buffer{}
}
