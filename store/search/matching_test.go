package search

import (
	"slices"
	"testing"
)

func TestCommonTermsAreDropped(t *testing.T) {
	common := term{text: "the", chunks: 90_000, idf: minIDF}
	few := term{text: "and", chunks: 900, idf: minIDF}
	rare := term{text: "otter", chunks: 3, idf: 8}
	for _, c := range []struct {
		terms []term
		want  []string
	}{
		{nil, nil},
		{[]term{common}, []string{"the"}},
		{[]term{common, rare}, []string{"otter"}},
		{[]term{few, rare}, []string{"otter", "and"}},
	} {
		var got []string
		for _, t := range dropCommon(c.terms) {
			got = append(got, t.text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("of %v: %v, want %v", c.terms, got, c.want)
		}
	}
	many := make([]term, 100)
	for i := range many {
		many[i] = term{chunks: 100 - i, idf: 1}
	}
	if got := dropCommon(many); len(got) != maxMatched || got[0].chunks != 1 {
		t.Errorf("%d terms are kept, the rarest in %d chunks", len(got), got[0].chunks)
	}
}
