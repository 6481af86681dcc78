package sqlite

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vec"
)

// Budget limits what statements may use, in bytes; 0 means no limit.
type Budget struct {
	Memory int64 // that SQLite holds for them
	Temp   int64 // written to temporary files
}

// statementLimits is what the running statements may still use.
type statementLimits struct {
	ctx         context.Context // nil: they are not limited
	counted     bool            // their memory is
	remaining   Budget
	outOfMemory bool // they were refused more memory
}

// clockEvery is how many steps of its program SQLite runs between two checks of the
// clock: some 10 microseconds, of which a check takes less than a hundredth.
const clockEvery = 500

// SetLimits limits what the connection's statements may use until ClearLimits is called.
// When ctx ends, they are interrupted.
func (c *Conn) SetLimits(ctx context.Context, budget Budget) {
	if budget.Temp == 0 {
		budget.Temp = math.MaxInt64
	}
	c.limits = statementLimits{
		ctx:       ctx,
		counted:   budget.Memory > 0,
		remaining: budget,
	}
	if c.limits.counted {
		counted.Add(1)
	}
	lib.Xsqlite3_progress_handler(
		c.tls,
		c.db,
		clockEvery,
		pointerTo[func(*libc.TLS, uintptr) int32](checkClock),
		0,
	)
}

// ClearLimits ends what SetLimits began. OutOfMemory and Spilled keep their values.
func (c *Conn) ClearLimits() {
	if c.limits.counted {
		counted.Add(-1)
	}
	c.limits.ctx, c.limits.counted = nil, false
	lib.Xsqlite3_progress_handler(c.tls, c.db, 0, 0, 0)
}

// PastDeadline reports whether the limited statements have to stop.
func (c *Conn) PastDeadline() bool {
	return c.limits.ctx != nil && c.limits.ctx.Err() != nil
}

// OutOfMemory reports whether the limited statements needed more memory than they had.
func (c *Conn) OutOfMemory() bool { return c.limits.outOfMemory }

// Spilled reports whether they needed more space for temporary files.
func (c *Conn) Spilled() bool {
	return c.limits.remaining.Temp < 0
}

// checkClock stops a statement whose time is up, or that was refused memory: some
// aggregates report that only with their last row.
func checkClock(tls *libc.TLS, _ uintptr) int32 {
	if c := connOf(tls); c != nil &&
		c.limits.ctx != nil &&
		(c.limits.outOfMemory || c.PastDeadline()) {
		return 1
	}
	return 0
}

// SQLite can limit the memory of a process, but not that of a statement, and a
// statement has many ways to grow: sorters, temporary tables, registers, and
// json_group_array, which ignores every limit. So it uses our allocator, behind a
// counter for limited statements. A statement that wants too much gets nothing,
// which SQLite reports as SQLITE_NOMEM and rolls back cleanly. See
// https://www.sqlite.org/malloc.html#alternative_low_level_memory_allocators.

type (
	mallocFunc  = func(tls *libc.TLS, n int32) uintptr
	reallocFunc = func(tls *libc.TLS, p uintptr, n int32) uintptr
	freeFunc    = func(tls *libc.TLS, p uintptr)
	sizeFunc    = func(tls *libc.TLS, p uintptr) int32
)

// counted is how many connections count memory; if none does, the counter costs
// nothing.
var counted atomic.Int32

// errMemory is why the allocator could not be installed. It has to be installed
// before any connection opens and while SQLite is shut down, since package vec has
// initialized it; hence the initialization of a variable.
var errMemory = setMemory()

