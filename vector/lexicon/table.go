package lexicon

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"sync"
)

// packed is the table file. It is a string so that it stays in the binary's
// read-only pages.
//
//go:embed table.bin
var packed string

// Table has a vector for each known word. It is safe for concurrent use.
type Table struct {
	dims  int
	rows  map[string]int32
	scale []float32
	cells string // dims signed bytes per row
}

// Load returns the table in the binary. The first call decodes it, which takes
// a few milliseconds and 3 MB. An error means that the program was built with
// a damaged file.
func Load() (*Table, error) { return loaded() }

var loaded = sync.OnceValues(func() (*Table, error) { return Decode(packed) })

// The file format: the magic number; the numbers of words and dimensions and
// the length of the word list (uint32, little-endian); the words, each
// followed by a newline, the most frequent first; a float32 for each word; the
// signed bytes of each word; and a CRC-32C of everything before. A word's
// vector is its bytes times its float32, which includes the word's weight.
const (
	magic    = "LEX1"
	header   = len(magic) + 3*4
	maxWords = 1 << 20
	maxDims  = 1 << 10
)

// checksum is the last value of a table file, of all that is before it.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

var errDamaged = errors.New("lexicon: the table is damaged")

// Decode decodes a table file and keeps using its memory.
func Decode(file string) (*Table, error) {
	if len(file) < header+4 || file[:len(magic)] != magic {
		return nil, errDamaged
	}
	body, sum := file[:len(file)-4], file[len(file)-4:]
	if checksum([]byte(body)) != binary.LittleEndian.Uint32([]byte(sum)) {
		return nil, errDamaged
	}
	counts := []byte(file[len(magic):header])
	words := int(binary.LittleEndian.Uint32(counts))
	dims := int(binary.LittleEndian.Uint32(counts[4:]))
	list := int(binary.LittleEndian.Uint32(counts[8:]))
	if words > maxWords || dims < 1 || dims > maxDims || len(body) != header+list+words*(4+dims) {
		return nil, errDamaged
	}
	t := &Table{dims: dims, rows: make(map[string]int32, words), scale: make([]float32, words)}
	for word := range strings.Lines(body[header:][:list]) {
		t.rows[strings.TrimSuffix(word, "\n")] = int32(len(t.rows))
	}
	if len(t.rows) != words {
		return nil, errDamaged
	}
	scales := []byte(body[header+list:][:4*words])
	for i := range t.scale {
		t.scale[i] = math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:]))
	}
	t.cells = body[header+list+4*words:]
	return t, nil
}

// Encode encodes words and their vectors, which must have the same length. Each
// vector is quantized to 8 bits with its own scale.
func Encode(words []string, vectors [][]float32) []byte {
	list := strings.Join(words, "\n") + "\n"
	file := []byte(magic)
	for _, n := range []int{len(words), len(vectors[0]), len(list)} {
		file = binary.LittleEndian.AppendUint32(file, uint32(n))
	}
	file = append(file, list...)
	var cells []byte
	for _, v := range vectors {
		var most float64
		for _, x := range v {
			most = max(most, math.Abs(float64(x)))
		}
		scale := float32(max(most, 1e-30) / math.MaxInt8)
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(scale))
		for _, x := range v {
			cells = append(cells, byte(int8(math.Round(float64(x/scale)))))
		}
	}
	file = append(file, cells...)
	return binary.LittleEndian.AppendUint32(file, checksum(file))
}

// Knows reports whether a lower-case word, or one that it is a form of, is known.
func (t *Table) Knows(word string) bool { return functionWords[word] || t.row(word) >= 0 }

// row returns the row of the known word that a word is a form of, or -1. The
// first rows are of the most frequent words.
func (t *Table) row(word string) int32 {
	base := Base(word, func(w string) int {
		if row, ok := t.rows[w]; ok {
			return len(t.scale) - int(row)
		}
		return -1
	})
	if base == "" {
		return -1
	}
	return t.rows[base]
}

// addRow adds the vector of a row, times a weight, to sum.
func (t *Table) addRow(sum []float32, row int32, weight float32) {
	weight *= t.scale[row]
	cells := t.cells[int(row)*t.dims:][:len(sum)]
	for i := range sum {
		sum[i] += weight * float32(int8(cells[i]))
	}
}
