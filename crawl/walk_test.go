package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
)

func TestWalkIsBreadthFirstWithinItsBounds(t *testing.T) {
	s := newSite(t)
	// A tree of depth three, with links back and to the page itself.
	var grow func(path string, depth int)
	grow = func(path string, depth int) {
		links := []string{"/", path, "#top"}
		for i := range 3 {
			child := strings.TrimSuffix(path, "/") + fmt.Sprintf("/%d", i)
			links = append(links, child, child+"#part")
			if depth < 3 {
				grow(child, depth+1)
			}
		}
		s.page(path, "page "+path, links...)
	}
	grow("/", 0)
	cases := []struct {
		pages, depth int
		want         string
	}{
		{1, 5, "/"},
		{50, 0, "/"},
		{50, 1, "/ /0 /1 /2"},
		{3, 5, "/ /0 /1"},
		{6, 5, "/ /0 /0/0 /0/1 /1 /2"},
		{50, 2, "/ /0 /0/0 /0/1 /0/2 /1 /1/0 /1/1 /1/2 /2 /2/0 /2/1 /2/2"},
	}
	for _, c := range cases {
		before := s.total()
		o := walkSite(t, s, func(p *agent.CrawlPlan) { p.MaxPages, p.MaxDepth = c.pages, c.depth })
		n := len(strings.Fields(c.want))
		if o.paths() != c.want ||
			o.PageCount != n ||
			o.ChangedPages != n ||
			o.source.Status != agent.SourceReady ||
			o.LastCrawledAt == "" {
			t.Errorf("%d pages, depth %d: %+v\nwant %s", c.pages, c.depth, o, c.want)
		}
		if fetched := s.total() - before; fetched != n {
			t.Errorf("%d pages, depth %d: %d requests, want %d", c.pages, c.depth, fetched, n)
		}
	}
}

func TestCrawlerTrapsEnd(t *testing.T) {
	s := newSite(t)
	s.other = func(w http.ResponseWriter, r *http.Request) { // each page links to a hundred new ones
		links := make([]string, 100)
		for i := range links {
			links[i] = fmt.Sprintf("%s/%d?from=%d", strings.TrimSuffix(r.URL.Path, "/"), i, i)
		}
		htmlPage("day "+r.URL.Path, links...)(w, r)
	}
	o := walkSite(t, s, func(p *agent.CrawlPlan) { p.IgnoreRobots = true })
	if o.PageCount != 50 || s.total() != 50 {
		t.Errorf("%d pages by %d requests, want 50 by 50", o.PageCount, s.total())
	}

	broken := newSite(t)
	broken.other = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		links := make([]string, 900)
		for i := range links {
			links[i] = fmt.Sprintf("/%d", i)
		}
		htmlPage("start", links...)(w, r)
	}
	o = walkSite(t, broken, func(p *agent.CrawlPlan) { p.MaxPages, p.IgnoreRobots = 5, true })
	if o.PageCount != 1 || broken.total() != maxFetches(5) || len(o.FailedPages) != maxFetches(5)-1 {
		t.Errorf(
			"%d pages, %d failed, by %d requests, want 1, %d, %d",
			o.PageCount,
			len(o.FailedPages),
			broken.total(),
			maxFetches(5)-1,
			maxFetches(5),
		)
	}

	circle := newSite(t)
	circle.set("/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/a", http.StatusFound) })
	circle.set("/a", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	if o = walkSite(t, circle, nil); o.source.Error == nil || o.source.Error.Code != "TOO_MANY_REDIRECTS" {
		t.Errorf("a redirect loop: %+v", o.source.Error)
	}
}

