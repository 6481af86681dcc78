package store

import "encoding/json"

// pageWriter stores outcomes within one commit. A URL that one of them leads to gets
// a row only when one is needed: most such URLs are outcomes of the same commit
// themselves, and are written once, in their final state. The resulting rows and
// their order are as if each had been queued first.
type pageWriter struct {
	*Tx
	source   string
	counted  bool
	met      int            // upper bound on the addresses of this crawl that have a row
	turn     int            // the last one assigned
	unqueued []unqueuedPage // in the order of the queue
}

// unqueuedPage is an address in the queue that has no row yet, unless it had one
// before this commit.
type unqueuedPage struct {
	url         string
	depth, turn int
}

func (p *pageWriter) put(outcome PageOutcome) error {
	if outcome.Depth == 0 { // the start page is not in the queue yet
		if err := p.queue([]string{outcome.URL}, 0, 1); err != nil {
			return err
		}
	}
	if outcome.Page != nil && outcome.Same != nil {
		duplicate, err := p.duplicate(p.source, outcome)
		if err != nil {
			return err
		} else if duplicate != "" {
			outcome.Final, outcome.Page = duplicate, nil
		}
	}
	store := p.write
	if outcome.Final != outcome.URL || outcome.Again {
		store = p.rename
	}
	if err := store(outcome); err != nil {
		return err
	}
	return p.queue(outcome.Links, outcome.Depth+1, maxFrontier)
}

// rename stores an outcome whose URL is, or was, another name of a page. A page that
// this crawl has already read under another name is not changed.
func (p *pageWriter) rename(outcome PageOutcome) error {
	if err := p.insertUnqueued(); err != nil {
		return err
	}
	if outcome.Again {
		if _, err := p.exec(
			"UPDATE _pages SET state = 'queued', target = '' WHERE source_id = ? AND url = ? AND state = 'alias'",
			p.source, outcome.URL,
		); err != nil {
			return err
		}
	}
	if outcome.Final != outcome.URL {
		if _, err := p.exec(
			"UPDATE _pages SET state = 'alias', target = ?, status = ? WHERE source_id = ? AND url = ?",
			outcome.Final, outcome.Status, p.source, outcome.URL,
		); err != nil {
			return err
		}
		if outcome.Queue {
			if err := p.queue([]string{outcome.Final}, outcome.Depth, maxFrontier); err != nil {
				return err
			}
		}
	}
	if outcome.Page == nil && !outcome.Known && outcome.Problem == nil {
		return nil
	}
	if outcome.Final != outcome.URL {
		if _, err := p.exec(
			`INSERT INTO _pages(source_id, url, state, depth, turn) SELECT ?1, ?2, 'queued', ?3, turn FROM _pages WHERE source_id = ?1 AND url = ?4
			ON CONFLICT (source_id, url) DO UPDATE SET state = 'queued', depth = ?3, turn = excluded.turn WHERE state IN ('earlier','queued','alias')`,
			p.source, outcome.Final, outcome.Depth, outcome.URL,
		); err != nil {
			return err
		}
	}
	return p.write(outcome)
}

// What happens to a row, and to one that is waiting in the queue. In all of them ?1
// is the source and ?2 the address.
const (
	setIndexed = `state = 'indexed', target = '', status = ?3, etag = ?4, last_modified = ?5, links = ?6, title = ?7, text = ?8,
		changed = hash <> ?9, pending = CASE WHEN hash <> ?9 THEN 'cut' ELSE pending END, hash = ?9`
	setKnown   = "state = 'indexed', target = '', status = ?3"
	setProblem = "target = '', status = ?3, state = ?4, error_code = ?5, error_message = ?6"

	whereQueued = " WHERE source_id = ?1 AND url = ?2 AND state = 'queued'"
)

