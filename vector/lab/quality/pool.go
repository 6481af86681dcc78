package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// draws is how many times a pool is drawn.
const draws = 10

// pooled reports whether a set's passages can be drawn from.
func pooled(name string) bool { return name == paraphrases || name == helpDesk }

// measurePools asks n questions of a set, knowing only the passages that answer them.
// It does so ten times with different questions and combines the ranks: how well search
// works depends on how much there is to choose from.
func (b *bench) measurePools(ctx context.Context, s *set, n int) (outcome, error) {
	if n = min(n, len(s.questions)) &^ 1; n == 0 {
		return outcome{}, fmt.Errorf("a pool has two questions at least")
	}
	total := outcome{set: &set{name: fmt.Sprintf("%s, %d of them", s.name, n)}, ranks: ranks{}}
	for i := range draws {
		o, err := b.measure(ctx, s.draw(n, uint64(i)))
		if err != nil {
			return outcome{}, err
		}
		for mode, places := range o.ranks {
			total.ranks[mode] = append(total.ranks[mode], places...)
		}
		total.chunks += o.chunks
	}
	total.chunks /= draws
	return total, nil
}

// draw picks n questions, equally many from both halves and alternating like the
// halves, and the passages that answer them.
func (s *set) draw(n int, seed uint64) *set {
	drawn := &set{
		name:      fmt.Sprintf("%s-%d-%d", s.name, n, seed),
		answers:   s.answers,
		questions: make([]question, n),
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	for at := range 2 {
		order := random.Perm((len(s.questions) + 1 - at) / 2)
		for i, pick := range order[:n/2] {
			drawn.questions[2*i+at] = s.questions[2*pick+at]
		}
	}
	for _, d := range s.documents {
		if slices.ContainsFunc(drawn.questions, func(q question) bool {
			return slices.Contains(strings.Split(q.answer, "|"), strings.TrimSuffix(d.name, ".txt"))
		}) {
			drawn.documents = append(drawn.documents, d)
		}
	}
	return drawn
}
