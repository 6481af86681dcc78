package sqlite

import "syscall"

// releasePages returns memory to the system; its content is lost.
func releasePages(b []byte) {
	_ = syscall.Madvise(b, syscall.MADV_DONTNEED)
} // a failure does no harm
