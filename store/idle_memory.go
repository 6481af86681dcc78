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
func (folder *Folder) releaseMemory(now time.Time) {
	for _, db := range folder.openDBs() {
		if used := time.Unix(0, db.lastUse.Load()); used.After(folder.workedAt) {
			folder.workedAt = used
		}
	}
	switch {
	case folder.workedAt.IsZero():
		folder.workedAt = now // the start counts as work
		return
	case folder.releasedAt.After(folder.workedAt), now.Sub(folder.workedAt) < releaseAfter,
		now.Sub(folder.releasedAt) < keepFor:
		return
	}
	if err := folder.maker.close(); err != nil {
		folder.log.Error("close the blank database of new agents", "error", err)
	}
	sqlite.ReleaseMemory()
	debug.FreeOSMemory()
	dropProgramPages()
	folder.releasedAt = now
}
