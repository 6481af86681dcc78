package document

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func TestMain(m *testing.M) {
	if RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func TestHTML(t *testing.T) {
	doc := mustRead(t, "a.html", readFile(t, "testdata/page.html"))
	compare(t, doc.Text, readFile(t, "testdata/page.golden.md"))
	if doc.Title != "Pumps & Valves" || doc.Format != FormatHTML {
		t.Errorf("title %q, format %s", doc.Title, doc.Format)
	}
	last := len(doc.Blocks) - 1
	if got := doc.Path(last); got != "Pumps > Spare parts" {
		t.Errorf("the last block's heading is %q", got)
	}
}

// extractHere runs an extractor in this process.
func extractHere(t testing.TB, format Format, name, media string, data []byte) (string, *sink, error) {
	t.Helper()
	var b strings.Builder
	limits := Limits{Text: 4 << 20}.orDefaults()
	s := &sink{remaining: limits.Text, limit: limits.Text, emit: func(_ int, text string) error {
		b.WriteString(text)
		return nil
	}}
	err := extract(format, input{name: name, media: media, data: data, limits: limits}, s)
	return b.String(), s, err
}

func TestHTMLPieces(t *testing.T) {
	cases := []struct{ name, media, data, want string }{
		{"fragment", "", "<p>one<p>two", "one\n\ntwo"},
		{"headings", "", "<h1>A</h1><h3>B</h3>c", "# A\n\n### B\n\nc"},
		{
			"page navigation is dropped",
			"",
			"<header>H</header><nav>N</nav><p>text<aside>A</aside><footer>F</footer>" +
				"<noscript>S</noscript><template>T</template>",
			"text",
		},
		{
			"roles of navigation are dropped",
			"",
			"<div role=navigation>N</div><div aria-hidden=true>H</div><p hidden>P</p><p>text",
			"text",
		},
		{"only a page header", "", "<header><p>only this</p></header><script>x</script>", "only this"},
		{
			"an article's header stays",
			"",
			"<header>site</header><article><header><h1>Head</h1></header>text</article>",
			"# Head\n\ntext",
		},
		{
			"links",
			"",
			`<base href="http://x.org/d/"><p><a href="p.html">rel</a> <a href="https://y.org">abs</a> ` +
				`<a href="#a">here</a> <a href="javascript:alert(1)">js</a> <a href="mailto:a@b">mail</a>`,
			"rel [abs](https://y.org) here js mail",
		},
		{
			"alt text of images",
			"",
			`<p>a <img src="data:image/png;base64,xxxx" alt="chart"> b <img src="x.png">`,
			"a chart b",
		},
		{"a table", "", "<table><tr><th>k<th>v<tr><td>a|b<td>1</table>", "| k | v |\n|---|---|\n| a\\|b | 1 |"},
		{
			"a table without header",
			"",
			"<table><tr><td>k<td>v<tr><td>a<td>1</table>",
			"| k | v |\n|---|---|\n| a | 1 |",
		},
		{"code", "", "<pre><code class=language-go>a := 1\n  b</code></pre>", "```go\na := 1\n  b\n```"},
		{"entities", "", "<p>&lt;b&gt; &amp; &eacute;&#x1F600;", "<b> & é😀"},
		{"declared by meta", "", "<meta charset=iso-8859-2><p>\xb1", "ą"},
		{"declared by header", "text/html; charset=windows-1251", "<p>\xcf", "П"},
		{"UTF-16", "", "\xff\xfe<\x00p\x00>\x00\xe9\x00", "é"},
		{"no text", "", "<title>t</title><img src=x>", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := extractHere(t, FormatHTML, "a.html", c.media, []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want)
		})
	}
}

func TestHTMLWithoutText(t *testing.T) {
	_, err := Read(context.Background(), "a.html", "", []byte("<title>t</title><script>x</script>"), Limits{})
	if agent.ErrorCode(err) != CodeNoText {
		t.Errorf("got %v", err)
	}
}

// bombs are pages on which a naive reader uses gigabytes or minutes.
var bombs = map[string]string{
	"depth": strings.Repeat("<div>", 1_000_000),
	"spans": "<table>" + strings.Repeat("<tr><td colspan=999999999 rowspan=99999999>x", 1000) + "</table>",
	"formatting": func() string {
		var b strings.Builder
		for i := range 400 {
			b.WriteString("<b a" + strings.Repeat("x", i) + ">")
		}
		return b.String() + strings.Repeat("<p>x", 1<<20)
	}(),
}

func TestHTMLBombs(t *testing.T) {
	for name, page := range bombs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			doc, err := Read(context.Background(), "a.html", "", []byte(page), Limits{
				Memory: 64 << 20,
				Time:   20 * time.Second,
			})
			runtime.ReadMemStats(&after)
			if err != nil {
				checkError(t, err)
			} else {
				checkDocument(t, doc)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 50<<20 {
				t.Errorf("the parent allocated %d MB", grown>>20)
			}
		})
	}
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte(readFile(f, "testdata/page.html")))
	for _, seed := range []string{
		"<table><td colspan=5><tr>",
		"<a href='http://%zz'>x", "<svg><title>x", "<li><ol><li>", "<pre>`\n```",
		"<meta charset=utf-16>\xff",
		"<b><p></b>x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Check("a.html", "", data); err != nil {
			return
		}
		text, s, err := extractHere(t, FormatHTML, "a.html", "", data)
		if err != nil {
			checkError(t, err)
			return
		}
		doc := Markdown(text, Limits{Blocks: 50})
		doc.Title = s.title
		checkDocument(t, doc)
	})
}
