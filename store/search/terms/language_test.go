package terms

import (
	"slices"
	"strings"
	"testing"
)

func TestStems(t *testing.T) {
	byCode := map[string]Language{}
	for _, l := range Languages {
		byCode[l.Code] = l
	}
	for code, groups := range map[string][][]string{
		"de": {{"häuser", "haus", "hauses"}, {"kündigung", "kündigungen"}, {"verlängerung", "verlängerungen"}},
		"es": {{"niños", "niño"}, {"devolver", "devolvemos"}, {"factura", "facturas"}},
		"fr": {{"remboursement", "remboursés"}, {"congé", "congés"}},
		"it": {{"fattura", "fatture"}, {"pagamento", "pagamenti"}},
		"pt": {{"casa", "casas"}, {"pagamento", "pagamentos"}},
		"nl": {{"huizen", "huiz"}, {"rekening", "rekeningen"}},
	} {
		for _, words := range groups {
			for _, w := range words[1:] {
				if a, b := byCode[code].Stem(words[0]), byCode[code].Stem(w); a != b {
					t.Errorf("%s: %s has the stem %s, %s has %s", code, words[0], a, w, b)
				}
			}
		}
	}
}

func TestLanguagesByWords(t *testing.T) {
	for text, want := range map[string]string{
		"how do I get my money back":       "en",
		"wie bekomme ich mein Geld zurück": "de",
		"¿cómo devuelvo un artículo?":      "es",
		"qual è il prezzo della camera":    "it",
		"kettle":                           "",
	} {
		got := LanguagesByWords(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '?' || r == '¿' }))
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%q is in %q, want %s", text, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		most int
		want int
	}{
		{"kettle", "kettle", 2, 0},
		{"ketle", "kettle", 2, 1},
		{"kettel", "kettle", 2, 1},
		{"kittel", "kettle", 2, 2},
		{"pump", "kettle", 2, 3},
		{"", "ab", 2, 2},
		{"für", "fur", 1, 1},
		{"abcdef", "fedcba", 2, 3},
	} {
		if got := Distance(c.a, c.b, c.most); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestFormDistance checks that a typing error in an ending that the index cuts off counts
// less.
func TestFormDistance(t *testing.T) {
	for word, want := range map[string]int{
		"fermentaton": 1, "fermentation": 0, "fermetnation": 1, "fermenttaion": 1, "fermenttaon": 2, "ferment": 3,
		"fermenting": 0, "fertilizer": 3, "fermentationalism": 3,
	} {
		if got := FormDistance(word, "ferment", 2); got != want {
			t.Errorf("%s: %d, want %d", word, got, want)
		}
	}
	for _, s := range suffixes {
		if len(s) > longestSuffix {
			t.Errorf("%s is longer than longestSuffix", s)
		}
	}
}

// TestWordOf checks that a word is found for the stems of many words.
func TestWordOf(t *testing.T) {
	found := 0
	list := strings.Fields("refrigerator batteries relational controlling kettle delivery warranty machines " +
		"agreement happiness electrical running shipped")
	for _, word := range list {
		if w := WordOf(Stemmed(word)); w != "" {
			found++
			if Stemmed(w) != Stemmed(word) {
				t.Errorf("%s is not a word of %s", w, Stemmed(word))
			}
		}
	}
	if found != len(list) {
		t.Errorf("a word is found for %d of %d terms", found, len(list))
	}
}

func TestVariants(t *testing.T) {
	for word, want := range map[string]string{
		"straße":  "strasse",
		"strasse": "straße",
		"müller":  "mueller",
		"mueller": "muller",
		"grösse":  "grösse größe",
		"pump":    "",
	} {
		for _, w := range strings.Fields(want) {
			if w != word && !slices.Contains(Variants(word), w) {
				t.Errorf("%s has the variants %q", word, Variants(word))
			}
		}
		if want == "" && len(Variants(word)) > 0 {
			t.Errorf("%s has the variants %q", word, Variants(word))
		}
	}
}

func TestLanguagesOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"lamp":                       "",
		"How do I return the lamp?":  "en",
		"Wie gebe ich die Lampe ab?": "de",
		"営業時間を教えてください":               "ja",
		"如何退货":                       "zh",
		"환불은 어떻게 하나요":                "ko",
		"Как вернуть лампу в магазин": "ru",
		"the 灯 can be returned":       "en",
	} {
		if got := strings.Join(LanguagesOf(text), " "); got != want {
			t.Errorf("%q is in %q, want %q", text, got, want)
		}
	}
}
