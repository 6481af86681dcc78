package sqlite

import (
	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes the pages of a commit to the -wal one by one, each after a header of
// its own (https://www.sqlite.org/fileformat2.html#walformat): a dozen system calls
// for one row. Here they are gathered and written at once, before the -wal is synced
// or read, at the end of each commit, and before another connection may write: only
// after that do others see the commit, through the shared memory beside the file.
// Whatever else a transaction has written is read only by its own connection; if the
// transaction is rolled back, others overwrite it. A page that is written again,
// because a transaction changes it twice, is not gathered.

const (
	frameHeader  = 24        // bytes of the header of a page in a -wal
	gatheredSize = 128 << 10 // of a buffer: a larger commit is written in parts
	sparePieces  = 16        // buffers that are kept for the next commit
)

// gathered are consecutive bytes of a -wal that have not been written yet.
type gathered struct {
	file   uintptr // of the -wal
	p      uintptr // the buffer; 0 if there is none
	at     lib.Tsqlite3_int64
	n      int
	commit bool               // the last header was that of a commit's last page
	end    lib.Tsqlite3_int64 // end of what the connection has written since the -wal was started
}

var spareBuffers = make(chan uintptr, sparePieces)

// gatherWrites replaces the methods of a -wal.
func gatherWrites(methods *lib.Tsqlite3_io_methods) {
	methods.FxRead = pointerTo[transfer](readWAL)
	methods.FxWrite = pointerTo[transfer](writeWAL)
	methods.FxTruncate = pointerTo[truncateFunc](truncateWAL)
	methods.FxSync = pointerTo[syncFunc](syncWAL)
	methods.FxFileSize = pointerTo[lengthFunc](lengthOfWAL)
	methods.FxClose = pointerTo[closeFunc](closeWAL)
}

// writeBeforeUnlock replaces the methods of a database.
func writeBeforeUnlock(methods *lib.Tsqlite3_io_methods) {
	methods.FxShmLock = pointerTo[lockFunc](lockWAL)
}

// writeLock is the index of the lock for writing to a -wal; see
// https://www.sqlite.org/walformat.html#wal_locks.
const writeLock = 0

// lockWAL takes or releases locks. A write error this late belongs to a transaction
// that was rolled back.
func lockWAL(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	const release = lib.SQLITE_SHM_UNLOCK | lib.SQLITE_SHM_EXCLUSIVE
	if offset == writeLock && flags&release == release {
		if c := connOf(tls); c != nil {
			_ = c.gathered.write(tls)
		}
	}
	return classAt(file).lock(tls, file, offset, n, flags)
}

func writeWAL(tls *libc.TLS, file, buffer uintptr, count int32, at lib.Tsqlite3_int64) int32 {
	conn := connOf(tls)
	if conn == nil {
		return classAt(file).write(tls, file, buffer, count, at)
	}
	gathered := &conn.gathered
	if gathered.p != 0 &&
		(gathered.file != file ||
			gathered.at+lib.Tsqlite3_int64(gathered.n) != at ||
			gathered.n+int(count) > gatheredSize) {
		if rc := gathered.write(tls); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if !gathered.append(file, count, at) ||
		count > gatheredSize ||
		gathered.p == 0 && !gathered.begin(tls, at) {
		return classAt(file).write(tls, file, buffer, count, at)
	}
	copy(view(gathered.p+uintptr(gathered.n), int(count)), view(buffer, int(count)))
	gathered.n += int(count)
	if count == frameHeader {
		gathered.commit = [4]byte(view(buffer+4, 4)) != [4]byte{} // the size of the database after the commit
	} else if gathered.commit {
		return gathered.write(tls)
	}
	return lib.SQLITE_OK
}

// append records n bytes at an offset of a -wal and reports whether they are the
// first ones there.
func (g *gathered) append(file uintptr, n int32, at lib.Tsqlite3_int64) bool {
	if g.file != file || at == 0 {
		g.file, g.end = file, at
	}
	first := at >= g.end
	g.end = max(g.end, at+lib.Tsqlite3_int64(n))
	return first
}

// begin takes a buffer and reports whether there was one.
func (g *gathered) begin(tls *libc.TLS, at lib.Tsqlite3_int64) bool {
	select {
	case g.p = <-spareBuffers:
	default:
		if g.p = libc.Xmalloc(tls, types.Size_t(gatheredSize)); g.p == 0 {
			return false
		}
	}
	g.at, g.n = at, 0
	return true
}

// write writes what has been gathered.
func (g *gathered) write(tls *libc.TLS) int32 {
	if g.p == 0 {
		return lib.SQLITE_OK
	}
	defer g.drop(tls)
	return classAt(g.file).write(
		tls,
		g.file,
		g.p,
		int32(g.n),
		g.at,
	)
}

// drop returns the buffer.
func (g *gathered) drop(tls *libc.TLS) {
	select {
	case spareBuffers <- g.p:
	default:
		libc.Xfree(tls, g.p)
	}
	g.p = 0
}

// writeGathered writes what has been gathered for a -wal.
func writeGathered(tls *libc.TLS, file uintptr) int32 {
	if c := connOf(tls); c != nil && c.gathered.file == file {
		return c.gathered.write(tls)
	}
	return lib.SQLITE_OK
}

func readWAL(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
	if rc := writeGathered(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return classAt(file).read(tls, file, buffer, n, at)
}

func truncateWAL(tls *libc.TLS, file uintptr, size lib.Tsqlite3_int64) int32 {
	if rc := writeGathered(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return classAt(file).truncate(tls, file, size)
}

func syncWAL(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := writeGathered(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return classAt(file).sync(tls, file, flags)
}

func lengthOfWAL(tls *libc.TLS, file, size uintptr) int32 {
	if rc := writeGathered(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return classAt(file).length(tls, file, size)
}

func closeWAL(tls *libc.TLS, file uintptr) int32 {
	rc := writeGathered(tls, file)
	if err := classAt(file).close(tls, file); err != lib.SQLITE_OK {
		return err
	}
	return rc
}
