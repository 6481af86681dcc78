package search

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTop compares the heap with sorting.
func TestTop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 10, 1000} {
		for _, keep := range []int{1, 2, 7, 100} {
			top, scores := top{keep: keep}, map[int64]float64{}
			for seq := range int64(n) {
				score := float32(random.IntN(50))
				scores[seq] = float64(score)
				if top.accepts(score) {
					top.offer(estimate{seq, score})
				}
			}
			got := top.seqs()
			var lowest float64
			for i, seq := range got {
				if i > 0 && scores[seq] > lowest {
					t.Fatalf("of %d, %d kept: %v is not in order", n, keep, got)
				}
				lowest = scores[seq]
			}
			want := slices.Sorted(maps.Values(scores))
			if len(got) != min(n, keep) || len(got) > 0 && lowest != want[n-len(got)] {
				t.Errorf("of %d, %d kept: %d, down to %v", n, keep, len(got), lowest)
			}
		}
	}
}
