package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/vector/document"
)

// hijacked lets answer write to the connection.
func hijacked(answer func(conn *net.TCPConn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		answer(conn.(*net.TCPConn))
	}
}

// rawResponse responds with the given headers and body.
func rawResponse(status int, headers, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		for line := range strings.Lines(headers) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// endless responds with head and then with piece again and again, until the client
// closes the connection.
func endless(head, piece string) http.HandlerFunc {
	return hijacked(func(conn *net.TCPConn) {
		_, err := io.WriteString(conn, head)
		for err == nil {
			_, err = io.WriteString(conn, piece)
		}
	})
}

// stalled responds to a request with head and nothing more.
func stalled(head string) http.HandlerFunc {
	return hijacked(func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, head)
		_, _ = io.Copy(io.Discard, conn) // until it is closed
	})
}

const isHTML = "Content-Type: text/html; charset=utf-8"

// hostilePages are malicious or broken pages, with the result of crawling them: the
// extracted text, or "failed" with the status and the error code. Pages with a code in
// brackets are skipped.
var hostilePages = []struct {
	path   string
	answer http.HandlerFunc
	want   string
}{
	{"/to-itself", rawResponse(302, "Location: /to-itself", ""), "failed 0 TOO_MANY_REDIRECTS"},
	{"/around", rawResponse(301, "Location: /to-itself", ""), "failed 0 TOO_MANY_REDIRECTS"},
	{"/inside", rawResponse(302, "Location: http://192.168.1.1/", ""), "failed 0 BLOCKED_ADDRESS"},
	{"/metadata", rawResponse(302, "Location: http://169.254.169.254/latest/", ""), "failed 0 BLOCKED_ADDRESS"},
	{"/decimal", rawResponse(302, "Location: http://2852039166/", ""), "failed 0 BLOCKED_ADDRESS"},
	{"/to-file", rawResponse(302, "Location: file:///etc/passwd", ""), "failed 0"},
	{"/nowhere", rawResponse(302, "", ""), "failed 302"},
	{"/busy", rawResponse(429, "Retry-After: 86400", ""), "failed 429 UPSTREAM_ERROR"},
	{"/down", rawResponse(503, "", "back soon"), "failed 503 UPSTREAM_ERROR"},
	{"/big", rawResponse(200, isHTML, "<p>"+strings.Repeat("x", maxPage)), "failed 0 RESPONSE_TOO_LARGE"},
	{
		"/endless",
		endless("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", strings.Repeat("<p>x", 1<<14)),
		"failed 0 RESPONSE_TOO_LARGE",
	},
	{
		"/headers",
		endless("HTTP/1.1 200 OK\r\n", "X-More: "+strings.Repeat("x", 1000)+"\r\n"),
		"failed 0 UPSTREAM_ERROR",
	},
	{"/one-header", endless("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("x", 1000)), "failed 0 UPSTREAM_ERROR"},
	{"/reset", hijacked(func(conn *net.TCPConn) {
		_, _ = io.WriteString(
			conn,
			"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n<p>half",
		)
		_ = conn.SetLinger(0)
	}), "failed 0 UPSTREAM_ERROR"},
	{"/cut", rawResponse(200, isHTML+"\nContent-Length: 1000", "<p>half"), "failed 0 UPSTREAM_ERROR"},
	{"/no-http", endless("SSH-2.0-OpenSSH\r\n", "x"), "failed 0 UPSTREAM_ERROR"},
	{"/zipped", rawResponse(200, isHTML+"\nContent-Encoding: gzip", gzipped("<p>it was packed")), "it was packed"},
	{
		"/bomb",
		rawResponse(200, isHTML+"\nContent-Encoding: gzip", gzipped(strings.Repeat("<p>x", 10<<20))),
		"failed 0 RESPONSE_TOO_LARGE",
	},
	{"/no-gzip", rawResponse(200, isHTML+"\nContent-Encoding: gzip", "<p>plain"), "failed 0 UPSTREAM_ERROR"},
	{"/brotli", rawResponse(200, isHTML+"\nContent-Encoding: br", "\x8b\x01\x80"), "[UNSUPPORTED_FORMAT]"},
	{"/picture", rawResponse(200, isHTML, "\x89PNG\r\n\x1a\n<p>a picture"), "[UNSUPPORTED_FORMAT]"},
	{
		"/noise",
		rawResponse(200, "Content-Type: text/plain", strings.Repeat("\x00\x01\x02\xfe", 500)),
		"[UNSUPPORTED_FORMAT]",
	},
	{"/no-pdf", rawResponse(200, "Content-Type: application/pdf", "<p>no pdf"), "failed 200 VALIDATION_ERROR"},
	{"/half-a-pdf", rawResponse(200, "Content-Type: text/html", "%PDF-1.4 cut"), "failed 200 BROKEN_FILE"},
	{"/no-type", rawResponse(200, "", "<!doctype html><p>it has no type"), "it has no type"},
	{
		"/type-of-its-own",
		rawResponse(200, "Content-Type: text/html; charset=nonsense; =;", "<p>an odd type"),
		"an odd type",
	},
	{"/cyrillic", rawResponse(200, isHTML, "<meta charset=windows-1251><p>\xef\xf0\xe8\xe2\xe5\xf2"), "привет"},
	{
		"/japanese",
		rawResponse(
			200,
			isHTML,
			"<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'><p>\x93\xfa\x96{\x8c\xea",
		),
		"日本語",
	},
	{"/one-bad-byte", rawResponse(200, isHTML, "<p>żółw żółw żółw \xff żółw"), "żółw żółw żółw \uFFFD żółw"},
	{"/deep", rawResponse(200, isHTML, strings.Repeat("<div>", 100_000)+"the bottom"), "the bottom"},
	{"/nul", rawResponse(200, isHTML, "<p>no\x00thing<!--\x00-->"), "no thing"},
	{"/crowded", rawResponse(200, isHTML, strings.Repeat("<p>x</p>", 600_000)), "failed 200 TOO_COMPLEX"},
	{
		"/elsewhere-canonical",
		rawResponse(200, isHTML, `<link rel=canonical href="https://example.com/"><p>kept here`),
		"kept here",
	},
	{"/circle-a", rawResponse(200, isHTML, `<link rel=canonical href="/circle-b"><p>circle a`), "[alias]"},
	{"/circle-b", rawResponse(200, isHTML, `<link rel=canonical href="/circle-c"><p>circle b`), "[alias]"},
	{"/circle-c", rawResponse(200, isHTML, `<link rel=canonical href="/circle-a"><p>circle c`), "circle c"},
	{
		"/base",
		rawResponse(
			200,
			isHTML,
			`<base href="https://example.com/x/"><p>a base<a href="y">y</a><a href="javascript:x()">z</a>`+
				`<a href="mailto:a@b.c">m</a>`,
		),
		"a base",
	},
}

// TestHostilePages crawls the pages above one after the other, while a page that hangs
// is held until another crawl has completed.
func TestHostilePages(t *testing.T) {
	s, healthy := newSite(t), newSite(t)
	for i := range 10 {
		healthy.page(fmt.Sprintf("/%d", i), fmt.Sprintf("page %d", i))
	}
	healthy.page("/", "start", "/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9")
	g := newGate(t)
	s.page("/held", "held")
	s.set("/held", g.hold(htmlPage("held")))
	links := []string{"/held"}
	for _, p := range hostilePages {
		s.set(p.path, p.answer)
		links = append(links, p.path)
	}
	s.page("/", "start", append(links, "/after")...)
	s.page("/after", "after all")

	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) {
		o.Extract = document.ReadPage
	})
	db := newAgent(t, folder, "hostile")
	plan := planOf(s.URL)
	id := create(t, db, plan)
	<-g.arrived
	otherDB := newAgent(t, folder, "honest")
	otherID := create(t, otherDB, planOf(healthy.URL))
	waitIndexed(t, c, otherDB, otherID)
	if o := outcomeOf(t, otherDB, otherID, healthy.URL); o.PageCount != 11 || o.failures() != "" {
		t.Errorf("the crawl of a healthy site: %d pages, failed %s", o.PageCount, o.failures())
	}
	g.release()
	waitIndexed(t, c, db, id)
	o := outcomeOf(t, db, id, s.URL)
	found := chunksOf(t, db, id)
	failed := map[string]agent.FailedPage{}
	for _, f := range o.FailedPages {
		failed[strings.TrimPrefix(f.URL, s.URL)] = f
	}
	for _, p := range hostilePages {
		f, isFailed := failed[p.path]
		status, wantFailed := strings.CutPrefix(p.want, "failed ")
		text := chunkOf(found, s.URL+p.path)
		switch {
		case wantFailed:
			number, _, _ := strings.Cut(status, " ")
			if !isFailed || fmt.Sprint(f.Status) != number || f.Error == "" || text != "" {
				t.Errorf("%s: recorded as %+v with text %.100q, want %s", p.path, f, text, p.want)
			}
		case isFailed:
			t.Errorf("%s: recorded as %+v, want %s", p.path, f, p.want)
		case strings.HasPrefix(p.want, "["):
			if text != "" {
				t.Errorf("%s: %.100q, want %s", p.path, text, p.want)
			}
		case !strings.Contains(text, p.want):
			t.Errorf("%s: %.100q, want %s", p.path, text, p.want)
		}
	}
	if chunkOf(found, s.URL+"/after") == "" || o.source.Status != agent.SourceReady {
		t.Errorf("the page after the hostile ones was not read; the source is %s", o.source.Status)
	}
	for _, f := range o.FailedPages {
		if strings.Contains(f.Error, "goroutine") || len(f.Error) > 300 {
			t.Errorf("%s: the message contains an internal error: %s", f.URL, f.Error)
		}
	}
}

