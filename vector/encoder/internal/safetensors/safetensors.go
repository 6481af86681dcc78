// Package safetensors reads safetensors files: the length of the header as a
// little-endian uint64, the header, which is a JSON object with the type, shape and
// position of each tensor, and the tensors' bytes. The format is described at
// https://github.com/huggingface/safetensors.
//
// Files are untrusted: the whole header is checked before a byte of a tensor is read.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"satchel/vector/encoder/internal/tensor"
)

// Limits on a header.
const (
	maxHeader  = 16 << 20
	maxTensors = 20_000
)

// kinds are the types that a tensor may have, each with its size in bytes.
var kinds = map[string]struct {
	kind tensor.Type
	size int64
}{
	"F32":  {tensor.F32, 4},
	"F16":  {tensor.F16, 2},
	"BF16": {tensor.BF16, 2},
	"I64":  {tensor.Other, 8},
	"I32":  {tensor.Other, 4},
	"U8":   {tensor.Other, 1},
	"I8":   {tensor.Other, 1},
	"BOOL": {tensor.Other, 1},
}

// entry is a tensor's entry in the header.
type entry struct {
	Type    string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// Parse parses the header of a file and checks that the tensors fill the rest of it
// without gaps or overlaps, as the format requires. The tensors share the memory of
// data.
func Parse(data []byte) (tensor.Set, error) {
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
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("the header is not a JSON object")
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("the header is not a JSON object")
		}
		if name == "__metadata__" {
			var ignored map[string]string
			if err := decoder.Decode(&ignored); err != nil {
				return nil, errors.New("the metadata of the header are not texts")
			}
			continue
		}
		if _, twice := entries[name]; twice || len(entries) == maxTensors {
			return nil, fmt.Errorf("the header names tensor %.100q twice, or more than %d tensors", name, maxTensors)
		}
		var e entry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("the header describes tensor %.100q wrongly", name)
		}
		entries[name] = e
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("the header is not a JSON object")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("the header has data after its JSON object")
	}
	return entries, nil
}

// place locates the tensors' bytes.
func place(entries map[string]entry, data []byte) (tensor.Set, error) {
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
	set := make(tensor.Set, len(names))
	var end int64
	for _, name := range names {
		entry := entries[name]
		size, err := entry.bytes()
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %.100q: %w", name, err)
		case entry.Offsets[0] != end:
			return nil, fmt.Errorf("tensor %.100q does not begin where the one before ends", name)
		case entry.Offsets[1]-entry.Offsets[0] != size || size > int64(len(data))-end:
			return nil, fmt.Errorf("tensor %.100q has another length than its shape, or lies outside of the file", name)
		}
		set[name] = tensor.New(
			kinds[entry.Type].kind,
			entry.Shape,
			data[end:end+size],
		)
		end += size
	}
	if end != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes belong to no tensor", int64(len(data))-end)
	}
	return set, nil
}

// bytes returns the length of a tensor in bytes, computed from its type and shape.
func (e entry) bytes() (int64, error) {
	k, ok := kinds[e.Type]
	if !ok {
		return 0, fmt.Errorf("type %.20q cannot be read: F32, F16 and BF16 can", e.Type)
	}
	return tensor.SizeOf(e.Shape, 1, k.size)
}