func TestWhichPagesAreVisited(t *testing.T) {
	s := newSite(t)
	elsewhere := newSite(t)
	elsewhere.page("/", "elsewhere")
	s.page(
		"/", "start", "/docs/a", "/docs/b/c", "/blog/x", "/search?q=1", elsewhere.URL+"/",
		"mailto:a@example.com", "javascript:x()", "/picture.PNG", "//"+strings.TrimPrefix(s.URL, "http://")+"/docs/d",
		"http://user:pw@"+strings.TrimPrefix(s.URL, "http://")+"/docs/e",
	)
	for _, path := range []string{
		"/docs/a", "/docs/b/c", "/docs/d", "/docs/e", "/blog/x", "/search?q=1", "/picture.PNG",
	} {
		s.page(path, "page "+path)
	}
	cases := []struct {
		include, exclude []string
		want             string
	}{
		{nil, nil, "/ /blog/x /docs/a /docs/b/c /docs/d /search?q=1"},
		{[]string{"/docs/**"}, nil, "/ /docs/a /docs/b/c /docs/d"},
		{[]string{"/docs/*"}, nil, "/ /docs/a /docs/d"},
		{[]string{s.URL + "/docs/**"}, []string{"**/c"}, "/ /docs/a /docs/d"},
		{[]string{"/docs**", "/blog/?"}, []string{"/docs/{a,d}"}, "/ /blog/x /docs/b/c"},
		{nil, []string{"*://*/docs/**", "/search*"}, "/ /blog/x"},
		{[]string{"/nothing"}, []string{"/", "**"}, "/"},
	}
	for _, c := range cases {
		o := walkSite(t, s, func(p *agent.CrawlPlan) { p.IncludePatterns, p.ExcludePatterns = c.include, c.exclude })
		if o.paths() != c.want {
			t.Errorf("include %q exclude %q: %s, want %s", c.include, c.exclude, o.paths(), c.want)
		}
	}
	if n := elsewhere.total(); n != 0 {
		t.Errorf("another site was requested %d times", n)
	}
}

func TestRobotsAndCanonicalLinks(t *testing.T) {
	s := newSite(t)
	robots := "User-agent: *\nDisallow: /\n\nUser-agent: satchel\nDisallow: /private\n" +
		"Allow: /private/open\nCrawl-delay: 1000\n"
	s.set("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, robots) })
	s.page("/", "start", "/private/a", "/private/open", "/copy?ref=1", "/lone", "/hop")
	s.page("/private/a", "secret")
	s.page("/private/open", "open")
	s.set("/hop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/private/a", http.StatusFound) })
	canonical := func(text, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<link rel=canonical href=%q><p>%s</p>", to, text)
		}
	}
	s.set("/copy?ref=1", canonical("a copy", "/original"))
	s.set("/original", canonical("the original", "/original"))
	s.set("/lone", canonical("lone", "http://example.com/elsewhere"))
	o := walkSite(t, s, nil)
	if want := "/ /lone /original /private/open"; o.paths() != want || o.failures() != "" {
		t.Errorf("%s (failed %s), want %s", o.paths(), o.failures(), want)
	}
	if s.count("/private/a") != 0 || s.count("/robots.txt") != 1 {
		t.Errorf(
			"robots.txt was requested %d times, a forbidden page %d times",
			s.count("/robots.txt"),
			s.count("/private/a"),
		)
	}
	if o = walkSite(t, s, func(p *agent.CrawlPlan) {
		p.IgnoreRobots = true
	}); o.paths() != "/ /lone /original /private/a /private/open" {
		t.Errorf("without robots.txt: %s", o.paths())
	}
	s.set("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if o = walkSite(t, s, nil); o.source.Error == nil || o.source.Error.Code != string(CodeRobots) {
		t.Errorf("with a robots.txt that fails: %+v", o.source.Error)
	}
}

