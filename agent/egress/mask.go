package egress

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
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
	// maxRun bounds the line breaks or backslashes that stand together in a spelling.
	maxRun = 16
	// maxPlaces is at how many places a spelling that is ambiguous may go on.
	maxPlaces = 8
)

// Masker replaces secrets in received text, in whatever form the text has them:
// plain, percent-encoded, escaped as in JSON or HTML, in base64 at any offset of a
// longer text, in hexadecimal, in UTF-16. Secrets that are too short are not masked.
// A nil Masker replaces nothing.
type Masker struct {
	byFirst [256][]*pattern // the patterns that may begin with a byte
	// pairs has a bit for each two bytes with which a pattern may begin, which few places
	// in a text have.
	pairs [1 << 16 / 64]uint64
}

// pattern is a text to find.
type pattern struct {
	units []unit
	exact bool // only as it is, without escapes
	fold  bool // its letters are in lower case and match those in upper case
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
			m = &Masker{}
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
	other := strings.ContainsFunc(secret, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
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
	m.put(&pattern{units: unitsOf(text), mask: agent.Mask})
	m.put(&pattern{units: bytesOf(hex.EncodeToString([]byte(text))), exact: true, fold: true, mask: agent.Mask})
	for offset := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			// The first and the last character also depend on what stands beside the text.
			encoded := encoding.EncodeToString(append(make([]byte, offset), text...))
			encoded = encoded[(offset*8+5)/6 : (offset+len(text))*8/6]
			m.put(&pattern{units: unitsOf(encoded), wraps: true, mask: agent.Mask})
		}
	}
	little, big := wide(text)
	m.put(&pattern{units: bytesOf(little), exact: true, mask: interleave(agent.Mask, "", "\x00")})
	m.put(&pattern{units: bytesOf(big), exact: true, mask: interleave(agent.Mask, "\x00", "")})
}

// wide returns a text in UTF-16, in both byte orders.
func wide(text string) (little, big string) {
	var l, b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		l, b = append(l, byte(u), byte(u>>8)), append(b, byte(u>>8), byte(u))
	}
	return string(l), string(b)
}

func interleave(text, before, after string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(before + string(r) + after)
	}
	return b.String()
}

// put adds a pattern, unless it is there already.
func (m *Masker) put(p *pattern) {
	for _, pair := range p.pairs() {
		m.pairs[int(pair[0])<<2|int(pair[1])>>6] |= 1 << (pair[1] & 63)
		same := func(q *pattern) bool {
			return q == p || q.exact == p.exact && q.wraps == p.wraps && slices.Equal(q.units, p.units)
		}
		if list := m.byFirst[pair[0]]; !slices.ContainsFunc(list, same) {
			m.byFirst[pair[0]] = append(list, p)
		}
	}
}

// candidates returns the patterns that may begin at a place.
func (m *Masker) candidates(text []byte, at int) []*pattern {
	first := text[at]
	if at+1 < len(text) {
		if second := text[at+1]; m.pairs[int(first)<<2|int(second)>>6]>>(second&63)&1 == 0 {
			return nil
		}
	}
	return m.byFirst[first]
}

// pairs returns the pairs of bytes with which a pattern may begin.
func (p *pattern) pairs() (all [][2]byte) {
	first, next := p.units[0], p.units[1]
	add := func(a byte, seconds ...byte) {
		for _, b := range seconds {
			all = append(all, [2]byte{a, b})
		}
	}
	if p.exact {
		seconds := []byte(next.text + strings.ToUpper(next.text))
		add(first.text[0], seconds...)
		if p.fold {
			add(strings.ToUpper(first.text)[0], seconds...)
		}
		return all
	}
	seconds := next.firsts()
	switch {
	case first.char == '\\': // several may follow each other
		for b := range 256 {
			add('\\', byte(b))
		}
	case len(first.text) > 1:
		add(first.text[0], first.text[1])
	default:
		add(first.text[0], seconds...)
	}
	if first.char == ' ' {
		add('+', seconds...)
	}
	if first.isLatin1() {
		add(byte(first.char), seconds...)
	}
	high := hex.EncodeToString([]byte(first.text))[0]
	add('%', '2', high, strings.ToUpper(string(high))[0])
	add('\\', '\\', 'u', 'x', first.text[0])
	add('&', '#', 'a')
	for name, char := range entities {
		if char == first.char {
			add('&', name[0])
		}
	}
	return all
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
		candidates := m.candidates(text, at)
		if candidates == nil {
			continue
		}
		end, found, cut := longest(candidates, text, at)
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
func longest(patterns []*pattern, text []byte, at int) (end int, found *pattern, cut bool) {
	for _, p := range patterns {
		to, unfinished := p.match(text, at)
		cut = cut || unfinished
		if to > end {
			end, found = to, p
		}
	}
	return end, found, cut
}

// match returns where a pattern that begins at a place ends: 0 if it does not stand there.
// cut reports that the text ends before this is decided.
func (p *pattern) match(text []byte, at int) (end int, cut bool) {
	for i, u := range p.units {
		if at == len(text) {
			return 0, true
		}
		b := text[at]
		plain := b != '%' && b != '\\' && b != '&' && b < 0x80
		switch {
		case p.fold && 'A' <= b && b <= 'Z' && b|0x20 == u.text[0]:
			at++
		case (plain || p.exact) && len(u.text) == 1 && b == u.text[0]:
			at++
		case p.exact || plain && !(b == '+' && u.char == ' ') && !(p.wraps && i >= minWrapped && isBreak(b)):
			return 0, false
		default:
			return p.matchSpelled(text, at, i)
		}
	}
	return at, false
}

func isBreak(b byte) bool { return b == '\r' || b == '\n' }

// places are where a match may go on. Different spellings can lead to the same place.
type places struct {
	at [maxPlaces]int
	n  int
}

func (s *places) add(at int) {
	if s.n < maxPlaces && !slices.Contains(s.at[:s.n], at) {
		s.at[s.n] = at
		s.n++
	}
}

// matchSpelled is match from the unit i on, where units may be spelled in several ways.
func (p *pattern) matchSpelled(text []byte, at, i int) (end int, cut bool) {
	now := places{}
	now.add(at)
	for ; i < len(p.units) && now.n > 0; i++ {
		next := places{}
		for _, place := range now.at[:now.n] {
			if p.wraps && i >= minWrapped {
				place = skipBreaks(text, place)
			}
			if place == len(text) {
				cut = true
				continue
			}
			unfinished := p.units[i].spellings(text, place, &next)
			cut = cut || unfinished
		}
		now = next
	}
	for _, place := range now.at[:now.n] {
		end = max(end, place)
	}
	return end, cut
}

// skipBreaks returns the place after line breaks, also those escaped as in JSON.
func skipBreaks(text []byte, at int) int {
	for end := at + maxRun; at < min(end, len(text)); {
		switch {
		case isBreak(text[at]):
			at++
		case text[at] == '\\' && at+1 == len(text):
			return at + 1
		case text[at] == '\\' && (text[at+1] == 'n' || text[at+1] == 'r'):
			at += 2
		default:
			return at
		}
	}
	return min(at, len(text))
}
