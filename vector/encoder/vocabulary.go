package encoder

import (
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"satchel/vector/encoder/internal/modelfile"
)

const (
	// reserved is the number of ids at the start without text: unknown, the
	// beginning and end of a sentence, and three spare ones.
	reserved = 6
	unknown  = 0

	// boundary marks a space, and the start of the text.
	boundary = "\u2581"

	// unknownPenalty is how much less likely an unknown character is than the
	// rarest piece, as in SentencePiece.
	unknownPenalty = 10
)

// vocabulary splits text into pieces with the unigram model of Kudo, "Subword
// Regularization" (2018), as in SentencePiece.
type vocabulary struct {
	pieces  trie
	scores  []float64
	unknown float64 // score of an unknown character
}

func newVocabulary(pieces []modelfile.Piece) *vocabulary {
	v := &vocabulary{scores: make([]float64, len(pieces))}
	texts := make([]string, len(pieces))
	for id, p := range pieces {
		if id < reserved {
			continue
		}
		texts[id] = p.Text
		v.scores[id] = float64(p.Score)
		v.unknown = min(v.unknown, v.scores[id])
	}
	v.unknown -= unknownPenalty
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

// tokens returns the ids of the most likely pieces that make up the text; a
// run of unknown characters is one id. Of equally likely ways the one with the
// shortest last piece is used, as in the reference implementation.
func (v *vocabulary) tokens(text string) []int32 {
	text = normalize(text)
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
			reach(&path[at+width], step{score + v.unknown, int32(at), unknown})
		}
		at += width
	}
	return retrace(path)
}

// reach keeps the better of two ways to a position.
func reach(best *step, s step) {
	if s.score >= best.score {
		*best = s
	}
}

// retrace follows the best way back from the end of the text and returns the
// ids in reading order.
func retrace(path []step) []int32 {
	n, last := 0, int32(-1)
	for at := len(path) - 1; at > 0; at = int(path[at].from) {
		if id := path[at].id; id != unknown || last != unknown {
			n++
		}
		last = path[at].id
	}
	ids := make([]int32, n)
	last = -1
	for at := len(path) - 1; at > 0; at = int(path[at].from) {
		id := path[at].id
		if id != unknown || last != unknown {
			n--
			ids[n] = id
		}
		last = id
	}
	return ids
}

// truncate cuts the text to MaxText bytes, or a few less so that no character
// is split.
func truncate(text string) string {
	if len(text) <= MaxText {
		return text
	}
	cut := MaxText
	for back := 1; back < utf8.UTFMax && !utf8.RuneStart(text[cut]); back++ {
		cut--
	}
	return text[:cut]
}

// normalize converts the text to the form that the vocabulary was built from.
// The result can be eleven times as long as the text, so it is truncated too.
func normalize(text string) string {
	text = truncate(norm.NFKC.String(truncate(text)))
	if text == "" {
		return ""
	}
	return boundary + strings.ReplaceAll(text, " ", boundary)
}
