package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"satchel/vector/internal/modelfile"
)

// source is the published model: its vocabulary and its float32 matrices.
type source struct {
	pieces   []modelfile.Piece
	matrices map[string]weights
}

// weights is one published matrix; a vector is a matrix with one row.
type weights struct {
	rows, columns int
	values        []float32
}

func openSource(tarball string) (*source, error) {
	files, err := readTarball(tarball)
	if err != nil {
		return nil, err
	}
	s := &source{}
	if s.matrices, err = parseWeights(files); err != nil {
		return nil, err
	}
	s.pieces, err = parseVocabulary(files["vocab.json"])
	return s, err
}

// manifest is the part of TensorFlow.js's model.json with the positions of the
// values: one after another, over all shards in order.
type manifest struct {
	WeightsManifest []struct {
		Paths   []string
		Weights []struct {
			Name  string
			DType string
			Shape []int
		}
	}
}

func parseWeights(files map[string][]byte) (map[string]weights, error) {
	var m manifest
	if err := json.Unmarshal(files["model.json"], &m); err != nil {
		return nil, fmt.Errorf("model.json: %w", err)
	}
	matrices := map[string]weights{}
	for _, group := range m.WeightsManifest {
		var data []byte
		for _, shard := range group.Paths {
			data = append(data, files[shard]...)
		}
		for _, w := range group.Weights {
			size := 1
			for _, n := range w.Shape {
				size *= n
			}
			if size < 0 || size > len(data)/4 {
				return nil, fmt.Errorf("%s lies past the end of the shards", w.Name)
			}
			if w.DType == "float32" {
				matrices[w.Name] = shaped(w.Shape, data[:4*size])
			}
			data = data[4*size:] // int32, the only other type, has four bytes too
		}
		if len(data) > 0 {
			return nil, fmt.Errorf("%d bytes of the shards are unaccounted for", len(data))
		}
	}
	return matrices, nil
}

// shaped decodes little-endian floats; all dimensions but the last are rows.
func shaped(shape []int, data []byte) weights {
	w := weights{columns: 1, values: make([]float32, len(data)/4)}
	if len(shape) > 0 {
		w.columns = shape[len(shape)-1]
	}
	for i := range w.values {
		w.values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	w.rows = len(w.values) / max(1, w.columns)
	return w
}

// transpose swaps rows and columns.
func (w weights) transpose() weights {
	t := weights{w.columns, w.rows, make([]float32, len(w.values))}
	for r := range w.rows {
		for c := range w.columns {
			t.values[c*t.columns+r] = w.values[r*w.columns+c]
		}
	}
	return t
}

// firstScored is the first id with text; the ids before it are markers without
// a probability.
const firstScored = 6

// parseVocabulary parses pairs of text and score, the natural logarithm of the
// piece's probability.
func parseVocabulary(data []byte) ([]modelfile.Piece, error) {
	var pairs [][2]any
	if err := json.Unmarshal(data, &pairs); err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	pieces := make([]modelfile.Piece, len(pairs))
	for i, pair := range pairs {
		text, ok := pair[0].(string)
		if !ok {
			return nil, fmt.Errorf("vocab.json: entry %d has no text", i)
		}
		score, _ := pair[1].(float64)
		pieces[i] = modelfile.Piece{Text: text, Score: float32(score)}
	}
	return pieces, repairScores(pieces)
}

// repairScores sets the scores of the nine pieces with a colon, which are
// wrong in the published vocabulary (null, 0, and for ":30" even 30). The list
// is sorted by descending score, so the mean of the neighbours is accurate to
// two decimals.
func repairScores(pieces []modelfile.Piece) error {
	for i := firstScored; i < len(pieces); i++ {
		if pieces[i].Score < 0 {
			continue
		}
		if i == firstScored || i+1 == len(pieces) || pieces[i+1].Score >= 0 {
			return fmt.Errorf("vocab.json: piece %d and a neighbour have no score", i)
		}
		pieces[i].Score = (pieces[i-1].Score + pieces[i+1].Score) / 2
	}
	if !slices.IsSortedFunc(pieces[min(firstScored, len(pieces)):], func(a, b modelfile.Piece) int {
		return cmp.Compare(b.Score, a.Score)
	}) {
		return errors.New("vocab.json: it is not sorted by score")
	}
	return nil
}