func TestRedirects(t *testing.T) {
	s := newSite(t)
	away := newSite(t)
	away.page("/", "away")
	to := func(address string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, status) }
	}
	s.page("/", "start", "/old", "/new", "/away", "/inside", "/chain1", "/hidden")
	s.set("/old", to("/new", http.StatusMovedPermanently))
	s.page("/new", "new")
	s.set("/away", to(away.URL+"/", http.StatusFound))
	s.set("/inside", to("http://169.254.169.254/latest/meta-data", http.StatusFound))
	s.set("/chain1", to("/chain2", http.StatusTemporaryRedirect))
	s.set("/chain2", to("/end?a=1#x", http.StatusSeeOther))
	s.page("/end?a=1", "end")
	s.set("/hidden", to("/excluded/page", http.StatusFound))
	s.page("/excluded/page", "excluded")
	o := walkSite(t, s, func(p *agent.CrawlPlan) { p.ExcludePatterns = []string{"/excluded/**"} })
	if want := "/ /end?a=1 /new"; o.paths() != want || o.failures() != "/inside 0" {
		t.Errorf("%s (failed %s), want %s (failed /inside 0)", o.paths(), o.failures(), want)
	}
	if s.count("/new") != 1+1 || away.total() != 0 {
		t.Errorf("/new was fetched %d times, another site %d times", s.count("/new"), away.total())
	}

	s.set("/", to("http://10.0.0.1/", http.StatusFound))
	if o = walkSite(t, s, nil); o.source.Status != agent.SourceFailed || o.source.Error.Code != "BLOCKED_ADDRESS" {
		t.Errorf("a start that redirects to a private address: %+v", o.source.Error)
	}
	s.set("/", to(away.URL+"/", http.StatusFound))
	if o = walkSite(t, s, nil); o.source.Status != agent.SourceFailed ||
		o.source.Error.Code != string(CodeLeftSite) ||
		away.total() != 0 {
		t.Errorf("a start that redirects to another site: %+v", o.source.Error)
	}
	s.set("/", to("/home", http.StatusFound))
	s.page("/home", "home", "/", "/new")
	if o = walkSite(t, s, nil); o.paths() != "/home /new" {
		t.Errorf("a start that redirects: %s", o.paths())
	}
}

func TestFailingPages(t *testing.T) {
	s := newSite(t)
	s.page("/", "start", "/gone", "/broken", "/busy", "/later", "/empty", "/image", "/big", "/bomb.xml.gz", "/cut")
	s.set("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	s.set("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "100000")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s.set("/later", func(w http.ResponseWriter, r *http.Request) {
		if s.count("/later") == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		htmlPage("later")(w, r)
	})
	s.set("/empty", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") })
	typed := func(media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			fmt.Fprint(w, body)
		}
	}
	s.set("/image", typed("image/svg+xml", "<svg/>"))
	s.set("/bomb.xml.gz", typed("text/html", "\x1f\x8b"))
	s.set("/big", typed("text/html", strings.Repeat("x", maxPage+1)))
	s.set("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "short")
	})
	o := walkSite(t, s, nil)
	if o.paths() != "/ /later" || o.PageCount != 2 || o.source.Status != agent.SourceReady {
		t.Errorf("pages %s, status %s", o.paths(), o.source.Status)
	}
	if want := "/gone 404, /broken 500, /busy 429, /big 0, /cut 0"; o.failures() != want {
		t.Errorf("failed %s, want %s", o.failures(), want)
	}
	if s.count("/busy") != maxAttempts || s.count("/later") != 2 || s.count("/broken") != 1 {
		t.Errorf(
			"requested busy %d times, later %d times, broken %d times",
			s.count("/busy"),
			s.count("/later"),
			s.count("/broken"),
		)
	}
	s.set("/", nil)
	if o = walkSite(t, s, nil); o.source.Status != agent.SourceFailed ||
		o.source.Error.Code != string(agent.CodeUpstream) ||
		o.failures() != "/ 404" {
		t.Errorf("a start that does not exist: %+v, %s", o.source.Error, o.failures())
	}
}

func TestSlowPagesTimeOut(t *testing.T) {
	s := newSite(t)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for {
			if _, err := fmt.Fprint(w, "x"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-done:
				return
			default:
			}
		}
	}
	s.page("/", "start", "/drip", "/after")
	s.page("/after", "after")
	s.set("/drip", drip)
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) { o.Politeness.PageTimeout = 300e6 })
	db := newAgent(t, folder, "slow")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	o := outcomeOf(t, db, id, s.URL)
	if o.paths() != "/ /after" || o.failures() != "/drip 0" {
		t.Errorf("pages %s, failed %s", o.paths(), o.failures())
	}
}

