package main

import (
	"cmp"
	"math"
	"slices"
)

// eigen returns the eigenvalues of a symmetric matrix, largest first, and the
// eigenvectors as columns, by Jacobi's rotations (Golub and Van Loan, "Matrix
// Computations", section 8.5).
func eigen(d *dense) ([]float64, *dense) {
	n := d.width
	a, v := slices.Clone(d.cells), newDense(n, n)
	for i := range n {
		v.cells[i*n+i] = 1
	}
	for range 30 {
		if off(a, n) < 1e-18*trace(a, n) {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, v.cells, n, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(a[j*n+j], a[i*n+i])
	})
	values, vectors := make([]float64, n), newDense(n, n)
	for to, from := range order {
		values[to] = a[from*n+from]
		for i := range n {
			vectors.cells[i*n+to] = v.cells[i*n+from]
		}
	}
	return values, vectors
}

// off returns the sum of the squares off the diagonal, relative to the trace.
func off(a []float64, n int) (sum float64) {
	for i := range n {
		for j := range n {
			if i != j {
				sum += a[i*n+j] * a[i*n+j]
			}
		}
	}
	return sum / max(trace(a, n), 1e-300)
}

func trace(a []float64, n int) (sum float64) {
	for i := range n {
		sum += math.Abs(a[i*n+i])
	}
	return sum
}

// rotate makes the cell at p, q zero and records the rotation in v.
func rotate(a, v []float64, n, p, q int) {
	if a[p*n+q] == 0 {
		return
	}
	tau := (a[q*n+q] - a[p*n+p]) / (2 * a[p*n+q])
	t := math.Copysign(1/(math.Abs(tau)+math.Sqrt(1+tau*tau)), tau)
	c := 1 / math.Sqrt(1+t*t)
	s := t * c
	for k := range n {
		x, y := a[k*n+p], a[k*n+q]
		a[k*n+p], a[k*n+q] = c*x-s*y, s*x+c*y
	}
	for k := range n {
		x, y := a[p*n+k], a[q*n+k]
		a[p*n+k], a[q*n+k] = c*x-s*y, s*x+c*y
		x, y = v[k*n+p], v[k*n+q]
		v[k*n+p], v[k*n+q] = c*x-s*y, s*x+c*y
	}
}
