package store

import (
	"bytes"
	"os"
	"strconv"
)

// openFilesFor returns how many files may be open in a process with this much
// memory, in bytes; 0 means unknown. An open file takes up to 1 MB, so together they
// take at most a quarter of it.
func openFilesFor(memory int64) int {
	const each, fallback, most = 4 << 20, 256, 2000
	if memory == 0 {
		return fallback
	}
	return int(min(max(memory/each, 32), most))
}

// memoryLimit returns how much memory the process may use: that of the machine or,
// on Linux, of its container; 0 if unknown.
func memoryLimit() int64 {
	limit := int64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := bytes.Fields(text); len(fields) > 1 {
			kilobytes, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			limit = kilobytes << 10
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