// TestHostileProblemCodes crawls each of these pages as a source of its own and checks
// its error code.
func TestHostileProblemCodes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and does not test concurrency")
	}
	s := newSite(t)
	for _, p := range hostilePages {
		s.set(p.path, p.answer)
	}
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) {
		o.Extract = document.ReadPage
	})
	db := newAgent(t, folder, "alone")
	ids := map[string]string{}
	for _, p := range hostilePages {
		if _, code, ok := strings.Cut(
			strings.TrimPrefix(p.want, "failed "),
			" ",
		); ok && strings.HasPrefix(p.want, "failed ") {
			plan := planOf(s.URL + p.path)
			plan.IgnoreRobots = true
			ids[create(t, db, plan)] = p.path + " " + code
		}
	}
	waitIndexed(t, c, db)
	for id, want := range ids {
		path, code, _ := strings.Cut(want, " ")
		if o := outcomeOf(t, db, id, s.URL); o.source.Status != agent.SourceFailed || o.source.Error.Code != code {
			t.Errorf("%s: status %s, error %+v, want %s", path, o.source.Status, o.source.Error, code)
		}
	}
}

// TestSilentPages crawls servers that stop in the middle of a response.
func TestSilentPages(t *testing.T) {
	s := newSite(t)
	s.set("/mute", stalled(""))
	s.set("/half-a-header", stalled("HTTP/1.1 200 OK\r\nContent-Ty"))
	s.set("/half-a-body", stalled("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>half"))
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) { o.Politeness.PageTimeout = 500 * time.Millisecond })
	db := newAgent(t, folder, "silent")
	var ids []string
	for _, path := range []string{"/mute", "/half-a-header", "/half-a-body"} {
		plan := planOf(s.URL + path)
		plan.IgnoreRobots = true
		ids = append(ids, create(t, db, plan))
	}
	waitIndexed(t, c, db)
	for _, id := range ids {
		if o := outcomeOf(t, db, id, s.URL); o.source.Status != agent.SourceFailed ||
			o.source.Error.Code != "TIMEOUT" ||
			len(o.FailedPages) != 1 {
			t.Errorf("status %s, error %+v, failed %s", o.source.Status, o.source.Error, o.failures())
		}
	}
}

