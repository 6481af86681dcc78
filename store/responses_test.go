package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"satchel/agent"
)

// fillResponses writes answers with a nominal size, one second apart, the last of them
// now.
func fillResponses(t *testing.T, db *DB, n, size int) {
	t.Helper()
	err := db.Do(t.Context(), func(tx *Tx) error {
		for i := range n {
			if _, err := tx.exec(
				"INSERT INTO _responses(id, previous_id, size, input, body, created_at) VALUES (?,'',?,'[]','{}',?)",
				fmt.Sprintf("resp_%05d", i),
				size,
				agent.At(tx.Now.Add(time.Duration(i-n)*time.Second)),
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestResponsesAreBounded checks that the oldest answers are deleted beyond a number and
// a size, and that one that is too old is not read even before it is deleted.
func TestResponsesAreBounded(t *testing.T) {
	one := Response{ID: "resp_new", Input: json.RawMessage("[]"), Body: json.RawMessage("{}")}
	for name, c := range map[string]struct{ n, size, left int }{
		"by number":   {maxResponses, 4, maxResponses},
		"by size":     {5, maxResponseBytes / 4, 4},
		"within both": {3, 4, 4},
	} {
		db := openFolder(t).Default()
		fillResponses(t, db, c.n, c.size)
		if err := db.PutResponse(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		left, err := Read(t.Context(), db, func(tx *Tx) (n int, err error) {
			return n, tx.value(&n, "SELECT count(*) FROM _responses")
		})
		if err != nil || left != c.left {
			t.Errorf("%s: %d are kept, want %d; %v", name, left, c.left, err)
		}
		if _, err := db.Response(t.Context(), "resp_new"); err != nil {
			t.Errorf("%s: the newest: %v", name, err)
		}
		if _, err := db.Response(t.Context(), "resp_00000"); (err == nil) != (c.left == c.n+1) {
			t.Errorf("%s: the oldest: %v", name, err)
		}
	}
}

// TestOldResponses checks that responses that have expired are not read, and are deleted.
func TestOldResponses(t *testing.T) {
	db := openFolder(t).Default()
	fillResponses(t, db, 2, 4)
	if err := db.Do(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(
			"UPDATE _responses SET created_at = ? WHERE id = 'resp_00000'",
			agent.At(tx.Now.Add(-ResponseLife)),
		)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Response(t.Context(), "resp_00000"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("an old one: %v", err)
	}
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) { return trim(tx) }); err != nil {
		t.Fatal(err)
	}
	ids, err := Read(t.Context(), db, func(tx *Tx) (ids string, err error) {
		return ids, tx.value(&ids, "SELECT group_concat(id) FROM _responses")
	})
	if err != nil || ids != "resp_00001" {
		t.Errorf("%s are kept, %v", ids, err)
	}
}
