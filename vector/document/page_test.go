package document

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"satchel/agent"
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
		{
			"article",
			"https://example.com/returns",
			"text/html",
			crawledPage,
			"Return a loaf",
			[]string{"bring it back within two days", "## Without a receipt", "Rye"},
			[]string{"Shop window", "newsletter", "all rights reserved"},
		},
		{
			"too little main text",
			"https://example.com/",
			"text/html",
			"<title>Prices</title><div>" + strings.Repeat("<span>Rye bread 4.20</span> ", 40) + "</div>",
			"Prices",
			[]string{"Rye bread 4.20"},
			nil,
		},
		{
			"no text",
			"https://example.com/",
			"text/html",
			"<title>Links</title><nav><a href=/a></a></nav>",
			"Links",
			nil,
			nil,
		},
		{"empty", "https://example.com/", "text/html", " \n", "", nil, nil},
		{
			"text named as a page",
			"https://example.com/a.html",
			"text/plain",
			"just <b>text</b>",
			"",
			[]string{"just <b>text</b>"},
			nil,
		},
		{
			"Markdown as text",
			"https://example.com/a.md?raw=1",
			"text/plain",
			"# Heading\n\ntext",
			"Heading",
			[]string{"# Heading"},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := ReadPage(t.Context(), c.address, c.media, []byte(c.data))
			if err != nil || page.Title != c.title {
				t.Errorf("title %q, %v", page.Title, err)
			}
			for _, want := range c.holds {
				if !strings.Contains(page.Text, want) {
					t.Errorf("%q is not in %q", want, page.Text)
				}
			}
			for _, unwanted := range c.lacks {
				if strings.Contains(page.Text, unwanted) {
					t.Errorf("%q is in %q", unwanted, page.Text)
				}
			}
			if c.holds == nil && strings.TrimSpace(page.Text) != "" {
				t.Errorf("text %q", page.Text)
			}
		})
	}
	if _, err := ReadPage(
		context.Background(),
		"https://example.com/x",
		"application/pdf",
		[]byte("%PDF-1.4 cut"),
	); err == nil {
		t.Error("a truncated PDF is accepted")
	}
}

