//go:build !amd64

package gemm

// native returns nil: there is assembly for amd64 only.
func native() []*Kernel { return nil }
