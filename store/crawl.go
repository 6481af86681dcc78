package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

// CreateCrawlSource creates a source of type crawl or url with the status crawling.
// config is stored unchanged and holds the plan.
func (db *DB) CreateCrawlSource(ctx context.Context, sourceType, name string, config any) (agent.Source, error) {
	return db.createSource(ctx, agent.Source{Type: sourceType, Name: name, Status: agent.SourceCrawling}, config, nil)
}

// CrawlWork is a source whose crawl has to be started or continued.
type CrawlWork struct {
	SourceID string
	Plan     agent.CrawlPlan
}

// CrawlWork returns the sources whose crawl has not ended, oldest first.
func (db *DB) CrawlWork(ctx context.Context) ([]CrawlWork, error) {
	return Read(ctx, db, func(tx *Tx) ([]CrawlWork, error) {
		return all(tx, func(rows *sqlite.Rows) (w CrawlWork, err error) {
			var sourceType string
			var config rawJSON
			if err := rows.Scan(&w.SourceID, &sourceType, &config); err != nil {
				return w, err
			}
			w.Plan, err = agent.ReadCrawlPlan(sourceType, config)
			return w, err
		}, `SELECT id, type, config FROM sources WHERE status NOT IN ('ready','error') AND type IN ('crawl','url') AND NOT chunked
			ORDER BY created_at, id`)
	})
}

// forgetCrawl turns a source's pages into those of the previous crawl.
func (tx *Tx) forgetCrawl(sourceID string) error {
	if _, err := tx.exec("DELETE FROM _pages WHERE source_id = ? AND hash = '' AND target = ''", sourceID); err != nil {
		return err
	}
	// A page that was to be dropped may have lost some of its chunks.
	_, err := tx.exec(`UPDATE _pages SET state = 'earlier', changed = 0, error_code = '', error_message = '',
		pending = iif(pending = 'drop', 'cut', pending) WHERE source_id = ?`, sourceID)
	return err
}

// crawlProgress counts pages; those waiting to be fetched, split or embedded count
// as queued. URLs in the frontier count only up to the plan's limit of pages, since
// the others are never fetched.
func (tx *Tx) crawlProgress(source agent.Source) (*agent.Progress, error) {
	plan, err := agent.ReadCrawlPlan(source.Type, source.Config)
	if err != nil {
		return nil, err
	}
	var p agent.Progress
	var frontier, indexed int
	if err := tx.row(`SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state <> 'queued'),
			count(*) FILTER (WHERE state <> 'queued' AND (pending <> ''
				OR EXISTS (SELECT 1 FROM chunks c WHERE c.source_id = p.source_id AND c.embedded = 0 AND c.url = p.url))),
			count(*) FILTER (WHERE state = 'indexed')
		FROM _pages p WHERE source_id = ? AND state <> 'earlier'`, source.ID).Scan(&frontier, &p.Total, &p.Queued, &indexed); err != nil {
		return nil, err
	}
	waiting := min(frontier, max(plan.MaxPages-indexed, 0))
	p.Total, p.Queued = p.Total+waiting, p.Queued+waiting
	p.Done = p.Total - p.Queued
	return &p, nil
}

// CrawlStatus is the state of a crawl after a write.
type CrawlStatus int

// The endings of a crawl.
const (
	CrawlContinues CrawlStatus = iota
	CrawlEnded                 // its pages remain to be split and embedded
	CrawlFailed                // no page could be read: the source is finished with the pages of the previous crawl
)

// EndCrawl ends a crawl: it writes the results into the source's config and marks
// the pages that have disappeared.
func (db *DB) EndCrawl(ctx context.Context, sourceID string) (CrawlStatus, error) {
	return Write(ctx, db, func(tx *Tx) (CrawlStatus, error) {
		if err := tx.checkActive(sourceID); err != nil {
			return CrawlContinues, err
		}
		return tx.endWalk(sourceID)
	})
}

