package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Piece is one entry of the vocabulary; its id is its index in File.Pieces.
type Piece struct {
	Text  string
	Score float32 // natural logarithm of its probability
}

// Named is a matrix and its name.
type Named struct {
	Name string
	Matrix
}

// File is a whole model.
type File struct {
	Name     string // identifies vectors: those of different models cannot be compared
	Pieces   []Piece
	Matrices []Named
}

const (
	magic   = "SATCHENC"
	version = 1
)

// checksum is the last value of a file, of all that is before it.
func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// Matrix returns the matrix with a name, or an error that names it if it is
// missing or has another size.
func (f *File) Matrix(name string, rows, columns int) (Matrix, error) {
	for _, m := range f.Matrices {
		if m.Name != name {
			continue
		}
		if m.Rows != rows || m.Columns != columns {
			return Matrix{}, fmt.Errorf("modelfile: %s is %d×%d, want %d×%d", name, m.Rows, m.Columns, rows, columns)
		}
		return m.Matrix, nil
	}
	return Matrix{}, fmt.Errorf("modelfile: no matrix %s", name)
}

// Encode encodes the file. The same content always gives the same bytes. It
// fails if a name or piece is longer than 65,535 bytes.
func Encode(f *File) ([]byte, error) {
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b, err := appendString(b, f.Name)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Pieces)))
	for _, p := range f.Pieces {
		var long error
		b, long = appendString(b, p.Text)
		err = errors.Join(err, long)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Score))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Matrices)))
	for _, m := range f.Matrices {
		var long error
		b, long = appendString(b, m.Name)
		err = errors.Join(err, long)
		b = append(b, byte(m.kind))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.Rows))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.Columns))
		b = append(b, m.scales...)
		b = append(b, m.values...)
	}
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint32(b, checksum(b)), nil
}

func appendString(b []byte, s string) ([]byte, error) {
	if len(s) > math.MaxUint16 {
		return b, fmt.Errorf("modelfile: a string of %d bytes", len(s))
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...), nil
}
