// Package terms splits text into words for full-text search: it cuts scripts without
// spaces into n-grams that an index can hold, and normalizes words like the FTS5
// tokenizer of the schema, "porter unicode61 remove_diacritics 2", with combining
// marks as parts of words.
package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Run is a part of a text in one kind of script.
type Run struct {
	Text string
	Gram int // length of the n-grams to cut it into; 0: words are separated by spaces
}

// unspacedScripts lists the scripts that put no spaces between words or, like Korean, attach
// particles to them. A word has about two characters in Chinese, Japanese and Korean,
// and about three in the others, which write vowels as marks.
var unspacedScripts = []struct {
	script *unicode.RangeTable
	gram   int
}{
	{unicode.Han, 2}, {unicode.Hiragana, 2}, {unicode.Katakana, 2}, {unicode.Hangul, 2},
	{unicode.Thai, 3}, {unicode.Lao, 3}, {unicode.Khmer, 3}, {unicode.Myanmar, 3},
}

// firstUnspaced is below all characters of these scripts.
const firstUnspaced = 0x0E00

// gramOf returns the length of the n-grams for r's script, or 0.
func gramOf(r rune) int {
	switch {
	case r < firstUnspaced:
		return 0
	case r == 'ー' || r == 'ｰ': // the mark of a long vowel, which belongs to no script
		return 2
	case !unicode.In(r, unicode.L, unicode.N, unicode.M):
		return 0
	}
	for _, u := range unspacedScripts {
		if unicode.Is(u.script, r) {
			return u.gram
		}
	}
	return 0
}

// Runs splits a text where the kind of script changes. Marks stay with the character
// before them.
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

// Grams returns the overlapping n-grams that cover a run, or the run itself if it is
// not longer than one.
func (r Run) Grams() []string {
	at := make([]int, 0, len(r.Text)) // offsets of the characters
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

// Short reports whether a run is shorter than its n-grams, so that it can only match
// the beginning of one.
func (r Run) Short() bool {
	return utf8.RuneCountInString(r.Text) < r.Gram
}

// Separate returns a text in the form to be indexed: runs without spaces are cut
// into n-grams, and the last n-gram also into its endings, so that a word of the
// index begins at every character. Other texts are returned unchanged.
func Separate(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return gramOf(r) > 0 }) {
		return text
	}
	var builder strings.Builder
	for _, run := range Runs(text) {
		if run.Gram == 0 {
			builder.WriteString(run.Text)
			continue
		}
		grams := run.Grams()
		for _, g := range grams {
			builder.WriteByte(' ')
			builder.WriteString(g)
		}
		for last := grams[len(grams)-1]; ; {
			_, size := utf8.DecodeRuneInString(last)
			if last = last[size:]; last == "" {
				break
			}
			builder.WriteByte(' ')
			builder.WriteString(last)
		}
		builder.WriteByte(' ')
	}
	return builder.String()
}