func TestReadPagePieces(t *testing.T) {
	long := strings.Repeat("A sentence about the harbour and its bread. ", 12)
	for _, c := range []struct{ name, html, want string }{
		{
			"code keeps its lines",
			`<div class="highlight-go"><pre><span>func</span> a() {<br>	b()</pre></div>`,
			"```go\nfunc a() {\n\tb()\n```",
		},
		{"code that holds a fence", "<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"},
		{"text opens no fence", "<p>```<p>x", "\\```\n\nx"},
		{
			"code in a line",
			"<p>Call <code><span>run</span>()</code>, <kbd>a`b</kbd> or <code> </code>none.",
			"Call `run()`, `` a`b `` or none.",
		},
		{"emphasis is dropped", "<p>a <b>b</b><i>c</i>\n d&nbsp;e\u00adf", "a bc d ef"},
		{
			"struck text stays marked",
			"<p>Rye <del>4 </del> <s> </s>5 <strike><div>block</div></strike>",
			"Rye ~~4~~ 5\n\nblock",
		},
		{"lines", "<p>a<br>b<br><br>c", "a\nb\nc"},
		{
			"lists",
			"<p>x<ul><li>a<li>b<ol><li>c<p>d</ol><li><pre>e</pre></ul>y",
			"x\n\n- a\n- b\n  1. c\n\n     d\n- ```\n  e\n  ```\n\ny",
		},
		{"definitions", "<dl><dt>a<dd>b<p>c<dt>d<dd><ul><li>e</ul></dl>", "a\n: b\n\nc\n\nd\n\n- e"},
		{
			"a quotation",
			"<p>x<blockquote><p>a<p>b<ul><li>y<li>z</ul></blockquote>c",
			"x\n\n> a\n>\n> b\n>\n> - y\n> - z\n\nc",
		},
		{
			"a table",
			"<table><caption>Prices</caption><tr><th>k<th>v<tr><td>a|b<td><p>1</p><p>2<tr><td><td></table>",
			"Prices\n\n| k | v |\n|---|---|\n| a\\|b | 1 2 |",
		},
		{
			"cells that span",
			"<table><tr><th rowspan=2>a<th colspan=2>b<tr><th>c<th>d<tr><td>1<td>2<td>3<tr>" +
				"<td colspan=x>4<td colspan=3>5</table>",
			"| a | b |  |  |\n|---|---|---|---|\n|  | c | d |  |\n| 1 | 2 | 3 |  |\n| 4 | 5 |  |  |",
		},
		{"a table for layout", "<table><tr><td><h2>a</h2><td><table><tr><td>b</table></table>", "## a\n\nb"},
		{"numbers beside code", "<table><tr><td class=linenos><pre>1</pre><td><pre>x</pre></table>", "```\nx\n```"},
		{
			"headings",
			`<h2>One<a class=headerlink href="#one">¶</a></h2><h3><a href="#two">Two</a></h3><h4><a class=anchor ` +
				`href="#t"><svg></svg></a>Three</h4><h5></h5>`,
			"## One\n\n### Two\n\n#### Three",
		},
		{
			"links",
			`<p><a href=/in>in</a> <a href="https://y.org/a">out</a> <a href=/f.zip>file</a> ` +
				`<a href="mailto:x@y.z">mail</a> <a href="javascript:x()">js</a> ` +
				`<a href="https://y.org/">https://y.org/</a>`,
			"in [out](https://y.org/a) [file](https://example.com/f.zip) mail js https://y.org/",
		},
		{"a link around blocks", `<a href="https://y.org/"><h3>a</h3><p>b</p></a>`, "### a\n\nb"},
		{"a base URL", `<base href="https://other.org/d/"><p><a href=x.pdf>x</a>`, "[x](https://other.org/d/x.pdf)"},
		{"named places", `<p><a name=x>a <a href="https://y.org/">b</a>`, "a [b](https://y.org/)"},
		{"pictures", `<p>a <img src=x alt="a chart">`, "a a chart"},
		{
			"hidden text",
			`<p hidden>a<p aria-hidden=true>b<div style="display: none">c</div><div role=tabpanel hidden>d</div><p>e`,
			"d\n\ne",
		},
		{
			"no text",
			`<script>a</script><style>b</style><noscript>c</noscript><template>d</template><button>e</button>` +
				`<select><option>f</select>g`,
			"g",
		},
		{"unclosed", "<p>a<div>b<span>c</div>d</p></section>e", "a\n\nbc\n\nde"},
		{
			"unmatched end tags do not end a cell",
			"<div><table><tr><td>a</div>b<td>c<tr><td>d<td>e</table>f</div>",
			"| ab | c |\n|---|---|\n| d | e |\n\nf",
		},
		{"unknown elements", "<my-app><x-y>a</x-y></my-app>", "a"},
		{"entities and NUL", "<p>&lt;b&gt; &amp; &eacute;&#x1F600;\x00", "<b> & é😀"},
		{
			"main is preferred",
			"<div>" + long + "</div><main><h1>H</h1><header>sub</header>" + long +
				"<nav>n</nav><aside>hint</aside></main>",
			"# H\n\nsub\n\n" + long + "\n\nhint",
		},
		{"a small main is not preferred", "<main>x</main><div>" + long + long + "</div>", "x\n\n" + long + long},
		{"an article is preferred", "<div>short</div><article><h1>H</h1>" + long + "</article>", "# H\n\n" + long},
		{
			"articles of a list stay",
			"<article>" + long + "</article><article>" + long + "</article><article>" + long + "</article>",
			long + "\n\n" + long + "\n\n" + long,
		},
		{
			"class names of page navigation",
			"<div class=site-nav>a</div><div id=cookie-banner>b</div><div class='has-sidebar'>" + long +
				"<div class=toc><a href=a>c</a></div></div><div class=menu>" + long + "</div>",
			long + "\n\n" + long,
		},
		{
			"lists of links",
			"<ul><li><a href=a>a</a><li><a href=b>b</a><li><a href=c>c</a><li><a href=d>d</a></ul><p>" + long,
			long,
		},
		{
			"only links",
			"<ul><li><a href=a>a</a><li><a href=b>b</a><li><a href=c>c</a><li><a href=d>d</a></ul>",
			"- a\n- b\n- c\n- d",
		},
		{"only a page header", "<header><p>only this</p></header>", "only this"},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := ReadPage(t.Context(), "https://example.com/page", "text/html", []byte(c.html))
			if want := strings.TrimSpace(strings.ReplaceAll(c.want, ". \n", ".\n")); err != nil || page.Text != want {
				t.Errorf("%v\n%q\nwant\n%q", err, page.Text, want)
			}
		})
	}
}

