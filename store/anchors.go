package store

import (
	"errors"
	"sync"

	"satchel/store/sqlite"
)

// Anchors are positions in the usual order of a long list, one every anchorStep
// records counted from the oldest, so that a page far from both ends is found
// without passing over everything before it. They are kept in memory. They stay
// valid as long as no record among those they count is deleted or added; new records
// normally come after them.
type anchors struct {
	moved int // how often records had been deleted or moved when the anchors were made
	keys  []anchorKey
}

// anchorKey holds the values of a list's sort keys, the id last.
type anchorKey [2]string

// anchorStep is the number of records between two anchors; shorter distances
// are skipped row by row.
const anchorStep = 1_000

// anchorCache keeps the anchors of an agent's lists, by table.
type anchorCache struct {
	mu    sync.Mutex
	lists map[string]anchors // replaced whole, never changed
}

func (c *anchorCache) get(table string) anchors {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[table]
}

func (c *anchorCache) put(table string, a anchors) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[string]anchors{}
	}
	c.lists[table] = a
}

// anchored reports whether a list in this order has anchors: both sort keys never
// change and have the same direction.
func (l *listed) anchored(keys []sortKey) bool {
	return anchoredTables[l.table] &&
		len(keys) == 2 &&
		keys[0].column == "created_at" &&
		keys[0].desc == keys[1].desc
}

// anchoredTables have a row "moved" in _filter_counts, which triggers increment when
// a row is deleted or its keys change.
var anchoredTables = map[string]bool{"contacts": true, "conversations": true}

// skip returns a cursor closer to an offset and how much of the offset remains; the
// cursor is nil if there is none. The list has total records.
func (l *listed) skip(tx *Tx, keys []sortKey, offset, total int) (*Cursor, int, error) {
	var moved int
	if err := tx.value(
		&moved,
		"SELECT n FROM _filter_counts WHERE list = 'moved' AND value_1 = ?",
		l.table,
	); errors.Is(err, sqlite.ErrNoRows) {
		return nil, offset, nil // the counting triggers have not been created yet
	} else if err != nil {
		return nil, 0, err
	}
	anchors, err := l.anchorsFor(tx, moved, total)
	if err != nil {
		return nil, 0, err
	}
	// Anchor i is the record with number (i+1)*anchorStep, counted from the oldest,
	// which is 1.
	i := offset/anchorStep - 1
	rest := offset - (i+1)*anchorStep
	if keys[0].desc {
		first := total - offset // the number of the first record of the page
		i = (first+anchorStep)/anchorStep - 1
		rest = (i+1)*anchorStep - 1 - first
	}
	if i < 0 || i >= len(anchors.keys) {
		return nil, offset, nil
	}
	at := &Cursor{Values: []any{anchors.keys[i][0], anchors.keys[i][1]}}
	return at, rest, nil
}

// anchorsFor returns anchors that are valid in this transaction: none if records
// have been added among those that they count.
func (l *listed) anchorsFor(tx *Tx, moved, total int) (a anchors, err error) {
	a = tx.db.anchors.get(l.table)
	if a.moved != moved {
		a = anchors{moved: moved}
	}
	known := len(a.keys)
	for more := true; more && err == nil && len(a.keys) < total/anchorStep; {
		a.keys, more, err = l.nextAnchor(tx, a.keys)
	}
	if err != nil {
		return anchors{}, err
	}
	var behind int
	count := min(len(a.keys), total/anchorStep)
	if count > 0 {
		err = tx.value(
			&behind,
			"SELECT count(*) FROM (SELECT 1 FROM "+l.table+" WHERE (created_at, id) > (?, ?) LIMIT ?)",
			a.keys[count-1][0],
			a.keys[count-1][1],
			2*anchorStep,
		)
	}
	switch {
	case err != nil:
		return anchors{}, err
	case count > 0 && count*anchorStep+behind != total && known > 0: // one was added among the others
		tx.db.anchors.put(l.table, anchors{})
		return l.anchorsFor(tx, moved, total)
	case count > 0 && count*anchorStep+behind != total:
		return anchors{}, nil
	case len(a.keys) > known:
		tx.db.anchors.put(l.table, a)
	}
	a.keys = a.keys[:count]
	return a, nil
}

// nextAnchor adds the anchor after the last one, if there are enough records.
func (l *listed) nextAnchor(tx *Tx, keys []anchorKey) ([]anchorKey, bool, error) {
	var last anchorKey
	if len(keys) > 0 {
		last = keys[len(keys)-1]
	}
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (k anchorKey, err error) {
			return k, rows.Scan(&k[0], &k[1])
		},
		"SELECT created_at, id FROM "+l.table+
			" WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT 1 OFFSET ?",
		last[0],
		last[1],
		anchorStep-1,
	)
	if err != nil || len(found) == 0 {
		return keys, false, err
	}
	return append(keys[:len(keys):len(keys)], found[0]), true, nil
}
