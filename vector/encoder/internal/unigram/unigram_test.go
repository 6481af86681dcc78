package unigram

import (
	"math"
	"strings"
	"testing"
)

// TestBestSegmentationIsFound compares with trying all segmentations of a text, for a
// small vocabulary.
func TestBestSegmentationIsFound(t *testing.T) {
	list := []Piece{{}}
	scores := []float64{-2, -2.5, -3, -3.1, -4, -5.2, -4.4, -1, -2.2, -6.1, -9}
	for i, text := range []string{"a", "b", "c", "ab", "bc", "abc", "ca", "▁", "▁a", "bca", "cc"} {
		list = append(list, Piece{text, scores[i]})
	}
	v := New(list, 0)
	for n := range 1500 {
		text := []byte("▁")
		for ; n > 0; n /= 4 {
			text = append(text, "abcd"[n%4])
		}
		got, want := v.scoreOf(v.Tokens(string(text)), list, string(text)), v.best(string(text), list)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("%q: score %v, the best is %v", text, got, want)
		}
	}
}

// scoreOf returns the sum of the scores of a segmentation of a text in which "d" is
// the only unknown character.
func (v *Vocabulary) scoreOf(ids []int32, list []Piece, text string) float64 {
	total := float64(strings.Count(text, "d")) * v.unknownScore
	for _, id := range ids {
		total += list[id].Score
	}
	return total
}

func (v *Vocabulary) best(text string, list []Piece) float64 {
	if text == "" {
		return 0
	}
	best := math.Inf(-1)
	if text[0] == 'd' {
		best = v.unknownScore + v.best(text[1:], list)
	}
	for _, p := range list[1:] {
		if rest, ok := strings.CutPrefix(text, p.Text); ok {
			best = max(best, p.Score+v.best(rest, list))
		}
	}
	return best
}

func TestTrie(t *testing.T) {
	texts := []string{"", "the", "th", "▁a", "zebra", "the"}
	tree := newTrie(texts)
	find := func(text string) int32 {
		node := root
		for i := 0; i < len(text); i++ {
			if node = tree.child(node, text[i]); node < 0 {
				return -1
			}
		}
		return tree.id[node]
	}
	for text, want := range map[string]int32{
		"the": 5, "th": 2, "▁a": 3, "zebra": 4, // of equal texts the last one counts
		"": -1, "t": -1, "then": -1, "\xe2": -1, "zebras": -1, "x": -1,
	} {
		if got := find(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	if empty := newTrie(nil); empty.child(root, 'a') != -1 {
		t.Error("an empty trie has an edge")
	}
}
