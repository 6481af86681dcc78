//go:build !linux

package sqlite

func releasePages([]byte) {}
