package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// What file descriptors are for: connections, children and the log, and for each open
// agent's file its database, -wal, -shm and readers. A server needs a few open agents.
const (
	otherDescriptors = 128
	agentDescriptors = 8
	leastDescriptors = 256
)

// CheckDescriptors returns an error if the process may not open as many files as a server
// needs.
func CheckDescriptors() error { return checkDescriptors(descriptorLimit()) }

func checkDescriptors(limit int64) error {
	if limit == 0 || limit >= leastDescriptors {
		return nil
	}
	return fmt.Errorf(
		"this process may have %d files open, and a server needs at least %d: raise the limit, "+
			"for example with \"ulimit -n 4096\", LimitNOFILE=4096 in a systemd unit, or --ulimit "+
			"nofile=4096 of docker run",
		limit,
		leastDescriptors,
	)
}

// withinDescriptors lowers the number of agents' files that may be open to what a limit of
// descriptors allows; a limit of 0 is unknown.
func withinDescriptors(files int, limit int64) int {
	if limit == 0 {
		return files
	}
	return min(files, int(max((limit-otherDescriptors)/agentDescriptors, 1)))
}

// OutOfDescriptors reports whether an error says that the process, or the machine, has too
// many files open.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// outOfDescriptors is OutOfDescriptors for an error of SQLite, which does not say why it
// could not open a file.
func outOfDescriptors(err error) bool {
	switch sqliteCode(err) & 0xff {
	case codeCantOpen, codeIOErr:
		probe, failed := os.Open(os.DevNull)
		if failed == nil {
			failed = probe.Close()
		}
		return OutOfDescriptors(failed)
	}
	return OutOfDescriptors(err)
}

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
