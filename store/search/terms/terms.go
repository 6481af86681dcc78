// Package terms splits text into words for full text search: it cuts scripts
// without spaces into n-grams that an index can hold, and normalizes words like
// the FTS5 tokenizer of the schema, "porter unicode61 remove_diacritics 2",
// with combining marks as parts of words.
package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Run is a part of a text in one kind of script.
type Run struct {
	Text string
	Gram int // characters of the pieces to cut it into; 0: words have spaces between them
}

// unspaced are the scripts that put no spaces between words, or, as Korean,
// join particles to them. Two characters of Chinese, Japanese and Korean are
// about a word; of the others, which write vowels as marks, three are.
var unspaced = []struct {
	script *unicode.RangeTable
	gram   int
}{
	{unicode.Han, 2}, {unicode.Hiragana, 2}, {unicode.Katakana, 2}, {unicode.Hangul, 2},
	{unicode.Thai, 3}, {unicode.Lao, 3}, {unicode.Khmer, 3}, {unicode.Myanmar, 3},
}

// firstUnspaced is below all of these scripts but Hangul's Jamo, which come
// later too.
const firstUnspaced = 0x0E00

// gramOf returns how many characters of r's script make a piece, or 0.
func gramOf(r rune) int {
	switch {
	case r < firstUnspaced:
		return 0
	case r == 'ー' || r == 'ｰ': // the mark of a long vowel, which no script owns
		return 2
	case !unicode.In(r, unicode.L, unicode.N, unicode.M):
		return 0
	}
	for _, u := range unspaced {
		if unicode.Is(u.script, r) {
			return u.gram
		}
	}
	return 0
}

// Runs cuts a text where its kind of script changes. Marks stay with the
// character before them.
func Runs(text string) []Run {
	var runs []Run
	start, gram := 0, 0
	for i, r := range text {
		g := gramOf(r)
		if g == 0 && unicode.IsMark(r) {
			g = gram
		}
		if g != gram {
			if i > start {
				runs = append(runs, Run{text[start:i], gram})
			}
			start, gram = i, g
		}
	}
	if start < len(text) {
		runs = append(runs, Run{text[start:], gram})
	}
	return runs
}

// Grams are the pieces of a run that overlap and cover it, or the run itself
// when it is no longer than a piece.
func (r Run) Grams() []string {
	at := make([]int, 0, len(r.Text)) // where characters begin
	for i := range r.Text {
		at = append(at, i)
	}
	at = append(at, len(r.Text))
	if len(at)-1 <= r.Gram {
		return []string{r.Text}
	}
	grams := make([]string, 0, len(at)-r.Gram)
	for i := 0; i+r.Gram < len(at); i++ {
		grams = append(grams, r.Text[at[i]:at[i+r.Gram]])
	}
	return grams
}

// Short reports whether a run is shorter than its pieces, so that only the
// beginnings of pieces can equal it.
func (r Run) Short() bool { return utf8.RuneCountInString(r.Text) < r.Gram }

// Separate returns a text as the index is to see it: runs without spaces are
// cut into their grams, and the last of them into what it ends with, so that
// every character begins a word of the index. Other texts come back unchanged.
func Separate(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return gramOf(r) > 0 }) {
		return text
	}
	var b strings.Builder
	for _, run := range Runs(text) {
		if run.Gram == 0 {
			b.WriteString(run.Text)
			continue
		}
		grams := run.Grams()
		for _, g := range grams {
			b.WriteByte(' ')
			b.WriteString(g)
		}
		for last := grams[len(grams)-1]; ; {
			_, size := utf8.DecodeRuneInString(last)
			if last = last[size:]; last == "" {
				break
			}
			b.WriteByte(' ')
			b.WriteString(last)
		}
		b.WriteByte(' ')
	}
	return b.String()
}
