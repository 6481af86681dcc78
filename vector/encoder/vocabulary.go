package encoder

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"satchel/vector/encoder/internal/unigram"
	"satchel/vector/internal/modelfile"
)

const (
	// reserved is the number of ids at the start without text: unknown, the
	// beginning and end of a sentence, and three spare ones.
	reserved = 6
	unknown  = 0

	// boundary marks a space, and the start of the text.
	boundary = "\u2581"
)

// newVocabulary returns the vocabulary of a model file.
func newVocabulary(pieces []modelfile.Piece) *unigram.Vocabulary {
	list := make([]unigram.Piece, len(pieces))
	for id, p := range pieces {
		if id >= reserved {
			list[id] = unigram.Piece{Text: p.Text, Score: float64(p.Score)}
		}
	}
	return unigram.New(list, unknown)
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
