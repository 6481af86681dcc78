// Package gemm multiplies float32 matrices of which the right one is known
// long before the left one: it is packed once into panels for a register tile,
// the layout of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008). There are tiles for AVX-512, for AVX2 with FMA and
// for NEON, and one in plain Go for every architecture.
package gemm

//go:generate -command kernel go run -C ../../../lab ./kernels/gemm -pkg gemm
//go:generate kernel -out ../encoder/internal/gemm/tile_amd64.s -stubs ../encoder/internal/gemm/tile_amd64.go
//go:generate go run -C ../../../lab ./kernels/neon -out ../encoder/internal/gemm/tile_arm64.s
