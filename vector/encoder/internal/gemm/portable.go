package gemm

import "unsafe"

// portable is the kernel in plain Go. A tile of 3×2 is the largest whose sums,
// factors and products fit into the 16 registers of amd64: 2×4 spills one sum
// and runs at half the speed.
var portable = &Kernel{
	name:    "go",
	rows:    3,
	columns: 2,
	tile:    tile3x2,
}

// tile3x2 does for 3 rows and 2 columns what the assembly tiles do.
func tile3x2(depth int, a *float32, lda int, b *float32, c *float32, ldc int) {
	rows := unsafe.Slice(a, 2*lda+depth)
	a0, a1, a2 := rows[:depth], rows[lda:][:depth], rows[2*lda:][:depth]
	panel := unsafe.Slice(b, 2*depth)
	var c00, c01, c10, c11, c20, c21 float32
	for i, x := range a0 {
		p := (*[2]float32)(panel[2*i:])
		y, z := a1[i], a2[i]
		u, v := p[0], p[1]
		c00 += x * u
		c01 += x * v
		c10 += y * u
		c11 += y * v
		c20 += z * u
		c21 += z * v
	}
	out := unsafe.Slice(c, 2*ldc+2)
	out[0] += c00
	out[1] += c01
	out[ldc] += c10
	out[ldc+1] += c11
	out[2*ldc] += c20
	out[2*ldc+1] += c21
}
