package store

import (
	"runtime/debug"
	"time"
)

// How long nothing must have been read or written before the process gives
// memory back, and how long it then keeps what it takes again.
const (
	restAfter = 3 * time.Second
	keepFor   = time.Minute
)

// giveBack returns to the system what only work needed, once the folder has
// come to rest: garbage, and the pages of the program that a start or a burst
// of work has touched.
func (f *Folder) giveBack(now time.Time) {
	for _, db := range f.openDBs() {
		if used := time.Unix(0, db.lastUse.Load()); used.After(f.workedAt) {
			f.workedAt = used
		}
	}
	switch {
	case f.workedAt.IsZero():
		f.workedAt = now // the start counts as work
		return
	case f.restedAt.After(f.workedAt), now.Sub(f.workedAt) < restAfter, now.Sub(f.restedAt) < keepFor:
		return
	}
	debug.FreeOSMemory()
	dropProgramPages()
	f.restedAt = now
}
