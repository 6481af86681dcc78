//go:build !linux

package document

import (
	"os"
	"syscall"
)

func childExecutable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// childAttributes is nil: a child ends when its standard input does.
func childAttributes() *syscall.SysProcAttr { return nil }

// limitProcess does nothing: watchMemory and the parent's clock bound a child.
func limitProcess(Limits) {}