func TestRobotsFiles(t *testing.T) {
	otherSite := newSite(t)
	otherSite.set("/robots.txt", rawResponse(200, "", "User-agent: *\nDisallow: /secret"))
	huge := strings.Repeat("# nothing to see here\n", 40_000) + "User-agent: *\nDisallow: /\n"
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // pages, or the error's code
	}{
		{"none", nil, "/ /open /secret"},
		{"forbids", rawResponse(200, "", "User-agent: *\nDisallow: /secret"), "/ /open"},
		{"forbidden to read", rawResponse(403, "", ""), "/ /open /secret"},
		{"huge, with rules after the limit", rawResponse(200, "", huge), "/ /open /secret"},
		{"huge, with a rule first", rawResponse(200, "", "User-agent: *\nDisallow: /secret\n"+huge), "/ /open"},
		{
			"endless",
			endless(
				"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /secret\n",
				strings.Repeat("Disallow: /x\n", 1000),
			),
			"/ /open",
		},
		{
			"a bomb",
			rawResponse(
				200,
				"Content-Encoding: gzip",
				gzipped("User-agent: *\nDisallow: /secret\n"+strings.Repeat("#", 20<<20)),
			),
			"/ /open",
		},
		{"binary", rawResponse(200, "", strings.Repeat("\x00\xff", 5000)), "/ /open /secret"},
		{"server error", rawResponse(500, "", ""), "ROBOTS_DISALLOWED"},
		{"hangs", stalled(""), "ROBOTS_DISALLOWED"},
		{"hangs halfway", stalled("HTTP/1.1 200 OK\r\n\r\nUser-agent: *\n"), "ROBOTS_DISALLOWED"},
		{"truncated", rawResponse(200, "Content-Length: 1000", "User-agent: *\n"), "ROBOTS_DISALLOWED"},
		{"redirects", rawResponse(301, "Location: "+otherSite.URL+"/robots.txt", ""), "/ /open"},
		{"redirects in a circle", rawResponse(302, "Location: /robots.txt", ""), "/ /open /secret"},
		{
			"redirects to a private address",
			rawResponse(302, "Location: http://10.0.0.1/robots.txt", ""),
			"/ /open /secret",
		},
		{"an HTML page", rawResponse(200, isHTML, "<!doctype html><h1>Not found</h1>"), "/ /open /secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.set("/robots.txt", c.answer)
			s.page("/", "start", "/open", "/secret")
			s.page("/open", "open")
			s.page("/secret", "secret")
			folder := openFolder(t, t.TempDir())
			crawler := newCrawler(t, folder, func(o *Options) {
				if strings.HasPrefix(c.name, "hangs") {
					o.Politeness.PageTimeout = 500 * time.Millisecond
				}
			})
			db := newAgent(t, folder, "robots")
			id := create(t, db, planOf(s.URL))
			waitIndexed(t, crawler, db, id)
			o := outcomeOf(t, db, id, s.URL)
			got := o.paths()
			if o.source.Error != nil {
				got = o.source.Error.Code
			}
			if got != c.want || s.count("/robots.txt") < 1 {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestManyLinks crawls pages of 10,000 links, and pages with links of many megabytes.
func TestManyLinks(t *testing.T) {
	s := newSite(t)
	s.other = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<p>page "+r.URL.Path)
		for i := range 10_000 {
			fmt.Fprintf(w, "<a href='%s/%d'></a>", strings.TrimSuffix(r.URL.Path, "/"), i)
		}
	}
	long := newSite(t)
	long.other = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<p>page "+r.URL.Path)
		for i := range 1000 {
			fmt.Fprintf(w, "<a href='/%d?from=%s&%s'></a>", i, r.URL.Path, strings.Repeat("x", 1500))
		}
	}
	for _, site := range []*testSite{s, long} {
		o := walkSite(t, site, func(p *agent.CrawlPlan) { p.IgnoreRobots, p.MaxPages = true, 10 })
		if o.PageCount != 10 || o.failures() != "" || site.total() != 10 {
			t.Errorf("%d pages by %d requests, failed %s", o.PageCount, site.total(), o.failures())
		}
	}
}

// TestCrawlsDoNotDisturbEachOther creates and deletes crawls and restarts the Crawler
// from several goroutines, and checks that the other crawls are complete.
func TestCrawlsDoNotDisturbEachOther(t *testing.T) {
	s := newSite(t)
	for i := range 12 {
		s.page(
			fmt.Sprintf("/%d", i),
			fmt.Sprintf("page %d", i),
			fmt.Sprintf("/%d", (2*i+1)%12),
			fmt.Sprintf("/%d", (2*i+2)%12),
		)
	}
	s.page("/", "start", "/0", "/1")
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	idle, busy := newAgent(t, folder, "quiet"), newAgent(t, folder, "busy")
	var whole []string
	for range 3 {
		whole = append(whole, create(t, idle, planOf(s.URL)))
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 10 {
				made, err := busy.CreateCrawlSource(context.Background(), agent.SourceCrawl, "site", planOf(s.URL))
				if err != nil {
					t.Error(err)
					return
				}
				if err := busy.DeleteSource(context.Background(), made.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() {
		for range 3 {
			c.Stop()
			if err := c.Start(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	waitIndexed(t, c, busy)
	waitIndexed(t, c, idle, whole...)
	for _, id := range whole {
		if o := outcomeOf(t, idle, id, s.URL); o.PageCount != 13 ||
			o.failures() != "" ||
			o.source.Status != agent.SourceReady {
			t.Errorf("%d pages, failed %s", o.PageCount, o.failures())
		}
	}
	if remaining, err := busy.CrawlWork(context.Background()); err != nil || len(remaining) != 0 {
		t.Errorf("work for deleted sources remains: %v, %v", remaining, err)
	}
}
