package vector

import (
	"strings"
	"testing"

	"satchel/agent"
)

// paraphrases ask for a section of the handbook with hardly any of its words.
var paraphrases = []struct{ query, section string }{
	{"what does it cost if I give a novel back too late", "Late returns"},
	{"my dog chewed the cover", "Damaged items"},
	{"how many paperbacks can one person have out at once", "Borrowing books"},
	{"can I rent a power tool", "Tools and instruments"},
	{"vacation days per year", "Holidays and illness"},
	{"I have the flu and cannot come to work", "Holidays and illness"},
	{"how do I get my money back after a business trip", "Expenses"},
	{"what to do when the house is burning", "Fire"},
	{"someone is bleeding", "First aid"},
	{"forgot my login", "Passwords"},
	{"is there free internet", "Wireless network"},
	{"lost kid without parents", "Children"},
	{"an angry customer wants to protest", "Complaints"},
	{"shooting a movie inside", "Photography"},
	{"the room is freezing", "Heating"},
	{"where do I throw away garbage", "Rubbish"},
	{"unpaid helpers", "Volunteers"},
	{"protecting rare maps from thieves", "Valuables"},
	{"at what time can people come in", "Opening hours"},
	{"swapping a shift with a coworker", "Working time"},
	{"the kitten that lives here", "The cat"},
	{"are documents kept on the desktop PCs", "Public computers"},
}

// literals ask for codes, numbers and names that the model does not know.
var literals = []struct{ query, content string }{
	{"E204", "the door switch opened while firing"},
	{"what does E230 mean", "the board is too hot"},
	{"88-6010", "braid of ceramic fibre"},
	{"TVC-2207", "sits behind the lower panel"},
	{"mortar KM-3", "set with mortar KM-3"},
	{"plug X14", "Check the plug at X14"},
	{"quay-guest", "needs no code"},
	{"Ledger", "fed at four"},
	{"Henk", "nobody but Henk"},
	{"14.2 ohms", "terminal block"},
}

// TestQuality checks, by the mean reciprocal rank of the right chunk, that
// meaning finds paraphrases, that words find codes, and that hybrid search does
// both.
func TestQuality(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, Local())
	chunking := agent.Chunking{Size: 600, Overlap: 80, Method: "markdown"}
	upload(t, db, "handbook.md", testdata(t, "handbook.md"), chunking)
	upload(t, db, "kiln.md", testdata(t, "kiln.md"), chunking)
	start(t, ix)
	wait(t, ix, db)

	means := func(mode Mode) (meaning, words float64) {
		for _, p := range paraphrases {
			r := rank(search(t, ix, db, Query{Text: p.query, Mode: mode}), func(r Result) bool {
				return strings.HasSuffix(r.Metadata.Section, p.section)
			})
			t.Logf("%s: %.2f %s", mode, r, p.query)
			meaning += r / float64(len(paraphrases))
		}
		for _, l := range literals {
			r := rank(search(t, ix, db, Query{Text: l.query, Mode: mode}), func(r Result) bool {
				return strings.Contains(strings.Join(strings.Fields(r.Content), " "), l.content)
			})
			t.Logf("%s: %.2f %s", mode, r, l.query)
			words += r / float64(len(literals))
		}
		return meaning, words
	}
	within := func(what string, got, least, most float64) {
		t.Helper()
		if t.Logf("%s: %.2f", what, got); got < least || got > most {
			t.Errorf("%s: %.2f, want %.2f to %.2f", what, got, least, most)
		}
	}
	meaning, words := means(Vector)
	within("paraphrases by meaning", meaning, 0.65, 1)
	within("codes by meaning", words, 0, 0.65)
	meaning, words = means(Keyword)
	within("paraphrases by words", meaning, 0, 0.35)
	within("codes by words", words, 0.9, 1)
	meaning, words = means(Hybrid)
	within("paraphrases by both", meaning, 0.7, 1)
	within("codes by both", words, 0.9, 1)
}

// rank returns the reciprocal rank of the first correct result, or 0.
func rank(found []Result, right func(Result) bool) float64 {
	for i, r := range found {
		if right(r) {
			return 1 / float64(i+1)
		}
	}
	return 0
}
