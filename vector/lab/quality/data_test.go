package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode"

	"satchel/agent"
	"satchel/vector"
	"satchel/vector/chunk"
	reader "satchel/vector/document"
)

// maxShared bounds the stemmed content words that a question of the sets of
// paraphrases may share with its passage.
const maxShared = 1

// TestParaphrasesUseOtherWords checks that the questions of the sets of paraphrases
// hardly share words with their passages.
func TestParaphrasesUseOtherWords(t *testing.T) {
	for _, c := range []struct {
		load    func() (*set, error)
		sharing float64 // the largest share of questions that may share a word
	}{{loadParaphrases, 0.05}, {loadHelpDesk, 0.2}} {
		s := load(t, c.load)
		passages := map[string]map[string]bool{}
		for _, d := range s.documents {
			passages[strings.TrimSuffix(d.name, ".txt")] = stems(d.text)
		}
		some := 0
		for _, q := range s.questions {
			var shared []string
			for word := range stems(q.text) {
				if slices.ContainsFunc(strings.Split(q.answer, "|"), func(p string) bool { return passages[p][word] }) {
					shared = append(shared, word)
				}
			}
			if len(shared) > 0 {
				some++
				t.Logf("%q shares %q with %s", q.text, shared, q.answer)
			}
			if len(shared) > maxShared {
				t.Errorf("%q shares %q with %s: at most %d", q.text, shared, q.answer, maxShared)
			}
		}
		if most := int(c.sharing * float64(len(s.questions))); some > most {
			t.Errorf("%s: %d questions share a word with their passage, at most %d may", s.name, some, most)
		}
	}
}

// functionWords are words without a subject.
var functionWords = setOfWords(`a about above after again all already also am an and another any are as at away back be
	because been before being below beside both but by can come comes could did do does done down each either else ever
	every for from further get gets give given go goes going got had has have he her here him his how i if in inside
	into is it its itself keep keeps left let like made make makes may me might more most much must my need needed
	needs never no nobody nor not nothing now of off on once one only or other our out over own per put rather same
	say says shall she should since so some somebody someone something somewhere still such take takes taken than that
	the their them then there these they thing things this those through to too under until up upon us very want wants
	was way we were what when where whether which while who whoever whom whose why will with within without would yet
	you your yours`)

func setOfWords(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// stems returns the content words of a text without their endings.
func stems(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if len(w) > 1 && !functionWords[w] {
			set[stem(w)] = true
		}
	}
	return set
}

// endings are removed by stem, the longest that matches first.
var endings = []string{
	"ations", "ation", "ments", "ment", "ingly", "ness", "ings", "ions", "able", "ers", "ies", "ied", "ing",
	"ion", "est", "ful", "es", "ed", "er", "ly", "y", "e", "s",
}

// stem removes the ending of an English word, so that its forms become equal. It is
// cruder than Porter's stemmer: it merges words that Porter keeps apart ("charge" and
// "charger"), and so it finds more shared words.
func stem(word string) string {
	for cut := true; cut; {
		cut = false
		for _, e := range endings {
			if root, ok := strings.CutSuffix(word, e); ok && len(root) >= 3 {
				word, cut = root, true
				break
			}
		}
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] {
		word = word[:n-1]
	}
	if root, ok := strings.CutSuffix(word, "i"); ok && len(root) >= 3 {
		word = root
	}
	return word
}

func TestStem(t *testing.T) {
	for _, alike := range [][]string{
		{"park", "parks", "parked", "parking"},
		{"deliver", "delivers", "delivered", "delivery", "deliveries"},
		{"bill", "bills", "billed", "billing"},
		{"stop", "stopped", "stopping"},
		{"pay", "pays", "payment", "payments", "paying"},
		{"reserve", "reserved", "reservation", "reservations"},
		{"cancel", "cancelled", "cancellation"},
		{"child", "child"},
		{"charge", "charges", "charger", "charging"},
		{"insure", "insured", "insurer"},
		{"car", "cars"},
	} {
		for _, word := range alike {
			if stem(word) != stem(alike[0]) {
				t.Errorf("%s becomes %q, %s becomes %q", word, stem(word), alike[0], stem(alike[0]))
			}
		}
	}
	if stem("car") == stem("card") || stem("bed") == stem("bad") || stem("meat") == stem("meter") {
		t.Error("unrelated words become equal")
	}
}

