// Package sqlite is the program's connection to SQLite. It is a thin layer over
// SQLite's C interface (https://www.sqlite.org/cintro.html), which package lib of
// modernc.org/sqlite translates to Go.
//
// A Conn is for one goroutine at a time: it is opened without SQLite's mutexes.
// It caches compiled statements. Their plans do not depend on the values that are
// bound to them: otherwise SQLite would compile a statement again for each pattern of
// a LIKE, and when some numbers change from or to 0 or 1. Other goroutines may only
// call Interrupt.
package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Mode specifies how a file is opened.
type Mode string

// The modes of opening a file.
const (
	ReadOnly  Mode = "ro"
	ReadWrite Mode = "rw"
	Create    Mode = "rwc" // creates a missing file
)

// Source names a database and says how it is opened.
type Source struct {
	Path      string // of the file; empty: a new database in memory
	Mode      Mode
	Immutable bool     // the file has no writer: it is read without locks, and no files are created next to it
	Pragmas   []string // applied in order

	// KeepWAL calls Conn.KeepWAL before anything else.
	KeepWAL bool
	// Pages, unless nil, provides the database's pages instead of a file, whose path
	// is then just a name. Mode must be ReadOnly.
	Pages Pages
	// Prepare, unless nil, is called before the pragmas.
	Prepare func(*Conn) error
}

// name returns the file name for SQLite; see https://www.sqlite.org/uri.html.
func (s Source) name() string {
	if s.Path == "" {
		return "file::memory:"
	}
	name := "file:" + (&url.URL{Path: s.Path}).EscapedPath() + "?mode=" + string(s.Mode)
	if s.Immutable {
		name += "&immutable=1"
	}
	return name
}

// Conn is a connection to a database.
type Conn struct {
	tls *libc.TLS
	db  uintptr
	out uintptr // space for two pointers that SQLite returns by address
	sql buffer  // the text that is compiled

	cached   map[string]*Stmt
	uncached map[*Stmt]bool // open, but not cached
	uses     uint64         // of cached statements, to find the least recently used one

	authorizer Authorizer
	onRow      RowFunc
	onRollback func()
	pages      Pages           // nil: they are in a file
	limits     statementLimits // of the running statements, see SetLimits
	gathered   gathered

	// Compiling is for the authorizer: bits that it sets while a statement is
	// compiled belong to that statement, and Used collects the bits of all
	// statements that were used.
	Compiling, Used uint32

	interrupts  sync.Mutex
	interrupted bool // guarded by interrupts: one may still be pending
	closed      bool // guarded by interrupts

	// Refused, unless nil, is called when the authorizer has refused a statement. It
	// reports whether to compile the statement again.
	Refused func() (again bool, err error)

	// Text, unless nil, replaces each text that is bound to a parameter.
	Text func(string) string

	// ReadOnly refuses statements that would change something.
	ReadOnly bool

	busy atomic.Bool // with CheckUse: a goroutine is in SQLite
}

// conns finds a connection in a callback by the TLS it runs on.
var conns sync.Map // *libc.TLS -> *Conn

func connOf(tls *libc.TLS) *Conn {
	c, _ := conns.Load(tls)
	found, _ := c.(*Conn)
	return found
}

// Count returns how many connections are open in this process.
func Count() (n int) {
	conns.Range(func(_, _ any) bool {
		n++
		return true
	})
	return n
}

// CheckUse makes every connection panic when two goroutines use it at the same time.
// Tests set it before they open the first.
var CheckUse bool

func (c *Conn) beginUse() {
	if CheckUse && !c.busy.CompareAndSwap(false, true) {
		panic("sqlite: two goroutines use one connection at the same time")
	}
}

func (c *Conn) endUse() {
	if CheckUse {
		c.busy.Store(false)
	}
}

// busyTimeout is how long, in milliseconds, a statement waits for a lock that
// another connection holds.
const busyTimeout = 10_000

