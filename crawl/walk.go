package crawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

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

	mu     sync.Mutex
	judged map[string]verdict // of links, most of which are on every page

	// What follows is run's own.
	resumed bool            // the walk had begun before
	queued  map[string]bool // what the pages that were stored led to
	said    map[string]bool // the hashes of what they say
}

// verdict is what a walk makes of a link.
type verdict struct{ onSite, wanted bool }

// fetching is an address under way.
type fetching struct {
	url  string
	done chan store.PageOutcome
}

// ahead is how many pages beyond the host's connections are under way: while
// some are fetched, the text of others is extracted or stored.
const ahead = 14

// Bounds of what is stored in one commit.
const (
	maxBatch     = 64
	maxBatchText = 4 << 20                // bytes
	linger       = 200 * time.Millisecond // that a page waits for others
)

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
	for {
		frontier, err := w.db.Frontier(ctx, w.work.SourceID, start, w.crawler.batch+w.window())
		if err != nil {
			return err
		}
		if w.said == nil {
			w.resumed, w.said = frontier.Tried > 0, map[string]bool{}
		}
		if under = w.fill(ctx, &frontier, under, 0); len(under) == 0 {
			return w.end(ctx)
		}
		ready := w.gather(ctx, &frontier, &under)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.put(ctx, ready); err != nil {
			return err
		}
	}
}

// window is how many addresses are under way at a time.
func (w *walk) window() int { return w.crawler.manners.Connections + ahead }

// fill begins to visit addresses at the head of the frontier while there is
// room. unstored is how many came back and are not in the frontier's counts: the
// bounds hold even if all of them, and all under way, turn out to be pages.
func (w *walk) fill(ctx context.Context, frontier *store.Frontier, under []fetching, unstored int) []fetching {
	for len(frontier.Next) > 0 && len(under) < w.window() {
		met := unstored + len(under)
		if frontier.Indexed+met >= w.work.Plan.MaxPages || frontier.Tried+met >= maxTried(w.work.Plan.MaxPages) {
			break
		}
		if page := frontier.Next[0]; !contains(under, page.URL) {
			under = append(under, w.begin(ctx, page))
		}
		frontier.Next = frontier.Next[1:]
	}
	return under
}

// gather waits for the first address under way, and takes more of them, in
// their order, for one commit: until one is not done after linger, or leaves
// the host idle, or they are many or large.
func (w *walk) gather(ctx context.Context, frontier *store.Frontier, under *[]fetching) (ready []store.PageOutcome) {
	size := 0
	take := func(o store.PageOutcome) {
		o.Links = w.unqueued(o.Links)
		if o.Page != nil {
			size += len(o.Page.Text)
			w.compare(&o)
		}
		ready = append(ready, o)
		*under = w.fill(ctx, frontier, (*under)[1:], len(ready))
	}
	take(<-(*under)[0].done)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for len(*under) > 0 && len(ready) < w.crawler.batch && size < maxBatchText {
		next := (*under)[0].done
		select {
		case o := <-next:
			take(o)
			continue
		default:
		}
		if len(*under) < w.window() {
			break // what these lead to may be fetched meanwhile
		}
		select {
		case o := <-next:
			take(o)
		case <-timer.C:
			return ready
		}
	}
	return ready
}

// compare has a page compared with those that say the same, if there may be
// any: all that were read since the walk began are known here, not those from
// before it was cut off.
func (w *walk) compare(o *store.PageOutcome) {
	if w.resumed || w.said[o.Page.Hash] {
		here := place(o.Final)
		o.Same = func(address string) bool { return place(address) == here }
	}
	w.said[o.Page.Hash] = true
}

// unqueued are the links that no page before led to. The queue is first in
// first out, so a page never comes nearer by being met again.
func (w *walk) unqueued(links []string) []string {
	return slices.DeleteFunc(links, func(link string) bool {
		met := w.queued[link]
		w.queued[link] = true
		return met
	})
}

func (w *walk) put(ctx context.Context, ready []store.PageOutcome) error {
	if err := w.db.PutPages(ctx, w.work.SourceID, ready); err != nil {
		return err
	}
	for _, outcome := range ready {
		w.crawler.step("page")
		if outcome.Page != nil {
			w.crawler.options.Ready(w.db)
		}
	}
	return nil
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
	onSite := w.ofSite(ctx, found.links)
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

// judge tells of a link whether it leads to a page of the site, and whether
// the plan and robots.txt let that be visited.
func (w *walk) judge(ctx context.Context, link string) verdict {
	w.mu.Lock()
	v, known := w.judged[link]
	w.mu.Unlock()
	if known {
		return v
	}
	if u, err := url.Parse(link); err == nil && w.site.holds(u) && readable(u) {
		v.onSite = true
		v.wanted = w.globs.allow(u) && w.robots.allow(ctx, u)
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		w.judged[link] = v
		w.mu.Unlock()
	}
	return v
}

// ofSite are the links to pages of the site.
func (w *walk) ofSite(ctx context.Context, links []string) []string {
	kept := []string{}
	for _, link := range links {
		if w.judge(ctx, link).onSite {
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
		if w.judge(ctx, link).wanted {
			kept = append(kept, link)
		}
	}
	return kept
}