func (tx *Tx) endWalk(sourceID string) (CrawlStatus, error) {
	failed, problem, err := tx.failedPages(sourceID)
	if err != nil {
		return CrawlContinues, err
	}
	var indexed int
	if err := tx.value(
		&indexed,
		"SELECT count(*) FROM _pages WHERE source_id = ? AND state = 'indexed'",
		sourceID,
	); err != nil {
		return CrawlContinues, err
	}
	if indexed > 0 {
		return CrawlEnded, tx.endCrawl(sourceID, failed)
	}
	if problem == nil {
		problem = &agent.SourceError{Code: string(agent.CodeUpstream), Message: "no page was found"}
	}
	if err := tx.setConfig(sourceID, map[string]any{"failedPages": failed}); err != nil {
		return CrawlContinues, err
	}
	return CrawlFailed, tx.finishSource(sourceID, problem)
}

// vanishedPages selects the pages of the previous crawl that this one did not find. A page
// that failed for a reason other than not existing keeps its text.
const vanishedPages = "hash <> '' AND state <> 'indexed' AND NOT (state = 'failed' AND status NOT IN (404, 410))"

func (tx *Tx) endCrawl(sourceID string, failed []agent.FailedPage) error {
	done, err := tx.exec("UPDATE _pages SET pending = 'drop' WHERE source_id = ? AND "+vanishedPages, sourceID)
	if err != nil {
		return err
	}
	return tx.recordCrawl(sourceID, failed, done.Changes)
}

// recordCrawl empties the queue of a crawl and writes the results into the source's
// config. Its pages remain to be split and embedded.
func (tx *Tx) recordCrawl(sourceID string, failed []agent.FailedPage, removed int64) error {
	for _, statement := range []string{
		"DELETE FROM _pages WHERE source_id = ? AND hash = '' AND state IN ('queued','earlier')",
		"UPDATE sources SET chunked = 1 WHERE id = ?",
	} {
		if _, err := tx.exec(statement, sourceID); err != nil {
			return err
		}
	}
	var pages, changed, unchanged int
	hashes := rawJSON{}
	if err := tx.row(`SELECT count(*), count(*) FILTER (WHERE changed), count(*) FILTER (WHERE state = 'indexed' AND NOT changed),
		json_group_object(url, hash) FROM _pages WHERE source_id = ? AND hash <> '' AND pending <> 'drop'`, sourceID).Scan(&pages, &changed, &unchanged, &hashes); err != nil {
		return err
	}
	return tx.setConfig(sourceID, map[string]any{
		"pageCount":      pages,
		"changedPages":   changed,
		"unchangedPages": unchanged,
		"removedPages":   removed,
		"lastCrawledAt":  tx.Now,
		"pageHashes":     json.RawMessage(hashes),
		"failedPages":    failed,
	})
}

// setConfig sets fields of a crawled source's config, none of which may be null.
func (tx *Tx) setConfig(sourceID string, fields map[string]any) error {
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	config := "config"
	if _, given := fields["pageHashes"]; given {
		config = "json_remove(config, '$.pageHashes')" // or the patch would mix the hashes of two crawls
	}
	_, err = tx.exec(
		"UPDATE sources SET config = json_patch("+config+", ?), updated_at = ? WHERE id = ?",
		string(raw),
		tx.Now,
		sourceID,
	)
	return err
}

// failedPages lists the pages that this crawl could not read; problem is that of the
// first failed or skipped one, nil if there is none.
func (tx *Tx) failedPages(sourceID string) (failed []agent.FailedPage, problem *agent.SourceError, err error) {
	type row struct {
		agent.FailedPage
		code   string
		failed bool
	}
	found, err := all(tx, func(rows *sqlite.Rows) (r row, err error) {
		return r, rows.Scan(&r.URL, &r.Status, &r.code, &r.Error, &r.failed)
	}, `SELECT url, status, error_code, error_message, state = 'failed' FROM _pages WHERE source_id = ? AND state IN ('failed','skipped')
		ORDER BY depth, turn`, sourceID)
	failed = []agent.FailedPage{}
	for _, r := range found {
		if problem == nil {
			problem = &agent.SourceError{Code: r.code, Message: r.Error}
		}
		if r.failed {
			failed = append(failed, r.FailedPage)
		}
	}
	return failed, problem, err
}
