package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt means that the bytes are not a complete model file.
var ErrCorrupt = errors.New("modelfile: corrupt")

// Decode decodes a file written by Encode. The matrices share data's memory, so data
// must not change while they are in use. It accepts any bytes: an incomplete
// or damaged file is ErrCorrupt, and a file of another version is an error
// that names both versions.
func Decode(data []byte) (*File, error) {
	if len(data) < len(magic)+8 || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %s", ErrCorrupt, magic)
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if checksum(body) != sum {
		return nil, fmt.Errorf("%w: the checksum differs", ErrCorrupt)
	}
	r := reader{rest: body[len(magic):]}
	if v := r.uint32(); v != version {
		return nil, fmt.Errorf("modelfile: version %d, this program reads version %d", v, version)
	}
	f := &File{Name: r.string()}
	for range r.count() {
		f.Pieces = append(f.Pieces, Piece{Text: r.string(), Score: math.Float32frombits(r.uint32())})
	}
	for range r.count() {
		f.Matrices = append(f.Matrices, Named{r.string(), r.matrix()})
	}
	if r.short || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: its parts do not fill it", ErrCorrupt)
	}
	return f, nil
}

// reader reads values from the front of a file. Past the end it returns zeros
// and records that it did.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// count reads the number of entries that follow. Each takes at least six
// bytes, so a larger number is rejected.
func (r *reader) count() int {
	n := r.uint32()
	if uint64(n)*6 > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	return string(r.take(uint64(binary.LittleEndian.Uint16(b))))
}

func (r *reader) matrix() Matrix {
	head := r.take(1)
	if head == nil {
		return Matrix{}
	}
	m := Matrix{
		kind:    kind(head[0]),
		Rows:    int(r.uint32()),
		Columns: int(r.uint32()),
	}
	size := uint64(m.Rows) * uint64(m.Columns)
	switch {
	case size > math.MaxUint32: // larger than any matrix here, and 4·size must not overflow
		r.short = true
	case m.kind == kindFloat:
		m.values = r.take(4 * size)
	case m.kind == kindBlock && m.Columns%Block == 0:
		m.scales = r.take(size / Block * 2)
		m.values = r.take(size)
	default:
		r.short = true
	}
	return m
}
