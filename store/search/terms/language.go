package terms

import (
	"slices"
	"strings"
	"unicode"

	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/spanish"
)

// Language is a language with a stemmer. English is not among them, because the
// index has its own stemmer for it.
type Language struct {
	Code      string     // ISO 639-1
	Compounds bool       // compounds are written without spaces
	Marks     [][]string // pairs of function words that occur together only in texts in the language

	stem func(*snowball.Env) bool
}

// Languages are the languages that have a stemmer.
var Languages = []Language{
	{
		"de",
		true,
		[][]string{{"und", "der"}, {"und", "die"}, {"ist", "der"}, {"ist", "die"}, {"mit", "den"}},
		german.Stem,
	},
	{
		"es",
		false,
		[][]string{{"que", "los"}, {"el", "del"}, {"las", "que"}, {"con", "los"}, {"los", "del"}},
		spanish.Stem,
	},
	{
		"fr",
		false,
		[][]string{{"les", "des"}, {"est", "les"}, {"une", "les"}, {"dans", "le"}, {"est", "une"}},
		french.Stem,
	},
	{
		"it",
		false,
		[][]string{{"che", "il"}, {"della", "il"}, {"non", "che"}, {"della", "che"}, {"per", "gli"}},
		italian.Stem,
	},
	{
		"pt",
		false,
		[][]string{{"que", "nao"}, {"uma", "que"}, {"com", "uma"}, {"dos", "uma"}, {"para", "uma"}},
		portuguese.Stem,
	},
	{
		"nl",
		true,
		[][]string{{"het", "een"}, {"van", "het"}, {"van", "een"}, {"niet", "een"}, {"wordt", "het"}},
		dutch.Stem,
	},
}

// Stem returns the stem of a lower-case word without accents.
func (l Language) Stem(word string) string {
	env := snowball.NewEnv(word)
	l.stem(env)
	return string(fold([]byte(env.Current())))
}

// functionWords are words that introduce questions or connect sentences, in lower
// case without accents.
var functionWords = map[string]map[string]bool{
	"en": setOf(`a an and any are as at be by can could did do does for from had has have how i if in is it its me my no not of on or our so than that
		the their them then there they this to was we were what when where which who whom whose why will with would you your`),
	"de": setOf(`aber als am an auch auf aus bei beim bis das dass dem den denn der des die dies diese dieser du durch ein eine einem einen einer eines er es fur
		gibt habe haben hat ich ihr ihre im in ist ja kann kein keine man mein meine mein mich mir mit muss nach nicht noch nur ob oder sein seine sich sie sind so soll
		uber um und uns unter vom von vor wann warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden weshalb wie wieso wieviel wird wo woher wohin womit zu zum zur`),
	"es": setOf(`a al algo ante como con cual cuales cuando cuanta cuantas cuanto cuantos de del desde donde e el ella en entre era es esa ese esta este esto esta
		fue ha hace hacen hacer hay he la las le les lo los mas me mi mis muy ni no nos o para pero por porque puede pueden puedo que quien quienes se ser si sin sobre son su sus
		también te tengo tiene tienen tu un una unas unos y ya yo hasta`),
	"fr": setOf(`a ai alors au aux avec avoir ce ces cet cette c comment combien d dans de des doit dois donc du elle en est et etre fait faire faut il ils j je l la le les
		leur leurs lui ma mais me mes moi mon n ne nos notre nous on ont ou par pas peut peux plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa
		sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous y`),
	"it": setOf(`a ai al alla alle anche che chi ci come con cosa cui da dal dalla dei del della delle di dove e e fa fare gli ha hanno ho i il in io la le lo ma mi mio
		nei nel nella no non o per perche piu posso puo qual quale quali quando quanta quante quanti quanto questa questo se si sono su sua sul sulla suo tra un una uno`),
	"pt": setOf(`a ao aos as com como da das de do dos e ela ele em entre era essa esse esta este eu foi ha isso isto ja lhe mais mas me meu minha muito na nao nas no nos
		o onde os ou para pela pelo por porque posso pode qual quais quando quanta quantas quanto quantos que quem se ser seu sua sao sem so sobre tem tenho um uma voce`),
	"nl": setOf(`aan al als bij dan dat de deze die dit door een en er heb hebben heeft het hij hoe hoeveel ik in is je kan kunnen maar me met mijn moet na naar niet nog of
		om ook op over te tegen tot u uit uw van veel voor waar waarom wanneer wat we welk welke werd wie wij wil worden wordt ze zich zijn zo`),
	"sv": setOf(`att av da de den det din dig du en ett for fran har hon han hur i inte jag kan med men min mig nar ` +
		`och om pa sa ska som till under upp vad var varfor vem vi vid vilka vilken vilket ar`),
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// Fold returns a word in lower case without accents, as in the index before
// stemming.
func Fold(word string) string {
	return string(fold([]byte(word)))
}

// LanguagesByWords returns the codes of the languages, including English and Swedish, that
// most function words of a text belong to; none if it has none.
func LanguagesByWords(words []string) (codes []string) {
	most := 0
	for code, list := range functionWords {
		n := 0
		for _, w := range words {
			if list[Fold(w)] {
				n++
			}
		}
		switch {
		case n > most:
			most, codes = n, []string{code}
		case n == most && n > 0:
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// scripts are those that determine a language, or nearly so. Japanese is also
// written in Han.
var scripts = []struct {
	code string
	of   *unicode.RangeTable
}{
	{"ja", unicode.Hiragana},
	{"ja", unicode.Katakana},
	{"ko", unicode.Hangul},
	{"zh", unicode.Han},
	{"th", unicode.Thai},
	{"ru", unicode.Cyrillic},
	{"el", unicode.Greek},
	{"ar", unicode.Arabic},
	{"he", unicode.Hebrew},
	{"hi", unicode.Devanagari},
}

// LanguagesOf returns the codes of the most likely languages of a text: from its script,
// otherwise those of LanguagesByWords.
func LanguagesOf(text string) []string {
	letters, counts := 0, map[string]int{}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		for _, s := range scripts {
			if r >= 0x370 && unicode.Is(s.of, r) {
				counts[s.code]++
				break
			}
		}
	}
	if counts["ja"]*10 > counts["zh"] {
		counts["ja"] += counts["zh"]
	}
	for code, n := range counts {
		if n*2 > letters {
			return []string{code}
		}
	}
	return LanguagesByWords(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M)
	}))
}

// IsFunctionWord reports whether a word is a function word in one of the languages
// with these codes.
func IsFunctionWord(word string, codes []string) bool {
	word = Fold(word)
	return slices.ContainsFunc(codes, func(code string) bool {
		return functionWords[code][word]
	})
}
