package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func groupAttributes() *syscall.SysProcAttr { return attributes() }

// TreeMemory returns the resident memory of a program and all that it started,
// in bytes, as far as they are in its process group. Memory that they share
// counts for each.
func (p *Process) TreeMemory() uint64 {
	group := strconv.Itoa(p.PID())
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	pages := uint64(0)
	for _, path := range all {
		raw, err := os.ReadFile(path)
		// The name, in parentheses, may hold anything; see proc_pid_stat(5).
		_, rest, ok := bytes.Cut(raw, []byte(") "))
		if end := bytes.LastIndex(raw, []byte(") ")); ok && end >= 0 {
			rest = raw[end+2:]
		}
		fields := bytes.Fields(rest)
		if err != nil || len(fields) < 22 || string(fields[2]) != group {
			continue
		}
		resident, _ := strconv.ParseUint(string(fields[21]), 10, 64)
		pages += resident
	}
	return pages * uint64(os.Getpagesize())
}
