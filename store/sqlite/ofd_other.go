//go:build !unix

package sqlite

// KeepLocks does nothing on this platform.
func KeepLocks() {}
