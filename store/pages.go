package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Frontier is the state of a crawl, which survives a restart.
type Frontier struct {
	Next    []QueuedPage // at the head of the queue
	Indexed int          // pages read in this crawl
	Tried   int          // addresses fetched in this crawl
	Begun   bool         // something has been stored by this crawl
}

// QueuedPage is an address waiting to be fetched, with what the previous crawl knew
// about it.
type QueuedPage struct {
	URL          string
	Depth        int
	Known        string // address of the page that it led to; "" if it is new
	ETag         string
	LastModified string
	Links        []string // of that page; nil: read them with KnownLinks
}

// Frontier returns the first count addresses in the queue of a crawl, in breadth-first
// order. A crawl that has not begun has none; its start page is queued when its
// outcome is stored.
func (db *DB) Frontier(ctx context.Context, sourceID string, count int) (Frontier, error) {
	return Read(ctx, db, func(tx *Tx) (Frontier, error) {
		f, _, err := tx.walked(sourceID)
		if err != nil {
			return f, err
		}
		f.Next, err = all(
			tx,
			queuedPage,
			"SELECT q.url, q.depth, "+knownPage+
				" WHERE q.source_id = ? AND q.state = 'queued' ORDER BY q.depth, q.turn LIMIT ?",
			sourceID,
			count,
		)
		return f, err
	})
}

// keptLinks is the longest list of a page's links that KnownPages returns, in
// characters.
const keptLinks = 4 << 10

// KnownPages returns what the previous crawl knew about addresses that this one has
// not met yet, by address and without a depth.
func (db *DB) KnownPages(ctx context.Context, sourceID string) (map[string]QueuedPage, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]QueuedPage, error) {
		list, err := all(
			tx,
			func(rows *sqlite.Rows) (q QueuedPage, err error) {
				var links rawJSON
				if err := rows.Scan(&links, &q.URL, &q.Depth, &q.Known, &q.ETag, &q.LastModified); err != nil {
					return q, err
				}
				return q, json.Unmarshal(links, &q.Links)
			},
			"SELECT iif(length(k.links) <= ?, k.links, NULL), q.url, 0, "+knownPage+
				" WHERE q.source_id = ? AND q.state = 'earlier' LIMIT ?",
			keptLinks,
			sourceID,
			maxFrontier,
		)
		known := make(map[string]QueuedPage, len(list))
		for _, page := range list {
			known[page.URL] = page
		}
		return known, err
	})
}

// knownPage selects, for an address q, the page that it led to.
const knownPage = `coalesce(k.url, ''), coalesce(k.etag, ''), coalesce(k.last_modified, '') FROM _pages q
	LEFT JOIN _pages k ON k.source_id = q.source_id AND k.url = CASE q.target WHEN '' THEN q.url ELSE q.target END AND k.hash <> ''`

func queuedPage(rows *sqlite.Rows) (q QueuedPage, err error) {
	return q, rows.Scan(&q.URL, &q.Depth, &q.Known, &q.ETag, &q.LastModified)
}

// walked counts the pages that a crawl has processed, and those in its queue.
func (tx *Tx) walked(sourceID string) (f Frontier, queued int, err error) {
	return f, queued, tx.row(`SELECT count(*) > 0, count(*) FILTER (WHERE state <> 'queued'), count(*) FILTER (WHERE state = 'indexed'),
		count(*) FILTER (WHERE state = 'queued') FROM _pages WHERE source_id = ? AND state <> 'earlier'`, sourceID).Scan(&f.Begun, &f.Tried, &f.Indexed, &queued)
}

// PageOutcome is the outcome of fetching one address of the queue.
type PageOutcome struct {
	URL   string // as it was queued
	Final string // address of the page: URL, unless the server or the page names another

	// Page is what was read; nil if there is none. Known means that the page is
	// unchanged since the previous crawl. With neither, and no Problem, URL is just
	// another name of Final, which is queued at the same depth if Queue is set.
	Page    *ReadPage
	Known   bool
	Problem *agent.SourceError
	Skip    bool // the problem is not shown to clients if other pages were read
	Queue   bool
	Again   bool // URL is not in the queue: it was another name and led to nothing
	Status  int  // of HTTP; 0 without a response

	Links []string // to be queued one level deeper
	Depth int

	// Same reports whether the address of a page with the same text is another name
	// of this one, which is then not stored twice. It may be nil.
	Same func(address string) bool
}

