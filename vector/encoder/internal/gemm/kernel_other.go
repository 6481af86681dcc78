//go:build !amd64 && !arm64

package gemm

// native returns nil: there is assembly for amd64 and arm64 only.
func native() []*Kernel { return nil }
