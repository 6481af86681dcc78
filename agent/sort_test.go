package agent

import (
	"slices"
	"testing"
)

func TestSortIsStable(t *testing.T) {
	type pair struct{ key, at int }
	var list []pair
	for i := range 100 {
		list = append(list, pair{i * 7 % 5, i})
	}
	byKey := func(a, b pair) int { return a.key - b.key }
	want := slices.Clone(list)
	slices.SortStableFunc(want, byKey)
	if Sort(list, byKey); !slices.Equal(list, want) {
		t.Errorf("sorted %v, want %v", list, want)
	}
}
