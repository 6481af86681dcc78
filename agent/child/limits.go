package child

import (
	"os"
	"runtime/debug"
	"time"
)

// Limits are the resources that a child's process may use.
type Limits struct {
	Memory uint64        // bytes, in addition to what the program itself uses
	CPU    time.Duration // of all threads together; in whole seconds
}

const maxStack = 256 << 20 // bytes, of one goroutine

// Apply applies the limits to this process, as far as the system supports them,
// and confines it to the files that are open, see Confinement. This cannot be
// undone. The memory limit only stops what grows too fast for WatchMemory.
// After an error the child must not continue.
func (l Limits) Apply() error {
	debug.SetMaxStack(maxStack)
	l.apply()
	return confine()
}

// WatchMemory exits this process with ExitMemory when it uses more than limit
// bytes. limit is called a hundred times a second; 0 means no limit.
// WatchMemory never returns.
func WatchMemory(limit func() uint64) {
	for range time.Tick(10 * time.Millisecond) {
		if most := limit(); most > 0 && Memory() > most+raceMemory {
			os.Exit(ExitMemory)
		}
	}
}
