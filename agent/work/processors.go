package work

import "runtime"

// Processors is how many goroutines can compute at the same time. It is the default
// of GOMAXPROCS, which the server doubles: a thread that waits for the disk holds its
// P for up to a few milliseconds, during which other goroutines can compute.
var Processors = runtime.GOMAXPROCS(0)
