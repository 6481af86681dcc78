package agent

import "sort"

// Sort sorts a list as slices.SortStableFunc does, with one sorting algorithm in the
// program for all types; each type that is sorted by the package slices adds 12 KB. It is
// meant for short lists of a type that is sorted in one place.
func Sort[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool {
		return compare(list[i], list[j]) < 0
	})
}
