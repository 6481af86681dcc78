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
func (f *Folder) InterruptAt(at time.Time) {
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
	prefix := f.path + string(filepath.Separator)
	openConns.Range(func(key, _ any) bool {
		if c := key.(*conn); strings.HasPrefix(c.path, prefix) {
			c.sql.Interrupt()
		}
		return true
	})
}
