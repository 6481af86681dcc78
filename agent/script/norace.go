//go:build !race

package script

const raceMemory = 0
