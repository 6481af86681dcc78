//go:build unix

package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// KeepLocks makes SQLite's locks survive that the file is opened and closed by
// other means, where the platform can. It has to be called before the first
// connection opens.
func KeepLocks() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xmodernc_ofd_locking(tls, 1)
}
