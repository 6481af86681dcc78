package document

import (
	"strings"
	"unicode"
)

// commonWords are the most frequent words of several languages: articles,
// prepositions, pronouns, auxiliary verbs.
var commonWords = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`
		the of and to in is that it was for on are as with his they at be this from have or by one had not
		but what all were when we there can an your which their said if do will each about how up out them then
		der die und den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er
		hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor
		le la les des et en un une du que est pour qui dans par plus pas au sur ne se ce il sont avec ou ses
		el los las del se una por con para como más pero sus su al lo este ya entre cuando sin sobre también
		di che per della una sono con non del si dei alla nel anche come più gli questo ma delle
		os as um uma do da dos das que em para com não mais como mas foi ao ele tem seu sua pelo pela
		van het een in dat die voor met niet zijn aan er ook als maar om dan uit bij nog naar heeft worden
		na do się nie jest że to przez od po oraz dla jak ale są przy
		och att det som en på är av för med till den har inte om ett var jag så men
		og at af til den der de ikke med har som et på vi kan skal blev
		ja on että ei oli se hän mutta kun niin myös
		не на что по как это его из но за для то от так все или был при
		ve bir bu için ile da de olarak çok daha gibi olan
		az és hogy nem egy is meg ez de volt csak
		se na je že to do ve by za jako ale pro které`) {
		set[word] = true
	}
	return set
}()

// knownWords counts the words of a text and the common ones among them. Single
// letters do not count: a text with spaces between letters is full of them.
func knownWords(text string) (known, all int) {
	words := strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r)
	})
	for word := range words {
		all++
		if len(word) > 1 && len(word) <= 16 && commonWords[strings.ToLower(word)] {
			known++
		}
	}
	return known, all
}
