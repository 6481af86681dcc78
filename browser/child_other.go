//go:build !linux

package browser

// dieWithParent does nothing: only Linux supports it. Elsewhere Chromium ends
// when its pipe to the driver closes, and the driver when its input ends.
func dieWithParent() error { return nil }
