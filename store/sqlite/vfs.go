package sqlite

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// vfsName names the file system of connections with Source.BoundTemp: SQLite's
// default one, except that what a statement reads and writes in temporary files ends
// with its time and is bounded. Without that, one ORDER BY over a few
// gigabytes of generated text fills the disk and merges for minutes, since
// SQLite looks at the clock between two steps of its program only.
// See https://www.sqlite.org/c3ref/vfs.html.
const vfsName = "satchel-bounded"

// temporaryFile are the flags that mark a temporary file when it is opened.
const temporaryFile = lib.SQLITE_OPEN_TEMP_DB | lib.SQLITE_OPEN_TRANSIENT_DB |
	lib.SQLITE_OPEN_TEMP_JOURNAL | lib.SQLITE_OPEN_SUBJOURNAL

type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	transfer  = func(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32
	fileClass struct{ read, write transfer } // the default methods that ours call
)

var (
	defaultOpen openFunc // set once, before the file system is registered

	// Tables of methods: SQLite's to ours, and ours to what they call.
	classesMu sync.Mutex
	classes   = map[uintptr]uintptr{}
	classOf   sync.Map // uintptr -> fileClass
)

// registerVFS makes the file system known to SQLite.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(vfsName) // SQLite keeps it
	if err != nil {
		return err
	}
	base := lib.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return fmt.Errorf("SQLite has no file system")
	}
	var layout lib.Tsqlite3_vfs
	vfs, err := copyOf(base, unsafe.Sizeof(layout))
	if err != nil {
		return err
	}
	defaultOpen = funcAt[openFunc](base + unsafe.Offsetof(layout.FxOpen))
	poke(vfs+unsafe.Offsetof(layout.FzName), name)
	poke(vfs+unsafe.Offsetof(layout.FxOpen), pointerTo[openFunc](openTemporary))
	if rc := lib.Xsqlite3_vfs_register(tls, vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("register a file system: SQLite code %d", rc)
	}
	return nil
})

// openTemporary opens a file and, when it is a temporary one, puts our methods
// in front of its own.
func openTemporary(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := defaultOpen(tls, vfs, name, file, flags, outFlags)
	if rc != lib.SQLITE_OK || flags&temporaryFile == 0 {
		return rc
	}
	methods := peek(file)
	classesMu.Lock()
	defer classesMu.Unlock()
	if classes[methods] == 0 {
		ours, err := boundedMethods(methods)
		if err != nil {
			return lib.SQLITE_NOMEM
		}
		classes[methods] = ours
	}
	poke(file, classes[methods])
	return lib.SQLITE_OK
}

// boundedMethods makes a table of methods like the given one that reads and
// writes through ours. Version 1 keeps SQLite from mapping files into memory,
// past those methods.
func boundedMethods(methods uintptr) (uintptr, error) {
	var layout lib.Tsqlite3_io_methods
	ours, err := copyOf(methods, unsafe.Sizeof(layout))
	if err != nil {
		return 0, err
	}
	classOf.Store(ours, fileClass{
		read:  funcAt[transfer](methods + unsafe.Offsetof(layout.FxRead)),
		write: funcAt[transfer](methods + unsafe.Offsetof(layout.FxWrite)),
	})
	pokeInt(ours+unsafe.Offsetof(layout.FiVersion), 1)
	poke(ours+unsafe.Offsetof(layout.FxRead), pointerTo[transfer](readTemporary))
	poke(ours+unsafe.Offsetof(layout.FxWrite), pointerTo[transfer](writeTemporary))
	return ours, nil
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
