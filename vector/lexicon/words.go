package lexicon

import (
	"strings"
	"unicode"
)

// Words yields each word of a text in lower case, without possessive endings.
// Digits and punctuation end a word. Function words ("the", "of", "my") are
// skipped.
func Words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
			return !unicode.IsLetter(r) && r != '\'' && r != '’'
		}) {
			word = strings.ToLower(strings.ReplaceAll(word, "’", "'"))
			word = strings.Trim(strings.TrimSuffix(word, "'s"), "'")
			if word == "" || functionWords[word] {
				continue
			}
			if !yield(word) {
				return
			}
		}
	}
}

// Base returns the known word that a word is most likely a form of: the base
// of an irregular form, the word itself, or the word without an English
// ending. count returns the frequency of a known word, and is negative for
// others. If both "heating" and "heat" are known, the more frequent one is
// returned; if nothing is known, "".
func Base(word string, count func(string) int) string {
	if base, ok := irregular[word]; ok && count(base) >= 0 {
		return base
	}
	best, most := "", -1
	if most = count(word); most >= 0 {
		best = word
	}
	for _, e := range endings {
		if best != "" && !e.inflects {
			break
		}
		base, ok := e.detach(word)
		if !ok {
			continue
		}
		if n := count(base); n > most {
			best, most = base, n
		}
	}
	return best
}

// ending is a rule of detachment.
type ending struct {
	cut, add string
	doubled  bool // the letter before it is doubled, and one of the two is removed
	inflects bool // the base is another form of the same word
}

// detach removes the ending from a word that has it.
func (e ending) detach(word string) (base string, ok bool) {
	stem, ok := strings.CutSuffix(word, e.cut)
	n := len(stem)
	if !ok || n < 2 || e.doubled && stem[n-1] != stem[n-2] {
		return "", false
	}
	if e.doubled {
		stem = stem[:n-1]
	}
	return stem + e.add, len(stem+e.add) > 2
}

// endings are the rules of WordNet's morphy(7), plus rules for doubled
// consonants and adverbs. Inflectional ones come first.
var endings = []ending{
	{"ies", "y", false, true}, {"ied", "y", false, true}, {"ves", "f", false, true}, {"ves", "fe", false, true},
	{"s", "", false, true}, {"es", "", false, true},
	{"ed", "", true, true}, {"ing", "", true, true},
	{"ed", "e", false, true}, {"ed", "", false, true}, {"ing", "e", false, true}, {"ing", "", false, true},
	{"er", "", true, false}, {"est", "", true, false}, {"ier", "y", false, false}, {"iest", "y", false, false},
	{"er", "e", false, false}, {"er", "", false, false}, {"est", "e", false, false}, {"est", "", false, false},
	{"ily", "y", false, false}, {"ly", "", false, false},
}

var functionWords = setOf(`a about above after again all also am an and another any are aren't as at away back be because been
	before being below beside both but by came can can't cannot come comes could couldn't did didn't do does doesn't doing don't
	done down each either else etc ever every few for from further get gets getting give given gives go goes going gone got had
	has hasn't have haven't having he her here him his how however i i'd i'll i'm i've if in inside into is isn't it it'll itself just keep
	keeps left let like made make makes many may me might more most much must my myself need needed needs never no nobody nor not
	nothing now of off on once one only onto or other our ours out over own per please put rather same say says shall she should
	shouldn't since so some somebody someone something somewhere still such take taken takes than that the their them then there
	they they're thing things this those these through to too under until up upon us used using usually very want wants was wasn't
	way we we're we've went were weren't what when where whether which while who whoever whom whose why will with within without
	won't would wouldn't yet you you're you've your yours already anything especially its anymore`)

// irregular maps irregular forms to their base.
var irregular = bases(`be was were been am is are; become became; begin began begun; bite bitten; bleed bled; blow blew blown;
	break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen;
	cling clung; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven;
	eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden;
	forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; grow grew grown; hang hung; hear heard; hide hid hidden;
	hold held; keep kept; kneel knelt; know knew known; lead led; lean leant; leap leapt; learn learnt; lend lent; lose lost;
	mean meant; meet met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; see saw seen; seek sought;
	sell sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung;
	sink sank sunk; sit sat; sleep slept; slide slid; smell smelt; speak spoke spoken; spell spelt; spend spent; spill spilt;
	spin spun; spring sprang sprung; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn;
	sweep swept; swell swollen; swim swam swum; swing swung; teach taught; tear tore torn; tell told; think thought; throw threw thrown;
	understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw withdrew withdrawn;
	write wrote written; child children; man men; woman women; tooth teeth; foot feet; mouse mice; louse lice; goose geese; ox oxen;
	wolf wolves; good better best; bad worse worst; person people; die dying; lie lying; tie tying; news news; evening evening`)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// bases parses groups of a base and its forms, each ended by a semicolon.
func bases(list string) map[string]string {
	found := map[string]string{}
	for group := range strings.SplitSeq(list, ";") {
		words := strings.Fields(group)
		for _, form := range words[1:] {
			found[form] = words[0]
		}
	}
	return found
}
