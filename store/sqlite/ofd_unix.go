//go:build unix

package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// KeepLocks makes SQLite's locks survive the file being opened and closed by other
// means, if the platform supports that. It has to be called before the first
// connection opens.
func KeepLocks() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xmodernc_ofd_locking(tls, 1)
}
