package gemm

// native returns the kernel for NEON, which every arm64 CPU has.
func native() []*Kernel {
	return []*Kernel{{
		name:    "neon",
		rows:    4,
		columns: 16,
		tile:    tile4x16,
	}}
}

// tile4x16 adds the product of 4 rows of a and one panel of b to 4×16 values of c.
// lda and ldc count floats.
//
//go:noescape
func tile4x16(depth int, a *float32, lda int, b *float32, c *float32, ldc int)
