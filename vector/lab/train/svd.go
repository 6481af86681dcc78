package main

import (
	"math"
	"math/rand/v2"
)

// dense is a dense matrix, row by row.
type dense struct {
	width int
	cells []float64
}

func newDense(rows, width int) *dense {
	return &dense{width, make([]float64, rows*width)}
}

func (d *dense) rows() int {
	return len(d.cells) / d.width
}
func (d *dense) row(i int) []float64 {
	return d.cells[i*d.width:][:d.width]
}

// times returns m·d.
func (m *sparse) times(d *dense) *dense {
	out := newDense(len(m.rows), d.width)
	for r, row := range m.rows {
		sum := out.row(r)
		for _, c := range row {
			add(sum, d.row(int(c.column)), c.value)
		}
	}
	return out
}

// transposedTimes returns mᵀ·d.
func (m *sparse) transposedTimes(d *dense) *dense {
	out := newDense(m.columns, d.width)
	for r, row := range m.rows {
		for _, c := range row {
			add(out.row(int(c.column)), d.row(r), c.value)
		}
	}
	return out
}

func add(sum, v []float64, weight float64) {
	for i, x := range v {
		sum[i] += weight * x
	}
}

// factorize returns the rows of m projected on its largest singular vectors,
// each scaled by the root of its singular value, by subspace iteration as in
// Halko, Martinsson and Tropp, "Finding structure with randomness" (2011),
// algorithms 4.4 and 5.1.
func factorize(m *sparse, width int) *dense {
	const (
		spare  = 16
		rounds = 8
	)
	random := rand.New(rand.NewPCG(1, 2))
	q := newDense(len(m.rows), width+spare)
	for i := range q.cells {
		q.cells[i] = random.NormFloat64()
	}
	orthonormalize(q)
	for range rounds {
		q = m.times(m.transposedTimes(q))
		orthonormalize(q)
	}
	values, vectors := eigen(gram(m.transposedTimes(q)))
	out := newDense(len(m.rows), width)
	for r := range out.rows() {
		from, to := q.row(r), out.row(r)
		for k := range to {
			for i, x := range from {
				to[k] += x * vectors.cells[i*vectors.width+k]
			}
			to[k] *= math.Pow(max(values[k], 0), 0.25) // the root of a singular value
		}
	}
	return out
}

// gram returns dᵀ·d.
func gram(d *dense) *dense {
	out := newDense(d.width, d.width)
	for r := range d.rows() {
		row := d.row(r)
		for i, x := range row {
			add(out.row(i), row, x)
		}
	}
	return out
}

// orthonormalize makes the columns of d orthonormal by Cholesky QR, twice
// because of rounding.
func orthonormalize(d *dense) {
	for range 2 {
		l := cholesky(gram(d))
		for r := range d.rows() {
			row := d.row(r)
			for i := range row {
				for k := range i {
					row[i] -= l.cells[i*l.width+k] * row[k]
				}
				row[i] /= l.cells[i*l.width+i]
			}
		}
	}
}

// cholesky returns the lower triangular l with l·lᵀ = d.
func cholesky(d *dense) *dense {
	l := newDense(d.width, d.width)
	for i := range d.width {
		for j := range i + 1 {
			sum := d.cells[i*d.width+j]
			for k := range j {
				sum -= l.cells[i*d.width+k] * l.cells[j*d.width+k]
			}
			if i == j {
				l.cells[i*d.width+i] = math.Sqrt(max(sum, 1e-12))
			} else {
				l.cells[i*d.width+j] = sum / l.cells[j*d.width+j]
			}
		}
	}
	return l
}
