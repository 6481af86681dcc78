package store

import (
	"runtime/debug"
	"time"

	"satchel/store/sqlite"
)

// How long nothing must have been read or written before the process releases
// memory, and how long it then keeps memory that it uses again.
const (
	releaseAfter = 3 * time.Second
	keepFor      = time.Minute
)

// releaseMemory returns to the system what was only needed for work, once the folder
// is idle: garbage, and the pages of the program that a start or a burst of work has
// touched.
func (f *Folder) releaseMemory(now time.Time) {
	for _, db := range f.openDBs() {
		if used := time.Unix(0, db.lastUse.Load()); used.After(f.workedAt) {
			f.workedAt = used
		}
	}
	switch {
	case f.workedAt.IsZero():
		f.workedAt = now // the start counts as work
		return
	case f.releasedAt.After(f.workedAt), now.Sub(f.workedAt) < releaseAfter, now.Sub(f.releasedAt) < keepFor:
		return
	}
	if err := f.maker.close(); err != nil {
		f.log.Error("close the blank database of new agents", "error", err)
	}
	sqlite.ReleaseMemory()
	debug.FreeOSMemory()
	dropProgramPages()
	f.releasedAt = now
}
