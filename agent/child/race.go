//go:build race

package child

// raceMemory is what the race detector may need besides, in bytes; so much
// that the kernel's limit is of no use then.
const raceMemory = 1 << 30
