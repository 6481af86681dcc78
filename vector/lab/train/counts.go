package main

import (
	"math"
	"slices"
)

// sparse is a sparse matrix: for each row, the columns and their values.
type sparse struct {
	columns int
	rows    [][]cell
}

type cell struct {
	column int32
	value  float64
}

// shares is the weight of the words of a synset that a pointer leads to.
var shares = map[string]float64{
	"@": 1.5, "@i": 1.5, "~": 0.2,
	"#p": 0.7, "%p": 0.7, "#m": 0.7, "%m": 0.7, "#s": 0.7, "%s": 0.7, "+": 0.7, "&": 0.7, "^": 0.7, "*": 0.7,
	">": 0.7, "=": 0.7, "-c": 0.7, ";c": 0.7,
}

// counts returns how strongly each word is associated with each synset, as
// positive pointwise mutual information: words in rows, synsets in columns.
// Frequent synsets are smoothed as in Levy, Goldberg and Dagan, "Improving
// Distributional Similarity" (2015).
func (w *wordnet) counts(v *vocabulary) *sparse {
	m := &sparse{columns: len(w.order), rows: make([][]cell, len(v.words))}
	for column, key := range w.order {
		weight := map[int32]float64{}
		put := func(list []string, share float64) {
			for _, n := range v.numbers(list) {
				weight[n] += share
			}
		}
		s := w.synsets[key]
		for i, entry := range s.words {
			put(entry, 3/math.Sqrt(float64(1+s.senses[i]))/math.Sqrt(float64(max(len(entry), 1))))
		}
		put(s.gloss, 1)
		for _, example := range s.examples {
			put(example, 0.5)
		}
		for _, p := range s.pointers {
			if to := w.synsets[p.to]; to != nil && shares[p.symbol] > 0 {
				for _, entry := range to.words {
					put(entry, shares[p.symbol]/math.Sqrt(float64(max(len(entry), 1))))
				}
			}
		}
		for n, value := range weight {
			m.rows[n] = append(m.rows[n], cell{int32(column), value})
		}
	}
	m.information()
	return m
}

// information replaces counts with their positive pointwise mutual
// information.
func (m *sparse) information() {
	const smoothing = 0.75
	byColumn, byRow := make([]float64, m.columns), make([]float64, len(m.rows))
	total := 0.0
	for r, row := range m.rows {
		for _, c := range row {
			byColumn[c.column] += c.value
			byRow[r] += c.value
			total += c.value
		}
	}
	smoothed := 0.0
	for i, sum := range byColumn {
		byColumn[i] = math.Pow(sum, smoothing)
		smoothed += byColumn[i]
	}
	for r, row := range m.rows {
		for i, c := range row {
			expected := byRow[r] * byColumn[c.column] / smoothed
			row[i].value = max(math.Log(c.value/expected), 0)
		}
		m.rows[r] = slices.DeleteFunc(row, func(c cell) bool { return c.value == 0 })
	}
}
