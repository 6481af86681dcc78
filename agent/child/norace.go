//go:build !race

package child

const raceMemory = 0
