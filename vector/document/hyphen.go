package document

import (
	"strings"

	"satchel/agent"
)

// brokenWord matches a word that is hyphenated at the end of a line.
var brokenWord = agent.Pattern(`(\p{Ll}\p{L}*|\p{Lu}\p{Ll}+)[-\x{2010}]\n[ \t]*(\p{Ll}+)`)

// hyphenated matches a word with a hyphen within a line.
var hyphenated = agent.Pattern(`\p{L}+-\p{L}+`)

// joinMark marks where a line end was removed. No text contains it.
const joinMark = "\x00"

// joinLines joins words that are hyphenated at the end of a line. A hyphen that the
// text also has within a line stays. It also returns the offsets in the result
// where line ends are missing.
func joinLines(text string) (string, []uint32) {
	text = strings.ReplaceAll(text, joinMark, " ")
	text = strings.ReplaceAll(text, "\u00ad\n", joinMark)
	text = strings.ReplaceAll(text, "\u00ad", "")
	if !strings.Contains(text, "-\n") && !strings.Contains(text, "\u2010\n") {
		return removeJoinMarks(text)
	}
	within := map[string]bool{}
	for _, word := range hyphenated().FindAllString(text, -1) {
		within[word] = true
	}
	return removeJoinMarks(brokenWord().ReplaceAllStringFunc(text, func(found string) string {
		parts := brokenWord().FindStringSubmatch(found)
		if whole := parts[1] + "-" + parts[2]; within[whole] {
			return parts[1] + "-" + joinMark + parts[2]
		}
		return parts[1] + joinMark + parts[2]
	}))
}

// removeJoinMarks removes the joints from a text and returns where they were.
func removeJoinMarks(text string) (string, []uint32) {
	if !strings.Contains(text, joinMark) {
		return text, nil
	}
	var b strings.Builder
	var joined []uint32
	for i, part := range strings.Split(text, joinMark) {
		if i > 0 {
			joined = append(joined, uint32(b.Len()))
		}
		b.WriteString(part)
	}
	return b.String(), joined
}
