package main

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/vector"
)

// subset keeps the documents that keep names, and the questions that their
// chunks answer.
func subset(t testing.TB, s *set, keep func(name string) bool) *set {
	t.Helper()
	s.documents = slices.DeleteFunc(s.documents, func(d document) bool { return !keep(d.name) })
	chunks := chunksOf(t, s)
	s.questions = slices.DeleteFunc(s.questions, func(q question) bool {
		return !slices.ContainsFunc(chunks, func(r vector.Result) bool { return s.answers(r, q.answer) })
	})
	return s
}

// measureOnce measures a set in a new data folder.
func measureOnce(t testing.TB, s *set) outcome {
	t.Helper()
	b, err := openBench(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.measure(context.Background(), s)
	if err != nil {
		t.Error(err)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	return o
}

// TestFloors measures a part of each set and fails if search has become worse. The
// floors are slightly below the measured figures, see docs/figures.md.
func TestFloors(t *testing.T) {
	for _, c := range []struct {
		load   func() (*set, error)
		keep   func(name string) bool
		floors map[vector.Mode]float64 // of MRR@10
	}{
		{loadParaphrases, func(name string) bool {
			return strings.HasPrefix(name, "shop-") ||
				strings.HasPrefix(name, "home-") ||
				strings.HasPrefix(name, "travel-")
		}, map[vector.Mode]float64{vector.Vector: 0.77, vector.Hybrid: 0.76}},
		{
			loadHelpDesk,
			func(string) bool { return true },
			map[vector.Mode]float64{vector.Vector: 0.53, vector.Hybrid: 0.56},
		},
		{loadTechnical, func(name string) bool {
			return slices.Contains(
				[]string{"context.md", "embed.md", "encoding_csv.md", "errors.md", "os_signal.md"},
				name,
			)
		}, map[vector.Mode]float64{vector.Keyword: 0.37, vector.Hybrid: 0.55}},
		{
			loadTokens,
			func(name string) bool { return name != "orders.csv" },
			map[vector.Mode]float64{vector.Keyword: 0.96, vector.Hybrid: 0.96},
		},
	} {
		s := subset(t, load(t, c.load), c.keep)
		o := measureOnce(t, s)
		for mode, floor := range c.floors {
			f := figuresOf(o.ranks[mode], all)
			t.Logf("%s, %s: %d questions, %d chunks, MRR@10 %.3f", s.name, mode, f.n, o.chunks, f.mrr)
			if f.mrr < floor {
				t.Errorf("%s, %s: MRR@10 is %.3f, want at least %.3f", s.name, mode, f.mrr, floor)
			}
		}
	}
}

// TestRanksAreReproducible measures twice and expects the same ranks.
func TestRanksAreReproducible(t *testing.T) {
	few := func() *set {
		return subset(t, load(t, loadParaphrases), func(name string) bool { return strings.HasPrefix(name, "home-") })
	}
	first, second := measureOnce(t, few()), measureOnce(t, few())
	if !reflect.DeepEqual(first.ranks, second.ranks) || len(first.ranks[vector.Hybrid]) == 0 {
		t.Errorf("%v, and the second time %v", first.ranks, second.ranks)
	}
}

// TestReport writes the table and the list of an invented outcome.
func TestReport(t *testing.T) {
	o := outcome{
		set:    &set{name: "few", questions: []question{{text: "first"}, {text: "second"}, {text: "third"}}},
		chunks: 7,
		ranks:  ranks{vector.Keyword: {0, 1, 2}, vector.Vector: {1, 1, 4}, vector.Hybrid: {1, 1, 2}},
	}
	var out bytes.Buffer
	if err := writeTable(&out, []outcome{o}); err != nil {
		t.Fatal(err)
	}
	table := folded(out.String())
	for _, want := range []string{
		"| few | tune | 2 | 7 | hybrid | 0.500 | 1.000 | 0.750 |",
		"| few | held out | 1 | 7 | keyword | 1.000 | 1.000 | 1.000 |",
		"| few | all | 3 | 7 | vector | 0.667 | 0.667 | 0.750 |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %s:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := writeMisses(&out, o, tune); err != nil {
		t.Fatal(err)
	}
	if got := folded(out.String()); got != "few, tune keyword vector hybrid question 2 4 2 third" {
		t.Errorf("the list is %q", got)
	}
}

// TestFlags checks that unknown flags and values are rejected.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-set", "none"}, {"-misses", "some"}, {"-what"}} {
		var out bytes.Buffer
		if err := run(context.Background(), args, &out); err == nil {
			t.Errorf("%q is accepted, and prints %q", args, out.String())
		}
	}
}

// TestDraw: a pool has as many questions of either half, without duplicates, and only
// the passages that answer them.
func TestDraw(t *testing.T) {
	s := load(t, loadParaphrases)
	half := map[string]int{}
	for i, q := range s.questions {
		half[q.text] = i % 2
	}
	drawn, other := s.draw(60, 1), s.draw(60, 2)
	drawnBefore, answered := map[string]bool{}, map[string]bool{}
	for i, q := range drawn.questions {
		if drawnBefore[q.text] || half[q.text] != i%2 {
			t.Errorf("question %d: %q is a duplicate or of the other half", i, q.text)
		}
		drawnBefore[q.text] = true
		for _, passage := range strings.Split(q.answer, "|") {
			answered[passage+".txt"] = true
		}
	}
	if len(drawn.questions) != 60 || len(drawn.documents) != len(answered) {
		t.Errorf("%d questions, %d passages, %d that answer", len(drawn.questions), len(drawn.documents), len(answered))
	}
	if reflect.DeepEqual(drawn.questions, other.questions) {
		t.Error("two draws are the same")
	}
}
