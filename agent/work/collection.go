package work

import (
	"runtime"
	"runtime/debug"
)

// DelayCollection lets the heap grow to 16 MB, instead of 4 MB, before the first garbage
// collection, which sets GOGC back: starting a server allocates less than that, and each
// collection takes as long as opening the data folder.
func DelayCollection() {
	percent := debug.SetGCPercent(400)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, percent)
}