// ReadPage is a page in its stored form.
type ReadPage struct {
	Title, Text, Hash  string
	ETag, LastModified string
	Links              []string // all links to pages of the site
}

// maxFrontier bounds the addresses of one crawl. A walk is first in first out
// and ends long before it has fetched that many.
const maxFrontier = 1000

// WalkEnd says when a crawl ends: when its queue is empty, or this many pages are
// indexed, or this many addresses were tried.
type WalkEnd struct{ Indexed, Tried int }

func (e *WalkEnd) reached(f Frontier, queued int) bool {
	return e != nil && (queued == 0 || f.Indexed >= e.Indexed || f.Tried >= e.Tried)
}

// PutPages stores outcomes in order, queues what they led to, and ends the crawl if
// it is finished, all in one commit. end is nil while other addresses are being
// fetched. If the source was deleted or is no longer being crawled, the error is
// NOT_FOUND.
func (db *DB) PutPages(
	ctx context.Context,
	sourceID string,
	outcomes []PageOutcome,
	end *WalkEnd,
) (CrawlStatus, error) {
	return Write(ctx, db, func(tx *Tx) (CrawlStatus, error) {
		tx.claimWork(workSources) // the crawl that stores them does the work
		if err := tx.checkActive(sourceID); err != nil {
			return CrawlContinues, err
		}
		p := pageWriter{Tx: tx, source: sourceID}
		for _, o := range outcomes {
			if err := p.put(o); err != nil {
				return CrawlContinues, err
			}
		}
		if err := p.insertUnqueued(); err != nil || end == nil {
			return CrawlContinues, err
		}
		f, queued, err := tx.walked(sourceID)
		if err != nil || !end.reached(f, queued) {
			return CrawlContinues, err
		}
		return tx.endWalk(sourceID)
	})
}

// duplicate returns the address under which this crawl has already read a page; ""
// if it has not.
func (tx *Tx) duplicate(sourceID string, outcome PageOutcome) (string, error) {
	urls, err := all(
		tx,
		func(rows *sqlite.Rows) (url string, err error) {
			return url, rows.Scan(&url)
		},
		"SELECT url FROM _pages WHERE source_id = ? AND state = 'indexed' AND hash = ? "+
			"AND url <> ? ORDER BY depth, turn",
		sourceID,
		outcome.Page.Hash,
		outcome.Final,
	)
	for _, url := range urls {
		if outcome.Same(url) {
			return url, nil
		}
	}
	return "", err
}

// Aliases returns, for each address that others led to in this crawl, the first that
// did, without what is known about it.
func (db *DB) Aliases(ctx context.Context, sourceID string) (map[string]QueuedPage, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]QueuedPage, error) {
		first := map[string]QueuedPage{}
		_, err := all(
			tx,
			func(rows *sqlite.Rows) (q QueuedPage, err error) {
				var target string
				err = rows.Scan(&target, &q.URL, &q.Depth)
				if _, met := first[target]; !met {
					first[target] = q
				}
				return q, err
			},
			"SELECT target, url, depth FROM _pages WHERE source_id = ? AND state = 'alias' ORDER BY depth, turn",
			sourceID,
		)
		return first, err
	})
}

// KnownLinks returns the links of a page as it was last read.
func (db *DB) KnownLinks(ctx context.Context, sourceID, url string) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) (links []string, err error) {
		var raw rawJSON
		err = tx.value(&raw, "SELECT links FROM _pages WHERE source_id = ? AND url = ? AND hash <> ''", sourceID, url)
		if errors.Is(err, sqlite.ErrNoRows) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return links, json.Unmarshal(raw, &links)
	})
}
