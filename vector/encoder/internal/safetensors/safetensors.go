// Package safetensors reads the file format of that name: the length of the
// header as a little-endian uint64, the header, which is a JSON object with the
// type, shape and place of each tensor, and the tensors' bytes. The format is
// described at https://github.com/huggingface/safetensors.
//
// Files are foreign: everything the header says is checked before a byte of a
// tensor is read.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Limits on a header.
const (
	maxHeader  = 16 << 20
	maxTensors = 20_000
	maxDims    = 8
)

// File is a file whose header is correct. It shares the memory it was parsed
// from.
type File struct {
	tensors map[string]*Tensor
}

// Tensor is one named array of numbers, row by row.
type Tensor struct {
	shape []int
	kind  kind
	data  []byte
}

// kind is how numbers are stored.
type kind uint8

const (
	other kind = iota // integers, which no layer reads
	f32
	f16
	bf16
)

// kinds are the types that may occur, each with its size in bytes.
var kinds = map[string]struct {
	kind kind
	size int64
}{
	"F32": {f32, 4}, "F16": {f16, 2}, "BF16": {bf16, 2},
	"I64": {other, 8}, "I32": {other, 4}, "U8": {other, 1}, "I8": {other, 1}, "BOOL": {other, 1},
}

// entry is what the header says of a tensor.
type entry struct {
	Type    string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// Parse reads the header of a file and checks that the tensors fill the rest
// without holes and without overlapping, as the format demands.
func Parse(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, errors.New("the file is cut off before the length of its header")
	}
	length := binary.LittleEndian.Uint64(data)
	switch {
	case length > maxHeader:
		return nil, fmt.Errorf("the header has %d bytes, more than %d", length, maxHeader)
	case length > uint64(len(data)-8):
		return nil, errors.New("the file is cut off within its header")
	}
	entries, err := header(data[8 : 8+length])
	if err != nil {
		return nil, err
	}
	return place(entries, data[8+length:])
}

// header decodes the entries of a header, apart from its metadata.
func header(data []byte) (map[string]entry, error) {
	entries := map[string]entry{}
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("the header is not a JSON object")
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("the header is not a JSON object")
		}
		if name == "__metadata__" {
			var ignored map[string]string
			if err := d.Decode(&ignored); err != nil {
				return nil, errors.New("the metadata of the header are not texts")
			}
			continue
		}
		if _, twice := entries[name]; twice || len(entries) == maxTensors {
			return nil, fmt.Errorf("the header names tensor %.100q twice, or more than %d tensors", name, maxTensors)
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("the header describes tensor %.100q wrongly", name)
		}
		entries[name] = e
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("the header is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the header goes on after its JSON object")
	}
	return entries, nil
}

// place finds the tensors' bytes.
func place(entries map[string]entry, data []byte) (*File, error) {
	names := make([]string, 0, len(entries))
	for name, e := range entries {
		if len(e.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %.100q has no data_offsets", name)
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return slices.Compare(x, y)
	})
	f := &File{tensors: make(map[string]*Tensor, len(names))}
	var end int64
	for _, name := range names {
		e := entries[name]
		size, err := e.bytes()
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %.100q: %w", name, err)
		case e.Offsets[0] != end:
			return nil, fmt.Errorf("tensor %.100q does not begin where the one before ends", name)
		case e.Offsets[1]-e.Offsets[0] != size || size > int64(len(data))-end:
			return nil, fmt.Errorf("tensor %.100q has another length than its shape, or lies outside of the file", name)
		}
		f.tensors[name] = e.tensor(data[end : end+size])
		end += size
	}
	if end != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes belong to no tensor", int64(len(data))-end)
	}
	return f, nil
}

// bytes returns the length of a tensor by its type and shape.
func (e entry) bytes() (int64, error) {
	k, ok := kinds[e.Type]
	if !ok {
		return 0, fmt.Errorf("type %.20q cannot be read: F32, F16 and BF16 can", e.Type)
	}
	if len(e.Shape) > maxDims {
		return 0, fmt.Errorf("it has more than %d dimensions", maxDims)
	}
	size := k.size
	for _, n := range e.Shape {
		if n < 0 || n > 0 && size > math.MaxInt64/n {
			return 0, errors.New("its shape is impossible")
		}
		size *= n
	}
	return size, nil
}

func (e entry) tensor(data []byte) *Tensor {
	t := &Tensor{kind: kinds[e.Type].kind, data: data}
	for _, n := range e.Shape {
		t.shape = append(t.shape, int(n))
	}
	return t
}

// Names returns the names of all tensors, in no order.
func (f *File) Names() []string {
	names := make([]string, 0, len(f.tensors))
	for name := range f.tensors {
		names = append(names, name)
	}
	return names
}

// Has reports whether there is a tensor of a name.
func (f *File) Has(name string) bool { return f.tensors[name] != nil }

// Tensor returns a tensor that has to be there, of numbers and of a shape.
func (f *File) Tensor(name string, shape ...int) (*Tensor, error) {
	t := f.tensors[name]
	switch {
	case t == nil:
		return nil, fmt.Errorf("tensor %q is missing", name)
	case t.kind == other:
		return nil, fmt.Errorf("tensor %q has integers where weights are expected", name)
	case !slices.Equal(t.shape, shape):
		return nil, fmt.Errorf("tensor %q has shape %v, want %v", name, t.shape, shape)
	}
	return t, nil
}

// Row converts the row at an index of the first dimension; dst is as long as a
// row.
func (t *Tensor) Row(index int, dst []float32) {
	switch t.kind {
	case f32:
		row := t.data[4*len(dst)*index:][:4*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
		}
	case f16:
		row := t.data[2*len(dst)*index:][:2*len(dst)]
		for i := range dst {
			dst[i] = half(binary.LittleEndian.Uint16(row[2*i:]))
		}
	case bf16:
		row := t.data[2*len(dst)*index:][:2*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16)
		}
	}
}

// half converts a number of IEEE 754 binary16.
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
