// Package unigram splits text into the most likely pieces of a vocabulary: the
// unigram model of Kudo, "Subword Regularization" (2018), as in SentencePiece.
package unigram

import (
	"math"
	"unicode/utf8"
)

// unknownPenalty is how much less likely an unknown character is than the
// rarest piece, as in SentencePiece.
const unknownPenalty = 10

// Piece is one entry of a vocabulary; its id is its index. One without text is
// never found.
type Piece struct {
	Text  string
	Score float64
}

// Vocabulary is a list of pieces, ready for use. It is safe for concurrent use.
type Vocabulary struct {
	pieces       trie
	scores       []float64
	unknown      int32
	unknownScore float64
}

// New returns the vocabulary of pieces. unknown is the id of a run of
// characters that no piece has.
func New(pieces []Piece, unknown int32) *Vocabulary {
	v := &Vocabulary{scores: make([]float64, len(pieces)), unknown: unknown}
	texts := make([]string, len(pieces))
	for id, p := range pieces {
		if p.Text == "" {
			continue
		}
		texts[id] = p.Text
		v.scores[id] = p.Score
		v.unknownScore = min(v.unknownScore, p.Score)
	}
	v.unknownScore -= unknownPenalty
	v.pieces = newTrie(texts)
	return v
}

// step is the best way to reach a position of the text: the last piece, and
// where it starts.
type step struct {
	score float64
	from  int32
	id    int32
}

// Tokens returns the ids of the most likely pieces that make up the text; a
// run of unknown characters is one id. Of equally likely ways the one with the
// shortest last piece is used, as in the reference implementation.
func (v *Vocabulary) Tokens(text string) []int32 {
	path := make([]step, len(text)+1)
	for i := range path[1:] {
		path[i+1].score = math.Inf(-1)
	}
	for at := 0; at < len(text); {
		_, width := utf8.DecodeRuneInString(text[at:])
		score := path[at].score
		known := false
		for node, end := root, at; end < len(text); {
			if node = v.pieces.child(node, text[end]); node < 0 {
				break
			}
			end++
			if id := v.pieces.id[node]; id >= 0 {
				reach(&path[end], step{score + v.scores[id], int32(at), id})
				known = known || end == at+width
			}
		}
		if !known {
			reach(&path[at+width], step{score + v.unknownScore, int32(at), v.unknown})
		}
		at += width
	}
	return v.retrace(path)
}

// reach keeps the better of two ways to a position.
func reach(best *step, s step) {
	if s.score >= best.score {
		*best = s
	}
}

// retrace follows the best way back from the end of the text and returns the
// ids in reading order.
func (v *Vocabulary) retrace(path []step) []int32 {
	count, last := 0, int32(-1)
	for at := len(path) - 1; at > 0; at = int(path[at].from) {
		if id := path[at].id; id != v.unknown || last != v.unknown {
			count++
		}
		last = path[at].id
	}
	ids := make([]int32, count)
	last = -1
	for at := len(path) - 1; at > 0; at = int(path[at].from) {
		id := path[at].id
		if id != v.unknown || last != v.unknown {
			count--
			ids[count] = id
		}
		last = id
	}
	return ids
}
