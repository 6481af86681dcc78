package crawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// walk is one crawl of one source.
type walk struct {
	crawler *Crawler
	db      *store.DB
	work    store.CrawlWork

	site    site
	start   *url.URL
	globs   globs
	robots  *robots // nil: not obeyed
	fetcher *fetcher
}

// fetching is an address under way.
type fetching struct {
	url  string
	done chan store.PageOutcome
}

// ahead is how many pages beyond the host's connections are under way: one
// page's text is extracted while others are fetched.
const ahead = 2

// maxTried bounds the addresses that are fetched for a number of pages, so
// that a site of nothing but errors and redirects comes to an end.
func maxTried(pages int) int { return 3*pages + 20 }

// run walks from where the walk stands to its end. It returns ctx's error when
// it was stopped, NOT_FOUND when the source is gone.
func (w *walk) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var under []fetching // way, in the order of the queue
	defer func() {
		cancel()
		for _, f := range under {
			<-f.done
		}
	}()
	start, _ := normalize(w.start)
	window := w.crawler.manners.Connections + ahead
	for {
		frontier, err := w.db.Frontier(ctx, w.work.SourceID, start, window)
		if err != nil {
			return err
		}
		for _, page := range frontier.Next {
			if len(under) < window && frontier.Indexed+len(under) < w.work.Plan.MaxPages &&
				frontier.Tried+len(under) < maxTried(w.work.Plan.MaxPages) && !contains(under, page.URL) {
				under = append(under, w.begin(ctx, page))
			}
		}
		if len(under) == 0 {
			return w.end(ctx)
		}
		outcome := <-under[0].done
		under = under[1:]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.db.PutPage(ctx, w.work.SourceID, outcome); err != nil {
			return err
		}
		w.crawler.step("page")
		if outcome.Page != nil {
			w.crawler.options.Ready(w.db)
		}
	}
}

func contains(under []fetching, address string) bool {
	for _, f := range under {
		if f.url == address {
			return true
		}
	}
	return false
}

func (w *walk) begin(ctx context.Context, page store.QueuedPage) fetching {
	f := fetching{page.URL, make(chan store.PageOutcome, 1)}
	go func() {
		defer func() {
			if r := recover(); r != nil { // in a library: this page cannot be read, the others can
				w.crawler.log.Error("visit a page", "error", r, "stack", string(debug.Stack()))
				f.done <- store.PageOutcome{URL: page.URL, Final: page.URL, Depth: page.Depth, Problem: explainText(nil)}
			}
		}()
		f.done <- w.visit(ctx, page)
	}()
	return f
}

func (w *walk) end(ctx context.Context) error {
	ended, err := w.db.EndCrawl(ctx, w.work.SourceID)
	if err == nil {
		w.crawler.step("end")
		if !ended {
			w.crawler.options.Ready(w.db)
		}
	}
	return err
}

// visit fetches and reads one address. What it returns means nothing when ctx
// has ended.
func (w *walk) visit(ctx context.Context, page store.QueuedPage) store.PageOutcome {
	o := store.PageOutcome{URL: page.URL, Final: page.URL, Depth: page.Depth}
	u, err := url.Parse(page.URL)
	if err == nil {
		err = w.obey(ctx, u)
	}
	if err != nil {
		o.Problem, o.Skip = explain(err), true
		return o
	}
	resp, err := w.fetcher.fetch(ctx, page.URL, page.ETag, page.LastModified)
	if err == nil && resp.status == http.StatusNotModified && !w.leadsTo(resp, page.Known) {
		resp, err = w.fetcher.fetch(ctx, page.URL, "", "") // it is another page that is not modified
	}
	if err != nil {
		o.Problem = explain(err)
		o.Skip = o.Problem.Code == string(CodeRobots) || o.Problem.Code == string(CodeExcluded) || o.Problem.Code == string(CodeLeftSite)
		return w.keep(ctx, o, page)
	}
	o.Status = resp.status
	if final, ok := normalize(resp.final); ok {
		o.Final = final
	}
	switch {
	case resp.status == http.StatusNotModified && page.Known != "":
		o.Known = true
		return w.keep(ctx, o, page)
	case resp.status < 200 || resp.status >= 300:
		o.Problem = explainStatus(resp.status)
		return w.keep(ctx, o, page)
	}
	return w.read(ctx, o, resp)
}

// obey is an error when robots.txt forbids an address.
func (w *walk) obey(ctx context.Context, u *url.URL) error {
	if !w.robots.allow(ctx, u) {
		return agent.Errorf(CodeRobots, "robots.txt does not allow this page to be read")
	}
	return nil
}

