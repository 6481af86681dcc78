package egress

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"satchel/agent"
)

const (
	// minSecret is from which length on a secret is masked in an answer, in bytes. Shorter
	// texts occur by chance, and to mask them would spoil answers.
	minSecret = 8
	// minMixed is the same of a secret that is neither a word nor a number.
	minMixed = 6
	// overlap is how many bytes the pieces of a long secret have in common.
	overlap = 12
	// maxPattern is the length of the pieces in which a secret is sought, in bytes.
	// It bounds the time for each byte of an answer, and how many bytes of a stream are
	// held back.
	maxPattern = 64
	// minWrapped is how many characters stand before a line break in base64. Fewer would
	// hold back the ends of lines.
	minWrapped = 4
	// maxRun bounds the line breaks or backslashes that stand together, and at how many
	// places a match may go on.
	maxRun = 16
)

// Masker replaces secrets in received text, in whatever form the text has them:
// plain, in upper or lower case, percent-encoded, escaped as in JSON or HTML, in base64 at any offset of a
// longer text, in hexadecimal, in UTF-16. Secrets that are too short are not masked.
// A nil Masker replaces nothing.
type Masker struct {
	byFirst map[rune][]*pattern // by the character or byte with which they begin
	pairs   pairs
}

// pattern is a text to find.
type pattern struct {
	chars []rune
	raw   bool // chars are bytes, which stand there without escapes
	fold  bool // letters are in lower case and match those in upper case
	wraps bool // may have line breaks in it
	mask  string
}

// NewMasker returns a Masker of secrets, or nil if none of them is long enough.
func NewMasker(secrets []string) *Masker {
	seen := map[string]bool{}
	var m *Masker
	for _, secret := range secrets {
		if !maskable(secret) || seen[secret] {
			continue
		}
		if m == nil {
			m = &Masker{byFirst: map[rune][]*pattern{}, pairs: escapePairs()}
		}
		seen[secret] = true
		for _, piece := range pieces(secret) {
			m.add(piece)
		}
	}
	return m
}

// maskable reports whether a secret is masked: it has at least 8 bytes, or at least 6 if
// letters, digits and other characters are mixed in it.
func maskable(secret string) bool {
	if len(secret) >= minSecret || len(secret) < minMixed {
		return len(secret) >= minSecret && secret != agent.Mask
	}
	letter := strings.ContainsFunc(secret, unicode.IsLetter)
	digit := strings.ContainsFunc(secret, unicode.IsDigit)
	other := strings.ContainsFunc(secret, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return letter && (digit || other) || digit && other
}

// pieces splits a secret into parts of at most maxPattern bytes that overlap, so that in
// base64 no character between them remains.
func pieces(secret string) (parts []string) {
	for len(secret) > maxPattern {
		end, next := maxPattern, maxPattern-overlap
		for end > overlap && !utf8.RuneStart(secret[end]) {
			end--
		}
		for next > 0 && !utf8.RuneStart(secret[next]) {
			next--
		}
		parts, secret = append(parts, secret[:end]), secret[max(next, 1):]
	}
	return append(parts, secret)
}

// add adds the patterns of a text.
func (m *Masker) add(text string) {
	for _, spelled := range []string{text, strings.ToUpper(text), strings.ToLower(text)} {
		m.put(&pattern{chars: charsOf(spelled), mask: agent.Mask})
	}
	m.put(&pattern{
		chars: bytesOf(hex.EncodeToString([]byte(text))),
		raw:   true,
		fold:  true,
		mask:  agent.Mask,
	})
	for offset := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			// The first and the last character also depend on what stands beside the text.
			encoded := encoding.EncodeToString(append(make([]byte, offset), text...))
			encoded = encoded[(offset*8+5)/6 : (offset+len(text))*8/6]
			m.put(&pattern{
				chars: []rune(encoded),
				wraps: true,
				mask:  agent.Mask,
			})
		}
	}
	little, big := wide(text)
	littleMask, bigMask := wide(agent.Mask)
	m.put(&pattern{
		chars: bytesOf(little),
		raw:   true,
		mask:  littleMask,
	})
	m.put(&pattern{
		chars: bytesOf(big),
		raw:   true,
		mask:  bigMask,
	})
}

// wide returns a text in UTF-16, in both byte orders.
func wide(text string) (little, big string) {
	var l, b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		l, b = append(l, byte(u), byte(u>>8)), append(b, byte(u>>8), byte(u))
	}
	return string(l), string(b)
}

// put adds a pattern, unless it is there already.
func (m *Masker) put(p *pattern) {
	same := func(q *pattern) bool {
		return q.raw == p.raw && q.wraps == p.wraps && slices.Equal(q.chars, p.chars)
	}
	if slices.ContainsFunc(m.byFirst[p.chars[0]], same) {
		return
	}
	for _, first := range p.cases(0) {
		m.byFirst[first] = append(m.byFirst[first], p)
		switch seconds := anyByte; {
		case first >= utf8.RuneSelf: // whose bytes have all pairs
		case first == ' ':
			m.pairs.add('+', anyByte)
			fallthrough
		default:
			if plain(byte(first)) && len(p.chars) > 1 {
				seconds = string(p.cases(1)) + special
			}
			m.pairs.add(byte(first), seconds)
			m.pairs.add('\\', string(first))
		}
	}
}

