package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// The types of values.
const (
	typeUint8   = 0
	typeInt8    = 1
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeText    = 8
	typeArray   = 9
	typeUint64  = 10
)

// sizes has the size in bytes of each type with a fixed length.
var sizes = map[uint32]uint64{
	typeUint8:   1,
	typeInt8:    1,
	2:           2,
	3:           2,
	typeUint32:  4,
	typeInt32:   4,
	typeFloat32: 4,
	typeBool:    1,
	typeUint64:  8,
	11:          8,
	12:          8,
}

// value is a value, or an array of values, in the file's encoding.
type value struct {
	kind  uint32 // for an array, the type of its elements
	array bool
	count int
	data  []byte // texts are each preceded by their length
}

// value reads a value. Nested arrays are an error.
func (r *reader) value() (value value) {
	value.kind, value.count = r.uint32(), 1
	if value.kind == typeArray {
		value.array, value.kind = true, r.uint32()
		value.count = r.count(maxHeader, "elements in an array")
	}
	from := r.at
	if size, fixed := sizes[value.kind]; fixed {
		r.take(size * uint64(value.count))
	} else if value.kind == typeText {
		for i := 0; i < value.count && r.err == nil; i++ {
			r.take(r.uint64())
		}
	} else if r.err == nil {
		r.err = fmt.Errorf("a value of type %d cannot be read by this program", value.kind)
	}
	value.data = r.data[from:r.at]
	return value
}

// Text returns a text, or "" if there is none.
func (f *File) Text(key string) string {
	if v, ok := f.values[key]; ok && v.kind == typeText && !v.array {
		return string(v.data[8:])
	}
	return ""
}

// Number returns a non-negative integer, or other if there is none.
func (f *File) Number(key string, other uint64) uint64 {
	switch v := f.values[key]; {
	case v.array || len(v.data) == 0:
	case v.kind == typeUint32, v.kind == typeInt32 && v.data[3] < 0x80:
		return uint64(binary.LittleEndian.Uint32(v.data))
	case v.kind == typeUint64:
		return binary.LittleEndian.Uint64(v.data)
	}
	return other
}

// Float returns a number, or 0 if there is none.
func (f *File) Float(key string) float64 {
	if v := f.values[key]; v.kind == typeFloat32 && !v.array && len(v.data) == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data)))
	}
	return 0
}

// Bool returns a boolean, or other if there is none.
func (f *File) Bool(key string, other bool) bool {
	if v := f.values[key]; v.kind == typeBool && !v.array && len(v.data) == 1 {
		return v.data[0] != 0
	}
	return other
}

// Texts returns an array of at most most texts, which must be valid UTF-8.
func (f *File) Texts(key string, most int) ([]string, error) {
	v := f.values[key]
	if v.kind != typeText || !v.array || v.count > most {
		return nil, fmt.Errorf("%s is not a list of up to %d texts", key, most)
	}
	list, data := make([]string, v.count), v.data
	for i := range list {
		end := 8 + binary.LittleEndian.Uint64(data)
		if !utf8.Valid(data[8:end]) {
			return nil, fmt.Errorf("%s: element %d is not UTF-8", key, i)
		}
		list[i], data = string(data[8:end]), data[end:]
	}
	return list, nil
}

// Floats returns an array of n numbers.
func (f *File) Floats(key string, n int) ([]float64, error) {
	v := f.values[key]
	if v.kind != typeFloat32 || !v.array || v.count != n {
		return nil, fmt.Errorf("%s is not a list of %d numbers", key, n)
	}
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data[4*i:])))
	}
	return list, nil
}

// Integers returns an array of n integers.
func (f *File) Integers(key string, n int) ([]int32, error) {
	v := f.values[key]
	if v.kind != typeInt32 && v.kind != typeUint32 || !v.array || v.count != n {
		return nil, fmt.Errorf("%s is not a list of %d integers", key, n)
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(binary.LittleEndian.Uint32(v.data[4*i:]))
	}
	return list, nil
}

// Bytes returns an array of bytes, or nil if there is none.
func (f *File) Bytes(key string) []byte {
	if v := f.values[key]; v.array && (v.kind == typeUint8 || v.kind == typeInt8) {
		return v.data
	}
	return nil
}
