package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"satchel/vector/lexicon"
)

// few is a WordNet of five synsets, in its own format.
func few() map[string][]byte {
	licence := "  1 This software and database is being provided to you\n"
	return map[string][]byte{
		"index.noun": []byte(licence +
			"animal n 1 1 ~ 1 0 00000001\n" +
			"cat n 1 1 @ 1 0 00000002\n" +
			"house_cat n 1 1 @ 1 0 00000002\n" +
			"dog n 2 1 @ 2 0 00000003 00000004\n" +
			"fellow n 1 0 1 0 00000004\n"),
		"data.noun": []byte(licence +
			"00000001 03 n 01 animal 0 002 ~ 00000002 n 0000 ~ 00000003 n 0000 | a living creature that moves\n" +
			"00000002 05 n 02 cat 0 House_cat 1 001 @ 00000001 n 0000 | a furry animal that " +
			"purrs; \"the cats slept\"\n" +
			"00000003 05 n 01 dog 0 001 @ 00000001 n 0000 | a furry animal that barks; \"the dog barked all night\"\n" +
			"00000004 18 n 02 fellow 0 dog 1 000 | a friend\n"),
		"index.sense": []byte("cat%1:05:00:: 00000002 1 18\n"),
		"index.verb":  nil,
		"data.verb":   nil,
		"index.adv":   nil,
		"data.adv":    nil,
		"index.adj":   []byte("furry a 1 0 1 0 00000005\n"),
		"data.adj":    []byte("00000005 00 s 01 furry(a) 0 000 | covered with hair\n"),
	}
}

func TestParse(t *testing.T) {
	w, err := parse(few())
	if err != nil {
		t.Fatal(err)
	}
	cat := w.synsets["n00000002"]
	if len(w.order) != 5 ||
		!slices.Equal(cat.words[1], []string{"house", "cat"}) ||
		!slices.Equal(cat.examples[0], []string{"cat", "slept"}) {
		t.Errorf("%d synsets, the cat is %+v", len(w.order), cat)
	}
	if dog := w.synsets["n00000004"]; !slices.Equal(dog.senses, []int{0, 1}) {
		t.Errorf("the senses of dog are %d", dog.senses)
	}
	if s := w.synsets["a00000005"]; !slices.Equal(s.words[0], []string{"furry"}) {
		t.Errorf("the adjective is %q", s.words)
	}
	if kinds := w.along(cat, "@"); len(kinds) != 1 || kinds[0] != w.synsets["n00000001"] {
		t.Errorf("the hypernyms of cat are %v", kinds)
	}
	for _, bad := range []string{
		"00000009 05 n",
		"00000009 05 n zz cat 0 000",
		"00000009 05 n 09 cat 0 000",
		"00000009 05 n 01 cat 0 009",
	} {
		files := few()
		files["data.noun"] = []byte(bad)
		if _, err := parse(files); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := parse(nil); err == nil {
		t.Error("an empty database is accepted")
	}
}

func TestPairs(t *testing.T) {
	w, err := parse(few())
	if err != nil {
		t.Fatal(err)
	}
	pairs := w.pairs()
	for _, want := range []pair{
		{[]string{"cat", "house", "cat"}, []string{"furry", "animal", "purrs"}, 1},
		{[]string{"cat", "house", "cat"}, []string{"animal"}, 1},
		{[]string{"barked", "night"}, nil, 0}, // too short
	} {
		found := slices.ContainsFunc(pairs, func(p pair) bool {
			return slices.Equal(p.a, want.a) && (want.b == nil || slices.Equal(p.b, want.b) && p.share == want.share)
		})
		if found != (want.b != nil) {
			t.Errorf("%v is among the pairs: %t", want, found)
		}
	}
	v := w.vocabularyOf(pairs, 3)
	if !slices.Equal(v.words, []string{"animal", "furry", "dog"}) {
		t.Errorf("the most frequent words are %q", v.words)
	}
	if got := v.numbers([]string{"furry", "unknown", "animal"}); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("the numbers are %d", got)
	}
}

