package sqlite

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// vfsName is the name of the file system of all connections: SQLite's default one,
// with its own ways to read and write two kinds of files. See
// https://www.sqlite.org/c3ref/vfs.html.
//
// Reading and writing temporary files is limited in time and size. Otherwise, one
// ORDER BY over a few gigabytes of generated text could fill the disk and merge for
// minutes, since SQLite checks the clock only between two steps of its program.
//
// Writes to a -wal are gathered and written before the database's lock is released;
// see wal.go.
// released, see wal.go.
const vfsName = "satchel"

// temporaryFile are the flags that mark a temporary file when it is opened.
const temporaryFile = lib.SQLITE_OPEN_TEMP_DB | lib.SQLITE_OPEN_TRANSIENT_DB |
	lib.SQLITE_OPEN_TEMP_JOURNAL | lib.SQLITE_OPEN_SUBJOURNAL

type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	transfer     = func(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size lib.Tsqlite3_int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	lengthFunc   = func(tls *libc.TLS, file, size uintptr) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	lockFunc     = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
)

// fileClass holds the default methods that ours call.
type fileClass struct {
	read, write transfer
	truncate    truncateFunc
	sync        syncFunc
	length      lengthFunc
	close       closeFunc
	lock        lockFunc // of the shared memory of a -wal
}

var (
	defaultOpen openFunc // set once, before the file system is registered

	// Tables of methods: from SQLite's to ours, for temporary files, a -wal and a
	// database, and from ours to what they call.
	classesMu                   sync.Mutex
	bounded, gathering, locking = map[uintptr]uintptr{}, map[uintptr]uintptr{}, map[uintptr]uintptr{}
	classOf                     sync.Map // uintptr -> fileClass
)

// registerVFS registers the file system of agents' files with SQLite.
var registerVFS = sync.OnceValue(func() error {
	return registerCopy(vfsName, func(vfs uintptr) {
		v := at[lib.Tsqlite3_vfs](vfs)
		defaultOpen = funcAt[openFunc](vfs + unsafe.Offsetof(v.FxOpen))
		v.FxOpen = pointerTo[openFunc](openFile)
	})
})

// registerCopy registers a copy of SQLite's default file system under a name, after
// change has replaced some of the methods at the address vfs.
func registerCopy(name string, change func(vfs uintptr)) error {
	tls := libc.NewTLS()
	defer tls.Close()
	kept, err := libc.CString(name) // SQLite keeps it
	if err != nil {
		return err
	}
	base := lib.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return fmt.Errorf("SQLite has no file system")
	}
	vfs, err := copyOf(base, unsafe.Sizeof(lib.Tsqlite3_vfs{}))
	if err != nil {
		return err
	}
	at[lib.Tsqlite3_vfs](vfs).FzName = kept
	change(vfs)
	if rc := lib.Xsqlite3_vfs_register(tls, vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("register a file system: SQLite code %d", rc)
	}
	return nil
}

// openFile opens a file and, if it is a temporary one, a -wal or a database,
// overrides some of its methods.
func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := defaultOpen(tls, vfs, name, file, flags, outFlags)
	if rc != lib.SQLITE_OK {
		return rc
	}
	var tables map[uintptr]uintptr
	var set func(*lib.Tsqlite3_io_methods)
	switch {
	case flags&lib.SQLITE_OPEN_WAL != 0:
		tables, set = gathering, gatherWrites
	case flags&temporaryFile != 0:
		tables, set = bounded, boundTransfers
	case flags&lib.SQLITE_OPEN_MAIN_DB != 0:
		tables, set = locking, writeBeforeUnlock
	default:
		return rc
	}
	methods := peek(file)
	classesMu.Lock()
	defer classesMu.Unlock()
	if tables[methods] == 0 {
		ours, err := copyMethods(methods)
		if err != nil {
			return lib.SQLITE_NOMEM
		}
		set(at[lib.Tsqlite3_io_methods](ours))
		tables[methods] = ours
	}
	poke(file, tables[methods])
	return lib.SQLITE_OK
}

// copyMethods copies a table of methods. classAt finds the original methods from the
// copy.
func copyMethods(methods uintptr) (uintptr, error) {
	var layout lib.Tsqlite3_io_methods
	ours, err := copyOf(methods, unsafe.Sizeof(layout))
	if err != nil {
		return 0, err
	}
	classOf.Store(ours, fileClass{
		read:     funcAt[transfer](methods + unsafe.Offsetof(layout.FxRead)),
		write:    funcAt[transfer](methods + unsafe.Offsetof(layout.FxWrite)),
		truncate: funcAt[truncateFunc](methods + unsafe.Offsetof(layout.FxTruncate)),
		sync:     funcAt[syncFunc](methods + unsafe.Offsetof(layout.FxSync)),
		length:   funcAt[lengthFunc](methods + unsafe.Offsetof(layout.FxFileSize)),
		close:    funcAt[closeFunc](methods + unsafe.Offsetof(layout.FxClose)),
		lock:     funcAt[lockFunc](methods + unsafe.Offsetof(layout.FxShmLock)),
	})
	return ours, nil
}

// boundTransfers replaces the methods of temporary files. Version 1 keeps SQLite
// from bypassing them by mapping files into memory.
func boundTransfers(methods *lib.Tsqlite3_io_methods) {
	methods.FiVersion = 1
	methods.FxRead = pointerTo[transfer](readTemporary)
	methods.FxWrite = pointerTo[transfer](writeTemporary)
}

func readTemporary(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
	if c := connOf(tls); c != nil && c.PastDeadline() {
		return lib.SQLITE_INTERRUPT
	}
	return classAt(file).read(tls, file, buffer, n, at)
}

func writeTemporary(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
	if c := connOf(tls); c != nil && c.limits.ctx != nil {
		if c.PastDeadline() {
			return lib.SQLITE_INTERRUPT
		}
		if c.limits.remaining.Temp -= int64(n); c.limits.remaining.Temp < 0 {
			return lib.SQLITE_FULL
		}
	}
	return classAt(file).write(tls, file, buffer, n, at)
}

// classAt returns the default methods of a file that has ours.
func classAt(file uintptr) fileClass {
	c, _ := classOf.Load(peek(file))
	return c.(fileClass)
}
