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
func Encode(file *File) ([]byte, error) {
	data := append([]byte(nil), magic...)
	data = binary.LittleEndian.AppendUint32(data, version)
	data, err := appendString(data, file.Name)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(file.Pieces)))
	for _, p := range file.Pieces {
		var long error
		data, long = appendString(data, p.Text)
		err = errors.Join(err, long)
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(p.Score))
	}
	data = binary.LittleEndian.AppendUint32(data, uint32(len(file.Matrices)))
	for _, m := range file.Matrices {
		var long error
		data, long = appendString(data, m.Name)
		err = errors.Join(err, long)
		data = append(data, byte(m.kind))
		data = binary.LittleEndian.AppendUint32(data, uint32(m.Rows))
		data = binary.LittleEndian.AppendUint32(data, uint32(m.Columns))
		data = append(data, m.scales...)
		data = append(data, m.values...)
	}
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint32(data, checksum(data)), nil
}

func appendString(b []byte, s string) ([]byte, error) {
	if len(s) > math.MaxUint16 {
		return b, fmt.Errorf("modelfile: a string of %d bytes", len(s))
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...), nil
}