// Dialogs about cookies are not text, however short the page is.
func TestConsentDialogs(t *testing.T) {
	ask := "<div><h2>Your privacy</h2><p>" + strings.Repeat("We and our partners store cookies on your device. ", 9) +
		"</p><button>Accept</button></div>"
	read := func(page string) string {
		got, err := ReadPage(t.Context(), "https://example.com/page", "text/html", []byte(page))
		if err != nil {
			t.Errorf("%s: %v", page[:40], err)
		}
		return got.Text
	}
	for _, attributes := range []string{
		`id="onetrust-consent-sdk"`,
		`id="onetrust-banner-sdk" class="otFlat bottom"`,
		`id="CybotCookiebotDialog"`,
		`id="usercentrics-root"`,
		`class="qc-cmp2-container"`,
		`id="qc-cmp2-ui"`,
		`id="didomi-host"`,
		`class="didomi-popup-container"`,
		`id="truste-consent-track"`,
		`class="osano-cm-window osano-cm-dialog"`,
		`id="cmplz-cookiebanner-container"`,
		`class="cky-consent-container cky-box-bottom-left"`,
		`id="klaro"`,
		`id="BorlabsCookieBox"`,
		`id="iubenda-cs-banner"`,
		`id="sp_message_container_845"`,
		`id="axeptio_overlay"`,
		`id="tarteaucitronRoot"`,
		`class="cc-window cc-banner"`,
		`id="cookie-law-info-bar"`,
		`id="cookie-notice"`,
		`class="fc-consent-root"`,
		`id="cmpbox"`,
		`id="hs-eu-cookie-confirmation"`,
		`id="moove_gdpr_cookie_info_bar"`,
		`class="site-layer cookie-banner"`,
		`class="CookieBanner"`,
		`id="cookieConsent"`,
		`class="gdpr-consent-layer"`,
		`class="js-cookie-consent"`,
		`id="cookies-eu-banner"`,
		`class="c-cookieNotice__inner"`,
		`id="catapult-cookie-bar"`,
		`class="cookiePopup_x1"`,
		`id="ccpa_notice"`,
		`class="cookie_policy_modal"`,
		`id="cookie-bar"`, `id="cookie_alert"`,
		`id="ccc-notify"`, `id="orejime"`, `id="cc-main"`,
		`class="dsgvoaio-notice"`,
		`id="rcb-banner"`,
		`id="cookieman-modal"`,
		`class="fusion-privacy-bar"`,
		`class="privacy-banner"`,
		`class="rgpd-banner"`,
		`id="dsgvo-hinweis"`,
		`id="aviso-de-cookies"`,
		`class="bandeau-cookies"`,
		`id="cookiehinweis"`,
		`class="eprivacy_popup"`,
	} {
		for _, page := range []string{
			"<body class='didomi-popup-open cookie-notice-visible'><p>We bake rye bread.</p><div " + attributes + ">" +
				ask + "</div>",
			"<div " + attributes + ">" + ask +
				"</div><div class='cookie-banner-open'><h1>Bread</h1></div><p>We bake rye bread.</p>",
			"<main><p>We bake rye bread.</p><div " + attributes + ">" + ask + "</div></main>",
		} {
			text := read(page)
			if !strings.Contains(text, "We bake rye bread.") ||
				strings.Contains(text, "privacy") ||
				strings.Contains(text, "partners") {
				t.Errorf("%s: %q", attributes, text)
			}
		}
	}
	for _, page := range []string{
		"<div class='cookie-banner'>" + ask + "</div>",                             // nothing else
		"<div class='cookies-and-cakes'>" + ask + "</div><p>x",                     // another name
		"<div class='cookie-barista'>" + ask + "</div><p>x",                        // another name
		"<div class='cookie-bar-recipe'><h1>Cookie bars</h1>" + ask + "</div><p>x", // the page's headline
		"<p>Map</p><div class='cookieconsent-optin-marketing'>" + ask + "</div>",   // content that waits for consent
		"<h1>Cookies</h1><div class='CookieDeclaration'>" + ask + "</div>",         // the list of a policy
		"<h1>Cookies</h1><div class='cookie-policy'>" + ask + "</div>",             // the text of a policy
	} {
		if text := read(page); !strings.Contains(text, "partners") {
			t.Errorf("%s: %q", page[:40], text)
		}
	}
}

