package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Lookaside memory belongs to one connection and serves small, short-lived
// allocations without a lock, which saves a tenth of SQLite's time in a write. It is
// not worth its memory for rarely used agents, so a connection only gets it once it
// is busy. See https://www.sqlite.org/malloc.html#lookaside.
const (
	busyAfter      = 5_000 // uses of statements
	lookasideSlot  = 1_200 // bytes
	lookasideSlots = 40    // which SQLite divides into large and small ones
)

// countUse counts a use of a cached statement.
func (c *Conn) countUse() {
	if c.uses++; c.uses == busyAfter {
		c.addLookaside()
	}
}

// addLookaside gives the connection lookaside memory. Errors are ignored, since
// statements are only slower without it.
func (c *Conn) addLookaside() {
	args := libc.Xmalloc(c.tls, 3*16)
	if args == 0 {
		return
	}
	defer libc.Xfree(c.tls, args)
	c.beginUse()
	defer c.endUse()
	lib.Xsqlite3_db_config(
		c.tls,
		c.db,
		lib.SQLITE_DBCONFIG_LOOKASIDE,
		libc.VaList(args, uintptr(0), int32(lookasideSlot), int32(lookasideSlots)),
	)
}
