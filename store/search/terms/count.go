package terms

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Term is a word, or words in a row.
type Term struct {
	Text   string
	Prefix bool // the last word may be the beginning of one
}

// Counter counts how often terms occur in texts. It is for one goroutine at a
// time.
type Counter struct {
	words    map[string]int32 // stems that terms are made of, numbered from 1
	first    [256]bool        // bytes that stems begin with
	prefixes []prefix
	terms    [][]int32
	found    []int32 // the numbers of a text's words, in their order
	buf      []byte
}

type prefix struct {
	text string
	term int
}

// NewCounter prepares the counting of terms. Of those with a prefix only single
// words are counted.
func NewCounter(list []Term) *Counter {
	c := &Counter{words: map[string]int32{}, terms: make([][]int32, len(list))}
	for i, t := range list {
		c.each(t.Text, func(word []byte) {
			word = fold(word)
			if len(word) == 0 {
				return
			}
			if t.Prefix {
				c.prefixes = append(c.prefixes, prefix{string(word), i})
				return
			}
			w := string(stem(word))
			if c.words[w] == 0 {
				c.words[w] = int32(len(c.words) + 1)
				c.first[w[0]] = true
			}
			c.terms[i] = append(c.terms[i], c.words[w])
		})
	}
	return c
}

// Count adds to counts how often each term occurs in a text, and returns how
// many words the text has.
func (c *Counter) Count(text string, counts []int) (words int) {
	c.found = c.found[:0]
	c.each(text, func(word []byte) {
		words++
		c.found = append(c.found, c.number(word, counts))
	})
	for i, n := range c.found {
		if n == 0 {
			continue
		}
		for t, term := range c.terms {
			if len(term) > 0 && term[0] == n && len(c.found)-i >= len(term) && slices.Equal(c.found[i:i+len(term)], term) {
				counts[t]++
			}
		}
	}
	return words
}

// number returns the number of a word, 0 when no term has it, and counts the
// terms that it begins with.
func (c *Counter) number(word []byte, counts []int) int32 {
	ascii := word[0] < utf8.RuneSelf
	if ascii && len(c.prefixes) == 0 && !c.first[lowerASCII(word[0])] {
		return 0 // a stem begins as its word does
	}
	word = fold(word)
	if len(word) == 0 {
		return 0
	}
	for _, p := range c.prefixes {
		if strings.HasPrefix(string(word), p.text) {
			counts[p.term]++
		}
	}
	if !c.first[word[0]] {
		return 0
	}
	return c.words[string(stem(word))]
}

// each calls fn with the words of a text as they are written. What fn gets is
// overwritten with the next.
func (c *Counter) each(text string, fn func(word []byte)) {
	eachWord(text, func(from, to int) {
		c.buf = append(c.buf[:0], text[from:to]...)
		fn(c.buf)
	})
}

// wordChar returns the length of the character that text begins with, 0 when no
// word holds it.
func wordChar(text string) int {
	if c := text[0]; c < utf8.RuneSelf {
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRuneInString(text)
	if unicode.In(r, unicode.L, unicode.N, unicode.Mn, unicode.Mc, unicode.Co) {
		return size
	}
	return 0
}

// fold makes letters small and takes the accents off them, in place where that
// is possible.
func fold(word []byte) []byte {
	for i, b := range word {
		if b >= utf8.RuneSelf {
			plain := norm.NFD.String(strings.Map(small, string(word)))
			return []byte(strings.Map(func(r rune) rune {
				if 0x300 <= r && r <= 0x36F {
					return -1
				}
				return r
			}, plain))
		}
		word[i] = lowerASCII(b)
	}
	return word
}

// small is a letter's case folding: through the capital, which letters have
// in common that differ in form alone, such as µ and μ, or ς and σ.
func small(r rune) rune {
	if r == 'ı' { // its capital is that of another letter
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func lowerASCII(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
