package store

import (
	"path/filepath"
	"strings"
	"time"
)

// interruptEvery is how often statements are interrupted after the deadline, since
// an interrupted caller may try again.
const interruptEvery = 50 * time.Millisecond

// InterruptAt interrupts the statements on files of this folder from a point in time until
// Close returns, so that Close cannot be held up. An interrupted write is undone.
func (folder *Folder) InterruptAt(at time.Time) {
	go func() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		for {
			select {
			case <-folder.finished:
				return
			case <-timer.C:
				folder.interrupt()
				timer.Reset(interruptEvery)
			}
		}
	}()
}

func (folder *Folder) interrupt() {
	prefix := folder.path + string(filepath.Separator)
	openConns.Range(func(key, _ any) bool {
		if c := key.(*conn); strings.HasPrefix(c.path, prefix) {
			c.sql.Interrupt()
		}
		return true
	})
}
