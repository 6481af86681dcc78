package chunk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
	"satchel/vector/document"
)

var methods = []string{Fixed, Sentence, Recursive, Markdown, Semantic}

func read(t testing.TB, name, text string) *document.Document {
	t.Helper()
	doc, err := document.Read(context.Background(), name, "", []byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return doc
}

func split(t testing.TB, doc *document.Document, c Config) []Chunk {
	t.Helper()
	chunks, err := Split(context.Background(), doc, c)
	if err != nil {
		t.Fatalf("split: %v", err)
	}
	return chunks
}

func contents(chunks []Chunk) []string {
	var out []string
	for _, c := range chunks {
		out = append(out, c.Content)
	}
	return out
}

func TestSplit(t *testing.T) {
	cases := []struct {
		name, file, text string
		config           Config
		want             []string
	}{
		{"short text is one chunk", "a.txt", "  Hello.\n", Config{Size: 20, Method: Recursive}, []string{"  Hello."}},
		{"fixed fills without spaces", "a.txt", strings.Repeat("x", 50),
			Config{Size: 20, Method: Fixed},
			[]string{strings.Repeat("x", 20), strings.Repeat("x", 20), strings.Repeat("x", 10)}},
		{"fixed overlaps exactly without spaces", "a.txt", "abcdefghijklmnopqrstuvwxyz",
			Config{Size: 20, Overlap: 5, Method: Fixed},
			[]string{"abcdefghijklmnopqrst", "pqrstuvwxyz"}},
		{"fixed gives way to a word", "a.txt", "aaaa bbbb cccc ddd eeee ffff",
			Config{Size: 20, Method: Fixed}, []string{"aaaa bbbb cccc ddd", "eeee ffff"}},
		{"overlap begins at a word", "a.txt", "aaaa bbbb cccc dddd eeee ffff",
			Config{Size: 20, Overlap: 7, Method: Fixed}, []string{"aaaa bbbb cccc dddd", "dddd eeee ffff"}},
		{"sentence keeps sentences whole", "a.txt", "One is one. Two is two. Three is three.",
			Config{Size: 25, Method: Sentence}, []string{"One is one. Two is two.", "Three is three."}},
		{
			"sentence overlaps by a sentence",
			"a.txt",
			"One is one. Two is two. Three is 3.",
			Config{Size: 25, Overlap: 12, Method: Sentence},
			[]string{"One is one. Two is two.", "Two is two. Three is 3."},
		},
		{"abbreviations end no sentence", "a.txt", "Ask Dr. Smith, e.g. Today. Then go home now.",
			Config{Size: 30, Method: Sentence}, []string{"Ask Dr. Smith, e.g. Today.", "Then go home now."}},
		{"a sentence too long is cut at words", "a.txt", "aaaa bbbb cccc dddd eeee ffff gggg.",
			Config{Size: 20, Method: Sentence}, []string{"aaaa bbbb cccc dddd", "eeee ffff gggg."}},
		{"recursive prefers paragraphs", "a.txt", "One one. Two\ntwo.\n\nThree three four.",
			Config{Size: 28, Method: Recursive}, []string{"One one. Two\ntwo.", "Three three four."}},
		{"recursive prefers sentences to lines", "a.txt", "Aa bb cc dd. Ee\nff gg hh ii jj",
			Config{Size: 22, Method: Recursive}, []string{"Aa bb cc dd.", "Ee\nff gg hh ii jj"}},
		{
			"a heading stays with its text",
			"a.md",
			"one two three four five.\n\n# Head\n\nsix seven eight nine ten.",
			Config{Size: 34, Method: Recursive},
			[]string{"one two three four five.", "# Head\n\nsix seven eight nine ten."},
		},
		{
			"markdown begins at each heading",
			"a.md",
			"intro\n\n# A\n\n## B\n\ntext\n\n## C\n\nmore",
			Config{Size: 1000, Overlap: 200, Method: Markdown},
			[]string{"intro", "# A\n\n## B\n\ntext", "## C\n\nmore"},
		},
		{"markdown reads a plain text", "a.txt", "# A\none\n# B\ntwo",
			Config{Size: 100, Method: Markdown}, []string{"# A\none", "# B\ntwo"}},
		{"a table repeats its header", "a.md", "|k|v|\n|-|-|\n|a|1|\n|b|2|\n|c|3|\n|d|4|\n",
			Config{Size: 25, Method: Recursive},
			[]string{"|k|v|\n|-|-|\n|a|1|\n|b|2|", "|k|v|\n|-|-|\n|c|3|\n|d|4|"}},
		{"a row too long repeats the header too", "a.md", "|k|v|\n|-|-|\n|aaaa bbbb cccc dddd eeee ffff|1|\n",
			Config{Size: 30, Method: Recursive},
			[]string{"|k|v|\n|-|-|\n|aaaa bbbb cccc", "|k|v|\n|-|-|\ndddd eeee ffff|1|"}},
		{"a fence is closed and opened again", "a.md", "```go\na := 1\nb := 2\n  c := 3\nd := 4\n```\n",
			Config{Size: 26, Method: Recursive},
			[]string{"```go\na := 1\nb := 2\n```", "```go\n  c := 3\nd := 4\n```"}},
		{"a long value repeats its name", "a.csv", "id,note\n7,aaaa bbbb cccc dddd eeee ffff gggg hhhh\n",
			Config{Size: 26, Method: Recursive},
			[]string{"id: 7", "note: aaaa bbbb cccc dddd", "note: eeee ffff gggg hhhh"}},
		{
			"rows stay whole",
			"a.csv",
			"id,name\n1,Ada\n2,Bob\n3,Cy\n4,Di\n",
			Config{Size: 35, Overlap: 18, Method: Recursive},
			[]string{
				"id: 1\nname: Ada\n\nid: 2\nname: Bob",
				"id: 2\nname: Bob\n\nid: 3\nname: Cy",
				"id: 3\nname: Cy\n\nid: 4\nname: Di",
			},
		},
		{"Chinese is cut after its stops", "a.txt", "我们今天去学校读书写字。他们明天去公园玩。后天大家休息。",
			Config{Size: 22, Method: Sentence}, []string{"我们今天去学校读书写字。他们明天去公园玩。", "后天大家休息。"}},
		{"semantic without embeddings is recursive", "a.txt", "One one. Two\ntwo.\n\nThree three four.",
			Config{Size: 28, Method: Semantic}, []string{"One one. Two\ntwo.", "Three three four."}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := contents(split(t, read(t, c.file, c.text), c.config))
			if strings.Join(got, "\x00") != strings.Join(c.want, "\x00") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestHeadingAndPosition(t *testing.T) {
	doc := read(t, "a.md", "lead\n\n# One\n\n## **Two**\n\ntext of two\n\n# [Three](http://x)\n\ntext of three")
	got := split(t, doc, Config{Size: 100, Method: Markdown})
	want := []string{"", "One > Two", "Three"}
	if len(got) != len(want) {
		t.Fatalf("%d chunks: %+v", len(got), got)
	}
	for i, c := range got {
		if c.Heading != want[i] || c.Position != i || c.Page != 0 {
			t.Errorf("chunk %d: %+v, want heading %q", i, c, want[i])
		}
	}
}

func TestPageIsWhereTheChunkBegins(t *testing.T) {
	doc := &document.Document{Text: "first page text.\n\nsecond page text.", Blocks: []document.Block{
		{Page: 1, Parent: -1, Start: 0, End: 16}, {Page: 2, Parent: -1, Start: 18, End: 35},
	}}
	got := split(t, doc, Config{Size: 20, Method: Recursive})
	if len(got) != 2 || got[0].Page != 1 || got[1].Page != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestConfigLimits(t *testing.T) {
	cases := []struct {
		name   string
		config Config
		field  string
	}{
		{"defaults", Config{Size: 1000, Overlap: 200, Method: Recursive}, ""},
		{"no overlap", Config{Size: 100, Method: Fixed}, ""},
		{"largest overlap", Config{Size: 100, Overlap: 99, Method: Fixed}, ""},
		{"overlap as large as size", Config{Size: 100, Overlap: 100, Method: Fixed}, "overlap"},
		{"negative overlap", Config{Size: 100, Overlap: -1, Method: Fixed}, "overlap"},
		{"size too small", Config{Size: MinSize - 1, Method: Fixed}, "chunk_size"},
		{"negative size", Config{Size: -5, Method: Fixed}, "chunk_size"},
		{"size too large", Config{Size: MaxSize + 1, Method: Fixed}, "chunk_size"},
		{"unknown method", Config{Size: 1000, Method: "Recursive"}, "method"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.config.Validate()
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*agent.Error](err)
			if !ok || e.Code != agent.CodeValidation || (e.Details["field"] != c.field && c.config.Size > 0) {
				t.Errorf("got %v, want an error about %s", err, c.field)
			}
		})
	}
}

func TestSplitChecksItsConfig(t *testing.T) {
	_, err := Split(context.Background(), read(t, "a.txt", "x"), Config{})
	if agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("got %v", err)
	}
}

func TestSplitStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Split(ctx, read(t, "a.txt", "some text"), Config{
		Size:   20,
		Method: Fixed,
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTooManyChunks(t *testing.T) {
	doc := read(t, "a.txt", strings.Repeat("ab ", 700))
	s := newSplitter(doc, Config{Size: 20, Overlap: 19, Method: Fixed})
	s.maxChunks = 100
	err := s.segment(context.Background(), 0, len(doc.Text))
	if agent.ErrorCode(err) != document.CodeTooComplex || !strings.Contains(err.Error(), "100 chunks") {
		t.Errorf("got %v", err)
	}
}

// checkInvariants checks what the package guarantees for every text.
func checkInvariants(t testing.TB, doc *document.Document, c Config) {
	t.Helper()
	if c.Method == Markdown && doc.Format == document.FormatText {
		doc = document.Markdown(doc.Text, document.Limits{})
	}
	covered := make([]bool, len(doc.Text))
	var windows [][2]int
	s := newSplitter(doc, c)
	s.spans = func(start, end int) {
		windows = append(windows, [2]int{start, end})
		for i := start; i < end; i++ {
			covered[i] = true
		}
	}
	breaks, err := s.breaks(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	start := 0
	for _, end := range append(breaks, len(doc.Text)) {
		if err := s.segment(context.Background(), start, end); err != nil {
			t.Fatal(err)
		}
		start = end
	}
	for i, chunk := range s.chunks {
		if n := utf8.RuneCountInString(chunk.Content); n > c.Size {
			t.Fatalf("%+v: chunk %d has %d characters: %q", c, i, n, chunk.Content)
		}
		if strings.TrimSpace(chunk.Content) == "" || !utf8.ValidString(chunk.Content) {
			t.Fatalf("%+v: chunk %d is blank or invalid UTF-8: %q", c, i, chunk.Content)
		}
		w := doc.Text[windows[i][0]:windows[i][1]]
		if !strings.Contains(chunk.Content, strings.TrimSpace(w)) {
			t.Fatalf("%+v: chunk %d differs from its window: %q, %q", c, i, chunk.Content, w)
		}
	}
	insideFence := func(i int) bool {
		b, ok := s.enclosingBlock(i)
		return ok && b.Kind == document.KindFence
	}
	for i, r := range doc.Text {
		closer := (r == '`' || r == '~') && insideFence(i) // replaced by the closing fence
		if !unicode.IsSpace(r) && !covered[i] && !closer {
			t.Fatalf("%+v: %q at %d is in no chunk", c, r, i)
		}
	}
}

// fakeEmbed maps texts to vectors by their letters.
func fakeEmbed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 8)
		for _, r := range text {
			v[int(r)%8]++
		}
		out[i] = v
	}
	return out, nil
}

// randomText mixes difficult pieces of text.
func randomText(r *rand.Rand, n int) string {
	pieces := []string{
		"word ", "another, ", "End. ", "\n", "\n\n", "# Head\n", "## Sub\n\n", "```go\n", "```\n", "~~~\n",
		"| a | b |\n| --- | --- |\n", "| 1 | 2 |\n", "- item\n", "  - sub\n", "漢字かな。", "é́́", "👨‍👩‍👧", "🇩🇪",
		"    ", "\t", "name: value\n", strings.Repeat("x", 70), "नमस्ते ", "한국어 ", "Dr. ", "...", "title\n=====\n",
		"\u00a0", "---\n",
	}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestInvariantsOnRandomTexts(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		text := "x" + randomText(r, 3000)
		size := MinSize + r.IntN(300)
		for _, name := range []string{"a.md", "a.txt", "a.csv"} {
			doc := read(t, name, text)
			for _, m := range methods {
				checkInvariants(t, doc, Config{Size: size, Overlap: r.IntN(size), Method: m, Embed: fakeEmbed})
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("# A\n\ntext one. text two.\n\n```go\ncode\n```\n\n|a|b|\n|-|-|\n|1|2|\n", uint16(20), uint16(5), uint8(0))
	f.Add(strings.Repeat("e\u0301", 100), uint16(20), uint16(19), uint8(1))
	f.Add("```"+strings.Repeat("`", 40)+"\na\nb\n", uint16(21), uint16(10), uint8(2))
	f.Add(strings.Repeat(" ", 500)+"x"+strings.Repeat("\n", 500)+"y", uint16(30), uint16(29), uint8(3))
	f.Add("|"+strings.Repeat("h|", 30)+"\n|-|-|\n"+strings.Repeat("|1|2|\n", 30), uint16(40), uint16(12), uint8(4))
	f.Add("---\ntitle: x\n---\n- a\n- b\n\n\n  c\n", uint16(20), uint16(0), uint8(7))
	f.Fuzz(func(t *testing.T, text string, size, overlap uint16, method uint8) {
		c := Config{Size: MinSize + int(size)%2000, Method: methods[int(method)%len(methods)], Embed: fakeEmbed}
		c.Overlap = int(overlap) % c.Size
		for _, name := range []string{"a.md", "a.txt", "a.csv", "a.json"} {
			doc, err := document.Read(context.Background(), name, "", []byte(text), document.Limits{})
			if err == nil {
				checkInvariants(t, doc, c)
			}
		}
	})
}

func TestGraphemesStayWhole(t *testing.T) {
	for name, cluster := range map[string]string{
		"accents":  "e\u0301\u0302",
		"family":   "👨\u200d👩\u200d👧",
		"flag":     "🇩🇪",
		"skin":     "👍🏽",
		"conjunct": "क्षि",
		"jamo":     "\u1112\u1161\u11ab",
		"keycap":   "1\ufe0f\u20e3",
	} {
		t.Run(name, func(t *testing.T) {
			doc := read(t, "a.txt", strings.Repeat(cluster, 200))
			for _, m := range methods {
				for _, chunk := range split(t, doc, Config{Size: 23, Overlap: 7, Method: m}) {
					if strings.ReplaceAll(chunk.Content, cluster, "") != "" {
						t.Fatalf("%s cuts %q: %q", m, cluster, chunk.Content)
					}
				}
			}
		})
	}
}

func TestOverlapIsRepeated(t *testing.T) {
	var words []string
	for i := range 500 {
		words = append(words, fmt.Sprintf("w%03d", i))
	}
	doc := read(t, "a.txt", strings.Join(words, " "))
	for _, m := range []string{Fixed, Sentence, Recursive, Markdown} {
		chunks := split(t, doc, Config{Size: 100, Overlap: 30, Method: m})
		for i := 1; i < len(chunks); i++ {
			first, _, _ := strings.Cut(chunks[i].Content, " ")
			at := strings.Index(chunks[i-1].Content, first)
			shared := len(chunks[i-1].Content) - at
			if at < 0 || shared < 25 || shared > 30 {
				t.Fatalf(
					"%s: chunk %d shares %d characters: %q, %q",
					m,
					i,
					shared,
					chunks[i-1].Content,
					chunks[i].Content,
				)
			}
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"One. Two? Three":               {"One.", "Two?", "Three"},
		"It costs approx. 5 euros. Ok.": {"It costs approx. 5 euros.", "Ok."},
		"# Title\n\nSome text\nruns on. End\n- a\n- b": {
			"# Title", "Some text\nruns on.", "End", "- a", "- b",
		},
		"# Handbook\n## 1. Returns\nBring it back. We pay.": {
			"# Handbook", "## 1. Returns", "Bring it back.", "We pay.",
		},
		"Bis 30. September. Der 3. Mai. Es kostet 12. Mai war gut. Ab 1. März!": {
			"Bis 30. September.",
			"Der 3. Mai.",
			"Es kostet 12. Mai war gut.",
			"Ab 1. März!",
		},
		"東京。大阪。": {"東京。", "大阪。"},
		"A day ticket costs\n12 euros. Steps:\n1. Saw\n2) Drill\n-5 degrees": {
			"A day ticket costs\n12 euros.",
			"Steps:",
			"1. Saw",
			"2) Drill\n-5 degrees",
		},
		" \n ": nil,
	} {
		var got []string
		for _, s := range Sentences(text) {
			got = append(got, text[s[0]:s[1]])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