// Open opens a connection.
func Open(s Source) (*Conn, error) {
	if err := errors.Join(errMemory, registerVFS(), registerPages()); err != nil {
		return nil, err
	}
	c := &Conn{
		tls:      libc.NewTLS(),
		cached:   map[string]*Stmt{},
		uncached: map[*Stmt]bool{},
		pages:    s.Pages,
	}
	conns.Store(c.tls, c)
	if err := c.open(s); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Conn) open(source Source) error {
	if err := c.connect(source); err != nil {
		return err
	}
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	lib.Xsqlite3_busy_timeout(c.tls, c.db, busyTimeout)
	if err := c.Configure(lib.SQLITE_DBCONFIG_ENABLE_QPSG, true); err != nil {
		return err
	}
	if source.KeepWAL {
		if err := c.KeepWAL(true); err != nil {
			return err
		}
	}
	if source.Prepare != nil {
		if err := source.Prepare(c); err != nil {
			return err
		}
	}
	for _, p := range source.Pragmas {
		if err := c.Script("PRAGMA " + p); err != nil {
			return err
		}
	}
	c.DropPages() // those of the schema are no longer needed
	return nil
}

// DropPages drops the pages in the connection's cache that no transaction has
// changed.
func (c *Conn) DropPages() {
	lib.Xsqlite3_db_release_memory(c.tls, c.db)
}

func (c *Conn) connect(source Source) error {
	if c.out = libc.Xmalloc(c.tls, 2*16); c.out == 0 {
		return errNoMemory
	}
	name, err := libc.CString(source.name())
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	system := vfsName
	if source.Pages != nil {
		system = pagesVFS
	}
	vfs, err := libc.CString(system)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, vfs)
	const flags = lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_URI | lib.SQLITE_OPEN_NOMUTEX
	rc := lib.Xsqlite3_open_v2(c.tls, name, c.out, flags, vfs)
	if c.db = peek(c.out); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

// Close closes the connection and all of its statements.
func (c *Conn) Close() error {
	c.interrupts.Lock()
	struck := c.interrupted && !c.closed
	c.closed = true
	c.interrupts.Unlock()
	if struck {
		_ = c.Script("SELECT 1") // a pending interrupt would keep the -wal from being written back
	}
	c.beginUse()
	defer c.endUse()
	for _, s := range c.cached {
		s.finalize()
	}
	for s := range c.uncached {
		s.finalize()
	}
	c.cached = nil
	var err error
	if rc := lib.Xsqlite3_close_v2(c.tls, c.db); rc != lib.SQLITE_OK {
		err = fmt.Errorf("close a database: SQLite code %d", rc)
	}
	c.db = 0
	c.sql.free(c.tls)
	libc.Xfree(c.tls, c.out)
	conns.Delete(c.tls)
	c.tls.Close()
	return err
}

// Interrupt interrupts the running statement, if any. Any goroutine may call it.
func (c *Conn) Interrupt() {
	c.interrupts.Lock()
	defer c.interrupts.Unlock()
	if c.closed {
		return
	}
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_interrupt(tls, c.db)
	c.interrupted = true
}

// Interrupted reports whether Interrupt was called.
func (c *Conn) Interrupted() bool {
	c.interrupts.Lock()
	defer c.interrupts.Unlock()
	return c.interrupted
}

// Result is the effect of a statement.
type Result struct {
	Changes int64 // rows that it inserted, updated or deleted directly
	LastID  int64 // row number of the last row that the connection inserted
}

// Exec runs a statement and ignores its rows.
func (c *Conn) Exec(query string, args ...any) (Result, error) {
	s, err := c.statement(query)
	if err != nil {
		return Result{}, err
	}
	defer s.release()
	if err := s.Bind(args...); err != nil {
		return Result{}, err
	}
	if err := s.finish(); err != nil {
		return Result{}, err
	}
	return c.Result(), nil
}

