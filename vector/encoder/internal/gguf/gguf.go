// Package gguf reads GGUF files of versions 2 and 3: a list of keys with values, a
// list of tensors, and the tensors' bytes. The format is described at
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
//
// Files are untrusted: the whole header is checked before a byte of a tensor is read.
package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"satchel/vector/encoder/internal/tensor"
)

// Limits on a header.
const (
	maxHeader    = 64 << 20
	maxKeys      = 10_000
	maxTensors   = 20_000
	maxAlignment = 1 << 16
)

// File is a file whose header is correct. It shares the memory it was parsed
// from.
type File struct {
	Tensors tensor.Set // the last dimension of a matrix is the length of its rows
	values  map[string]value
}

// types maps the numbers of tensor types to the types that can be read.
var types = map[uint32]tensor.Type{
	0:  tensor.F32,
	1:  tensor.F16,
	8:  tensor.Q80,
	30: tensor.BF16,
}

// Parse parses the header of a file and checks that the tensors follow one another as
// the format requires.
func Parse(data []byte) (*File, error) {
	r := &reader{data: data[:min(len(data), maxHeader)], whole: len(data) <= maxHeader}
	magic, version := string(r.take(4)), r.uint32()
	switch {
	case r.err != nil:
		return nil, r.err
	case magic != "GGUF":
		return nil, errors.New("it is not a GGUF file")
	case version == 2<<24 || version == 3<<24:
		return nil, errors.New("it is a GGUF file for computers with another byte order")
	case version != 2 && version != 3:
		return nil, fmt.Errorf("version %d of GGUF cannot be read: 2 and 3 can", version)
	}
	tensors, keys := r.count(maxTensors, "tensors"), r.count(maxKeys, "keys")
	file := &File{Tensors: tensor.Set{}, values: map[string]value{}}
	for range keys {
		key := r.text()
		v := r.value()
		if _, twice := file.values[key]; twice && r.err == nil {
			r.err = fmt.Errorf("key %.100q occurs twice", key)
		}
		if r.err != nil {
			return nil, r.err
		}
		file.values[key] = v
	}
	entries, err := r.entries(tensors)
	if err != nil {
		return nil, err
	}
	return file, file.place(entries, data, r.at)
}

// entry is a tensor's entry in the header.
type entry struct {
	name   string
	shape  []int64
	kind   uint32
	offset uint64
}

// entries reads the list of tensors, whose dimensions are stored innermost first.
func (r *reader) entries(count int) ([]entry, error) {
	var list []entry
	for range count {
		e := entry{name: r.text()}
		dims := r.uint32()
		if dims > 4 && r.err == nil {
			r.err = fmt.Errorf("tensor %.100q has %d dimensions", e.name, dims)
		}
		if r.err != nil {
			return nil, r.err
		}
		e.shape = make([]int64, dims)
		for i := range e.shape {
			e.shape[len(e.shape)-1-i] = int64(min(r.uint64(), math.MaxInt64))
		}
		e.kind, e.offset = r.uint32(), r.uint64()
		list = append(list, e)
	}
	return list, r.err
}

// place locates the tensors' bytes, which follow the header. Each tensor begins where
// the previous one ends, rounded up to the alignment.
func (f *File) place(entries []entry, data []byte, header int) error {
	align := f.Number("general.alignment", 32)
	if align == 0 || align > maxAlignment || align&(align-1) != 0 {
		return fmt.Errorf("general.alignment is %d", align)
	}
	up := func(n uint64) uint64 {
		return (n + align - 1) &^ (align - 1)
	}
	start := up(uint64(header))
	if start > uint64(len(data)) {
		start = uint64(len(data))
	}
	data = data[start:]
	var end uint64
	for _, entry := range entries {
		kind, ok := types[entry.kind]
		if !ok {
			return fmt.Errorf(
				"tensor %.100q has type %d, which cannot be read by this program: F32, F16, BF16 and Q8_0 can",
				entry.name, entry.kind,
			)
		}
		size, err := kind.Bytes(entry.shape)
		switch {
		case err != nil:
			return fmt.Errorf("tensor %.100q: %w", entry.name, err)
		case f.Tensors.Has(entry.name):
			return fmt.Errorf("tensor %.100q occurs twice", entry.name)
		case entry.offset != end:
			return fmt.Errorf("tensor %.100q does not begin where the one before ends", entry.name)
		case end > uint64(len(data)) || uint64(size) > uint64(len(data))-end:
			return fmt.Errorf("tensor %.100q lies outside of the file", entry.name)
		}
		f.Tensors[entry.name] = tensor.New(
			kind,
			entry.shape,
			data[end:end+uint64(size)],
		)
		end = up(end + uint64(size))
	}
	return nil
}

// reader reads a header. After the first error its methods return zero values.
type reader struct {
	data  []byte
	whole bool // data is the whole file
	at    int
	err   error
}

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.data)-r.at) {
		if r.err = errors.New("the file is cut off within its header"); !r.whole {
			r.err = fmt.Errorf("the header has more than %d bytes", maxHeader)
		}
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) count(most int, what string) int {
	n := r.uint64()
	if n > uint64(most) && r.err == nil {
		r.err = fmt.Errorf("the header has %d %s, more than %d", n, what, most)
	}
	return int(min(n, uint64(most)))
}

func (r *reader) text() string {
	return string(r.take(r.uint64()))
}
