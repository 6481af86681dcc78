package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropProgramPages lets go of the program's own code and constants: they are
// pages of its file, which the system reads again where they are needed
// (madvise(2), MADV_DONTNEED). What may have been written to is left alone.
func dropProgramPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // range, permissions, offset, device, inode, path
		if len(fields) != 6 || fields[5] != exe || strings.Contains(fields[1], "w") || fields[1][3] != 'p' {
			continue
		}
		var from, to uintptr
		if n, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); n != 2 || err != nil || to <= from {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED) // nothing is lost when it fails
	}
}
