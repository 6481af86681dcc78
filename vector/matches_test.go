package vector

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"satchel/agent"
	"satchel/store/search/terms"
)

// units cuts a range of UTF-16 code units out of a text.
func units(text string, r []int) string {
	return string(utf16.Decode(utf16.Encode([]rune(text))[r[0]:r[1]]))
}

// TestMatches: results have the positions of the query's words, as spelled in the
// text, and the sentence with most of them.
func TestMatches(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db, ix := folder.Default(), newIndex(t, folder, Local())
	upload(
		t,
		db,
		"a.txt",
		[]byte("🦦 We sell kettles. Descale the kettle with vinegar once a month. Our shop is open daily."),
		agent.DefaultChunking,
	)
	start(t, ix)
	wait(t, ix, db)
	for _, c := range []struct{ query, words, best string }{
		{"how do I descale a kettle", "kettles Descale kettle", "Descale the kettle with vinegar once a month."},
		{"descale ketle", "kettles Descale kettle", "Descale the kettle with vinegar once a month."},
		{"when is the shop open", "shop open", "Our shop is open daily."},
	} {
		r := search(t, ix, db, Query{Text: c.query, Limit: 1})
		if len(r) != 1 {
			t.Fatalf("%q finds %d results", c.query, len(r))
		}
		var words []string
		for _, m := range r[0].Matches {
			words = append(words, units(r[0].Content, m))
		}
		if got := strings.Join(words, " "); got != c.words {
			t.Errorf("%q: matches %q, want %q", c.query, got, c.words)
		}
		if len(r[0].BestSentence) != 2 || units(r[0].Content, r[0].BestSentence) != c.best {
			t.Errorf("%q: the best sentence is %v of %q, want %q", c.query, r[0].BestSentence, r[0].Content, c.best)
		}
	}
}

// A query of two words also matches a text that has them as one word.
func TestWordsWrittenApart(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db, ix := folder.Default(), newIndex(t, folder, Local())
	upload(t, db, "a.txt", []byte("Backup runs at night."), agent.DefaultChunking)
	for i, text := range []string{
		"We close at noon.",
		"We open at nine.",
		"The shop has two floors.",
		"Pay by card.",
		"Dogs wait outside.",
	} {
		upload(t, db, fmt.Sprintf("b%d.txt", i), []byte(text), agent.DefaultChunking)
	}
	start(t, ix)
	wait(t, ix, db)
	r := search(t, ix, db, Query{Text: "how do I back up", Mode: Keyword, Limit: 2})
	if len(r) == 0 || r[0].Content != "Backup runs at night." || len(r[0].Matches) != 1 {
		t.Errorf("got %+v", r)
	}
}

// A heading that has the query's words is not the best sentence if another sentence
// has them, too.
func TestBestSentenceIsNoHeading(t *testing.T) {
	for _, c := range []struct{ query, text, want string }{
		{
			"opening hours of the workshop",
			"# Opening hours\n\nThe workshop is open from eight, see the hours at the door.",
			"The workshop is open from eight, see the hours at the door.",
		},
		{
			"limit uploads",
			"**Limits.** Nothing else is bounded. An upload may have 50 MB.",
			"An upload may have 50 MB.",
		},
		{"bent wheel", "Prices\n\n| Mirror | 9 euros |\n| Bent wheel | 45 euros |", "| Bent wheel | 45 euros |"},
		{"bent wheel", "Bent wheel\n\nCall the office on weekdays.", "Call the office on weekdays."},
		{"bent wheel", "Call the office on weekdays.\n\nBent wheel", "Bent wheel"},
		{
			"doctors on saturday",
			"| Day | Doctors |\n|---|---|\n| Friday | 8-12 |\n| Saturday | closed |",
			"| Saturday | closed |",
		},
		{"doctors", "| Day | Doctors |\n|---|---|\n| Friday | 8-12 |\n\nCall 111.", "| Friday | 8-12 |"},
		{
			"empty lockers",
			"7. Lockers. At midnight locks are cut. 8. Guests. Bring them once.",
			"At midnight locks are cut.",
		},
		{
			"is bread refunded",
			"## 2. Refunds of bread\nBring it back with the receipt for your bread. We bake at six.",
			"Bring it back with the receipt for your bread.",
		},
		{
			"empty lockers",
			"7. Lockers. Everyone has to empty them at night. 8. Guests. Bring them once.",
			"Everyone has to empty them at night.",
		},
		{
			"lost phone",
			"Use a code. Lost the phone? Ask another administrator. Codes last a day.",
			"Ask another administrator.",
		},
		{
			"may I eat after a filling",
			"**How long do fillings last?**\nTen years.\n\n**May I eat after a filling?**\nWait three hours.",
			"Wait three hours.",
		},
		{"who bakes", "We sell bread. Who bakes it?", "Who bakes it?"},
	} {
		found := terms.NewFinder(c.query).Find(c.text)
		if b := bestSentence(c.query, c.text, found); c.text[b[0]:b[1]] != c.want {
			t.Errorf("%q: %q, want %q", c.query, c.text[b[0]:b[1]], c.want)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for name, want := range map[string]prefixes{
		"intfloat/multilingual-e5-small": {"query: ", "passage: "},
		"BAAI/bge-small-en-v1.5":         {retrievalPrefix, ""},
		"bge-m3":                         {},
		"nomic-embed-text:v1.5":          {"search_query: ", "search_document: "},
		"text-embedding-3-small":         {},
		"snowflake-arctic-embed2":        {"query: ", ""},
	} {
		if got := prefixesOf(agent.Embedding{Model: name}); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// Prefixes in the settings replace the known ones. A different prefix of passages
// makes a different model.
func TestPrefixesOfSettings(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		model          string
		query, passage *string
		want           prefixes
		mark           string
	}{
		{"nomic-embed-text", nil, nil, prefixes{"search_query: ", "search_document: "}, "/prefixed"},
		{"nomic-embed-text", text("q: "), nil, prefixes{"q: ", "search_document: "}, "/prefixed"},
		{
			"nomic-embed-text",
			nil,
			text("search_document: "),
			prefixes{"search_query: ", "search_document: "},
			"/prefixed",
		},
		{"nomic-embed-text", text(""), text(""), prefixes{}, ""},
		{"mine", nil, nil, prefixes{}, ""},
		{"mine", nil, text("doc: "), prefixes{"", "doc: "}, "/prefixed-31125b93"},
	} {
		to := agent.Embedding{Model: c.model, QueryPrefix: c.query, PassagePrefix: c.passage}
		if got, mark := prefixesOf(to), prefixMark(to); got != c.want || mark != c.mark {
			t.Errorf("%s: %+v %q, want %+v %q", c.model, got, mark, c.want, c.mark)
		}
	}
}
