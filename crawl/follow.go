package crawl

import (
	"context"
	"net/url"
)

// siteLinks returns the links to pages of the site.
func (w *walk) siteLinks(links []string) []string {
	kept := []string{}
	for _, link := range links {
		if u, err := url.Parse(link); err == nil && w.site.contains(u) && mayBeText(u) {
			kept = append(kept, link)
		}
	}
	return kept
}

// maxAllowedLinks limits the links that are remembered; it is more than the
// frontier accepts.
const maxAllowedLinks = 2000

// allows reports whether the plan and robots.txt allow a link.
func (w *walk) allows(ctx context.Context, link string) bool {
	w.mu.Lock()
	wanted, known := w.allowed[link]
	full := w.allowedCount >= maxAllowedLinks
	w.mu.Unlock()
	if known || full {
		return wanted
	}
	if u, err := url.Parse(link); err == nil {
		wanted = w.globs.allow(u) && w.robots.allow(ctx, u)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && len(w.allowed) < 2*maxAllowedLinks {
		w.allowed[link] = wanted
	}
	if wanted {
		w.allowedCount++
	}
	return wanted
}

// follow returns the links of a page at depth that the crawl must visit.
func (w *walk) follow(ctx context.Context, links []string, depth int) []string {
	if depth >= w.work.Plan.MaxDepth {
		return nil
	}
	var kept []string
	for _, link := range links {
		if w.allows(ctx, link) {
			kept = append(kept, link)
		}
	}
	return kept
}
