// Package tensor has the arrays of numbers in model files, in the encoding in which the
// files store them.
package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Type is the encoding of a tensor's numbers.
type Type uint8

// The encodings of numbers.
const (
	Other Type = iota // integers, which no layer reads
	F32
	F16
	BF16
	Q80 // blocks of 32 numbers: a scale in float16, and 32 signed bytes; GGUF's Q8_0
)

// The numbers and the bytes of one block of Q80.
const (
	block      = 32
	blockBytes = 2 + block
)

// maxDims is the maximum number of dimensions of a tensor.
const maxDims = 8

// Bytes returns the length in bytes of a tensor of a type other than Other.
func (t Type) Bytes(shape []int64) (int64, error) {
	switch t {
	case F32:
		return SizeOf(shape, 1, 4)
	case Q80:
		return SizeOf(shape, block, blockBytes)
	}
	return SizeOf(shape, 1, 2)
}

// SizeOf returns the length in bytes of a tensor whose rows consist of blocks of unit
// numbers, each block of size bytes.
func SizeOf(shape []int64, unit, size int64) (int64, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("it has more than %d dimensions", maxDims)
	}
	if unit > 1 && (len(shape) == 0 || shape[len(shape)-1]%unit != 0) {
		return 0, fmt.Errorf("its rows are not blocks of %d numbers", unit)
	}
	for i, n := range shape {
		if i == len(shape)-1 {
			n /= unit
		}
		if n < 0 || n > 0 && size > math.MaxInt64/n {
			return 0, errors.New("its shape is impossible")
		}
		size *= n
	}
	return size, nil
}

// Tensor is an array of numbers, row by row.
type Tensor struct {
	Shape []int
	Type  Type
	Data  []byte // its length is that returned by Bytes
}

// New returns a tensor with a shape.
func New(t Type, shape []int64, data []byte) *Tensor {
	made := &Tensor{Type: t, Data: data}
	for _, n := range shape {
		made.Shape = append(made.Shape, int(n))
	}
	return made
}

// Row decodes the row at an index of the first dimension into dst, which must have the
// length of a row.
func (t *Tensor) Row(index int, dst []float32) {
	switch t.Type {
	case F32:
		row := t.Data[4*len(dst)*index:][:4*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
		}
	case F16:
		row := t.Data[2*len(dst)*index:][:2*len(dst)]
		for i := range dst {
			dst[i] = half(binary.LittleEndian.Uint16(row[2*i:]))
		}
	case BF16:
		row := t.Data[2*len(dst)*index:][:2*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16)
		}
	case Q80:
		row := t.Data[len(dst)/block*blockBytes*index:]
		for ; len(dst) > 0; dst, row = dst[block:], row[blockBytes:] {
			scale := half(binary.LittleEndian.Uint16(row))
			for i, b := range row[2:blockBytes] {
				dst[i] = scale * float32(int8(b))
			}
		}
	}
}

// half converts an IEEE 754 binary16 number.
func half(bits uint16) float32 {
	sign := uint32(bits>>15) << 31
	exponent, fraction := uint32(bits>>10)&31, uint32(bits)&1023
	switch exponent {
	case 0: // zero and numbers below 2⁻¹⁴
		value := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(value) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// Set holds the tensors of a file by name.
type Set map[string]*Tensor

// Names returns the names of all tensors, in no particular order.
func (s Set) Names() []string {
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	return names
}

// Has reports whether there is a tensor with a name.
func (s Set) Has(name string) bool { return s[name] != nil }

// Tensor returns the tensor with a name, which must exist, not be of type Other, and
// have the given shape.
func (s Set) Tensor(name string, shape ...int) (*Tensor, error) {
	t := s[name]
	switch {
	case t == nil:
		return nil, fmt.Errorf("tensor %q is missing", name)
	case t.Type == Other:
		return nil, fmt.Errorf("tensor %q has integers where weights are expected", name)
	case !slices.Equal(t.Shape, shape):
		return nil, fmt.Errorf("tensor %q has shape %v, want %v", name, t.Shape, shape)
	}
	return t, nil
}
