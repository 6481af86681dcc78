package document

import (
	"regexp"
	"strings"
)

// brokenWord matches a word that is hyphenated at the end of a line.
var brokenWord = regexp.MustCompile(`(\p{Ll}\p{L}*|\p{Lu}\p{Ll}+)[-\x{2010}]\n[ \t]*(\p{Ll}+)`)

// hyphenated matches a word with a hyphen within a line.
var hyphenated = regexp.MustCompile(`\p{L}+-\p{L}+`)

// joinLines joins words that are hyphenated at the end of a line. A hyphen that the
// text also has within a line stays.
func joinLines(text string) string {
	text = strings.ReplaceAll(text, "\u00ad\n", "")
	text = strings.ReplaceAll(text, "\u00ad", "")
	if !strings.Contains(text, "-\n") && !strings.Contains(text, "\u2010\n") {
		return text
	}
	within := map[string]bool{}
	for _, word := range hyphenated.FindAllString(text, -1) {
		within[word] = true
	}
	return brokenWord.ReplaceAllStringFunc(text, func(found string) string {
		parts := brokenWord.FindStringSubmatch(found)
		if whole := parts[1] + "-" + parts[2]; within[whole] {
			return whole
		}
		return parts[1] + parts[2]
	})
}
