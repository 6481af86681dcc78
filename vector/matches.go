package vector

import (
	"strings"
	"unicode/utf8"

	"satchel/store/search/terms"
	"satchel/vector/chunk"
	"satchel/vector/lexicon"
)

// relatedSentence is the weight of the lexicon's similarity compared with a
// matching word when the best sentence is chosen.
const relatedSentence = 0.9

// markMatches sets the positions of a query's words in results, and their best sentences.
func (q question) markMatches(query string, list []Result) {
	words := terms.NewFinder(q.searchText(query))
	for i := range list {
		r := &list[i]
		found := words.Find(r.Content)
		r.Matches = toUTF16Offsets(r.Content, found)
		if best := bestSentence(query, r.Content, found); best[1] > 0 {
			r.pointTo(best)
		}
	}
}

// pointTo makes the first of some sentences the best one, and the result's pages those
// of all of them.
func (r *Result) pointTo(sentences ...[2]int) {
	r.BestSentence = toUTF16Offsets(r.Content, sentences[:1])[0]
	r.Metadata.SetPages(sentences...)
}

// Cite makes the sentence that fits the first of the statements for which an answer
// cites the result the best one, and the result's pages those of all such sentences.
func (r *Result) Cite(statements []string) {
	var cited [][2]int
	for _, text := range statements {
		words, _ := wordsOf(text)
		found := terms.NewFinder(question{words: words}.searchText(text)).Find(r.Content)
		if len(words) < 2 && len(found) == 0 { // "Yes"
			continue
		}
		if best := bestSentence(text, r.Content, found); best[1] > 0 {
			cited = append(cited, best)
		}
	}
	if len(cited) > 0 {
		r.pointTo(cited...)
	}
}

// searchText returns everything that a query searches for, as a text; function
// words only if there is nothing else.
func (q question) searchText(query string) string {
	var list []string
	for _, w := range q.words {
		if w.Weight == functionWeight {
			continue
		}
		for _, way := range w.Ways {
			list = append(list, way.Text)
		}
	}
	if len(list) == 0 {
		return query
	}
	return strings.Join(list, " ")
}

// bestSentence returns the position of the sentence that has most of the query's words,
// or is most related to them; none in a text of one sentence or if no
// sentence has anything to do with the query.
func bestSentence(query, text string, found [][2]int) (best [2]int) {
	sentences := chunk.Sentences(text)
	if len(sentences) < 2 {
		return best
	}
	texts := make([]string, len(sentences))
	for i, s := range sentences {
		texts[i] = text[s[0]:s[1]]
	}
	related := make([]float64, len(texts))
	if table, err := lexicon.Load(); err == nil {
		related = table.Similar(query, texts)
	}
	most, above, bestQuestion := 0.05, 0.0, 0.0
	for index, pair := range sentences {
		words := map[string]bool{}
		for _, f := range found {
			if f[0] >= pair[0] && f[1] <= pair[1] {
				words[strings.ToLower(text[f[0]:f[1]])] = true
			}
		}
		value := float64(len(words)) + relatedSentence*max(related[index], 0)
		switch last := index+1 == len(sentences); {
		case isTitle(texts[index]) && !isQuestion(texts[index]) || !last && isRule(texts[index+1]):
			above, bestQuestion = value/2, 0
			value = above - 0.01 // what is below it answers better
		case isQuestion(texts[index]) && !last: // what it asks is answered next
			bestQuestion, value = value, 0
		default:
			value, bestQuestion = value+above+bestQuestion, 0
		}
		if value > most && !isRule(texts[index]) {
			most, best = value, pair
		}
	}
	return best
}

// isRule reports whether a part of a text separates the head of a table from its rows.
func isRule(text string) bool {
	return strings.HasPrefix(text, "|") && strings.Trim(text, "|-: ") == ""
}

// isTitle reports whether a part of a text is more likely a heading than a sentence: it
// does not begin like a list item or a table row, and it has no end mark or hardly a
// word. The text below a heading is a better answer than the heading itself.
func isTitle(text string) bool {
	end := endOf(text)
	stopped := strings.ContainsRune(".!?…。！？।؟", end)
	if unnumbered := strings.TrimLeft(text, "0123456789.) "); stopped && len(unnumbered) < len(text) {
		text = unnumbered // "7. Lockers."
	} else if strings.ContainsAny(text[:1], "-*|+0123456789") && !strings.HasPrefix(text, "**") {
		return false
	}
	return !stopped || len(strings.Fields(text)) < 3 && end < 0x3000
}

// isQuestion reports whether a sentence ends with a question mark.
func isQuestion(text string) bool { return strings.ContainsRune("?？؟", endOf(text)) }

// endOf returns the last character of a text, without marks that close it.
func endOf(text string) rune {
	end, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, "*_`\"')]”»"))
	return end
}
