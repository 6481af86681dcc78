package crawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// visit fetches and reads one URL. The result is meaningless if ctx has ended.
func (w *walk) visit(ctx context.Context, page store.QueuedPage) store.PageOutcome {
	o := store.PageOutcome{
		URL:   page.URL,
		Final: page.URL,
		Depth: page.Depth,
	}
	u, err := url.Parse(page.URL)
	if err == nil {
		err = w.checkRobots(ctx, u)
	}
	if err != nil {
		o.Problem, o.Skip = explain(err), true
		return o
	}
	resp, err := w.fetcher.fetch(ctx, page.URL, page.ETag, page.LastModified)
	if err == nil && resp.status == http.StatusNotModified && !w.leadsTo(resp, page.Known) {
		resp, err = w.fetcher.fetch(ctx, page.URL, "", "") // 304 is about a different page
	}
	if err != nil {
		o.Problem = explain(err)
		o.Skip = o.Problem.Code == string(CodeRobots) ||
			o.Problem.Code == string(CodeExcluded) ||
			o.Problem.Code == string(CodeLeftSite)
		return w.reuseKnown(ctx, o, page)
	}
	o.Status = resp.status
	if final, ok := normalize(resp.final); ok {
		o.Final = final
	}
	switch {
	case resp.status == http.StatusNotModified && page.Known != "":
		o.Known = true
		return w.reuseKnown(ctx, o, page)
	case resp.status < 200 || resp.status >= 300:
		o.Problem = explainStatus(resp.status)
		return w.reuseKnown(ctx, o, page)
	}
	return w.read(ctx, o, resp)
}

// checkRobots returns an error if robots.txt disallows a URL.
func (w *walk) checkRobots(ctx context.Context, u *url.URL) error {
	if !w.robots.allow(ctx, u) {
		return agent.Errorf(CodeRobots, "robots.txt does not allow this page to be read")
	}
	return nil
}

// checkRedirect returns an error if a redirect may not be followed.
func (w *walk) checkRedirect(ctx context.Context, u *url.URL) error {
	if _, err := w.crawler.client.CheckURL(u.String()); err != nil {
		return err
	}
	if !w.site.contains(u) {
		return agent.Errorf(CodeLeftSite, "the server redirects to another site, %s", agent.Clip(u.Host, 100))
	}
	return w.checkRobots(ctx, u)
}

func (w *walk) leadsTo(resp *response, known string) bool {
	final, ok := normalize(resp.final)
	return ok && known == final
}

// reuseKnown gives a page that was not read again its previous links, unless
// the page is gone.
func (w *walk) reuseKnown(ctx context.Context, o store.PageOutcome, page store.QueuedPage) store.PageOutcome {
	if page.Known == "" ||
		o.Skip ||
		o.Status == http.StatusNotFound ||
		o.Status == http.StatusGone {
		return o
	}
	if !o.Known {
		o.Final = page.Known
	}
	links := page.Links
	if links == nil {
		var err error
		if links, err = w.db.KnownLinks(ctx, w.work.SourceID, page.Known); err != nil {
			return o
		}
	}
	o.Links = w.follow(ctx, links, page.Depth)
	return o
}

// read converts a response to a page.
func (w *walk) read(ctx context.Context, o store.PageOutcome, resp *response) store.PageOutcome {
	if final, err := url.Parse(o.Final); err == nil &&
		o.Final != o.URL &&
		o.Depth > 0 &&
		!w.globs.allow(final) {
		o.Problem, o.Skip =
			explain(agent.Errorf(CodeExcluded, "the server redirects to a page that the patterns exclude")), true
		return o
	}
	media, contentType := resp.media()
	if !isTextType(media) ||
		media != "application/pdf" && mislabelled(resp.body) ||
		resp.body == nil && resp.header.Get("Content-Encoding") != "" {
		o.Problem, o.Skip = explain(agent.Errorf(CodeNoTextual, "this page is not text")), true
		return o
	}
	page, err := w.crawler.extract(ctx, o.Final, contentType, resp.body)
	hasFrames := w.addFrames(ctx, &page)
	links, canonical := normalized(&page)
	onSite := w.siteLinks(links)
	o.Links = w.follow(ctx, onSite, o.Depth)
	if target, redirects := redirection(&page, resp, o.Final); redirects &&
		target != o.URL &&
		!(w.isLiteral(o.URL) && !isStub(page.Text)) {
		return w.redirect(ctx, o, target)
	}
	if canonical = w.canonical(ctx, canonical, o); canonical != "" {
		o.Final, o.Queue = canonical, true
		return o
	}
	if err == nil && strings.TrimSpace(page.Text) == "" {
		err = agent.Errorf(CodeNoText, "the page contains no text")
	}
	if err != nil {
		o.Problem = explainText(err)
		o.Skip = o.Problem.Code == string(CodeNoText)
		return o
	}
	if hasFrames { // which change without the page
		resp.header.Del("ETag")
		resp.header.Del("Last-Modified")
	}
	hash := sha256.Sum256([]byte(page.Text))
	o.Page = &store.ReadPage{
		Title:        page.Title,
		Text:         page.Text,
		Hash:         hex.EncodeToString(hash[:]),
		Links:        onSite,
		ETag:         header(resp, "ETag"),
		LastModified: header(resp, "Last-Modified"),
	}
	return o
}

// header returns a header if it is short enough to be stored.
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

// canonical returns the canonical URL that the page declares, if it is another
// one on this site that may be visited, or "".
func (w *walk) canonical(ctx context.Context, address string, o store.PageOutcome) string {
	if address == "" || address == o.Final || address == o.URL {
		return ""
	}
	u, err := url.Parse(address)
	if w.isLiteral(o.URL) ||
		err != nil ||
		!w.site.contains(u) ||
		!w.globs.allow(u) ||
		!w.robots.allow(ctx, u) {
		return ""
	}
	return address
}

// isLiteral reports whether a page is read itself, whatever other URL it names.
func (w *walk) isLiteral(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.literal[address]
}
