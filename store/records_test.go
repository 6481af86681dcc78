package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"satchel/agent"
)

// feed creates a source that is read record by record.
func feed(t testing.TB, db *DB) string {
	t.Helper()
	s, err := db.CreateFeedSource(
		context.Background(),
		agent.SourceAPI,
		"Feed",
		map[string]any{"url": "https://example.com"},
		map[string]string{"auth.token": "s3cret"},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// records are records of one chunk each, whose text is their hash.
func records(texts ...string) []Record {
	list := make([]Record, len(texts))
	for i, text := range texts {
		list[i] = Record{ID: fmt.Sprintf("r%d", i), Hash: text, Chunks: []NewChunk{{Content: text}}}
	}
	return list
}

// read reads all of a source, with all records on one page.
func read(t testing.TB, db *DB, id string, list []Record) {
	t.Helper()
	ctx := context.Background()
	f, err := db.BeginFeed(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	known, err := db.KnownRecords(ctx, id, ids)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		list[i].Known = known[r.ID].Hash == r.Hash
	}
	if err := errors.Join(db.PutRecords(ctx, f, list), db.NotePageDone(ctx, f, "2"), db.EndFeed(ctx, f)); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, db *DB, id string) (list []string, ids []string) {
	t.Helper()
	chunks, total, err := db.Chunks(context.Background(), id, Page{Limit: 1000})
	if err != nil || total != len(chunks) {
		t.Fatalf("%d chunks of %d, %v", len(chunks), total, err)
	}
	for i, c := range chunks {
		if c.Position != i {
			t.Errorf("chunk %d is at %d", i, c.Position)
		}
		list, ids = append(list, c.Content), append(ids, c.ID)
	}
	return list, ids
}

func TestRecordsAreKeptUntilTheyChange(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	id := feed(t, db)
	read(t, db, id, records("zero", "one", "two", "three"))
	list, before := contents(t, db, id)
	if fmt.Sprint(list) != "[zero one two three]" {
		t.Fatalf("chunks are %q", list)
	}
	if err := db.FinishSource(ctx, id, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.BeginFeed(ctx, id); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a source that is ready is read: %v", err)
	}
	if _, err := db.RestartSource(ctx, id, agent.SourceUpdating); err != nil {
		t.Fatal(err)
	}
	read(t, db, id, records("zero", "changed", "two"))
	list, after := contents(t, db, id)
	if fmt.Sprint(list) != "[zero two changed]" || after[0] != before[0] || after[1] != before[2] {
		t.Errorf("chunks are %q", list)
	}
	s, err := db.Source(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(s.Config, &config); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]float64{
		"record_count":      3,
		"changed_records":   1,
		"unchanged_records": 2,
		"removed_records":   1,
	} {
		if config[field] != want {
			t.Errorf("%s is %v, want %v", field, config[field], want)
		}
	}
	if config["last_read_at"] == nil || config["url"] != "https://example.com" {
		t.Errorf("config is %v", config)
	}
}

// An interrupted read of a feed continues at its page, in the same run.
func TestFeedContinuesAtItsPage(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	id := feed(t, db)
	f, err := db.BeginFeed(ctx, id)
	if err != nil || f.Run != 1 || f.Page != 0 || f.Type != agent.SourceAPI || f.Chunking != agent.DefaultChunking {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = db.BeginFeed(ctx, id); err != nil || f.Run != 2 {
		t.Errorf("interrupted on its first page: run %d, %v", f.Run, err)
	}
	if err := errors.Join(
		db.PutRecords(ctx, f, records("a", "b")),
		db.NotePageDone(ctx, f, "https://example.com/?page=2"),
	); err != nil {
		t.Fatal(err)
	}
	if f, err = db.BeginFeed(ctx, id); err != nil ||
		f.Run != 2 ||
		f.Page != 1 ||
		f.Next != "https://example.com/?page=2" {
		t.Errorf("%+v, %v", f, err)
	}
	if n, err := db.CountRecords(ctx, f); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	if w, err := db.NextFetch(ctx); err != nil || w == nil || w.ID != id {
		t.Errorf("%+v, %v", w, err)
	}
	if err := db.EndFeed(ctx, f); err != nil {
		t.Fatal(err)
	}
	if w, err := db.NextFetch(ctx); err != nil || w != nil {
		t.Errorf("a source that was read is fetched again: %+v, %v", w, err)
	}
	if list, _ := contents(t, db, id); fmt.Sprint(list) != "[a b]" {
		t.Errorf("chunks are %q", list)
	}
}

// A large record takes several writes; if it is interrupted between them, the record
// counts as unknown.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	id := feed(t, db)
	large := Record{ID: "large", Hash: "h", Chunks: texts(2*chunkBatch + 7)}
	read(t, db, id, append(records("a", "b"), large))
	if list, _ := contents(t, db, id); len(list) != 2*chunkBatch+9 {
		t.Errorf("%d chunks", len(list))
	}
	f := Feed{SourceID: id, Run: 2}
	_, err := Write(ctx, db, func(tx *Tx) (int64, error) {
		if _, err := tx.exec("UPDATE sources SET chunked = 0"); err != nil {
			return 0, err
		}
		return tx.beginRecord(f, large)
	})
	if err != nil {
		t.Fatal(err)
	}
	if known, err := db.KnownRecords(ctx, id, []string{"large", "r1", "unheard of"}); err != nil ||
		len(known) != 2 ||
		known["large"].Hash != "" ||
		known["r1"].Hash != "b" {
		t.Errorf("known are %+v, %v", known, err)
	}
	if s, err := db.Source(ctx, id); err != nil || s.Chunks != 2 {
		t.Errorf("%d chunks are counted, %v", s.Chunks, err)
	}
}

func TestDeletedFeedLeavesNothing(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	id := feed(t, db)
	read(t, db, id, records("a", "b"))
	f := Feed{SourceID: id, Run: 1}
	if err := db.DeleteSource(ctx, id); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.PutRecords(ctx, f, records("c")), agent.CodeNotFound)
	wantCode(t, db.NotePageDone(ctx, f, ""), agent.CodeNotFound)
	wantCode(t, db.EndFeed(ctx, f), agent.CodeNotFound)
	for more := true; more; {
		var err error
		if more, err = db.Purge(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](
		t,
		db,
		"SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM _records) + (SELECT count(*) "+
			"FROM _feeds) + (SELECT count(*) FROM _secrets)",
	); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	for i := range 3 {
		createContact(t, db, numberedContact(i))
	}
	r, err := db.Rows(ctx, "SELECT id, name FROM contacts ORDER BY name", 2)
	if err != nil || len(r.Rows) != 2 || !r.Truncated || fmt.Sprint(r.Columns) != "[id name]" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = db.Rows(ctx, "WITH c AS (SELECT 1 AS n) SELECT n FROM c", 0); err != nil ||
		len(r.Rows) != 0 ||
		fmt.Sprint(r.Columns) != "[n]" {
		t.Errorf("%+v, %v", r, err)
	}
	for query, want := range map[string]agent.Code{
		"DELETE FROM contacts":                  agent.CodeForbiddenOperation,
		"PRAGMA table_info(contacts)":           agent.CodeForbiddenOperation,
		"EXPLAIN SELECT 1":                      agent.CodeForbiddenOperation,
		"SELECT * FROM _secrets":                agent.CodeForbiddenOperation,
		"SELECT count(*) FROM _chunk_vectors_3": agent.CodeForbiddenOperation,
		"SELECT 1; SELECT 2":                    agent.CodeInvalidQuery,
		"SELECT":                                agent.CodeInvalidQuery,
		"SELECT ?":                              agent.CodeInvalidQuery,
		"":                                      agent.CodeInvalidQuery,
	} {
		_, err := db.Rows(ctx, query, 10)
		wantCode(t, err, want)
	}
}

// Vectors of any length are found among those of their length, are deleted with their
// chunks, and are dropped for another model.
func TestVectorsOfOtherLengths(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	short := [][]float32{{1, 0, 0}, {0, 1, 0}}
	id, seqs := learn(t, db, testModel, []string{"first", "second"}, short...)
	local, _ := learn(t, db, "other", []string{"third"}, direction(0))
	if got := nearest(t, db, "", []float32{0, 2, 0}, 5); len(got) != 2 || got[0] != seqs[1] {
		t.Errorf("nearest are %v, want %v first", got, seqs[1])
	}
	if got := nearest(t, db, "", []float32{1, 0}, 5); len(got) != 0 {
		t.Errorf("nearest to a vector of a length that no other has: %v", got)
	}
	cosines := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) {
		return k.Cosines([]float32{3, 0, 0}, seqs)
	})
	if len(cosines) != 2 || cosines[seqs[0]] != 1 || cosines[seqs[1]] != 0 {
		t.Errorf("cosines are %v", cosines)
	}
	_, err := db.SQL(ctx, "SELECT count(*) FROM _chunk_vectors_3", Params{}, Access{Write: true})
	wantCode(t, err, agent.CodeForbiddenOperation)

	if err := db.AdoptModel(ctx, id, "longer"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.AdoptModel(ctx, "source-x", "longer"), agent.CodeNotFound)
	count := func() string {
		return fmt.Sprint(
			value[int](t, db, "SELECT count(*) FROM _chunk_vectors_3"),
			value[int](t, db, "SELECT count(*) FROM _chunk_vectors"),
			value[int](t, db, "SELECT count(*) FROM chunks WHERE embedded"),
		)
	}
	if got := count(); got != "0 1 1" {
		t.Errorf("after another model was adopted there are %s", got)
	}
	long := make([]float32, MaxVectorLength)
	long[7] = 1
	if err := db.PutVectors(ctx, map[int64][]float32{seqs[0]: long}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]float32{{}, make([]float32, MaxVectorLength+1)} {
		if err := db.PutVectors(ctx, map[int64][]float32{seqs[1]: bad}); err == nil {
			t.Errorf("a vector of %d numbers is stored", len(bad))
		}
	}
	if err := errors.Join(db.DropChunks(ctx, id), db.DropChunks(ctx, local)); err != nil {
		t.Fatal(err)
	}
	if n := value[int](
		t,
		db,
		"SELECT (SELECT count(*) FROM _chunk_vectors_8192) + (SELECT count(*) FROM _chunk_vectors)",
	); n != 0 {
		t.Errorf("%d vectors remain without their chunks", n)
	}
}
