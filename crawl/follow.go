package crawl

import (
	"context"
	"net/url"
)

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

// maxWanted bounds the links that are remembered; it lies beyond what the
// frontier takes.
const maxWanted = 2000

// wants reports whether the plan and robots.txt let a link be visited.
func (w *walk) wants(ctx context.Context, link string) bool {
	w.mu.Lock()
	wanted, known := w.wanted[link]
	full := w.found >= maxWanted
	w.mu.Unlock()
	if known || full {
		return wanted
	}
	if u, err := url.Parse(link); err == nil {
		wanted = w.globs.allow(u) && w.robots.allow(ctx, u)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && len(w.wanted) < 2*maxWanted {
		w.wanted[link] = wanted
	}
	if wanted {
		w.found++
	}
	return wanted
}

// follow are the links of a page at depth that are to be visited.
func (w *walk) follow(ctx context.Context, links []string, depth int) []string {
	if depth >= w.work.Plan.MaxDepth {
		return nil
	}
	var kept []string
	for _, link := range links {
		if w.wants(ctx, link) {
			kept = append(kept, link)
		}
	}
	return kept
}
