package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// abbreviations end with a full stop that does not end a sentence.
var abbreviations = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`
		mr mrs ms dr prof rev hon st sr jr messrs gen col capt lt sgt
		vs etc cf ca approx no nos vol fig figs eq sec ch pp ed eds al inc ltd co corp dept est
		jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
		bzw ggf evtl usw inkl zzgl bsp nr str abb abs ziff hr fr tel
		env m mme mlle art chap
		sra ud uds avda núm pág dott sig ecc pag`) {
		set[word] = true
	}
	return set
}()

// maxWord is the longest word, in bytes, that is compared with abbreviations.
const maxWord = 12

// endsSentence reports whether text[:p] ends a sentence, if there is white
// space from p to next. It looks at a limited distance on both sides.
func endsSentence(text string, p, next int) bool {
	before := text[max(0, p-64):p]
	before = strings.TrimRight(before, "\"')]}*_`”’»")
	r, size := utf8.DecodeLastRuneInString(before)
	if !isTerminator(r) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(text[next:])
	if r != '.' {
		return !unicode.IsLower(after)
	}
	before = before[:len(before)-size]
	return !unicode.IsLower(after) && !isAbbreviation(before) && !isDay(before, text[next:])
}

// isDay reports whether a number with a full stop is the day of a date in German:
// "30. September".
func isDay(before, after string) bool {
	number := before[strings.LastIndexByte(before, ' ')+1:]
	month, _, _ := strings.Cut(after[:min(len(after), maxWord)], " ")
	return len(number) < 3 && strings.Trim(number, "0123456789") == "" && months[strings.TrimRight(month, ".,;:!?\n")]
}

var months = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(
		"Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
	) {
		set[name] = true
	}
	return set
}()

// isAbbreviation reports whether the full stop after before belongs to its last
// word: an abbreviation, an initial, or the number of a list item.
func isAbbreviation(before string) bool {
	if strings.HasSuffix(before, ".") {
		return false // an ellipsis
	}
	word := before
	if i := strings.LastIndexFunc(before, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("([{\"'“‘«/", r)
	}); i >= 0 {
		_, size := utf8.DecodeRuneInString(before[i:])
		word = before[i+size:]
	}
	if word == "" || len(word) > maxWord {
		return false
	}
	if strings.Trim(word, "0123456789") == "" {
		lead := before[:len(before)-len(word)]
		lead = strings.TrimRight(lead, "# ") // of a heading
		return len(word) <= 3 && (lead == "" || strings.HasSuffix(lead, "\n"))
	}
	first, size := utf8.DecodeRuneInString(word)
	initial := size == len(word) && unicode.IsUpper(first)
	return initial || strings.Contains(word, ".") || abbreviations[strings.ToLower(word)]
}

func isTerminator(r rune) bool {
	return r < utf8.RuneSelf && (r == '.' || r == '!' || r == '?') ||
		r >= utf8.RuneSelf && strings.ContainsRune("…‽؟۔।॥։።፧။", r)
}

// isFullStop reports whether r is a full stop of a script that puts no space
// after it.
func isFullStop(r rune) bool {
	return r >= 0x3000 && strings.ContainsRune("。！？｡", r)
}

func isComma(r rune) bool {
	return r >= 0x3000 && strings.ContainsRune("、，；：\u3000", r)
}

// skipClosers skips closing quotes and brackets after a sentence.
func skipClosers(text string, p int) int {
	for range 8 {
		r, size := utf8.DecodeRuneInString(text[p:])
		if r < utf8.RuneSelf || !strings.ContainsRune("」』”’）】》〉。！？", r) {
			break
		}
		p += size
	}
	return p
}

// Sentences returns where the sentences of a text begin and end, as offsets in
// bytes, without the white space around them. A line that is followed by an empty
// one, and a line of a list or a table, ends a sentence too.
func Sentences(text string) (list [][2]int) {
	add := func(from, to int) {
		part := text[from:to]
		from += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
		if to = from + len(strings.TrimSpace(part)); to > from {
			list = append(list, [2]int{from, to})
		}
	}
	start := 0
	for position := 0; position < len(text); {
		char, size := utf8.DecodeRuneInString(text[position:])
		next, end := position+size, position
		switch {
		case isFullStop(char):
			end = skipClosers(text, next)
			next = end
		case unicode.IsSpace(char):
			space := text[position:]
			space = space[:len(space)-len(strings.TrimLeftFunc(space, unicode.IsSpace))]
			next = position + len(space)
			if next < len(text) &&
				!endsSentence(text, position, next) &&
				!breaksLine(text[start:position], space, text[next:]) {
				position = next
				continue
			}
		default:
			position = next
			continue
		}
		add(start, end)
		start, position = next, next
	}
	add(start, len(text))
	return list
}

// breaksLine reports whether white space ends a heading, a paragraph or an item before
// what follows it.
func breaksLine(before, space, after string) bool {
	n := strings.Count(space, "\n")
	return n > 1 ||
		n == 1 &&
			(strings.ContainsAny(after[:1], "#|>") ||
				isItem(after) ||
				strings.HasPrefix(strings.TrimSpace(before), "#"))
}

// isItem reports whether a line begins a list item: with a bullet or a number, and a
// space. A number alone may only be where a line was wrapped.
func isItem(line string) bool {
	rest := strings.TrimLeft(line, "0123456789")
	marks := "-*+"
	if len(rest) < len(line) {
		marks = ".)"
	}
	return len(rest) > 1 && strings.ContainsAny(rest[:1], marks) && rest[1] == ' '
}
