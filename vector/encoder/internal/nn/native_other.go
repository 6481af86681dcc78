//go:build !amd64

package nn

// native is empty: there is assembly for amd64 only.
var native map[string]Functions
