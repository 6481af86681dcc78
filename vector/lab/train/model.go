package main

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Training parameters.
const (
	batch       = 256
	epochs      = 4
	temperature = 0.15
	rate        = 0.02
	noise       = 0.05 // added to the initial vectors, so that those of unknown words differ
)

// model has a vector and a weight for each word. A text is the weighted sum of
// its words' vectors.
type model struct {
	vectors [][]float32
	weight  []float32 // logarithms
	// The sums of the squares of the gradients so far, for the learning rates
	// of Duchi, Hazan and Singer's AdaGrad (2011).
	vectorSquares, weightSquares []float64
	random                       *rand.Rand
}

// newModel starts with the vectors of factorize, and with lower weights for
// frequent words.
func newModel(v *vocabulary, start *dense) *model {
	m := &model{random: rand.New(rand.NewPCG(3, 4))}
	for i, n := range v.pairs {
		row := start.row(i)
		var squares float64
		for _, x := range row {
			squares += x * x
		}
		vector := make([]float32, len(row))
		for k, x := range row {
			vector[k] = float32(x/(math.Sqrt(squares)+1e-9) + noise*m.random.NormFloat64())
		}
		m.vectors = append(m.vectors, vector)
		m.weight = append(m.weight, float32(math.Log(max(0.3, math.Log(4e5/float64(n+20))))))
	}
	m.vectorSquares, m.weightSquares = make([]float64, len(m.vectors)), make([]float64, len(m.vectors))
	return m
}

// train draws batches of pairs and moves the sides of each pair together and
// away from all others of the batch: the loss of van den Oord, Li and Vinyals,
// "Representation Learning with Contrastive Predictive Coding" (2018), in both
// directions.
func (m *model) train(pairs []numberedPair, report func(step, steps int, loss float64)) {
	cumulative := make([]float64, len(pairs))
	total := 0.0
	for i, p := range pairs {
		total += p.share
		cumulative[i] = total
	}
	steps := int(epochs * total / batch)
	var loss float64
	for step := range steps {
		sides := make([][]int32, 2*batch)
		for i := range batch {
			drawn := min(sort.SearchFloat64s(cumulative, m.random.Float64()*total), len(pairs)-1)
			sides[i], sides[batch+i] = pairs[drawn].a, pairs[drawn].b
		}
		now := m.step(sides, rate*(1-float64(step)/float64(steps)))
		if loss += 0.02 * (now - loss); step == 0 {
			loss = now
		}
		if step%500 == 0 || step == steps-1 {
			report(step, steps, loss)
		}
	}
}

// step learns from one batch, whose first half are the counterparts of its
// second half, and returns the loss before.
func (m *model) step(sides [][]int32, rate float64) float64 {
	half := len(sides) / 2
	unit, length := m.embed(sides)
	likeness := make([][]float32, half)
	for i := range half {
		likeness[i] = make([]float32, half)
		for j := range half {
			likeness[i][j] = dot(unit[i], unit[half+j]) / temperature
		}
	}
	loss := gradientOf(likeness)
	slope := make([][]float32, len(sides)) // of the loss with respect to each unit vector
	for i := range slope {
		slope[i] = make([]float32, len(unit[0]))
	}
	for i := range half {
		for j, g := range likeness[i] {
			axpy(slope[i], unit[half+j], g)
			axpy(slope[half+j], unit[i], g)
		}
	}
	for i, u := range unit {
		axpy(slope[i], u, -dot(slope[i], u)) // tangential part only
		for k := range slope[i] {
			slope[i][k] /= length[i]
		}
	}
	m.descend(sides, slope, rate)
	return loss
}

// embed returns the vectors of texts, scaled to length 1, and their lengths.
func (m *model) embed(sides [][]int32) (unit [][]float32, length []float32) {
	for _, text := range sides {
		sum := make([]float32, len(m.vectors[0]))
		for _, word := range text {
			axpy(sum, m.vectors[word], float32(math.Exp(float64(m.weight[word]))))
		}
		n := float32(math.Sqrt(float64(dot(sum, sum)))) + 1e-6
		for k := range sum {
			sum[k] /= n
		}
		unit, length = append(unit, sum), append(length, n)
	}
	return unit, length
}

// gradientOf replaces similarities with the gradient of the loss with respect
// to each cosine, and returns the loss.
func gradientOf(likeness [][]float32) (loss float64) {
	n := len(likeness)
	scale := float32(1 / (temperature * math.Sqrt(float64(n))))
	gradient := make([][]float32, n)
	for i := range n {
		gradient[i] = make([]float32, n)
	}
	for direction := range 2 {
		at := func(i, j int) (int, int) {
			if direction == 0 {
				return i, j
			}
			return j, i
		}
		for i := range n {
			most, sum := math.Inf(-1), 0.0
			for j := range n {
				r, c := at(i, j)
				most = max(most, float64(likeness[r][c]))
			}
			for j := range n {
				r, c := at(i, j)
				sum += math.Exp(float64(likeness[r][c]) - most)
			}
			for j := range n {
				r, c := at(i, j)
				share := math.Exp(float64(likeness[r][c])-most) / sum
				if i == j {
					loss -= math.Log(share+1e-9) / float64(2*n)
					share--
				}
				gradient[r][c] += float32(share/2) * scale
			}
		}
	}
	copy(likeness, gradient)
	return loss
}

// descend updates the words of a batch by gradient descent.
func (m *model) descend(sides [][]int32, slope [][]float32, rate float64) {
	byWord := map[int32][]float32{}
	var words []int32 // in order of occurrence, so that runs are reproducible
	for i, text := range sides {
		for _, word := range text {
			if byWord[word] == nil {
				byWord[word] = make([]float32, len(slope[i]))
				words = append(words, word)
			}
			axpy(byWord[word], slope[i], 1)
		}
	}
	for _, word := range words {
		g, vector := byWord[word], m.vectors[word]
		weight := float32(math.Exp(float64(m.weight[word])))
		byWeight := float64(dot(g, vector) * weight)
		m.vectorSquares[word] += float64(dot(g, g)*weight*weight) / float64(len(g))
		m.weightSquares[word] += byWeight * byWeight
		axpy(vector, g, -float32(rate/math.Sqrt(m.vectorSquares[word]+1e-8))*weight)
		m.weight[word] -= float32(rate / 2 * byWeight / math.Sqrt(m.weightSquares[word]+1e-8))
	}
}

// weighted returns the vectors times the words' weights.
func (m *model) weighted() [][]float32 {
	out := make([][]float32, len(m.vectors))
	for i, v := range m.vectors {
		out[i] = make([]float32, len(v))
		axpy(out[i], v, float32(math.Exp(float64(m.weight[i]))))
	}
	return out
}

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// axpy adds v times weight to sum.
func axpy(sum, v []float32, weight float32) {
	v = v[:len(sum)]
	for i, x := range v {
		sum[i] += weight * x
	}
}