func TestPageTitles(t *testing.T) {
	for html, want := range map[string]string{
		"<title>Install — Docs (2.2)</title><h1>Install<a href=#i>¶</a></h1><p>x": "Install",
		"<title>Docs | Install</title><h1>install</h1><p>x":                       "install",
		"<title>Installing</title><h1>Install</h1><p>x":                           "Installing",
		"<title> Two\n words </title><p>x":                                        "Two words",
		"<h1>Only a <code>headline</code></h1><p>x":                               "Only a `headline`",
		"<svg><title>drawing</title></svg><title>page</title><p>x":                "page",
		"<title></title><p>x":                                                     "",
	} {
		if page, err := ReadPage(
			t.Context(),
			"https://example.com/",
			"text/html",
			[]byte(html),
		); err != nil || page.Title != want {
			t.Errorf("%s: %q, %v; want %q", html, page.Title, err, want)
		}
	}
}

func TestPageLinks(t *testing.T) {
	html := `<html><head><base><base href=" /base/"><base href="/second/"><link rel="stylesheet" href="s.css"><LINK REL=Canonical HREF=" page "><link rel=canonical href=other>
		<!-- <a href=comment> --><script>"<a href=script>"</script><style><a href=style></style></head>
		<a>none</a><a href>empty</a><a href="#x">part</a><A HREF="a&amp;b?c=1&amp;d#y">x</A><a href='a&b?c=1&d'>again</a>
		<nav hidden><area href="//other.example/x"></nav><template><a href="java` + "\n" + `script:x()">js</a></template><a href="last`
	page, err := ReadPage(t.Context(), "http://example.com/dir/page", "text/html", []byte(html))
	if err != nil || strings.Join(page.Links, " ") != "a&b?c=1&d //other.example/x java\nscript:x()" {
		t.Errorf("links %q, %v", page.Links, err)
	}
	if page.Base != "http://example.com/base/" || page.Canonical != " page " {
		t.Errorf("base %q, canonical %q", page.Base, page.Canonical)
	}
	page, err = ReadPage(
		t.Context(),
		"http://example.com/dir/page",
		"text/html",
		[]byte("<a href=x>"+strings.Repeat("<p>x", maxNodes)),
	)
	if err == nil || len(page.Links) != 1 || page.Base != "http://example.com/dir/page" {
		t.Errorf("a page with too many elements: %+v, %v", page, err)
	}
	var many strings.Builder
	for i := range 2 * maxLinks {
		fmt.Fprintf(&many, "<a href=%d>", i)
	}
	if page, err = ReadPage(
		t.Context(),
		"http://example.com/",
		"text/html",
		[]byte(many.String()),
	); err != nil || len(page.Links) != maxLinks {
		t.Errorf("%d links, %v", len(page.Links), err)
	}
}

func TestPageCharsets(t *testing.T) {
	const html = "text/html"
	for _, c := range []struct{ name, contentType, data, want string }{
		{"header", html + "; charset=iso-8859-1", "<p>caf\xe9", "café"},
		{"header before meta", html + "; charset=iso-8859-1", "<meta charset=windows-1251><p>caf\xe9", "café"},
		{"meta", html, "<meta charset=windows-1251><p>\xef\xf0\xe8", "при"},
		{"meta after a wrong header", html + "; charset=utf-8", "<meta charset=windows-1251><p>\xef\xf0\xe8", "при"},
		{"UTF-8 whatever meta says", html, "<meta charset=windows-1251><p>é", "é"},
		{"escapes", html, "<meta charset=iso-2022-jp><p>\x1b$B4A\x1b(B", "漢"},
		{"mark", html + "; charset=iso-8859-1", "\xff\xfeb\x00o\x00m\x00", "bom"},
		{"half a UTF-16 character", html, "\xff\xfea\x00b", "a\ufffd"},
		{"truncated UTF-8", html, "<p>" + strings.Repeat("żółw ", 5) + "\xc5", strings.Repeat("żółw ", 5) + "\ufffd"},
		{
			"guess",
			html,
			"<p>" + strings.Repeat("Stra\xdfe f\xfcr \xc4rzte und B\xe4cker, sch\xf6n und gro\xdf. ", 20),
			strings.TrimSpace(strings.Repeat("Straße für Ärzte und Bäcker, schön und groß. ", 20)),
		},
		{"text", "text/plain; charset=shift_jis", "\x93\xfa\x96{", "日本"},
		{
			"text, guess",
			"text/plain",
			strings.Repeat("Stra\xdfe f\xfcr \xc4rzte. ", 20),
			strings.Repeat("Straße für Ärzte. ", 20),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := ReadPage(t.Context(), "https://example.com/", c.contentType, []byte(c.data))
			if err != nil || page.Text != c.want {
				t.Errorf("%q, %v, want %q", page.Text, err, c.want)
			}
		})
	}
}

