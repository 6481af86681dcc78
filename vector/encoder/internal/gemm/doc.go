// Package gemm multiplies float32 matrices whose right side is known long
// before the left: it is packed once into panels that a register tile walks
// through, the layout of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008). There are tiles for AVX-512, for AVX2 with
// FMA, and one in plain Go that every architecture has.
package gemm

//go:generate sh -c "cd ../../gen && go run . -pkg gemm -out ../internal/gemm/tile_amd64.s -stubs ../internal/gemm/tile_amd64.go"
