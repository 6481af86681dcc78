package store

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// StopSource stops the processing of a source, which ends as failed with the code
// STOPPED and keeps what has been stored. A crawl that has read pages first gets the
// status processing while these are indexed; stopping it again ends that too. It
// returns CONFLICT if the source is not being processed.
func (db *DB) StopSource(ctx context.Context, id string) (agent.Source, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		source, err := tx.source(id)
		if err != nil {
			return source, err
		}
		if source.Status == agent.SourceReady || source.Status == agent.SourceFailed {
			return source, agent.Errorf(
				agent.CodeConflict,
				"this source is not being processed",
			).With("status", source.Status)
		}
		problem := agent.SourceError{Code: agent.SourceStopped, Message: "stopped"}
		if tx.actor != "" && tx.actor != agent.OpenLabel {
			problem.Message = "stopped by " + tx.actor
		}
		indexing := false
		if agent.Crawled(source.Type) {
			if indexing, err = tx.stopCrawl(id); err != nil {
				return source, err
			}
		}
		if indexing {
			_, err = tx.exec(
				"UPDATE sources SET status = ?, error_code = ?, error_message = ?, updated_at = ? WHERE id = ?",
				agent.SourceProcessing, problem.Code, problem.Message, tx.Now, id,
			)
		} else {
			err = tx.finishSource(id, &problem)
		}
		if err != nil {
			return source, err
		}
		if err := tx.audit("source stopped", map[string]any{"source_id": id, "name": source.Name}); err != nil {
			return source, err
		}
		return tx.source(id)
	})
}

// stopCrawl ends the crawl of a source if it has not ended, and reports whether it
// did and there are pages to index. Pages that it did not reach keep their text.
func (tx *Tx) stopCrawl(sourceID string) (indexing bool, err error) {
	if err := tx.checkActive(sourceID); err != nil {
		return false, agent.IgnoreNotFound(err)
	}
	failed, _, err := tx.failedPages(sourceID)
	if err != nil {
		return false, err
	}
	if err := tx.recordCrawl(sourceID, failed, 0); err != nil {
		return false, err
	}
	if _, err := tx.exec(
		"UPDATE _pages SET state = 'earlier' WHERE source_id = ? AND state = 'queued'",
		sourceID,
	); err != nil {
		return false, err
	}
	return indexing, tx.value(&indexing, `SELECT EXISTS (SELECT 1 FROM _pages WHERE source_id = ?1 AND pending <> '')
		OR EXISTS (SELECT 1 FROM chunks WHERE source_id = ?1 AND embedded = 0)`, sourceID)
}

// stopOf returns that a source was stopped, or nil.
func (tx *Tx) stopOf(id string) (*agent.SourceError, error) {
	p := agent.SourceError{Code: agent.SourceStopped}
	err := tx.value(&p.Message, "SELECT error_message FROM sources WHERE id = ? AND error_code = ?", id, p.Code)
	if errors.Is(err, sqlite.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// checkUnfinished returns NOT_FOUND unless the source exists and is being processed.
func (tx *Tx) checkUnfinished(id string) error {
	var unfinished bool
	err := tx.value(&unfinished, "SELECT status NOT IN ('ready','error') FROM sources WHERE id = ?", id)
	if errors.Is(err, sqlite.ErrNoRows) || err == nil && !unfinished {
		return agent.NotFound("source", id)
	}
	return err
}
