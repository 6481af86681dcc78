package vector

import (
	"slices"
	"strings"

	"satchel/store/search/terms"
)

// MainLanguages returns the languages of texts, most frequent first, without
// those of fewer than a tenth of the texts.
func MainLanguages(texts []string) []string {
	counts := map[string]int{}
	for _, text := range texts {
		if names := Languages(text); len(names) == 1 {
			counts[names[0]]++
		}
	}
	var list []string
	for name, n := range counts {
		if n*10 >= len(texts) {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return list
}

// Languages returns the English names of the languages that a text may be in: what its script or
// its function words say; none if they say nothing.
func Languages(text string) (names []string) {
	for _, code := range terms.LanguagesOf(text) {
		names = append(names, nameOfLanguage[code])
	}
	return names
}

// nameOfLanguage maps the codes of the supported languages to their names.
var nameOfLanguage = map[string]string{
	"en": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "pt": "Portuguese",
	"nl": "Dutch", "sv": "Swedish", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "th": "Thai", "ru": "Russian",
	"el": "Greek", "ar": "Arabic", "he": "Hebrew", "hi": "Hindi",
}