// stay is an error when a redirect is not to be followed.
func (w *walk) stay(ctx context.Context, u *url.URL) error {
	if _, err := w.crawler.client.CheckURL(u.String()); err != nil {
		return err
	}
	if !w.site.holds(u) {
		return agent.Errorf(CodeLeftSite, "the server redirects to another site, %s", agent.Clip(u.Host, 100))
	}
	return w.obey(ctx, u)
}

func (w *walk) leadsTo(resp *response, known string) bool {
	final, ok := normalize(resp.final)
	return ok && known == final
}

// keep lets a page that was not read again lead on to where it led before,
// unless it is not there any more.
func (w *walk) keep(ctx context.Context, o store.PageOutcome, page store.QueuedPage) store.PageOutcome {
	if page.Known == "" || o.Skip || o.Status == http.StatusNotFound || o.Status == http.StatusGone {
		return o
	}
	if !o.Known {
		o.Final = page.Known
	}
	links, err := w.db.KnownLinks(ctx, w.work.SourceID, page.Known)
	if err == nil {
		o.Links = w.follow(ctx, links, page.Depth)
	}
	return o
}

// read makes a page of a response.
func (w *walk) read(ctx context.Context, o store.PageOutcome, resp *response) store.PageOutcome {
	if final, err := url.Parse(o.Final); err == nil && o.Final != o.URL && o.Depth > 0 && !w.globs.allow(final) {
		o.Problem, o.Skip = explain(agent.Errorf(CodeExcluded, "the server redirects to a page that the patterns leave out")), true
		return o
	}
	media := resp.media()
	if !wanted(media) || resp.body == nil && resp.header.Get("Content-Encoding") != "" {
		o.Problem, o.Skip = explain(agent.Errorf(CodeNoTextual, "this is no page of text")), true
		return o
	}
	body, found := resp.body, pageLinks{}
	if media != "application/pdf" {
		body = toUTF8(body, resp.header.Get(declaredType))
	}
	if media == "text/html" || media == "application/xhtml+xml" {
		found = readLinks(resp.final, body)
	}
	onSite := w.ofSite(found.links)
	o.Links = w.follow(ctx, onSite, o.Depth)
	if canonical := w.canonical(ctx, found.canonical, o); canonical != "" {
		o.Final, o.Queue = canonical, true
		return o
	}
	title, text, err := w.crawler.extract(ctx, o.Final, media, body)
	if err == nil && strings.TrimSpace(text) == "" {
		err = agent.Errorf(CodeNoText, "the page holds no text")
	}
	if err != nil {
		o.Problem = explainText(err)
		o.Skip = o.Problem.Code == string(CodeNoText)
		return o
	}
	hash := sha256.Sum256([]byte(text))
	o.Page = &store.ReadPage{Title: title, Text: text, Hash: hex.EncodeToString(hash[:]), Links: onSite,
		ETag: header(resp, "ETag"), LastModified: header(resp, "Last-Modified")}
	return o
}

// header returns a header that is short enough to be kept.
func header(r *response, name string) string {
	if value := r.header.Get(name); len(value) <= 500 {
		return value
	}
	return ""
}

func explainText(err error) *agent.SourceError {
	if code := agent.ErrorCode(err); code != agent.CodeInternal && err != nil {
		return explain(err)
	}
	return &agent.SourceError{Code: string(agent.CodeInternal), Message: "the page's text could not be read"}
}

// canonical is the other address of this site under which the page says it is
// to be known, "" when there is none that may be visited.
func (w *walk) canonical(ctx context.Context, address string, o store.PageOutcome) string {
	if address == "" || address == o.Final || address == o.URL {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || !w.site.holds(u) || !w.globs.allow(u) || !w.robots.allow(ctx, u) {
		return ""
	}
	return address
}

// ofSite are the links to pages of the site.
func (w *walk) ofSite(links []string) []string {
	kept := []string{}
	for _, link := range links {
		if u, err := url.Parse(link); err == nil && w.site.holds(u) && readable(u) {
			kept = append(kept, link)
		}
	}
	return kept
}

// follow are the links of a page at depth that are to be visited.
func (w *walk) follow(ctx context.Context, links []string, depth int) []string {
	if depth >= w.work.Plan.MaxDepth {
		return nil
	}
	var kept []string
	for _, link := range links {
		if u, err := url.Parse(link); err == nil && w.globs.allow(u) && w.robots.allow(ctx, u) {
			kept = append(kept, link)
		}
	}
	return kept
}
