package terms

import "strings"

// Distance returns how many letters have to be inserted, deleted, replaced or
// swapped with their neighbour to change one word into another, or most+1 if there
// are more than most. It is the optimal string alignment distance.
func Distance(from, to string, most int) int {
	numbers, b := []rune(from), []rune(to)
	if len(numbers)-len(b) > most || len(b)-len(numbers) > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for index := range numbers {
		row[0] = index + 1
		least := row[0]
		for j := range b {
			cost := 1
			if numbers[index] == b[j] {
				cost = 0
			}
			n := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if index > 0 &&
				j > 0 &&
				numbers[index] == b[j-1] &&
				numbers[index-1] == b[j] {
				n = min(n, before[j-1]+1)
			}
			row[j+1] = n
			least = min(least, n)
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

// Stemmed returns the index term of a word.
func Stemmed(word string) string {
	return string(stem(fold([]byte(word))))
}

// suffixes are removed by the stemmer of the index.
var suffixes = []string{
	"", "s", "e", "es", "ed", "ing", "ion", "ation", "ate", "ator", "er", "or", "al", "ly", "ment", "ement", "ness",
	"able", "ive", "ize", "ous", "ism", "ity", "y", "ic", "ical", "ance", "ence", "ant", "ent",
}

// FormDistance returns the Distance of a word from the nearest of the inflected
// words that share an index term, or most+1. From "ferment" to "fermentaton" it is
// 1, since "fermentation" has the same term.
func FormDistance(word, term string, most int) int {
	if longer := len(word) - len(term); longer < 1 ||
		longer > longestSuffix+most ||
		Distance(word[:len(term)], term, most) > most {
		return most + 1
	}
	nearest := most + 1
	for _, suffix := range suffixes {
		if d := Distance(word, term+suffix, most); d < nearest && Stemmed(term+suffix) == term {
			nearest = d
		}
	}
	return nearest
}

// longestSuffix is the length of the longest of suffixes.
const longestSuffix = 5

// WordOf returns a word that has an index term, or "" if it finds none: the stem of
// a stem can be another.
func WordOf(term string) string {
	for _, suffix := range suffixes {
		if word := term + suffix; Stemmed(word) == term {
			return word
		}
	}
	if base, ok := strings.CutSuffix(term, "i"); ok && Stemmed(base+"y") == term {
		return base + "y"
	}
	return ""
}

// Variants returns other spellings of a lower-case word: ß and ss, and an umlaut as
// two letters, since the index drops its accent.
func Variants(word string) []string {
	var list []string
	for _, pair := range [][2]string{
		{"ß", "ss"}, {"ss", "ß"}, {"ä", "ae"}, {"ö", "oe"}, {"ü", "ue"}, {"ae", "a"}, {"oe", "o"}, {"ue", "u"},
		{"œ", "oe"}, {"oe", "œ"}, {"æ", "ae"},
	} {
		if strings.Contains(word, pair[0]) {
			list = append(list, strings.ReplaceAll(word, pair[0], pair[1]))
		}
	}
	if all := strings.NewReplacer("ß", "ss", "ä", "ae", "ö", "oe", "ü", "ue").Replace(word); all != word {
		list = append(list, all)
	}
	return list
}
