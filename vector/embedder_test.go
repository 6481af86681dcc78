package vector

import (
	"context"
	"strings"
	"testing"
)

func TestSentenceCase(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"Wool is washed cold.":          "wool is washed cold.",
		"Dry it. Then iron it! How? So": "dry it. then iron it! how? so",
		"Care > Wool Two things: A rug": "care > wool Two things: a rug",
		"I wash. I'm done. DNA. X ray":  "I wash. I'm done. DNA. X ray",
		"McAdam's road. ReadAll reads":  "McAdam's road. ReadAll reads",
		"See net.Conn. Écoute. 3D. É":   "see net.Conn. écoute. 3D. É",
		"a  b \xff. Ok":                 "a  b \xff. ok",
	} {
		if got := sentenceCase(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestQuestionMarkIsAppended(t *testing.T) {
	for query, want := range map[string]string{
		"":              "?",
		"opening hours": "opening hours?",
		"how?":          "how?",
		"Tell me.":      "Tell me.",
		"now!":          "now!",
		"é":             "é?",
		"E1042":         "E1042?",
	} {
		if got := asQuestion(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}

// TestLocalPreparesTexts checks that texts are embedded in lower case, too, and that
// the model's name says so.
func TestLocalPreparesTexts(t *testing.T) {
	e := Local()
	upper, err := e.Embed(context.Background(), "Wool is washed cold.")
	if err != nil {
		t.Fatal(err)
	}
	lower, err := e.Embed(context.Background(), "wool is washed cold.")
	if err != nil {
		t.Fatal(err)
	}
	if c := cosine(upper, lower); c < 0.999999 {
		t.Errorf("the cosine is %v", c)
	}
	if !strings.HasSuffix(e.Model(), preparation) {
		t.Errorf("the model's name is %s", e.Model())
	}
}

// TestHybridRank checks that hybrid results are ordered by meaning and words
// together, and how much matching some of the words counts.
func TestHybridRank(t *testing.T) {
	rank := func(cosine, words float64) float64 {
		return ranking{mode: Hybrid, trust: 1}.rank(&candidate{cosine: cosine, words: words})
	}
	for _, c := range []struct {
		what        string
		better, not float64
	}{
		{"equal words, nearer in meaning", rank(0.6, 0.3), rank(0.5, 0.3)},
		{"equal meaning, more of the words", rank(0.5, 0.4), rank(0.5, 0.3)},
		{"all the words once, over a fair lead in meaning", rank(0.3, onceShare), rank(0.7, 0)},
		{"a fair lead in meaning, over a quarter of the words", rank(0.5, 0), rank(0.44, onceShare/4)},
		{"words beyond once each", rank(0.5, 0.9), rank(0.5, 0.6)},
	} {
		if c.better <= c.not {
			t.Errorf("%s: %.3f is not more than %.3f", c.what, c.better, c.not)
		}
	}
	if got := rank(0.5, onceShare); got != 0.5+onceShare {
		t.Errorf("each word once adds %v", got-0.5)
	}
}
