//go:build race

package store

// raceEnabled: the race detector multiplies memory.
const raceEnabled = true