func setMemory() error {
	lib.PatchIssue199() // what the driver of modernc.org/sqlite does first
	tls := libc.NewTLS()
	defer tls.Close()
	var layout lib.Tsqlite3_mem_methods
	methods, err := libc.CString(string(make([]byte, unsafe.Sizeof(layout)))) // SQLite keeps a copy
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, methods)
	args := libc.Xmalloc(tls, 32)
	if args == 0 {
		return errNoMemory
	}
	defer libc.Xfree(tls, args)
	if rc := lib.Xsqlite3_shutdown(tls); rc != lib.SQLITE_OK {
		return fmt.Errorf("shut SQLite down: code %d", rc)
	}
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_GETMALLOC, libc.VaList(args, methods)); rc != lib.SQLITE_OK {
		return fmt.Errorf("read SQLite's allocator: code %d", rc)
	}
	poke(methods+unsafe.Offsetof(layout.FxMalloc), pointerTo[mallocFunc](countedMalloc))
	poke(methods+unsafe.Offsetof(layout.FxRealloc), pointerTo[reallocFunc](countedRealloc))
	poke(methods+unsafe.Offsetof(layout.FxFree), pointerTo[freeFunc](countedFree))
	poke(methods+unsafe.Offsetof(layout.FxSize), pointerTo[sizeFunc](memorySize))
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_MALLOC, libc.VaList(args, methods)); rc != lib.SQLITE_OK {
		return fmt.Errorf("set SQLite's allocator: code %d", rc)
	}
	if err := setPageCache(tls, args); err != nil {
		return err
	}
	// The shutdown has dropped what package vec registered: sqlite-vec for each
	// connection; see https://www.sqlite.org/c3ref/auto_extension.html.
	if rc := lib.Xsqlite3_auto_extension(tls, pointerTo(vec.Xsqlite3_vec_init)); rc != lib.SQLITE_OK {
		return fmt.Errorf("register an extension: SQLite code %d", rc)
	}
	return nil
}

// setPageCache makes SQLite use this package's cache, and no lookaside memory, which
// connections only get once they are busy.
func setPageCache(tls *libc.TLS, args uintptr) error {
	methods, err := libc.CString(string(make([]byte, unsafe.Sizeof(lib.Tsqlite3_pcache_methods2{}))))
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, methods)
	*at[lib.Tsqlite3_pcache_methods2](methods) = pageCacheMethods()
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_PCACHE2, libc.VaList(args, methods)); rc != lib.SQLITE_OK {
		return fmt.Errorf("set SQLite's page cache: code %d", rc)
	}
	if rc := lib.Xsqlite3_config(
		tls,
		lib.SQLITE_CONFIG_LOOKASIDE,
		libc.VaList(args, int32(0), int32(0)),
	); rc != lib.SQLITE_OK {
		return fmt.Errorf("set SQLite's lookaside memory: code %d", rc)
	}
	return nil
}

// countedConn returns the connection whose limited statement is allocating, or nil.
func countedConn(tls *libc.TLS) *Conn {
	if counted.Load() == 0 {
		return nil
	}
	if c := connOf(tls); c != nil && c.limits.counted {
		return c
	}
	return nil
}

// countMemory counts n more bytes and reports whether they are within the limit.
func (c *Conn) countMemory(n int32) bool {
	if c.limits.remaining.Memory < int64(n) {
		c.limits.outOfMemory = true
		return false
	}
	c.limits.remaining.Memory -= int64(n)
	return true
}

func countedMalloc(tls *libc.TLS, n int32) uintptr {
	if c := countedConn(tls); c != nil && !c.countMemory(n) {
		return 0
	}
	return allocate(tls, uintptr(n))
}

func countedRealloc(tls *libc.TLS, p uintptr, n int32) uintptr {
	if c := countedConn(tls); c != nil && !c.countMemory(n-int32(allocated(p))) {
		return 0
	}
	return reallocate(tls, p, uintptr(n))
}

func countedFree(tls *libc.TLS, p uintptr) {
	if c := countedConn(tls); c != nil {
		c.limits.remaining.Memory += int64(allocated(p))
	}
	deallocate(tls, p)
}

func memorySize(_ *libc.TLS, p uintptr) int32 {
	return int32(allocated(p))
}