// pairs has a bit for each two bytes with which a pattern may begin in a text, which few
// places have.
type pairs [256][4]uint64

func (p *pairs) add(first byte, seconds string) {
	for _, second := range []byte(seconds) {
		p[first][second>>6] |= 1 << (second & 63)
	}
}

// anyByte has all bytes.
var anyByte = func() string {
	var all [256]byte
	for b := range all {
		all[b] = byte(b)
	}
	return string(all[:])
}()

// escapePairs returns the pairs with which the spellings of any character may begin.
var escapePairs = sync.OnceValue(func() (p pairs) {
	for first := utf8.RuneSelf; first < 256; first++ {
		p.add(byte(first), anyByte)
	}
	p.add('%', "0123456789abcdefABCDEF")
	p.add('&', "#abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	p.add('\\', `\uxnrt`)
	return p
})

// cases returns what may stand in the place of a character of the pattern, except for its
// spellings.
func (p *pattern) cases(i int) []rune {
	if char := p.chars[i]; p.fold && unicode.IsLetter(char) {
		return []rune{char, unicode.ToUpper(char)}
	}
	return p.chars[i : i+1]
}

// Replace returns a text with the secrets in it replaced by agent.Mask.
func (m *Masker) Replace(text string) string {
	if m == nil {
		return text
	}
	out, _, _ := m.mask(nil, []byte(text), 0, true)
	return string(out)
}

// mask appends text with its secrets masked to out. covered is how many bytes at its
// beginning belong to a secret whose mask was written before. Unless the text is final,
// held is its end, which may begin a secret, and covered is the same of it.
func (m *Masker) mask(out, text []byte, covered int, final bool) (masked, held []byte, coveredHeld int) {
	done := covered // bytes of text in out, or masked
	for at := range text {
		if at+1 < len(text) && m.pairs[text[at]][text[at+1]>>6]>>(text[at+1]&63)&1 == 0 {
			continue
		}
		end, found, cut := m.longest(text, at)
		if cut && !final {
			return append(out, text[min(done, at):at]...), text[at:], max(done-at, 0)
		}
		if found == nil {
			continue
		}
		if at > done || done == 0 { // else it continues the one before
			out = append(append(out, text[done:at]...), found.mask...)
		}
		done = max(done, end)
	}
	return append(out, text[done:]...), nil, 0
}

// longest returns the longest match of patterns at a place. cut reports that a longer
// text could match, too.
func (m *Masker) longest(text []byte, at int) (end int, found *pattern, cut bool) {
	try := func(first rune) {
		for _, p := range m.byFirst[first] {
			to, unfinished := p.match(text, at)
			cut = cut || unfinished
			if to > end {
				end, found = to, p
			}
		}
	}
	if plain(text[at]) {
		try(rune(text[at]))
		return end, found, cut
	}
	s := read(text, at)
	cut = s.cut
	for _, one := range s.list[:s.n] {
		try(one.char)
	}
	return end, found, cut
}

// match returns where a pattern that begins at a place ends: 0 if it does not stand there.
// cut reports that the text ends before this is decided.
func (p *pattern) match(text []byte, at int) (end int, cut bool) {
	for i, char := range p.chars {
		if at == len(text) {
			return 0, true
		}
		b := text[at]
		switch {
		case rune(b) == char && (p.raw || plain(b)), p.fold && 'A' <= b && b <= 'Z' && rune(b|0x20) == char:
			at++
		case p.raw || plain(b) && !p.breaks(i, rune(b)):
			return 0, false
		default:
			return p.matchSpelled(text, at, i)
		}
	}
	return at, false
}

// matchSpelled is match from the character i on, where characters may be spelled in several
// ways, which can lead to the same place.
func (p *pattern) matchSpelled(text []byte, at, index int) (end int, cut bool) {
	now, next := append(make([]int, 0, maxRun), at), make([]int, 0, maxRun)
	var reach func(place, breaks int)
	reach = func(place, breaks int) {
		if place == len(text) {
			cut = true
			return
		}
		s := read(text, place)
		cut = cut || s.cut
		for _, one := range s.list[:s.n] {
			switch {
			case p.breaks(index, one.char) && breaks < maxRun:
				reach(one.end, breaks+1)
			case one.char == p.chars[index] &&
				len(next) < maxRun &&
				!slices.Contains(next, one.end):
				next = append(next, one.end)
			}
		}
	}
	for ; index < len(p.chars) && len(now) > 0; index++ {
		for _, place := range now {
			reach(place, 0)
		}
		for k := 0; p.chars[index] == '\\' && k < len(next); k++ { // several may stand for one
			reach(next[k], 0)
		}
		now, next = next, now[:0]
	}
	if len(now) == 0 {
		return 0, cut
	}
	return slices.Max(now), cut
}

// breaks reports whether a character is a line break that may stand before one of the pattern.
func (p *pattern) breaks(i int, char rune) bool {
	return p.wraps && i >= minWrapped && (char == '\r' || char == '\n')
}
