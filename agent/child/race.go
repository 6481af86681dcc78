//go:build race

package child

// raceMemory is the extra memory that the race detector may need, in bytes; it
// is so large that the kernel's limit is useless then.
const raceMemory = 1 << 30
