package crawl

import (
	"context"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"time"

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
	robots  *robots // nil: ignored
	fetcher *fetcher

	mu           sync.Mutex
	allowed      map[string]bool // by link, whether to visit it: most links are on every page
	allowedCount int             // number of allowed links
	literal      map[string]bool // pages that are read whatever canonical URL they declare

	// The following fields are used only by run.
	resumed       bool                        // the walk had started before
	previous      map[string]store.QueuedPage // from the previous crawl; nil if the walk is resumed
	queued        map[string]int              // depth of the links of stored pages
	contentHashes map[string]bool             // hashes of the texts of stored pages
	renamed       map[string]bool             // URLs replaced by their canonical URL
	namedBy       map[string]store.QueuedPage // by canonical URL, the first page that declared it
}

// pendingFetch is a URL being fetched.
type pendingFetch struct {
	url  string
	done chan store.PageOutcome
}

// readAhead is how many URLs beyond the host's connections are in progress:
// while some are fetched, the text of others is extracted or stored.
const readAhead = 14

// Limits of what is stored in one commit.
const (
	maxBatch     = 64
	maxBatchText = 4 << 20                // bytes
	batchWait    = 200 * time.Millisecond // how long a page waits for others
)

// maxFetches limits the URLs fetched for a number of pages, so that a site with
// only errors and redirects ends.
func maxFetches(pages int) int { return 3*pages + 20 }

// run continues the walk to its end. It returns ctx's error if it was stopped,
// and NOT_FOUND if the source is gone.
func (w *walk) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pending []pendingFetch // in queue order
	defer func() {
		cancel()
		for _, f := range pending {
			<-f.done
		}
	}()
	for {
		frontier, err := w.frontier(ctx, pending)
		if err != nil {
			return err
		}
		if pending = w.fill(ctx, &frontier, pending, 0); len(pending) == 0 {
			return w.finish(ctx)
		}
		ready := w.gather(ctx, &frontier, &pending)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ended, err := w.store(ctx, ready, len(pending) == 0); ended || err != nil {
			return err
		}
	}
}

// frontier reads the state of the walk, without what is being fetched.
func (w *walk) frontier(ctx context.Context, pending []pendingFetch) (store.Frontier, error) {
	f, err := w.db.Frontier(ctx, w.work.SourceID, w.crawler.batch+w.window())
	if err != nil {
		return f, err
	}
	f.Next = slices.DeleteFunc(f.Next, func(page store.QueuedPage) bool {
		return contains(pending, page.URL)
	})
	if w.contentHashes != nil {
		return f, nil
	}
	w.resumed, w.contentHashes = f.Tried > 0, map[string]bool{}
	if f.Begun {
		w.namedBy, err = w.db.Aliases(ctx, w.work.SourceID)
		return f, err
	}
	start, _ := normalize(w.start)
	if w.previous, err = w.db.KnownPages(ctx, w.work.SourceID); err == nil {
		w.queued[start] = 0
		f.Next = w.expected([]string{start}, 0)
	}
	return f, err
}

// expected returns the queued pages that links will become.
func (w *walk) expected(links []string, depth int) []store.QueuedPage {
	pages := make([]store.QueuedPage, len(links))
	for i, link := range links {
		pages[i] = w.previous[link] // or the zero value
		pages[i].URL, pages[i].Depth = link, depth
	}
	return pages
}

// window returns how many URLs may be in progress.
func (w *walk) window() int {
	return w.crawler.politeness.Connections + readAhead
}

// fill starts to visit URLs of the frontier that are not pending, while there
// is room. unstored is how many outcomes are not yet in the frontier's counts:
// the limits hold even if all of them, and all in progress, turn out to be
// pages.
func (w *walk) fill(
	ctx context.Context,
	frontier *store.Frontier,
	pending []pendingFetch,
	unstored int,
) []pendingFetch {
	for len(frontier.Next) > 0 && len(pending) < w.window() {
		met := unstored + len(pending)
		if frontier.Indexed+met >= w.work.Plan.MaxPages || frontier.Tried+met >= maxFetches(w.work.Plan.MaxPages) {
			break
		}
		pending = append(pending, w.begin(ctx, frontier.Next[0]))
		frontier.Next = frontier.Next[1:]
	}
	return pending
}

// gather waits for the first pending URL and takes further ones, in order, for one
// commit. It stops when the next one is not done within batchWait, when the results are
// needed to keep the host busy, when there are many or large ones, or when one was
// replaced by another page, which comes before those of the next depth. A walk that was
// not resumed knows everything in the queue, so it follows links before they are
// stored.
func (w *walk) gather(ctx context.Context, frontier *store.Frontier, pending *[]pendingFetch) []store.PageOutcome {
	var b batch
	add := func(o store.PageOutcome) {
		o = w.breakCycle(ctx, o)
		w.add(&b, o, frontier)
		if instead, ok := w.fallback(ctx, o); ok {
			w.add(&b, instead, frontier)
		}
		*pending = w.fill(ctx, frontier, (*pending)[1:], len(b.ready))
	}
	add(<-(*pending)[0].done)
	timer := time.NewTimer(batchWait)
	defer timer.Stop()
	for len(*pending) > 0 &&
		len(b.ready) < w.crawler.batch &&
		b.size < maxBatchText &&
		!b.ready[len(b.ready)-1].Queue {
		next := (*pending)[0].done
		select {
		case o := <-next:
			add(o)
			continue
		default:
		}
		if b.urgent && len(*pending) < w.window() {
			break
		}
		select {
		case o := <-next:
			add(o)
		case <-timer.C:
			return b.ready
		}
	}
	return b.ready
}

