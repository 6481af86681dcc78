package sqlite

import "syscall"

// releasePages gives memory back to the system. Its content is lost.
func releasePages(b []byte) { _ = syscall.Madvise(b, syscall.MADV_DONTNEED) } // nothing is lost when it fails
