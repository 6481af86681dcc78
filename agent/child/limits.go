package child

import (
	"os"
	"runtime/debug"
	"time"
)

// Limits are what a child's process may use.
type Limits struct {
	Memory uint64        // bytes, besides what the program itself holds
	CPU    time.Duration // of all threads together; counted in seconds
}

const maxStack = 256 << 20 // bytes, of one goroutine

// Apply puts the limits on this process, as far as the system has such limits,
// and confines it to the files that are open, see Confinement. There is no way
// back. The limit on memory stops only what grows too fast for WatchMemory.
// After an error the child must not continue.
func (l Limits) Apply() error {
	debug.SetMaxStack(maxStack)
	l.apply()
	return confine()
}

// WatchMemory ends this process with ExitMemory when it holds more than limit
// bytes; limit is asked a hundred times a second, and 0 means no limit. It
// never returns.
func WatchMemory(limit func() uint64) {
	for range time.Tick(10 * time.Millisecond) {
		if most := limit(); most > 0 && Memory() > most+raceMemory {
			os.Exit(ExitMemory)
		}
	}
}