// batch is what is stored in one commit.
type batch struct {
	ready  []store.PageOutcome
	size   int  // of its text, in bytes
	urgent bool // once it is stored, there is more to fetch, or space to fetch more
}

// add adds an outcome to a batch, and its links to the frontier if they are
// known before it is stored.
func (w *walk) add(b *batch, o store.PageOutcome, frontier *store.Frontier) {
	w.queued[o.Final] = 0 // links to it need not be queued
	o.Links = w.unqueued(o.Links, o.Depth+1)
	if w.previous != nil {
		frontier.Next = append(frontier.Next, w.expected(o.Links, o.Depth+1)...)
	} else {
		b.urgent = b.urgent || len(o.Links) > 0
	}
	b.urgent = b.urgent || o.Queue || o.Page == nil && !o.Known
	if o.Page != nil {
		b.size += len(o.Page.Text)
		w.markForComparison(&o)
	}
	b.ready = append(b.ready, o)
}

// breakCycle reads a page itself if its canonical URL has already been replaced
// by another, eventually by this one.
func (w *walk) breakCycle(ctx context.Context, o store.PageOutcome) store.PageOutcome {
	if !o.Queue || !w.renamed[o.Final] {
		w.renamed[o.URL] = w.renamed[o.URL] || o.Queue
		if _, named := w.namedBy[o.Final]; o.Queue && !named {
			w.namedBy[o.Final] = store.QueuedPage{URL: o.URL, Depth: o.Depth}
		}
		return o
	}
	return w.readLiteral(ctx, o.URL, o.Depth)
}

// fallback returns the page that was replaced by a canonical URL which cannot
// be read.
func (w *walk) fallback(ctx context.Context, o store.PageOutcome) (store.PageOutcome, bool) {
	page, named := w.namedBy[o.URL]
	if !named || o.Problem == nil || o.Final != o.URL {
		return o, false
	}
	delete(w.namedBy, o.URL)
	o = w.readLiteral(ctx, page.URL, page.Depth)
	o.Again = true
	return o, true
}

// readLiteral reads a page whatever canonical URL it declares.
func (w *walk) readLiteral(ctx context.Context, address string, depth int) store.PageOutcome {
	w.mu.Lock()
	w.literal[address] = true
	w.mu.Unlock()
	return <-w.begin(ctx, store.QueuedPage{URL: address, Depth: depth}).done
}

// markForComparison marks a page for comparison with pages of equal text, if there may be
// any: all texts since the walk started are known here, but not those from
// before an interruption.
func (w *walk) markForComparison(o *store.PageOutcome) {
	if w.resumed || w.contentHashes[o.Page.Hash] {
		here := pageKey(o.Final)
		o.Same = func(address string) bool { return pageKey(address) == here }
	}
	w.contentHashes[o.Page.Hash] = true
}

// unqueued returns the links that no earlier page contained at the same or a lower
// depth. These are usually all, since the queue is first in, first out.
func (w *walk) unqueued(links []string, depth int) []string {
	return slices.DeleteFunc(links, func(link string) bool {
		if before, met := w.queued[link]; met && before <= depth {
			return true
		}
		w.queued[link] = depth
		return false
	})
}

// store stores outcomes. After the last pending one, the walk may have ended.
func (w *walk) store(ctx context.Context, ready []store.PageOutcome, last bool) (ended bool, err error) {
	var end *store.WalkEnd
	if pages := w.work.Plan.MaxPages; last {
		end = &store.WalkEnd{Indexed: pages, Tried: maxFetches(pages)}
	}
	ending, err := w.db.PutPages(ctx, w.work.SourceID, ready, end)
	if err != nil {
		return false, err
	}
	for range ready {
		w.crawler.onStep("page")
	}
	w.notifyEnd(ending)
	return ending != store.CrawlContinues, nil
}

func contains(pending []pendingFetch, address string) bool {
	for _, f := range pending {
		if f.url == address {
			return true
		}
	}
	return false
}

func (w *walk) begin(ctx context.Context, page store.QueuedPage) pendingFetch {
	fetch := pendingFetch{page.URL, make(chan store.PageOutcome, 1)}
	go func() {
		defer func() {
			if r := recover(); r != nil { // a panic in a library: this page cannot be read, the others can
				w.crawler.log.Error("visit page", "error", r, "stack", string(debug.Stack()))
				fetch.done <- store.PageOutcome{
					URL:     page.URL,
					Final:   page.URL,
					Depth:   page.Depth,
					Problem: explainText(nil),
				}
			}
		}()
		fetch.done <- w.visit(ctx, page)
	}()
	return fetch
}

func (w *walk) finish(ctx context.Context) error {
	ending, err := w.db.EndCrawl(ctx, w.work.SourceID)
	if err == nil {
		w.notifyEnd(ending)
	}
	return err
}

// notifyEnd calls onStep at a walk's end.
func (w *walk) notifyEnd(ending store.CrawlStatus) {
	if ending != store.CrawlContinues {
		w.crawler.onStep("end")
	}
}
