package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropProgramPages releases the pages of the program's own code and constants,
// which the system reads from the file again when they are needed (madvise(2),
// MADV_DONTNEED). It skips mappings that are writable or have been written to:
// in a program built with cgo, the dynamic linker writes addresses and then
// makes their pages read-only (RELRO).
func dropProgramPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps") // see proc_pid_smaps(5)
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uintptr // of the mapping that the lines are about; empty if it is not one to drop
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case !strings.HasSuffix(fields[0], ":"): // range, permissions, offset, device, inode, path
			from, to = 0, 0
			if len(fields) == 6 &&
				fields[5] == exe &&
				!strings.Contains(fields[1], "w") &&
				strings.HasSuffix(fields[1], "p") {
				if n, err := fmt.Sscanf(
					fields[0],
					"%x-%x",
					&from, &to,
				); n != 2 || err != nil {
					from, to = 0, 0
				}
			}
		case fields[0] == "Anonymous:" && fields[1] == "0" && from < to: // no page differs from the file
			// a failure loses nothing
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
