package modelfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Block is the number of neighbouring values of a row that share one scale.
const Block = 32

// kind is how the values of a matrix are stored.
type kind uint8

const (
	kindFloat kind = 0
	kindBlock kind = 1
)

// Matrix is rows × columns numbers in the file's encoding. A matrix returned
// by Decode shares the memory of the file.
type Matrix struct {
	Rows, Columns int

	kind   kind
	scales []byte // kindBlock: two bytes per block
	values []byte
}

// Floats stores values, row by row, unchanged. It panics unless there are rows
// × columns of them.
func Floats(rows, columns int, values []float32) Matrix {
	mustFill(rows, columns, values)
	m := Matrix{Rows: rows, Columns: columns, kind: kindFloat}
	for _, v := range values {
		m.values = binary.LittleEndian.AppendUint32(m.values, math.Float32bits(v))
	}
	return m
}

// Quantize stores values, row by row, as 8-bit blocks: the error of each is at
// most half its block's scale, which is the block's largest magnitude / 127
// and up to 0.8 % more. It panics unless there are rows × columns values and
// the columns are a multiple of Block.
func Quantize(rows, columns int, values []float32) Matrix {
	mustFill(rows, columns, values)
	if columns%Block != 0 {
		panic(fmt.Sprintf("modelfile: %d columns are not a multiple of the block size %d", columns, Block))
	}
	matrix := Matrix{
		Rows:    rows,
		Columns: columns,
		kind:    kindBlock,
		scales:  make([]byte, 0, len(values)/Block*2),
		values:  make([]byte, 0, len(values)),
	}
	for len(values) > 0 {
		scale := blockScale(values[:Block])
		matrix.scales = binary.LittleEndian.AppendUint16(matrix.scales, scale)
		for _, v := range values[:Block] {
			matrix.values = append(matrix.values, byte(quantum(v, widen(scale))))
		}
		values = values[Block:]
	}
	return matrix
}

func mustFill(rows, columns int, values []float32) {
	if len(values) != rows*columns {
		panic(fmt.Sprintf("modelfile: %d values for %d×%d", len(values), rows, columns))
	}
}

// blockScale returns the smallest bfloat16 scale with which every value of the
// block fits into an int8.
func blockScale(block []float32) uint16 {
	var largest float32
	for _, v := range block {
		largest = max(largest, max(v, -v))
	}
	bits := math.Float32bits(largest / 127)
	return uint16((uint64(bits) + 0xffff) >> 16)
}

// quantum returns the int8 nearest to v / scale, ties to even.
func quantum(v, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(max(-127, min(127, math.RoundToEven(float64(v)/float64(scale)))))
}

// widen converts a bfloat16 to float32.
func widen(half uint16) float32 { return math.Float32frombits(uint32(half) << 16) }

// Row writes the values of a row to dst, which must have room for Columns. It
// panics if there is no such row.
func (m Matrix) Row(row int, dst []float32) {
	dst = dst[:m.Columns]
	first := row * m.Columns
	if m.kind == kindFloat {
		src := m.values[4*first : 4*(first+m.Columns)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
		return
	}
	src := m.values[first : first+m.Columns]
	scales := m.scales[first/Block*2:]
	for ; len(src) > 0; src, dst, scales = src[Block:], dst[Block:], scales[2:] {
		scale := widen(binary.LittleEndian.Uint16(scales))
		block := (*[Block]float32)(dst)
		for i, q := range (*[Block]byte)(src) {
			block[i] = float32(int8(q)) * scale
		}
	}
}
