//go:build unix

package prometheus

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// collectFiles adds the number of open files, and the limits of the process.
func collectFiles(scrape *Scrape) {
	var files, space syscall.Rlimit
	if folder, err := os.Open(openFiles); err == nil {
		names, err := folder.Readdirnames(-1)
		_ = folder.Close() // was only read
		if err == nil && syscall.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
			scrape.files(uint64(len(names)-1), files.Cur) // without the folder
		}
	}
	if syscall.Getrlimit(unix.RLIMIT_AS, &space) == nil {
		scrape.Gauge(
			"process_virtual_memory_max_bytes",
			"Maximum amount of virtual memory available in bytes.",
			float64(space.Cur),
		)
	}
}
