//go:build !linux

package browser

// dieWithParent: only Linux can be asked for that. Elsewhere Chromium ends
// when its pipe to the driver closes, and the driver when its input does.
func dieWithParent() error { return nil }
