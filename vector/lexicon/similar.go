package lexicon

import (
	"math"
	"slices"
)

// MaxText is the number of bytes of a text that are used.
const MaxText = 16 << 10

// Similar returns the similarity of each text to the query, from -1 to 1: the
// cosine of the sums of their word vectors. Words that occur in many of the
// texts have less weight, so texts should be the candidates to rank. It is 0
// if the text or the query has no known words.
func (t *Table) Similar(query string, texts []string) []float64 {
	met := map[string]int32{}
	known := make([][]int32, len(texts))
	holds := map[int32]int{}
	for i, text := range texts {
		known[i] = t.knownRows(text, met)
		for j, row := range known[i] {
			if !slices.Contains(known[i][:j], row) {
				holds[row]++
			}
		}
	}
	weight := func(row int32) float32 {
		with := float64(holds[row])
		return float32(math.Log(1 + (float64(len(texts))-with+0.5)/(with+0.5)))
	}
	queryVector := make([]float32, t.dims)
	for _, row := range t.knownRows(query, met) {
		t.addRow(queryVector, row, weight(row))
	}
	similar := make([]float64, len(texts))
	sum := make([]float32, t.dims)
	for i, rows := range known {
		clear(sum)
		for _, row := range rows {
			t.addRow(sum, row, weight(row))
		}
		similar[i] = cosine(queryVector, sum)
	}
	return similar
}

// knownRows returns the rows of a text's words, as often as they occur. It looks up
// each word once and caches it in met.
func (t *Table) knownRows(text string, met map[string]int32) []int32 {
	var rows []int32
	for word := range Words(text[:min(len(text), MaxText)]) {
		row, ok := met[word]
		if !ok {
			row = t.row(word)
			met[word] = row
		}
		if row >= 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// cosine returns 0 if one of the vectors is zero.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * float64(b[i])
		aa += float64(x) * float64(x)
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
