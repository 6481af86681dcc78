package document

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
)

func mustRead(t testing.TB, name, text string) *Document {
	t.Helper()
	doc, err := Read(context.Background(), name, "", []byte(text), Limits{})
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	checkDocument(t, doc)
	return doc
}

// checkDocument checks the invariants of a document.
func checkDocument(t testing.TB, doc *Document) {
	t.Helper()
	if !utf8.ValidString(doc.Text) || strings.ContainsAny(doc.Text, "\x00\r") {
		t.Fatalf("text is not clean UTF-8: %.200q", doc.Text)
	}
	if utf8.RuneCountInString(doc.Title) > maxTitle || strings.Contains(doc.Title, "\n") {
		t.Fatalf("title is too long or has lines: %q", doc.Title)
	}
	last := 0
	gap := func(end int) {
		if s := strings.TrimFunc(doc.Text[last:end], unicode.IsSpace); s != "" {
			t.Fatalf("%q at %d is in no block", s, last)
		}
	}
	for i, b := range doc.Blocks {
		if int(b.Start) < last || b.End <= b.Start || int(b.End) > len(doc.Text) || int(b.Parent) >= i {
			t.Fatalf("block %d: %+v after %d", i, b, last)
		}
		if b.Parent >= 0 && doc.Blocks[b.Parent].Kind != KindHeading {
			t.Fatalf("block %d has a %s as its parent", i, doc.Blocks[b.Parent].Kind)
		}
		gap(int(b.Start))
		last = int(b.End)
		doc.Path(i)
	}
	gap(len(doc.Text))
}

// outlineOf formats the blocks of a document, one per line.
func outlineOf(doc *Document) string {
	var b strings.Builder
	for i, block := range doc.Blocks {
		fmt.Fprintf(&b, "%s", block.Kind)
		if block.Level > 0 {
			fmt.Fprintf(&b, "%d", block.Level)
		}
		if block.Page > 0 {
			fmt.Fprintf(&b, " p%d", block.Page)
		}
		if path := doc.Path(i); path != "" {
			fmt.Fprintf(&b, " (%s)", path)
		}
		fmt.Fprintf(&b, " %q\n", doc.TextOf(block))
	}
	return b.String()
}

