//go:build !amd64

package bitcode

// native is false: there is assembly for amd64 only.
var native = false

func sums512(*[8 * queryBits]uint64, *uint64, *int32, int) {
	panic("bitcode: no assembly")
}
