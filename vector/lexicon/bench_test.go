package lexicon

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkSimilar compares a question with as many chunks of 1,000 characters as a
// search has candidates.
func BenchmarkSimilar(b *testing.B) {
	table := load(b)
	card, err := os.ReadFile("MODEL_CARD.md")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(card), 60)
	for _, n := range []int{50, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			texts := make([]string, n)
			for i := range texts {
				texts[i] = text[1000*i:][:1000]
			}
			b.SetBytes(int64(n * 1000))
			for b.Loop() {
				table.Similar("I changed my mind about what I purchased, do I get a refund", texts)
			}
		})
	}
}