// TestSets checks that every question can be answered by the chunks there are,
// and by few of them.
func TestSets(t *testing.T) {
	for _, c := range []struct {
		load              func() (*set, error)
		questions, chunks int // at least
		places            int // chunks that one answer may be in, at most
	}{
		{loadParaphrases, 60, 150, 2},
		{loadHelpDesk, 60, 80, 2},
		{loadTechnical, 60, 300, 8}, // some comments stand at a type and at its method
		{loadTokens, 30, 50, 3},     // neighbours repeat the end of each other
		{loadLibrary, 50, 300, 12},
		{loadTypos, 40, 80, 1},
		{loadLanguages, 60, 40, 1},
		{loadHandbooks, 70, 50, 1},
		{loadRules, 60, 40, 1},
	} {
		s := load(t, c.load)
		chunks := chunksOf(t, s)
		if len(s.questions) < c.questions || len(chunks) < c.chunks {
			t.Errorf(
				"%s: %d questions and %d chunks, want at least %d and %d",
				s.name,
				len(s.questions),
				len(chunks),
				c.questions,
				c.chunks,
			)
		}
		known := map[string]bool{}
		for _, q := range s.questions {
			if known[q.text] {
				t.Errorf("%s: %q is asked twice", s.name, q.text)
			}
			known[q.text] = true
			places := 0
			for _, r := range chunks {
				if s.answers(r, q.answer) {
					places++
				}
			}
			if places < 1 || places > c.places {
				t.Errorf("%s: %d chunks answer %q, want 1 to %d", s.name, places, q.text, c.places)
			}
		}
	}
}

func load(t testing.TB, fn func() (*set, error)) *set {
	t.Helper()
	s, err := fn()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chunksOf cuts a set's documents as the index does.
func chunksOf(t testing.TB, s *set) []vector.Result {
	t.Helper()
	var all []vector.Result
	for _, d := range s.documents {
		doc, err := reader.Read(context.Background(), d.name, "", []byte(d.text), reader.Limits{})
		if err != nil {
			t.Fatal(d.name, err)
		}
		config := chunk.Config{
			Size:    agent.DefaultChunking.Size,
			Overlap: agent.DefaultChunking.Overlap,
			Method:  agent.DefaultChunking.Method,
		}
		chunks, err := chunk.Split(context.Background(), doc, config)
		if err != nil {
			t.Fatal(d.name, err)
		}
		for _, c := range chunks {
			all = append(all, vector.Result{
				Content: c.Content,
				Metadata: vector.ResultMetadata{
					ChunkMetadata: agent.ChunkMetadata{SourceName: d.name, Section: c.Heading},
				},
			})
		}
	}
	return all
}

func TestFigures(t *testing.T) {
	places := []int{1, 2, 0, 10, 5, 6, 1, 1}
	for _, c := range []struct {
		half half
		want figures
	}{
		{all, figures{3.0 / 8, 4.0 / 8, (3 + 0.5 + 0.1 + 0.2 + 1.0/6) / 8, 8}},
		{tune, figures{2.0 / 4, 2.0 / 4, 2.2 / 4, 4}},
		{heldOut, figures{1.0 / 4, 2.0 / 4, (1 + 0.5 + 0.1 + 1.0/6) / 4, 4}},
	} {
		got := figuresOf(places, c.half)
		if diff := got.mrr - c.want.mrr; got.hit1 != c.want.hit1 ||
			got.hit3 != c.want.hit3 ||
			diff*diff > 1e-18 ||
			got.n != c.want.n {
			t.Errorf("%s: %+v, want %+v", c.half, got, c.want)
		}
	}
	if f := figuresOf(nil, all); f != (figures{}) {
		t.Errorf("of no questions: %+v", f)
	}
	if !slices.Equal([]bool{tune.has(0), tune.has(1), heldOut.has(0), heldOut.has(1)}, []bool{
		true, false, false, true,
	}) {
		t.Error("the halves do not alternate")
	}
}
