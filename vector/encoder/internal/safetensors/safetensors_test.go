package safetensors

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"satchel/vector/encoder/internal/tensor"
)

// file returns a file with a header and data.
func file(header string, data string) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

const eight = "\x00\x00\x80\x3f\x00\x00\x00\x40" // 1 and 2 as float32

func TestNumbersOfEachType(t *testing.T) {
	f, err := Parse(file(
		`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},`+
			`"b":{"dtype":"F16","shape":[5],"data_offsets":[8,18]},"c":{"dtype":"BF16","shape":[2],`+
			`"data_offsets":[18,22]},"d":{"dtype":"I64","shape":[1],"data_offsets":[22,30]},"e":{"dtype":"F32",`+
			`"shape":[0],"data_offsets":[30,30]}}   `,
		eight+"\x00\x3c\x00\xc0\x01\x00\x00\x7c\xff\x7b"+"\x80\x3f\x00\xc0"+"12345678",
	))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		shape []int
		want  []float32
	}{
		{"a", []int{2, 1}, []float32{1, 2}},
		{"b", []int{5}, []float32{1, -2, 0x1p-24, float32(math.Inf(1)), 65504}},
		{"c", []int{2}, []float32{1, -2}},
	} {
		one, err := f.Tensor(c.name, c.shape...)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, len(c.want))
		one.Row(0, got)
		for i, w := range c.want {
			if got[i] != w {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
	a, _ := f.Tensor("a", 2, 1)
	if row := make([]float32, 1); func() float32 {
		a.Row(1, row)
		return row[0]
	}() != 2 {
		t.Error("the second row of a is not 2")
	}
	for name, shape := range map[string][]int{"d": {1}, "a": {1, 2}, "z": {1}} {
		if _, err := f.Tensor(name, shape...); err == nil {
			t.Errorf("tensor %s of shape %v was returned", name, shape)
		}
	}
	if !f.Has("d") || f.Has("z") || len(f.Names()) != 5 {
		t.Errorf("names %v", f.Names())
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 4<<30)
	for want, data := range map[string][]byte{
		"before the length": []byte("\x01"),
		"more than":         append(huge, make([]byte, 100)...),
		"within its header": file(`{}`, "")[:9],
		"not a JSON object": file(`[1]`, ""),
		"has data after":    file(`{}{}`, ""),
		"metadata":          file(`{"__metadata__":3}`, ""),
		"wrongly":           file(`{"a":{"dtype":7}}`, ""),
		"no data_offsets":   file(`{"a":{"dtype":"F32","shape":[2]}}`, eight),
		`"a" twice`: file(
			`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32",`+
				`"shape":[1],"data_offsets":[4,8]}}`,
			eight,
		),
		"cannot be read": file(`{"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}}`, eight),
		"shape is impossible": file(
			`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}`,
			eight,
		),
		"8 dimensions": file(
			`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}`,
			eight,
		),
		"belong to no tensor": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, eight),
		`"b" does not begin where`: file(
			`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32",`+
				`"shape":[1],"data_offsets":[2,6]}}`,
			eight,
		),
		`"a" does not begin where`:   file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, eight),
		"lies outside":               file(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, eight),
		"has another length":         file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, eight),
		"has another length than it": file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,-8]}}`, eight),
		"impossible":                 file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,-8]}}`, eight),
	} {
		if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	many := strings.Builder{}
	many.WriteString(`{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)
	for i := range maxTensors {
		many.WriteString(`,"` + strings.Repeat("a", i%50) + string(rune('a'+i/50/26%26)) + string(rune('a'+i/50%26)) +
			`":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)
	}
	if _, err := Parse(file(many.String()+"}", "")); err == nil {
		t.Error("a header with too many tensors was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}`, eight))
	f.Add(file(
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}}`,
		eight,
	))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, name := range parsed.Names() {
			one := parsed[name]
			total += len(one.Data)
			rows, width := 1, 1
			for i, n := range one.Shape {
				if i == 0 {
					rows = n
				} else {
					width *= n
				}
			}
			if width < 1<<20 && rows > 0 && width > 0 && one.Type != tensor.Other {
				one.Row(rows-1, make([]float32, width))
			}
		}
		if total > len(data) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
	})
}
