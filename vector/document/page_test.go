package document

import (
	"context"
	"strings"
	"testing"
)

const crawledPage = `<!doctype html><html><head><title>Return a loaf | Harbour Bakery</title></head><body>
<nav><a href="/">Home</a> <a href="/shop">Shop window</a></nav><div class="cookie-banner">We use cookies to please you.</div>
<main><article><h1>Return a loaf</h1>
<p>If a loaf is not to your liking, bring it back within two days together with the receipt. We give your money back or bake you another one, as you prefer.</p>
<h2>Without a receipt</h2><p>Without a receipt we can only bake you another loaf, since nobody remembers the price of every loaf that left the shop that week.</p>
<table><tr><th>Bread</th><th>Days</th></tr><tr><td>Rye</td><td>4</td></tr></table></article></main>
<aside>Subscribe to our newsletter!</aside><footer>Copyright Harbour Bakery, all rights reserved.</footer></body></html>`

func TestReadPage(t *testing.T) {
	for _, c := range []struct {
		name, address, media, data string
		title                      string
		holds, lacks               []string
	}{
		{"article", "https://example.com/returns", "text/html", crawledPage, "Return a loaf | Harbour Bakery",
			[]string{"bring it back within two days", "## Without a receipt", "Rye"}, []string{"Shop window", "newsletter", "all rights reserved"}},
		{"too little is found", "https://example.com/", "text/html",
			"<title>Prices</title><div>" + strings.Repeat("<span>Rye bread 4.20</span> ", 40) + "</div>", "Prices", []string{"Rye bread 4.20"}, nil},
		{"no text", "https://example.com/", "text/html", "<title>Links</title><nav><a href=/a></a></nav>", "Links", nil, nil},
		{"nothing", "https://example.com/", "text/html", " \n", "", nil, nil},
		{"text named as a page", "https://example.com/a.html", "text/plain", "just <b>text</b>", "", []string{"just <b>text</b>"}, nil},
		{"Markdown as text", "https://example.com/a.md?raw=1", "text/plain", "# Heading\n\ntext", "Heading", []string{"# Heading"}, nil},
	} {
		title, text, err := ReadPage(context.Background(), c.address, c.media, []byte(c.data))
		if err != nil || title != c.title {
			t.Errorf("%s: title %q, %v", c.name, title, err)
		}
		for _, want := range c.holds {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %q", c.name, want, text)
			}
		}
		for _, junk := range c.lacks {
			if strings.Contains(text, junk) {
				t.Errorf("%s: %q is in %q", c.name, junk, text)
			}
		}
		if c.holds == nil && strings.TrimSpace(text) != "" {
			t.Errorf("%s: %q", c.name, text)
		}
	}
	if _, _, err := ReadPage(context.Background(), "https://example.com/x", "application/pdf", []byte("%PDF-1.4 cut")); err == nil {
		t.Error("half a PDF is read")
	}
}

func FuzzReadMainContent(f *testing.F) {
	f.Add([]byte(crawledPage))
	f.Add([]byte("<table><tr><td colspan=99999999>x<frameset>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input{name: "https://example.com/", media: "text/html; charset=utf-8", data: data, limits: Limits{Text: 1 << 20}.orDefaults()}
		out := &sink{left: in.limits.Text, limit: in.limits.Text, emit: func(int, string) error { return nil }}
		_ = extract(formatPage, in, out) // an error is fine, a panic is caught there: neither may hang
	})
}

func BenchmarkReadMainContent(b *testing.B) {
	b.SetBytes(int64(len(crawledPage)))
	in := input{name: "https://example.com/", media: "text/html; charset=utf-8", data: []byte(crawledPage), limits: Limits{}.orDefaults()}
	for b.Loop() {
		if err := extractPage(in, &sink{left: 1 << 20, limit: 1 << 20, emit: func(int, string) error { return nil }}); err != nil {
			b.Fatal(err)
		}
	}
}
