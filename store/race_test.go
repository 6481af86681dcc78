//go:build race

package store

// raceEnabled reports whether the race detector, which multiplies memory, is on.
const raceEnabled = true
