package sqlite

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// vfsName names the file system of all connections: SQLite's default one, with other
// ways to read and write two kinds of files. See https://www.sqlite.org/c3ref/vfs.html.
//
// What a statement reads and writes in temporary files ends with its time and is
// bounded. Without that, one ORDER BY over a few gigabytes of generated text fills
// the disk and merges for minutes, since SQLite looks at the clock between two steps
// of its program only.
//
// What is written to a -wal is gathered, and written before the database's lock is
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

// fileClass are the default methods that ours call.
type fileClass struct {
	read, write transfer
	truncate    truncateFunc
	sync        syncFunc
	length      lengthFunc
	close       closeFunc
	lock        lockFunc // of the shared memory beside a -wal
}

var (
	defaultOpen openFunc // set once, before the file system is registered

	// Tables of methods: SQLite's to ours, of temporary files, of a -wal and of a
	// database, and ours to what they call.
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

// registerCopy registers a copy of SQLite's default file system under a name, after change
// has replaced some of its methods at the address vfs.
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
		ours, err := ownMethods(methods)
		if err != nil {
			return lib.SQLITE_NOMEM
		}
		set(at[lib.Tsqlite3_io_methods](ours))
		tables[methods] = ours
	}
	poke(file, tables[methods])
	return lib.SQLITE_OK
}

// ownMethods makes a copy of a table of methods, from which classAt finds what is in
// the table.
func ownMethods(methods uintptr) (uintptr, error) {
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

// boundTransfers sets the methods of temporary files. Version 1 keeps SQLite from
// mapping files into memory, past those methods.
func boundTransfers(methods *lib.Tsqlite3_io_methods) {
	methods.FiVersion = 1
	methods.FxRead = pointerTo[transfer](readTemporary)
	methods.FxWrite = pointerTo[transfer](writeTemporary)
}

func readTemporary(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
	if c := connOf(tls); c != nil && c.Late() {
		return lib.SQLITE_INTERRUPT
	}
	return classAt(file).read(tls, file, buffer, n, at)
}

func writeTemporary(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
	if c := connOf(tls); c != nil && c.bound.ctx != nil {
		if c.Late() {
			return lib.SQLITE_INTERRUPT
		}
		if c.bound.left.Temp -= int64(n); c.bound.left.Temp < 0 {
			return lib.SQLITE_FULL
		}
	}
	return classAt(file).write(tls, file, buffer, n, at)
}

// classAt finds the default methods of a file that has ours.
func classAt(file uintptr) fileClass {
	c, _ := classOf.Load(peek(file))
	return c.(fileClass)
}
