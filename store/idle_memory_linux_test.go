package store

import (
	"os"
	"syscall"
	"testing"
)

// Pages of the program's file that were written to before they became read-only, such as
// those of the dynamic linker, must keep what was written.
func TestWrittenProgramPagesAreKept(t *testing.T) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	size := os.Getpagesize()
	page, err := syscall.Mmap(int(exe.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	written := page[0] + 1
	page[0] = written
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	dropProgramPages()
	if page[0] != written {
		t.Error("a written page was dropped")
	}
}