func compare(t testing.TB, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCheck(t *testing.T) {
	cases := []struct {
		name, media, data string
		want              Format
		code              agent.Code
	}{
		{"a.txt", "", "hello", FormatText, ""},
		{"A.TXT", "application/octet-stream", "hello", FormatText, ""},
		{"dir.pdf/a.Markdown", "", "# hi", FormatMarkdown, ""},
		{`C:\files\a.md`, "", "hi", FormatMarkdown, ""},
		{"a.jsonl", "", "{}", FormatJSON, ""},
		{"a.tsv", "", "a\tb", FormatCSV, ""},
		{"a.htm", "", "<p>x", FormatHTML, ""},
		{"a.txt", "text/html", "<p>x", FormatText, ""},
		{"README", "", "read me", FormatText, ""},
		{"page", "text/html; charset=utf-8", "hi", FormatHTML, ""},
		{"page", "", " \n<!DOCTYPE html><p>hi", FormatHTML, ""},
		{"data", "application/json", "1", FormatJSON, ""},
		{"paper", "application/octet-stream", "%PDF-1.4 ...", FormatPDF, ""},
		{"a.pdf", "", "%PDF-1.4 ...", FormatPDF, ""},
		{"utf16.txt", "", "\xff\xfea\x00", FormatText, ""},
		{"legacy.txt", "text/plain; charset=iso-8859-1", "caf\xe9", FormatText, ""},
		{"legacy.html", "", "<meta charset=windows-1252>caf\xe9", FormatHTML, ""},
		{
			"legacy.html",
			"",
			`<meta http-equiv=Content-Type content="text/html; charset=koi8-r">` + "\xd0",
			FormatHTML,
			"",
		},

		{"a.exe", "", "MZ", "", agent.CodeUnsupportedFormat},
		{"a.png", "image/png", "\x89PNG", "", agent.CodeUnsupportedFormat},
		{"a.xlsx", "", "PK\x03\x04", "", agent.CodeUnsupportedFormat},
		{"a.pdf.exe", "", "%PDF-1.4", "", agent.CodeUnsupportedFormat},
		{"blob", "", "\x00\x01\x02", "", agent.CodeUnsupportedFormat},
		{"a.txt", "", "", "", agent.CodeValidation},
		{"a.txt", "", " \n\t", "", agent.CodeValidation},
		{"a.txt", "", "\xef\xbb\xbf \n", "", agent.CodeValidation},
		{"a.txt", "", "caf\xe9", "", agent.CodeValidation},
		{"a.txt", "text/plain; charset=utf-8", "caf\xe9", "", agent.CodeValidation},
		{"a.txt", "text/plain; charset=nonsense", "caf\xe9", "", agent.CodeValidation},
		{"a.csv", "", "a,b\n\x00,1", "", agent.CodeValidation},
		{"a.md", "", "PK\x03\x04\x00\x00", "", agent.CodeValidation},
		{"a.html", "", "<p>caf\xe9", "", agent.CodeValidation},
		{"a.pdf", "", "hello", "", agent.CodeValidation},
		{"a.docx", "", "hello", "", agent.CodeValidation},
		{"a.docx", "", "PK\x03\x04 cut", "", agent.CodeValidation},
		{"a.docx", "", string(ole) + "password", "", agent.CodeValidation},
	}
	for _, c := range cases {
		t.Run(c.name+" "+c.media, func(t *testing.T) {
			got, err := Check(c.name, c.media, []byte(c.data))
			if c.code == "" && (err != nil || got != c.want) || c.code != "" && agent.ErrorCode(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil {
				checkError(t, err)
			}
		})
	}
}

// checkError checks that an error may be shown to clients.
func checkError(t testing.TB, err error) {
	t.Helper()
	var e *agent.Error
	switch {
	case errors.Is(err, context.Canceled):
	case !errors.As(err, &e) || e.Message == "" || e.Code == agent.CodeInternal:
		t.Fatalf("%v is not an *agent.Error", err)
	case e.Code == agent.CodeValidation && e.Details["field"] != "file":
		t.Fatalf("%v names no field", err)
	}
}

func TestReadText(t *testing.T) {
	cases := []struct{ name, media, data, want string }{
		{"utf8.txt", "", "grüße", "grüße"},
		{"bom.txt", "", "\xef\xbb\xbfgrüße", "grüße"},
		{"le.txt", "", "\xff\xfeh\x00\xfc\x00\n\x00", "hü\n"},
		{"be.txt", "", "\xfe\xff\x00h\x00\xfc", "hü"},
		{"pair.txt", "", "\xff\xfe\x3d\xd8\x00\xde", "😀"},
		{"half pair.txt", "", "\xff\xfe\x3d\xd8a\x00", "\ufffda"},
		{"latin1.txt", "text/plain; charset=ISO-8859-1", "caf\xe9", "café"},
		{"sjis.txt", "text/plain; charset=shift_jis", "\x82\xa0", "あ"},
		{"bom wins.txt", "text/plain; charset=shift_jis", "\xef\xbb\xbf\xc3\xbc", "ü"},
		{"dos.txt", "", "a\r\nb\r\n", "a\nb\n"},
		{"mac.txt", "", "a\rb\r\rc", "a\nb\n\nc"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc, err := Read(context.Background(), c.name, c.media, []byte(c.data), Limits{})
			if err != nil || doc.Text != c.want || doc.Format != FormatText {
				t.Errorf("got %+v, %v", doc, err)
			}
		})
	}
}

func TestTextBlocks(t *testing.T) {
	doc := mustRead(t, "a.txt", "\n\n  one\nmore\n \t\n\n\n# two  \n\n")
	compare(t, outlineOf(doc), `
paragraph "  one\nmore"
paragraph "# two"`)
}

func TestMarkdown(t *testing.T) {
	doc := mustRead(t, "a.md", readFile(t, "testdata/markdown.md"))
	compare(t, outlineOf(doc), readFile(t, "testdata/markdown.golden"))
	if doc.Title != "The Title" {
		t.Errorf("title %q", doc.Title)
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTitle(t *testing.T) {
	for text, want := range map[string]string{
		"---\ntitle: \"From front\"\n---\n# Other": "From front",
		"+++\ntitle = 'Toml'\n+++\ntext":           "Toml",
		"---\nauthor: me\n---\n# Head":             "Head",
		"---\n\ntext\n\n---\ntitle: no\n":          "",
		"## Second\n\n# First\n\n## Third":         "First",
		"# Returns\n\nbring it\n\n# Hours":         "", // which are not about returns
		"plain":                                    "",
	} {
		if got := mustRead(t, "a.md", text).Title; got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestHeadingText(t *testing.T) {
	for heading, want := range map[string]string{
		"## Plain ##":                      "Plain",
		"# **Bold** and `code`":            "Bold and code",
		"# [Link](http://x \"t\") ![i](y)": "Link i",
		"# A {#anchor}":                    "A",
		"# C#":                             "C#",
		"# snake_case_name":                "snake_case_name",
		"# _all_":                          "all",
		"# a\\_b":                          "a_b",
		"# <a id=\"x\"></a>Text":           "Text",
		"Over\nlines\n===":                 "Over lines",
		"#":                                "",
		"# " + strings.Repeat("é", 300):    strings.Repeat("é", 119) + "…",
	} {
		if got := HeadingText(heading); got != want {
			t.Errorf("%q: got %q", heading, got)
		}
	}
}

func TestLimitsOfBlocksAndText(t *testing.T) {
	doc, err := Read(context.Background(), "a.md", "", []byte("# a\n\nb\n\n# c\n\nd"), Limits{Blocks: 2})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, outlineOf(doc), "heading1 (a) \"# a\"\nparagraph (a) \"b\\n\\n# c\\n\\nd\"")
	for name, data := range map[string]string{
		"a.txt":     "more than ten",
		"a.json":    `["more than ten"]`,
		"a.csv":     "a,b\nlong enough,x\n",
		"utf16.txt": "\xff\xfe" + strings.Repeat("a\x00", 11),
	} {
		_, err := Read(context.Background(), name, "", []byte(data), Limits{Text: 10})
		if agent.ErrorCode(err) != CodeTooComplex {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	cases := []struct {
		name, data string
		code       agent.Code
		message    string
	}{
		{"odd.txt", "\xff\xfea\x00b", CodeBrokenFile, "half a character"},
		{"bom.txt", "\xef\xbb\xbfcaf\xe9", agent.CodeValidation, "UTF-8"},
		{"nul.txt", "\xff\xfea\x00\x00\x00", agent.CodeValidation, "binary"},
		{"cut.json", `{"a": [1, 2`, CodeBrokenFile, "middle of a value"},
		{"bad.json", "{\n\"a\": 1,\n}\n", CodeBrokenFile, "line 3"},
		{"two.json", "{\"a\":1}\n{\"b\":}\n", CodeBrokenFile, "line 2"},
		{"deep.json", strings.Repeat("[", 300) + strings.Repeat("]", 300), CodeTooComplex, "deeper"},
		{"brackets.json", strings.Repeat("[", 1_000_000), CodeBrokenFile, "JSON"},
		{"wide.csv", strings.Repeat(",", 20000), CodeTooComplex, "columns"},
		{"empty.csv", ";;\n;;\n", CodeNoText, "no text"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(context.Background(), c.name, "", []byte(c.data), Limits{})
			if agent.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("got %v", err)
			}
			checkError(t, err)
		})
	}
}

func TestReadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, data := range map[string]string{
		"a.json": "[" + strings.Repeat("{},", 5000) + "{}]",
		"a.csv":  strings.Repeat("a,b\n", 5000),
	} {
		if _, err := Read(ctx, name, "", []byte(data), Limits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"a\n\nb", "\xff\xfea\x00", "\xfe\xff\x00", "\xef\xbb\xbf", "caf\xe9", "a\r\n\r\rb", "\x0c\u0085\u2028x",
	} {
		f.Add([]byte(seed), "text/plain; charset=latin1")
	}
	f.Fuzz(func(t *testing.T, data []byte, media string) {
		doc, err := Read(context.Background(), "a.txt", media, data, Limits{Blocks: 50})
		if err != nil {
			checkError(t, err)
			return
		}
		checkDocument(t, doc)
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		readFile(f, "testdata/markdown.md"),
		"---\n---\n", "+++\na=1\n+++", "a\n=\n-", "```", "|\n|-|", "- \n\n  ```\n", "#\t\n1. ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Read(context.Background(), "a.md", "", data, Limits{Blocks: 50})
		if err != nil {
			checkError(t, err)
			return
		}
		checkDocument(t, doc)
	})
}