func TestCharsets(t *testing.T) {
	s := newSite(t)
	raw := func(media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if media != "" {
				w.Header().Set("Content-Type", media)
			}
			_, _ = w.Write([]byte(body))
		}
	}
	s.page("/", "start", "/header", "/meta", "/guess", "/utf8", "/bom", "/text", "/none")
	s.set("/header", raw("text/html; charset=iso-8859-1", "<p>caf\xe9 header</p>"))
	s.set("/meta", raw("text/html", "<meta charset=windows-1251><p>\xef\xf0\xe8\xe2\xe5\xf2 meta</p>"))
	s.set(
		"/guess",
		raw(
			"text/html",
			"<p>"+strings.Repeat("Stra\xdfe f\xfcr \xc4rzte und B\xe4cker, sch\xf6n und gro\xdf. ", 20)+"</p>",
		),
	)
	s.set("/utf8", raw("text/html", strings.Repeat(" ", 2000)+"<p>żółw utf8</p>"))
	s.set("/bom", raw("text/html", "\xff\xfe<\x00p\x00>\x00b\x00o\x00m\x00 \x00\x17\x01<\x00/\x00p\x00>\x00"))
	s.set("/text", raw("text/plain; charset=shift_jis", "\x93\xfa\x96{ text"))
	s.set("/none", raw("", "<!doctype html><p>none é</p>"))
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "letters")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	all := chunksOf(t, db, id)
	for _, want := range []string{
		"café header",
		"привет meta",
		"Straße für Ärzte und Bäcker",
		"żółw utf8", "bom ė", "日本 text", "none é",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %.2000q", want, all)
		}
	}
}

func TestPageWithSeveralURLs(t *testing.T) {
	s := newSite(t)
	s.page("/", "start", "/index.html", "/dir/index.php?x=1", "/dir/", "/dir/?x=2", "/other/", "/index.htm")
	s.page("/index.html", "start", "/behind")
	s.page("/behind", "behind")
	s.page("/index.htm", "another text")
	s.page("/dir/", "dir")
	s.page("/dir/?x=2", "dir")
	s.page("/dir/index.php?x=1", "dir")
	s.page("/other/", "dir") // has the same text but is another page
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "names")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	want := "/ /behind /dir/index.php?x=1 /index.htm /other/"
	if o := outcomeOf(t, db, id, s.URL); o.paths() != want || o.PageCount != 5 || o.failures() != "" {
		t.Errorf("pages %s, failed %s; want %s", o.paths(), o.failures(), want)
	}
	if o := recrawl(t, c, db, id, s.URL); o.paths() != want ||
		o.ChangedPages != 0 ||
		o.UnchangedPages != 5 ||
		o.RemovedPages != 0 {
		t.Errorf("after a second crawl: %+v", o)
	}
}

