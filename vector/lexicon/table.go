package lexicon

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
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
	cells string // dims/8 groups of 5 bytes per row
}

// Load returns the table in the binary. The first call decodes it, which takes
// a few milliseconds and 3 MB. An error means that the program was built with
// a damaged file.
func Load() (*Table, error) { return loaded() }

var loaded = sync.OnceValues(func() (*Table, error) {
	return Decode(packed)
})

// The file format: the magic number; the numbers of words and dimensions and
// the length of the word list (uint32, little-endian); the words, each
// followed by a newline, the most frequent first; a float32 for each word; the
// levels of each word, eight to a group of 5 bytes, the lowest five bits first;
// and a CRC-32C of everything before. A word's vector is its levels times its
// float32, which includes the word's weight.
const (
	magic    = "LEX2"
	header   = len(magic) + 3*4
	maxWords = 1 << 20
	maxDims  = 1 << 10
)

// levels are those of the quantizer with 32 levels that has the least squared error
// for normally distributed numbers: J. Max, "Quantizing for Minimum Distortion" (1960).
var levels = [32]float32{
	-3.263, -2.692, -2.319, -2.029, -1.788, -1.577, -1.387, -1.212, -1.049, -0.8947, -0.7473, -0.6050, -0.4668, -0.3314,
	-0.1981, -0.0659, 0.0659, 0.1981, 0.3314, 0.4668, 0.6050, 0.7473, 0.8947, 1.049, 1.212, 1.387, 1.577, 1.788, 2.029,
	2.319, 2.692, 3.263,
}

// A group is the levels of 8 numbers in 5 bytes.
const groupDims, groupBytes = 8, 5

// checksum is the last value of a table file, of all that is before it.
func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

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
	if words > maxWords ||
		dims < 1 ||
		dims%groupDims > 0 ||
		dims > maxDims ||
		len(body) != header+list+words*(4+rowBytes(dims)) {
		return nil, errDamaged
	}
	table := &Table{
		dims:  dims,
		rows:  make(map[string]int32, words),
		scale: make([]float32, words),
	}
	for word := range strings.Lines(body[header:][:list]) {
		table.rows[strings.TrimSuffix(word, "\n")] = int32(len(table.rows))
	}
	if len(table.rows) != words {
		return nil, errDamaged
	}
	scales := []byte(body[header+list:][:4*words])
	for i := range table.scale {
		table.scale[i] = math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:]))
	}
	table.cells = body[header+list+4*words:]
	return table, nil
}

// rowBytes returns the size of a row without its scale.
func rowBytes(dims int) int { return dims / groupDims * groupBytes }

// Encode encodes words and their vectors, which must have the same length, a multiple
// of 8. Each vector is quantized to 5 bits with its own scale.
func Encode(words []string, vectors [][]float32) []byte {
	list := strings.Join(words, "\n") + "\n"
	file := []byte(magic)
	for _, n := range []int{len(words), len(vectors[0]), len(list)} {
		file = binary.LittleEndian.AppendUint32(file, uint32(n))
	}
	file = append(file, list...)
	var cells []byte
	for _, v := range vectors {
		scale, codes := quantize(v)
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(scale)))
		for group := range slices.Chunk(codes, groupDims) {
			var bits uint64
			for i, code := range group {
				bits |= uint64(code) << (5 * i)
			}
			cells = append(cells, binary.LittleEndian.AppendUint64(nil, bits)[:groupBytes]...)
		}
	}
	file = append(file, cells...)
	return binary.LittleEndian.AppendUint32(file, checksum(file))
}

// quantize returns a scale and the indexes of the levels whose products are close to
// vector. It starts with vector's standard deviation and takes turns to find the best levels
// for the scale and the best scale for the levels.
func quantize(vector []float32) (scale float64, codes []byte) {
	var squares float64
	for _, x := range vector {
		squares += float64(x) * float64(x)
	}
	scale = max(math.Sqrt(squares/float64(len(vector))), 1e-30)
	codes = make([]byte, len(vector))
	for range 5 {
		var product, norm float64
		for i, x := range vector {
			codes[i] = nearestLevel(float64(x) / scale)
			level := float64(levels[codes[i]])
			product += float64(x) * level
			norm += level * level
		}
		scale = max(product/norm, 1e-30)
	}
	return scale, codes
}

// nearestLevel returns the index of the level that is closest to x.
func nearestLevel(x float64) byte {
	best := 0
	for i, level := range levels {
		if math.Abs(x-float64(level)) < math.Abs(x-float64(levels[best])) {
			best = i
		}
	}
	return byte(best)
}

// Knows reports whether a lower-case word, or one that it is a form of, is known.
func (t *Table) Knows(word string) bool {
	return functionWords[word] || t.row(word) >= 0
}

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
	size := rowBytes(t.dims)
	for cells := t.cells[int(row)*size:][:size]; len(cells) >= groupBytes; cells = cells[groupBytes:] {
		low := uint32(cells[0]) | uint32(cells[1])<<8 | uint32(cells[2])<<16 | uint32(cells[3])<<24
		high := low>>20 | uint32(cells[4])<<12
		group := (*[groupDims]float32)(sum)
		group[0] += weight * levels[low%32]
		group[1] += weight * levels[low>>5%32]
		group[2] += weight * levels[low>>10%32]
		group[3] += weight * levels[low>>15%32]
		group[4] += weight * levels[high%32]
		group[5] += weight * levels[high>>5%32]
		group[6] += weight * levels[high>>10%32]
		group[7] += weight * levels[high>>15%32]
		sum = sum[groupDims:]
	}
}
