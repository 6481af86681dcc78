package crawl

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// A page with hardly any text may only lead to the page that is meant: by a meta
// element or header for refreshing, or because it shows other documents in frames.

// maxStub is how much text such a page has, in bytes.
const maxStub = 200

func isStub(text string) bool { return len(strings.TrimSpace(text)) < maxStub }

// redirection returns the URL to which a page redirects by refreshing: at once, or
// later if there is hardly anything to read until then.
func redirection(page *agent.PageContent, resp *response, final string) (target string, redirects bool) {
	seconds, link := parseRefresh(cmp.Or(page.Refresh, resp.header.Get("Refresh")))
	if link == "" || seconds > 1 && !isStub(page.Text) {
		return "", false
	}
	base, err := url.Parse(cmp.Or(page.Base, final))
	if err != nil {
		return "", false
	}
	target, ok := resolve(base, link)
	return target, ok && target != final
}

// parseRefresh parses the value of a refresh, such as "5; url=/next", as browsers do. link
// is "" if there is none.
func parseRefresh(value string) (seconds int, link string) {
	value = strings.TrimSpace(value)
	end := strings.IndexFunc(value, func(r rune) bool {
		return r < '0' || r > '9'
	})
	if end < 0 || end == 0 && !strings.HasPrefix(value, ".") {
		return 0, ""
	}
	seconds, err := strconv.Atoi(cmp.Or(value[:end], "0"))
	if err != nil {
		return 0, ""
	}
	rest := strings.TrimLeft(value[end:], "0123456789.")
	link = strings.TrimLeft(rest, " \t\r\n\f;,")
	if link == rest {
		return seconds, "" // nothing separates it from the number
	}
	if len(link) >= 3 && strings.EqualFold(link[:3], "url") {
		if after, found := strings.CutPrefix(strings.TrimSpace(link[3:]), "="); found {
			link = strings.TrimSpace(after)
		}
	}
	if link != "" && (link[0] == '\'' || link[0] == '"') {
		link, _, _ = strings.Cut(link[1:], link[:1])
	}
	return seconds, strings.TrimSpace(link)
}

// redirect returns the outcome of a page that redirects to a URL, which is visited in
// its place if a server's redirect to it would be followed.
func (w *walk) redirect(ctx context.Context, outcome store.PageOutcome, target string) store.PageOutcome {
	address, err := url.Parse(target)
	switch {
	case err != nil:
	case w.isLiteral(outcome.URL):
		outcome.Problem = explain(agent.Errorf(
			agent.CodeUpstream,
			"the page redirects to a page that cannot be read, or in a circle",
		))
		return outcome
	case outcome.Depth > 0 && !w.globs.allow(address):
		err = agent.Errorf(CodeExcluded, "the page redirects to a page that the patterns exclude")
	default:
		err = w.checkRedirect(ctx, address)
	}
	if err != nil {
		outcome.Problem, outcome.Skip = explain(err), true
		return outcome
	}
	outcome.Final, outcome.Queue = target, true
	return outcome
}

// Limits of the frames that are read as parts of one page.
const (
	maxPageFrames = 10
	maxFrameDepth = 3 // frames in frames
)

// addFrames adds the texts and links of a page's frames to it, as far as they are on
// this site and may be visited, and reports whether there were any. If the page has
// text of its own, its frames are only links.
func (w *walk) addFrames(ctx context.Context, page *agent.PageContent) bool {
	if !isStub(page.Text) {
		page.Links = append(page.Links, page.Frames...)
		return false
	}
	read := map[string]bool{}
	w.addFramesOf(ctx, page, page, read, 1)
	return len(read) > 0
}

func (w *walk) addFramesOf(ctx context.Context, page, of *agent.PageContent, read map[string]bool, depth int) {
	base, err := url.Parse(of.Base)
	if err != nil || depth > maxFrameDepth {
		return
	}
	for _, link := range of.Frames {
		address, ok := resolve(base, link)
		if !ok || read[address] || len(read) == maxPageFrames {
			continue
		}
		frame, ok := w.readFrame(ctx, address)
		if !ok {
			continue
		}
		read[address] = true
		if text := strings.TrimSpace(frame.Text); text != "" {
			page.Text = strings.TrimSpace(page.Text + "\n\n" + text)
		}
		page.Title = cmp.Or(page.Title, frame.Title)
		links, _ := normalized(&frame)
		page.Links = append(page.Links, links...)
		w.addFramesOf(ctx, page, &frame, read, depth+1)
	}
}

// readFrame reads the document of a frame. ok is false if it is not a page of this site.
func (w *walk) readFrame(ctx context.Context, address string) (frame agent.PageContent, ok bool) {
	u, err := url.Parse(address)
	if err != nil || !w.globs.allow(u) || w.checkRedirect(ctx, u) != nil {
		return frame, false
	}
	resp, err := w.fetcher.fetch(ctx, address, "", "")
	if err != nil || resp.status < 200 || resp.status > 299 {
		return frame, false
	}
	final, isURL := normalize(resp.final)
	media, contentType := resp.media()
	if !isURL || media != "text/html" && media != "application/xhtml+xml" && media != "text/plain" {
		return frame, false
	}
	frame, err = w.crawler.extract(ctx, final, contentType, resp.body)
	return frame, err == nil
}