// TestProgressCountsWhatWillBeFetched checks the progress of a crawl whose frontier has
// more pages than the plan allows.
func TestProgressCountsWhatWillBeFetched(t *testing.T) {
	s, g := newSite(t), newGate(t)
	links := []string{"/held"}
	for i := range 30 {
		links = append(links, fmt.Sprintf("/%d", i))
		s.page(links[i+1], fmt.Sprintf("page %d", i))
	}
	s.page("/", "start", links...)
	s.set("/held", g.hold(htmlPage("held")))
	folder := openFolder(t, t.TempDir())
	stored := make(chan struct{}, 1)
	c := newCrawler(t, folder, nil)
	c.onStep = onStored(stored)
	db := newAgent(t, folder, "progress")
	plan := planOf(s.URL)
	plan.MaxPages = 10
	id := create(t, db, plan)
	<-stored
	<-g.arrived
	source, err := db.Source(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	// The start is fetched and waits to be split; nine of the others will be fetched.
	if p := source.Progress; p == nil || p.Total != 10 || p.Queued != 10 || p.Done != 0 {
		t.Errorf("progress %+v, want 10 of 10 queued", p)
	}
	g.release()
	waitIndexed(t, c, db, id)
	if o := outcomeOf(t, db, id, s.URL); o.PageCount != 10 || o.source.Progress != nil {
		t.Errorf("%d pages, progress %+v", o.PageCount, o.source.Progress)
	}
}

// TestNothingIsFetchedTwice stores the pages in small batches, so that a full window of
// requests is in flight at each commit.
func TestNothingIsFetchedTwice(t *testing.T) {
	s := newSite(t)
	var links []string
	for i := range 80 {
		links = append(links, fmt.Sprintf("/%d", i))
		s.page(links[i], fmt.Sprintf("page %d", i), links...)
	}
	s.page("/", "start", links...)
	folder := openFolder(t, t.TempDir())
	for _, batch := range []int{1, 7} {
		before := s.total()
		c := newCrawler(t, folder, nil)
		c.batch = batch
		db := newAgent(t, folder, fmt.Sprintf("batch-%d", batch))
		id := create(t, db, planOf(s.URL))
		waitIndexed(t, c, db, id)
		if o := outcomeOf(t, db, id, s.URL); o.PageCount != 50 || s.total()-before != 50 {
			t.Errorf("batches of %d: %d pages by %d requests", batch, o.PageCount, s.total()-before)
		}
		c.Stop()
	}
}

// TestRedirectedPageIsNotFetchedAgain links to a page to which another address
// redirected, before either is stored.
func TestRedirectedPageIsNotFetchedAgain(t *testing.T) {
	s := newSite(t)
	s.page("/", "start", "/old", "/later")
	s.set("/old", http.RedirectHandler("/new", http.StatusFound).ServeHTTP)
	s.page("/later", "later", "/new", "/old", "/last")
	s.page("/new", "new")
	s.page("/last", "last", "/new")
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "redirected")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /last /later /new" ||
		s.count("/new") != 1 ||
		s.count("/old") != 1 {
		t.Errorf("pages %s; /new was requested %d times, /old %d times", o.paths(), s.count("/new"), s.count("/old"))
	}
}

// TestUnreadableCanonicalURL checks that the text of pages is kept whose canonical URL
// does not exist or redirects back to them, even if the crawl is interrupted between
// the two or repeated.
func TestUnreadableCanonicalURL(t *testing.T) {
	canonical := func(text, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<link rel=canonical href=%q><p>%s</p>", to, text)
		}
	}
	for _, cut := range []bool{false, true} {
		for _, batch := range []int{1, maxBatch} {
			s, g := newSite(t), newGate(t)
			s.page("/", "start", "/dead", "/dead?twice", "/loop", "/last")
			s.set("/dead", canonical("not dead", "/gone"))
			s.set("/dead?twice", canonical("not dead", "/gone"))
			s.set("/gone", g.hold(http.NotFound))
			s.set("/loop", canonical("around", "/back"))
			s.set("/back", http.RedirectHandler("/loop", http.StatusFound).ServeHTTP)
			s.page("/last", "last")
			folder := openFolder(t, t.TempDir())
			c := newCrawler(t, folder, nil)
			c.batch = batch
			db := newAgent(t, folder, "nowhere")
			id := create(t, db, planOf(s.URL))
			<-g.arrived
			if cut {
				c.Stop()
				if err := c.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-g.arrived
			}
			g.release()
			waitIndexed(t, c, db, id)
			for range 2 {
				if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /dead /last /loop" || o.failures() != "/gone 404" {
					t.Errorf("cut %v, batch %d: %s (failed %s)", cut, batch, o.paths(), o.failures())
				}
				recrawl(t, c, db, id, s.URL)
			}
			c.Stop()
		}
	}
}
