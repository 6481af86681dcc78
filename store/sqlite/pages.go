package sqlite

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// PageSize is the size of the pages of Pages, in bytes.
const PageSize = 4096

// Pages is a database that is only read, page by page; see Source.Pages.
type Pages interface {
	// ReadPage reads page n, counted from 1, and reports whether it exists.
	ReadPage(n uint32, page []byte) bool
	// Count returns the number of pages.
	Count() uint32
}

// pagesVFS is the name of the file system for databases given as Pages. They have no
// journal and are never locked.
const pagesVFS = "satchel-pages"

type (
	accessFunc   = func(tls *libc.TLS, vfs, name uintptr, flags int32, out uintptr) int32
	reservedFunc = func(tls *libc.TLS, file, out uintptr) int32
	levelFunc    = func(tls *libc.TLS, file uintptr, level int32) int32
	controlFunc  = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	numberFunc   = func(tls *libc.TLS, file uintptr) int32
)

// registerPages creates the methods of pagesVFS and registers it with SQLite.
var registerPages = sync.OnceValue(func() (err error) {
	var methods lib.Tsqlite3_io_methods
	if pageMethods, err = libc.CString(string(make([]byte, unsafe.Sizeof(methods)))); err != nil {
		return err
	}
	*at[lib.Tsqlite3_io_methods](pageMethods) = lib.Tsqlite3_io_methods{
		FiVersion:               1,
		FxClose:                 pointerTo[closeFunc](closePages),
		FxRead:                  pointerTo[transfer](readPages),
		FxWrite:                 pointerTo[transfer](writePages),
		FxTruncate:              pointerTo[truncateFunc](truncatePages),
		FxSync:                  pointerTo[syncFunc](syncPages),
		FxFileSize:              pointerTo[lengthFunc](lengthOfPages),
		FxLock:                  pointerTo[levelFunc](lockPages),
		FxUnlock:                pointerTo[levelFunc](lockPages),
		FxCheckReservedLock:     pointerTo[reservedFunc](reservedPages),
		FxFileControl:           pointerTo[controlFunc](controlPages),
		FxSectorSize:            pointerTo[numberFunc](sectorOfPages),
		FxDeviceCharacteristics: pointerTo[numberFunc](traitsOfPages),
	}
	return registerCopy(pagesVFS, func(vfs uintptr) {
		v := at[lib.Tsqlite3_vfs](vfs)
		v.FxOpen, v.FxAccess = pointerTo[openFunc](openPages), pointerTo[accessFunc](accessPages)
	})
})

// pageMethods are the methods of a file backed by Pages, set once by registerPages.
var pageMethods uintptr

// PagesChanged discards the pages that the connection has cached. No transaction may be
// open.
func (c *Conn) PagesChanged() error {
	c.beginUse()
	defer c.endUse()
	name, err := c.sql.put(c.tls, "main")
	if err != nil {
		return err
	}
	if rc := lib.Xsqlite3_file_control(c.tls, c.db, name, lib.SQLITE_FCNTL_RESET_CACHE, 0); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

func openPages(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	if flags&lib.SQLITE_OPEN_MAIN_DB == 0 {
		return openFile(tls, vfs, name, file, flags, outFlags) // a temporary one
	}
	if flags&lib.SQLITE_OPEN_READONLY == 0 {
		return lib.SQLITE_CANTOPEN
	}
	poke(file, pageMethods)
	if outFlags != 0 {
		*at[int32](outFlags) = flags
	}
	return lib.SQLITE_OK
}

// accessPages reports that a file does not exist.
func accessPages(_ *libc.TLS, _, _ uintptr, _ int32, out uintptr) int32 {
	*at[int32](out) = 0
	return lib.SQLITE_OK
}

func readPages(tls *libc.TLS, _, buffer uintptr, count int32, at lib.Tsqlite3_int64) int32 {
	conn := connOf(tls)
	if conn == nil || conn.pages == nil {
		return lib.SQLITE_IOERR_READ
	}
	number, within := uint32(at/PageSize)+1, int(at%PageSize)
	to := view(buffer, int(count))
	if within == 0 && count == PageSize {
		if !conn.pages.ReadPage(number, to) {
			clear(to)
			return lib.SQLITE_IOERR_SHORT_READ
		}
		return lib.SQLITE_OK
	}
	var page [PageSize]byte // SQLite reads parts of the header
	if within+int(count) > PageSize || !conn.pages.ReadPage(number, page[:]) {
		clear(to)
		return lib.SQLITE_IOERR_SHORT_READ
	}
	copy(to, page[within:])
	return lib.SQLITE_OK
}

func lengthOfPages(tls *libc.TLS, _, size uintptr) int32 {
	c := connOf(tls)
	if c == nil || c.pages == nil {
		return lib.SQLITE_IOERR_FSTAT
	}
	*at[int64](size) = int64(c.pages.Count()) * PageSize
	return lib.SQLITE_OK
}

func writePages(_ *libc.TLS, _, _ uintptr, _ int32, _ lib.Tsqlite3_int64) int32 {
	return lib.SQLITE_READONLY
}

func truncatePages(_ *libc.TLS, _ uintptr, _ lib.Tsqlite3_int64) int32 {
	return lib.SQLITE_READONLY
}
func syncPages(_ *libc.TLS, _ uintptr, _ int32) int32 {
	return lib.SQLITE_OK
}
func lockPages(_ *libc.TLS, _ uintptr, _ int32) int32 {
	return lib.SQLITE_OK
}
func closePages(_ *libc.TLS, _ uintptr) int32    { return lib.SQLITE_OK }
func sectorOfPages(_ *libc.TLS, _ uintptr) int32 { return PageSize }
func traitsOfPages(_ *libc.TLS, _ uintptr) int32 { return 0 }

func reservedPages(_ *libc.TLS, _, out uintptr) int32 {
	*at[int32](out) = 0
	return lib.SQLITE_OK
}

func controlPages(_ *libc.TLS, _ uintptr, _ int32, _ uintptr) int32 {
	return lib.SQLITE_NOTFOUND
}
