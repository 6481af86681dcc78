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
	outcome := store.PageOutcome{
		URL:   page.URL,
		Final: page.URL,
		Depth: page.Depth,
	}
	address, err := url.Parse(page.URL)
	if err == nil {
		err = w.checkRobots(ctx, address)
	}
	if err != nil {
		outcome.Problem, outcome.Skip = explain(err), true
		return outcome
	}
	resp, err := w.fetcher.fetch(ctx, page.URL, page.ETag, page.LastModified)
	if err == nil && resp.status == http.StatusNotModified && !w.leadsTo(resp, page.Known) {
		resp, err = w.fetcher.fetch(ctx, page.URL, "", "") // 304 is about a different page
	}
	if err != nil {
		outcome.Problem = explain(err)
		outcome.Skip = outcome.Problem.Code == string(CodeRobots) ||
			outcome.Problem.Code == string(CodeExcluded) ||
			outcome.Problem.Code == string(CodeLeftSite)
		return w.reuseKnown(ctx, outcome, page)
	}
	outcome.Status = resp.status
	if final, ok := normalize(resp.final); ok {
		outcome.Final = final
	}
	switch {
	case resp.status == http.StatusNotModified && page.Known != "":
		outcome.Known = true
		return w.reuseKnown(ctx, outcome, page)
	case resp.status < 200 || resp.status >= 300:
		outcome.Problem = explainStatus(resp.status)
		return w.reuseKnown(ctx, outcome, page)
	}
	return w.read(ctx, outcome, resp)
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
func (w *walk) reuseKnown(ctx context.Context, outcome store.PageOutcome, page store.QueuedPage) store.PageOutcome {
	if page.Known == "" ||
		outcome.Skip ||
		outcome.Status == http.StatusNotFound ||
		outcome.Status == http.StatusGone {
		return outcome
	}
	if !outcome.Known {
		outcome.Final = page.Known
	}
	links := page.Links
	if links == nil {
		var err error
		if links, err = w.db.KnownLinks(ctx, w.work.SourceID, page.Known); err != nil {
			return outcome
		}
	}
	outcome.Links = w.follow(ctx, links, page.Depth)
	return outcome
}

// read converts a response to a page.
func (w *walk) read(ctx context.Context, outcome store.PageOutcome, resp *response) store.PageOutcome {
	if final, err := url.Parse(outcome.Final); err == nil &&
		outcome.Final != outcome.URL &&
		outcome.Depth > 0 &&
		!w.globs.allow(final) {
		outcome.Problem, outcome.Skip =
			explain(agent.Errorf(CodeExcluded, "the server redirects to a page that the patterns exclude")), true
		return outcome
	}
	media, contentType := resp.media()
	if !isTextType(media) ||
		media != "application/pdf" && mislabelled(resp.body) ||
		resp.body == nil && resp.header.Get("Content-Encoding") != "" {
		outcome.Problem, outcome.Skip = explain(agent.Errorf(CodeNoTextual, "this page is not text")), true
		return outcome
	}
	page, err := w.crawler.extract(ctx, outcome.Final, contentType, resp.body)
	hasFrames := w.addFrames(ctx, &page)
	links, canonical := normalized(&page)
	onSite := w.siteLinks(links)
	outcome.Links = w.follow(ctx, onSite, outcome.Depth)
	if target, redirects := redirection(&page, resp, outcome.Final); redirects &&
		target != outcome.URL &&
		!(w.isLiteral(outcome.URL) && !isStub(page.Text)) {
		return w.redirect(ctx, outcome, target)
	}
	if canonical = w.canonical(ctx, canonical, outcome); canonical != "" {
		outcome.Final, outcome.Queue = canonical, true
		return outcome
	}
	if err == nil && strings.TrimSpace(page.Text) == "" {
		err = agent.Errorf(CodeNoText, "the page contains no text")
	}
	if err != nil {
		outcome.Problem = explainText(err)
		outcome.Skip = outcome.Problem.Code == string(CodeNoText)
		return outcome
	}
	if hasFrames { // which change without the page
		resp.header.Del("ETag")
		resp.header.Del("Last-Modified")
	}
	hash := sha256.Sum256([]byte(page.Text))
	outcome.Page = &store.ReadPage{
		Title:        page.Title,
		Text:         page.Text,
		Hash:         hex.EncodeToString(hash[:]),
		Links:        onSite,
		ETag:         header(resp, "ETag"),
		LastModified: header(resp, "Last-Modified"),
	}
	return outcome
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