// TestFactorize factorizes a matrix with known singular values.
func TestFactorize(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	left, right := newDense(60, 3), newDense(50, 3)
	for _, d := range []*dense{left, right} {
		for i := range d.cells {
			d.cells[i] = random.NormFloat64()
		}
		orthonormalize(d)
	}
	values := []float64{9, 4, 1}
	m := &sparse{columns: 50, rows: make([][]cell, 60)}
	for r := range 60 {
		for c := range 50 {
			sum := 0.0
			for k, value := range values {
				sum += left.row(r)[k] * value * right.row(c)[k]
			}
			m.rows[r] = append(m.rows[r], cell{int32(c), sum})
		}
	}
	got := factorize(m, 3)
	for k, value := range values {
		sign := math.Copysign(1, got.row(0)[k]*left.row(0)[k])
		for r := range 60 {
			if want := left.row(r)[k] * math.Sqrt(value) * sign; math.Abs(got.row(r)[k]-want) > 1e-6 {
				t.Fatalf("direction %d, row %d: %v, want %v", k, r, got.row(r)[k], want)
			}
		}
	}
}

// TestGradient compares the gradient with differences of the loss.
func TestGradient(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	at := func() [][]float32 {
		out := make([][]float32, 4)
		for i := range out {
			out[i] = make([]float32, 4)
		}
		return out
	}
	base := at()
	for i := range base {
		for j := range base[i] {
			base[i][j] = float32(random.NormFloat64())
		}
	}
	lossOf := func(change func([][]float32)) (float64, [][]float32) {
		copied := at()
		for i := range base {
			copy(copied[i], base[i])
		}
		change(copied)
		loss := gradientOf(copied)
		return loss, copied
	}
	_, gradient := lossOf(func([][]float32) {})
	for i := range base {
		for j := range base[i] {
			const step = 1e-2
			up, _ := lossOf(func(l [][]float32) { l[i][j] += step })
			down, _ := lossOf(func(l [][]float32) { l[i][j] -= step })
			// The scale of the mean and of the temperature is taken out of both.
			want := (up - down) / (2 * step) * 4
			got := float64(gradient[i][j]) * temperature * 2
			if math.Abs(got-want) > 1e-3 {
				t.Errorf("cell %d, %d: %v, want %v", i, j, got, want)
			}
		}
	}
}

// TestTrain learns that two pairs of words belong together.
func TestTrain(t *testing.T) {
	train := func() *model {
		v := &vocabulary{words: []string{"a", "b", "c", "d"}, pairs: []int{1, 1, 1, 1}}
		start := newDense(4, 8)
		for i := range start.cells {
			start.cells[i] = math.Sin(float64(i))
		}
		m := newModel(v, start)
		for range 60 {
			m.step([][]int32{{0}, {2}, {1}, {3}}, 0.05)
		}
		return m
	}
	m := train()
	unit, _ := m.embed([][]int32{{0}, {1}, {2}, {3}})
	for i, u := range unit {
		mate := i ^ 1
		for j, other := range unit {
			if j != i && j != mate && dot(u, unit[mate]) <= dot(u, other)+0.3 {
				t.Errorf(
					"word %d is nearer to %d (%.2f) than to %d (%.2f)",
					i,
					j,
					dot(u, other),
					mate,
					dot(u, unit[mate]),
				)
			}
		}
	}
	if again := train(); !slices.Equal(again.vectors[0], m.vectors[0]) {
		t.Error("a second training gives different vectors")
	}
}

// TestTable builds a table of the few synsets from end to end.
func TestTable(t *testing.T) {
	w, err := parse(few())
	if err != nil {
		t.Fatal(err)
	}
	v := w.vocabularyOf(w.pairs(), 100)
	counts := w.counts(v)
	for r, row := range counts.rows {
		for _, c := range row {
			if c.value <= 0 || int(c.column) >= counts.columns {
				t.Fatalf("row %d holds %+v", r, c)
			}
		}
	}
	m := newModel(v, newDense(len(v.words), 8))
	table, err := lexicon.Decode(string(lexicon.Encode(v.words, m.weighted())))
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Similar("a furry dog", []string{"furry dogs"}); math.Abs(got[0]-1) > 1e-6 {
		t.Errorf("the similarity of two texts with the same words is %v", got[0])
	}
	if _, err := open("train_test.go"); err == nil {
		t.Error("a file other than the package is accepted")
	}
}
