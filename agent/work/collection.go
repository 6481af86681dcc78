package work

import (
	"runtime"
	"runtime/debug"
)

// reserved is never used, so it takes no memory of the system, but the garbage collector
// counts it.
//
//lint:ignore U1000 its memory counts, not its content
var reserved []byte

// DelayCollection makes the garbage collector wait for 8 MB of new objects or more, where
// it would start at 4 MB: a small server would otherwise collect dozens of times a second
// under load. The first collection waits for 16 MB, which is more than a server allocates
// while it starts.
func DelayCollection() {
	percent := debug.SetGCPercent(600) // of 4 MB
	reserved = make([]byte, 8<<20)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, percent)
}