// ExecOnce is Exec for a statement that is not worth caching.
func (c *Conn) ExecOnce(query string, args ...any) (Result, error) {
	s, err := c.Prepare(query)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	if err := s.Bind(args...); err != nil {
		return Result{}, err
	}
	if err := s.finish(); err != nil {
		return Result{}, err
	}
	return c.Result(), nil
}

// Result returns the effect of the last statement.
func (c *Conn) Result() Result {
	return Result{Changes: lib.Xsqlite3_changes64(c.tls, c.db), LastID: lib.Xsqlite3_last_insert_rowid(c.tls, c.db)}
}

// TotalChanges returns how many rows have been inserted, updated or deleted since
// the connection was opened, including by triggers and in rolled-back transactions.
func (c *Conn) TotalChanges() int64 {
	return lib.Xsqlite3_total_changes64(c.tls, c.db)
}

// PagesWritten is how many pages the connection has written to the file or its -wal
// since it was opened.
func (c *Conn) PagesWritten() int32 {
	lib.Xsqlite3_db_status(c.tls, c.db, lib.SQLITE_DBSTATUS_CACHE_WRITE, c.out, c.out+16, 0)
	return *at[int32](c.out)
}

// SetLastID sets the LastID that Result returns until a row is inserted.
func (c *Conn) SetLastID(id int64) {
	lib.Xsqlite3_set_last_insert_rowid(c.tls, c.db, id)
}

// InTransaction reports whether a transaction is open.
func (c *Conn) InTransaction() bool {
	return lib.Xsqlite3_get_autocommit(c.tls, c.db) == 0
}

// Query starts a statement. Its rows have to be read or closed before another
// goroutine uses the connection.
func (c *Conn) Query(query string, args ...any) (*Rows, error) {
	s, err := c.statement(query)
	if err != nil {
		return nil, err
	}
	if err := s.Bind(args...); err != nil {
		s.release()
		return nil, err
	}
	return &Rows{s: s}, nil
}

// QueryOnce is Query for a statement that is not worth caching.
func (c *Conn) QueryOnce(query string, args ...any) (*Rows, error) {
	s, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	if err := s.Bind(args...); err != nil {
		s.Close()
		return nil, err
	}
	return &Rows{s: s}, nil
}

// QueryRow runs a statement for its first row.
func (c *Conn) QueryRow(query string, args ...any) Row {
	rows, err := c.Query(query, args...)
	return Row{rows, err}
}

// Script runs statements one after another without caching them.
func (c *Conn) Script(text string) error {
	for text != "" {
		s, rest, err := c.compile(text, 0)
		if err != nil {
			return err
		}
		if s == nil { // white space and comments
			return nil
		}
		c.Used |= s.mark
		err = s.finish()
		s.Close()
		if err != nil {
			return err
		}
		text = text[rest:]
	}
	return nil
}

// KeepWAL sets whether the -wal is kept if this is the last connection to close.
// Otherwise it is checkpointed and removed.
func (c *Conn) KeepWAL(keep bool) error {
	return c.Configure(lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
}

// Limit sets a run-time limit, see https://www.sqlite.org/c3ref/limit.html, and
// returns its previous value; -1 changes nothing.
func (c *Conn) Limit(kind, value int32) int {
	return int(lib.Xsqlite3_limit(c.tls, c.db, kind, value))
}

// Configure switches a setting of the connection that SQL cannot change; see
// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html.
func (c *Conn) Configure(setting int32, on bool) error {
	args := libc.Xmalloc(c.tls, 2*16)
	if args == 0 {
		return errNoMemory
	}
	defer libc.Xfree(c.tls, args)
	var value int32
	if on {
		value = 1
	}
	if rc := lib.Xsqlite3_db_config(
		c.tls,
		c.db,
		setting,
		libc.VaList(args, value, uintptr(0)),
	); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}
