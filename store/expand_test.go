package store

import (
	"slices"
	"testing"

	"satchel/store/search/terms"
)

// expanded returns what Expand adds to a plain word.
func expanded(t *testing.T, db *DB, word string, e Expansion) (list []string) {
	t.Helper()
	w := Words{{Ways: []Way{{Text: word}}, Plain: true}}
	found := ask(t, db, "", func(k *Knowledge) (Words, error) {
		words, _, err := k.Expand(w, e)
		return words, err
	})
	for i, f := range found {
		for _, way := range f.Ways {
			if i > 0 || way.Text != word {
				list = append(list, way.Text)
			}
		}
	}
	return list
}

func TestExpand(t *testing.T) {
	db := openKnowledge(t)
	learn(t, db, testModel, []string{
		"Die Häuser an der Straße und die Krankenversicherung",
		"Herr Mueller ist mit der Kündigungsfrist und den Beiträgen zufrieden",
		"Los niños que nadan en las piscinas",
		"the kettle is in the cupboard",
		"fermentation of beer",
	})
	for _, c := range []struct {
		word  string
		asked []string
		want  string // one of the spellings
		none  bool
	}{
		{"haus", []string{"de"}, "hauser", false},
		{"strasse", nil, "straße", false},
		{"müller", nil, "mueller", false},
		{"kündigung", []string{"de"}, "kundigungsfrist", false},
		{"krankenversicherungsbeiträgen", []string{"de"}, "krankenversicherung", false},
		{"versicherungen", []string{"de"}, "krankenversicherung", false},
		{"fristen", []string{"de"}, "kundigungsfrist", false},
		{"board", []string{"en"}, "", true}, // a language without compounds
		{"nadar", []string{"es"}, "nadan", false},
		{"ketle", []string{"en"}, "kettle", false},
		{"cubpoard", nil, "cupboard", false},
		{"fermentaton", []string{"en"}, "fermentation", false}, // the index has "ferment"
		{"kettle", []string{"en"}, "", true},
		{"settle", []string{"en"}, "", true}, // which is a word
	} {
		got := expanded(t, db, c.word, Expansion{
			Languages: c.asked,
			IsSpelled: func(w string) bool { return w == "settle" },
		})
		if c.none && len(got) > 0 ||
			!c.none &&
				!slices.ContainsFunc(got, func(w string) bool { return terms.Stemmed(w) == terms.Stemmed(c.want) }) {
			t.Errorf("%s (%v) is expanded by %q, want %q", c.word, c.asked, got, c.want)
		}
	}
}