// The same for an address that has no row yet. If it has one after all, this works
// as if the address had been queued: what this crawl has already met is kept.
const (
	insertIndexed = `INSERT INTO _pages(source_id, url, status, etag, last_modified, links, title, text, hash, depth, turn, state, changed, pending)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'indexed', 1, 'cut')` + unlessMet + setIndexed + whereNew
	insertKnown = "INSERT INTO _pages(source_id, url, status, depth, turn, state) " +
		"VALUES (?1, ?2, ?3, ?4, ?5, 'indexed')" +
		unlessMet + setKnown + whereNew
	insertProblem = `INSERT INTO _pages(source_id, url, status, state, error_code, error_message, depth, turn)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)` + unlessMet + setProblem + whereNew

	unlessMet = ` ON CONFLICT (source_id, url) DO UPDATE SET depth = CASE state WHEN 'queued' THEN min(depth, excluded.depth) ELSE excluded.depth END,
		turn = CASE WHEN state = 'queued' AND depth <= excluded.depth THEN turn ELSE excluded.turn END, `
	whereNew = " WHERE state IN ('earlier','queued')"
)

// write writes the row of the page itself.
func (p *pageWriter) write(outcome PageOutcome) error {
	args := []any{p.source, outcome.Final, outcome.Status}
	var set, insert string
	switch page := outcome.Page; {
	case outcome.Problem != nil:
		state := "failed"
		if outcome.Skip {
			state = "skipped"
		}
		set, insert = setProblem, insertProblem
		args = append(args, state, outcome.Problem.Code, outcome.Problem.Message)
	case outcome.Known:
		set, insert = setKnown, insertKnown
	default:
		links, _ := json.Marshal(page.Links) // a list of strings cannot fail
		set, insert = setIndexed, insertIndexed
		args = append(args, page.ETag, page.LastModified, string(links), page.Title, page.Text, page.Hash)
	}
	if len(p.unqueued) == 0 || p.unqueued[0].url != outcome.Final {
		if err := p.insertUnqueued(); err != nil {
			return err
		}
		_, err := p.exec("UPDATE _pages SET "+set+whereQueued, args...)
		return err
	}
	at := p.unqueued[0]
	p.unqueued = p.unqueued[1:]
	return p.insert(insert, append(args, at.depth, at.turn)...)
}

// insert runs a statement that creates a row, or turns one of the previous crawl
// into one of this crawl.
func (p *pageWriter) insert(statement string, args ...any) error {
	done, err := p.exec(statement, args...)
	if err != nil {
		return err
	}
	p.met += int(done.Changes)
	return nil
}

// insertUnqueued creates a row for each address that has none.
func (p *pageWriter) insertUnqueued() error {
	for _, page := range p.unqueued {
		if err := p.insert(`INSERT INTO _pages(source_id, url, state, depth, turn) VALUES (?,?,'queued',?,?)
			ON CONFLICT (source_id, url) DO UPDATE SET state = 'queued', depth = excluded.depth, turn = excluded.turn
			WHERE state = 'earlier' OR state = 'queued' AND depth > excluded.depth`, p.source, page.url, page.depth, page.turn); err != nil {
			return err
		}
	}
	p.unqueued = p.unqueued[:0]
	return nil
}

// queue appends addresses to the queue unless this crawl has met them, up to limit.
func (p *pageWriter) queue(urls []string, depth, limit int) error {
	if len(urls) == 0 {
		return nil
	}
	if !p.counted {
		if err := p.count(); err != nil {
			return err
		}
	}
	crowded := false
	for _, url := range urls {
		if !crowded && p.met+len(p.unqueued) >= limit {
			if err := p.insertUnqueued(); err != nil {
				return err
			}
			if err := p.count(); err != nil {
				return err
			}
			crowded = true
		}
		if p.met >= limit {
			return nil
		}
		p.turn++
		p.unqueued = append(p.unqueued, unqueuedPage{url, depth, p.turn})
		if crowded { // one at a time, since some may have been met before
			if err := p.insertUnqueued(); err != nil {
				return err
			}
		}
	}
	return nil
}

// count reads how many addresses of this crawl have a row.
func (p *pageWriter) count() error {
	p.counted = true
	if err := p.value(
		&p.met,
		"SELECT count(*) FROM _pages WHERE source_id = ? AND state <> 'earlier'",
		p.source,
	); err != nil {
		return err
	}
	var turn int
	err := p.value(&turn, "SELECT coalesce(max(turn), 0) FROM _pages WHERE source_id = ?", p.source)
	p.turn = max(p.turn, turn)
	return err
}
