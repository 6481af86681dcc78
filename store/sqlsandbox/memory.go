package sqlsandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vec"
)

// SQLite can bound the memory of a process, but not that of a statement, and
// a statement has many ways to grow: sorters, temporary tables, registers, and
// json_group_array, which minds no limit at all. So its allocator is ours: the
// default one, behind a count for each client's statement. One that wants too
// much gets none, which SQLite reports as SQLITE_NOMEM and takes back cleanly.
// See https://www.sqlite.org/malloc.html#alternative_low_level_memory_allocators.

type (
	mallocFunc  = func(tls *libc.TLS, n int32) uintptr
	reallocFunc = func(tls *libc.TLS, p uintptr, n int32) uintptr
	freeFunc    = func(tls *libc.TLS, p uintptr)
	sizeFunc    = func(tls *libc.TLS, p uintptr) int32
)

// defaultMemory is SQLite's own allocator.
var defaultMemory struct {
	malloc  mallocFunc
	realloc reallocFunc
	free    freeFunc
	size    sizeFunc
}

// counted is how many client's statements run; while none does, nothing is
// looked up for a count.
var counted atomic.Int32

// errMemory says why the allocator could not be put in place. That has to
// happen before any connection opens, and with SQLite shut down, since the
// start of package vec has initialized it; hence a variable's initialization.
var errMemory = countMemory()

func countMemory() error {
	tls := libc.NewTLS()
	defer tls.Close()
	var layout lib.Tsqlite3_mem_methods
	methods, err := libc.CString(string(make([]byte, unsafe.Sizeof(layout)))) // SQLite keeps a copy
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, methods)
	args := libc.Xmalloc(tls, 16)
	if args == 0 {
		return fmt.Errorf("out of memory")
	}
	defer libc.Xfree(tls, args)
	if rc := lib.Xsqlite3_shutdown(tls); rc != lib.SQLITE_OK {
		return fmt.Errorf("shut SQLite down: code %d", rc)
	}
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_GETMALLOC, libc.VaList(args, methods)); rc != lib.SQLITE_OK {
		return fmt.Errorf("read SQLite's allocator: code %d", rc)
	}
	at := func(offset uintptr) uintptr { return methods + offset }
	defaultMemory.malloc = funcAt[mallocFunc](at(unsafe.Offsetof(layout.FxMalloc)))
	defaultMemory.realloc = funcAt[reallocFunc](at(unsafe.Offsetof(layout.FxRealloc)))
	defaultMemory.free = funcAt[freeFunc](at(unsafe.Offsetof(layout.FxFree)))
	defaultMemory.size = funcAt[sizeFunc](at(unsafe.Offsetof(layout.FxSize)))
	poke(at(unsafe.Offsetof(layout.FxMalloc)), pointerTo[mallocFunc](countedMalloc))
	poke(at(unsafe.Offsetof(layout.FxRealloc)), pointerTo[reallocFunc](countedRealloc))
	poke(at(unsafe.Offsetof(layout.FxFree)), pointerTo[freeFunc](countedFree))
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_MALLOC, libc.VaList(args, methods)); rc != lib.SQLITE_OK {
		return fmt.Errorf("set SQLite's allocator: code %d", rc)
	}
	// The shutdown has forgotten what package vec registered.
	return RegisterExtension(tls, vec.Xsqlite3_vec_init)
}

// RegisterExtension has SQLite call init, which is declared at the top level,
// for each connection of the process that opens, with its handle. See
// https://www.sqlite.org/c3ref/auto_extension.html.
func RegisterExtension(tls *libc.TLS, init func(tls *libc.TLS, db, message, api uintptr) int32) error {
	if rc := lib.Xsqlite3_auto_extension(tls, pointerTo(init)); rc != lib.SQLITE_OK {
		return fmt.Errorf("register an extension: SQLite code %d", rc)
	}
	return nil
}

// limit bounds what the connection's statements may use until unlimit.
func (c *Conn) limit(ctx context.Context, limits Limits) {
	c.ctx, c.memory, c.starved, c.temp = ctx, limits.Memory, false, limits.Temp
	counted.Add(1)
}

func (c *Conn) unlimit() {
	counted.Add(-1)
	c.ctx = nil
}

// countedConn is the connection whose client's statement allocates, or nil.
func countedConn(tls *libc.TLS) *Conn {
	if counted.Load() == 0 {
		return nil
	}
	if c := connOf(tls); c != nil && c.ctx != nil {
		return c
	}
	return nil
}

// take counts n more bytes and reports whether they may be had.
func (c *Conn) take(n int32) bool {
	if c.memory < int64(n) {
		c.starved = true
		return false
	}
	c.memory -= int64(n)
	return true
}

func countedMalloc(tls *libc.TLS, n int32) uintptr {
	if c := countedConn(tls); c != nil && !c.take(n) {
		return 0
	}
	return defaultMemory.malloc(tls, n)
}

func countedRealloc(tls *libc.TLS, p uintptr, n int32) uintptr {
	if c := countedConn(tls); c != nil && !c.take(n-defaultMemory.size(tls, p)) {
		return 0
	}
	return defaultMemory.realloc(tls, p, n)
}

func countedFree(tls *libc.TLS, p uintptr) {
	if c := countedConn(tls); c != nil {
		c.memory += int64(defaultMemory.size(tls, p))
	}
	defaultMemory.free(tls, p)
}