// TestPageBombs reads pages on which a naive reader uses gigabytes or minutes. It
// measures allocations, which grow with the time here.
func TestPageBombs(t *testing.T) {
	pages := map[string]string{
		"links":      strings.Repeat("<a href=x>", 900_000),
		"lists":      strings.Repeat("<ul><li>x", 300_000),
		"classes":    strings.Repeat("<div class=nav>", 250) + strings.Repeat("<p class=toc>x", 100_000),
		"no ends":    strings.Repeat("<x-", 1_000_000),
		"attributes": "<p " + strings.Repeat("a=b ", 1_000_000) + ">x",
		"stray ends": strings.Repeat("<div>", 250) + strings.Repeat("</x>", 500_000),
		"tables":     strings.Repeat("<table><tr><td>x", 100_000),
		"code":       strings.Repeat("<code>x", 300_000),
		"tall cells": "<table>" + strings.Repeat("<tr><td colspan=65535 rowspan=65535>x", 20_000) + "</table>",
		"wide rows":  "<table>" + strings.Repeat("<tr><td colspan=50>x", 20_000) + "</table>",
		"cells": "<table>" + strings.Repeat("<tr>"+strings.Repeat("<td>", 49), 10_000) + "<tr>" +
			strings.Repeat("<td>", 50) + "x</table>",
	}
	for name, page := range bombs {
		pages[name] = page
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			read, err := ReadPage(t.Context(), "https://example.com/", "text/html", []byte(page))
			runtime.ReadMemStats(&after)
			if err != nil {
				checkError(t, err)
			}
			if grown := after.TotalAlloc -
				before.TotalAlloc; grown > 64*uint64(len(page))+8*uint64(len(read.Text))+1<<20 ||
				len(read.Text) > maxPageText {
				t.Errorf(
					"a page of %d MB allocated %d MB and has %d bytes of text",
					len(page)>>20,
					grown>>20,
					len(read.Text),
				)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ReadPage(
		ctx,
		"https://example.com/",
		"text/html",
		[]byte(pages["lists"]),
	); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	if _, err := ReadPage(
		context.Background(),
		"https://example.com/",
		"text/html",
		[]byte(strings.Repeat("<p>x", maxNodes)),
	); agent.ErrorCode(err) != CodeTooComplex {
		t.Errorf("too many elements: %v", err)
	}
}

func FuzzReadPage(f *testing.F) {
	f.Add([]byte(crawledPage))
	for _, seed := range []string{
		"<table><tr><td colspan=99999999>x<frameset>",
		"<ul><li><ul><li><pre>`\n```</ul>x",
		"<dl><dt>a<dd><pre>b</dl>",
		"<a href=//x.y/z.zip>a<div>b</a>",
		"<blockquote><ol><li><table><tr><th>a<td>|<tr><td>",
		"<main><nav>x</main><p>```\n~~~",
		"<svg><title>x</svg><code>`a``</code>\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := ReadPage(context.Background(), "https://example.com/dir/page", "text/html", data)
		if err != nil {
			checkError(t, err)
			return
		}
		doc := Markdown(page.Text, Limits{Blocks: 50})
		doc.Title = page.Title
		checkDocument(t, doc)
	})
}

func BenchmarkReadPage(b *testing.B) {
	page := strings.Replace(crawledPage, "</article>", strings.Repeat(`<h2 id=x>Part</h2><p>Some <code>code</code> and <a href="/x">a link</a> in a sentence of a page.</p><pre>a
b</pre><ul><li>one<li>two</ul>`, 200)+"</article>", 1)
	for name, data := range map[string]string{"small": crawledPage, "large": page} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := ReadPage(
					context.Background(),
					"https://example.com/",
					"text/html",
					[]byte(data),
				); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
