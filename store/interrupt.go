package store

import (
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlsandbox"
)

// The driver interrupts a statement when its context ends, which costs a
// goroutine for each statement, and it keeps SQLite's handle to itself. So a
// connection has a number in its name, by which its handle is noted as it
// opens (https://www.sqlite.org/c3ref/auto_extension.html), and is interrupted
// by that.

const numberParameter = "satchel_number"

var (
	connNumber atomic.Uint64
	opening    sync.Map // the number of a connection that opens -> its handle
	openConns  sync.Map // *conn -> true
)

// mainName and numberName are C strings that are never freed.
var mainName, numberName uintptr

// errHandles says why handles cannot be noted.
var errHandles = noteHandles()

// noteHandles has SQLite call noteHandle for every connection that opens.
func noteHandles() (err error) {
	tls := libc.NewTLS()
	defer tls.Close()
	if mainName, err = libc.CString("main"); err != nil {
		return err
	}
	if numberName, err = libc.CString(numberParameter); err != nil {
		return err
	}
	return sqlsandbox.RegisterExtension(tls, noteHandle)
}

func noteHandle(tls *libc.TLS, db, _, _ uintptr) int32 {
	file := lib.Xsqlite3_db_filename(tls, db, mainName)
	if file == 0 {
		return lib.SQLITE_OK
	}
	if number := lib.Xsqlite3_uri_parameter(tls, file, numberName); number != 0 {
		opening.Store(libc.GoString(number), db)
	}
	return lib.SQLITE_OK
}

// withNumber returns a DSN with a number of its own.
func withNumber(dsn string) (name, number string) {
	number = strconv.FormatUint(connNumber.Add(1), 10)
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + numberParameter + "=" + number, number
}

// handle is SQLite's handle of an open connection.
type handle struct {
	mu     sync.Mutex
	db     uintptr // 0 once it closes
	struck bool    // an interrupt may still be pending
}

func takeHandle(number string) *handle {
	db, _ := opening.LoadAndDelete(number)
	p, _ := db.(uintptr)
	return &handle{db: p}
}

// interrupt ends the statement that runs, if any.
func (h *handle) interrupt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.db == 0 {
		return
	}
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_interrupt(tls, h.db)
	h.struck = true
}

// drop ends interrupts and reports whether there was one: it stays pending
// until a statement runs.
func (h *handle) drop() (struck bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.db = 0
	return h.struck
}

// interruptEvery is how often statements are interrupted once their time is
// over: what was interrupted may try again.
const interruptEvery = 50 * time.Millisecond

// EndBy interrupts, from a point in time until Close returns, the statements on
// files of this folder, so that Close returns whatever they do. Nothing of a
// write that was interrupted remains.
func (f *Folder) EndBy(at time.Time) {
	go func() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		for {
			select {
			case <-f.finished:
				return
			case <-timer.C:
				f.interrupt()
				timer.Reset(interruptEvery)
			}
		}
	}()
}

func (f *Folder) interrupt() {
	prefix := "file:" + (&url.URL{Path: f.path}).EscapedPath() + "/"
	openConns.Range(func(key, _ any) bool {
		if c := key.(*conn); strings.HasPrefix(c.name, prefix) {
			c.handle.interrupt()
		}
		return true
	})
}
