package crawl

import (
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
)

func TestParseRefresh(t *testing.T) {
	for value, want := range map[string]string{
		"0; url=/a": "0 /a", "0;url=/a": "0 /a", " 5 ; URL = '/a b' ": "5 /a b", "0, /a": "0 /a",
		"3 url=/a": "3 /a", "0;/a": "0 /a", `0; url="/a"; x`: "0 /a", "0.5; url=/a": "0 /a", ".5;url=/a": "0 /a",
		"0; url=/a'b": "0 /a'b", "0;url='/a": "0 /a", "0; urls/a": "0 urls/a", "0; url": "0 url",
		"0;URL=https://example.com/?a=b;c": "0 https://example.com/?a=b;c", "300": "", "": "", ";url=/a": "",
		"x; url=/a": "", "-1; url=/a": "", "0url=/a": "", "0;": "", "0; url=": "", "99999999999999999999; url=/a": "",
	} {
		seconds, link := parseRefresh(value)
		if wanted, address, _ := strings.Cut(want, " "); link != address ||
			link != "" && wanted != string(rune('0'+seconds)) {
			t.Errorf("%q: %d %q, want %s", value, seconds, link, want)
		}
	}
}

func rawPage(html string) http.HandlerFunc { return rawResponse(http.StatusOK, isHTML, html) }

// Pages that refresh themselves to another are redirects, as those of servers are.
func TestRefreshes(t *testing.T) {
	other := newSite(t)
	other.page("/", "elsewhere")
	text := strings.Repeat("We bake rye bread. ", 20)
	meta := func(content string) string { return `<meta http-equiv="Refresh" content="` + content + `">` }
	const leads = "<p>Redirecting"
	for _, c := range []struct {
		name, start string
		pages       map[string]string
		robots      string
		want        string // pages
	}{
		{"at once", meta("0; url=/home") + leads, map[string]string{"/home": text}, "", "/home"},
		{
			"relative to a base",
			"<base href='/de/'>" + meta("0;url=home") + leads,
			map[string]string{"/de/home": text},
			"",
			"/de/home",
		},
		{"later, without text", meta("30; url=/home") + leads, map[string]string{"/home": text}, "", "/home"},
		{"later, with text", meta("30; url=/home") + text, map[string]string{"/home": text + "home"}, "", "/"},
		{"at once, with text", meta("0; url=/home") + text, map[string]string{"/home": text + "home"}, "", "/home"},
		{"to itself", meta("0; url=/") + text, nil, "", "/"},
		{"without a URL", meta("60") + text, nil, "", "/"},
		{"twice", meta("0; url=/a") + leads, map[string]string{"/a": meta("0; url=/b") + leads, "/b": text}, "", "/b"},
		{
			"with a canonical URL",
			"<link rel=canonical href=/home>" + meta("0;url=/home") + leads,
			map[string]string{"/home": text},
			"",
			"/home",
		},
		{
			"by a script",
			"<script>\nwindow.location.href = '/home';</script>",
			map[string]string{"/home": text},
			"",
			"/home",
		},
		{
			"by a script that waits",
			leads + `<script>setTimeout(function() { location.replace("home") }, 500)</script>`,
			map[string]string{"/home": text},
			"",
			"/home",
		},
		{
			"by a script, with text",
			text + "<script>location='/home'</script>",
			map[string]string{"/home": text + "home"},
			"",
			"/",
		},
		{
			"by a script to what it computes",
			leads + `<script>location = "/" + lang; x.location = "/home"; mylocation = "/home"</script>`,
			map[string]string{"/home": text},
			"",
			"/",
		},
		{"in a circle", meta("0; url=/a") + leads, map[string]string{"/a": meta("0; url=/") + leads}, "", ""},
		{"in a circle with text", meta("0; url=/a") + text, map[string]string{"/a": meta("0; url=/") + text}, "", "/a"},
		{"to another site", meta("0; url="+other.URL+"/") + leads, nil, "", ""},
		{"to a script", meta("0; url=javascript:alert(1)") + text, nil, "", "/"},
		{"to a page that is missing", meta("0; url=/gone") + leads, nil, "", ""},
		{
			"to a page that robots.txt forbids",
			meta("0; url=/home") + leads,
			map[string]string{"/home": text},
			"User-agent: *\nDisallow: /home",
			"",
		},
		{
			"without scripts only",
			"<noscript>" + meta("0; url=/home") + "</noscript>" + text,
			map[string]string{"/home": text},
			"",
			"/",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.set("/", rawPage(c.start))
			for address, html := range c.pages {
				s.set(address, rawPage(html))
			}
			if c.robots != "" {
				s.set("/robots.txt", rawResponse(http.StatusOK, "", c.robots))
			}
			o := walkSite(t, s, func(p *agent.CrawlPlan) { p.MaxDepth = 0 })
			if got := o.paths(); got != c.want || c.want == "" && o.source.Error == nil {
				t.Errorf("got %q, want %q; %+v %s", got, c.want, o.source.Error, o.failures())
			}
		})
	}
	if other.total() > 0 {
		t.Error("another site was visited")
	}
	s := newSite(t)
	s.set("/", rawResponse(http.StatusOK, isHTML+"\r\nRefresh: 0; url=/home", leads))
	s.page("/home", "home")
	if o := walkSite(t, s, nil); o.paths() != "/home" {
		t.Errorf("with a header: %s", o.paths())
	}
}

// Frames are the text of a page that has hardly any of its own; otherwise they are links.
func TestFrames(t *testing.T) {
	other := newSite(t)
	other.page("/", "elsewhere")
	long := strings.Repeat("Text of its own. ", 20)
	s := newSite(t)
	s.set("/", rawPage(`<title>Bakery</title><frameset cols="20%,80%"><frame src=menu.html><frameset><frame src="sub/main.html">
		<frame src="`+other.URL+`/"><frame src="/"></frameset><noframes>Your browser is old. <a href=/old>Text</a></noframes></frameset>`))
	s.set("/menu.html", rawPage("<p>Our bread<a href=/prices>Prices</a>"))
	s.set("/sub/main.html", rawPage("<iframe src=inner.html></iframe>"))
	s.set("/sub/inner.html", rawPage("<p>We bake rye bread.<a href=hours>Hours</a>"))
	s.set("/prices", rawPage(long+"<iframe src=/table></iframe><iframe src='"+other.URL+"/'></iframe>"))
	s.page("/table", "The table")
	s.page("/sub/hours", "Nine to five")
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "frames")
	id := create(t, db, planOf(s.URL+"/"))
	waitIndexed(t, c, db, id)
	o := outcomeOf(t, db, id, s.URL)
	if want := "/ /prices /sub/hours /table"; o.paths() != want {
		t.Errorf("got %s, want %s", o.paths(), want)
	}
	_, start, _ := strings.Cut(chunksOf(t, db, id), s.URL+"/: ")
	start, _, _ = strings.Cut(start, "\nchunk-")
	if !strings.Contains(start, "Our bread") ||
		!strings.Contains(start, "We bake rye bread.") ||
		strings.Contains(start, "browser") {
		t.Errorf("the start page is %q", start)
	}
	if other.total() > 0 {
		t.Error("another site was visited")
	}
}
