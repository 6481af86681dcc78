package tensor

import (
	"math"
	"testing"
)

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float32{0: 0, 0x3555: 0.33325195, 0x0400: 0x1p-14, 0x83ff: -1023 * 0x1p-24} {
		if got := half(bits); got != want {
			t.Errorf("%#x is %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(float64(half(0x7e00))) || math.Float32bits(half(0x8000)) != 1<<31 {
		t.Error("NaN or -0 was lost")
	}
}

// A row of Q80 consists of blocks of a scale and 32 bytes.
func TestQ80(t *testing.T) {
	var data []byte
	for i := range 4 { // two rows of two blocks
		data = append(data, 0, 0x38) // 0.5
		for j := range block {
			data = append(data, byte(int8(j-16*i)))
		}
	}
	size, err := Q80.Bytes([]int64{2, 2 * block})
	if err != nil || size != int64(len(data)) {
		t.Fatalf("%d bytes, %v, want %d", size, err, len(data))
	}
	m := New(Q80, []int64{2, 2 * block}, data)
	for index := range 2 {
		row := make([]float32, 2*block)
		m.Row(index, row)
		for i, got := range row {
			if want := 0.5 * float32(i%block-16*(2*index+i/block)); got != want {
				t.Fatalf("row %d, number %d is %v, want %v", index, i, got, want)
			}
		}
	}
	for _, shape := range [][]int64{{2, 33}, {}, {-1, 32}, {1 << 60, 64}} {
		if n, err := Q80.Bytes(shape); err == nil {
			t.Errorf("%v has %d bytes", shape, n)
		}
	}
}
