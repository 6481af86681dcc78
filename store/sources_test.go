package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"satchel/agent"
)

func upload(t testing.TB, db *DB, name string, data []byte) agent.Source {
	t.Helper()
	u, err := db.ReceiveFile(t.Context(), name, "text/plain", bytes.NewReader(data), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.CreateFileSource(t.Context(), name, agent.DefaultChunking, u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parts(t testing.TB, db *DB) int { return value[int](t, db, "SELECT count(*) FROM _file_parts") }

func TestFileSourceRoundTrip(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	for _, size := range []int{0, 1, partSize - 1, partSize, partSize + 1, 3*partSize + 7} {
		data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		s := upload(t, db, "notes.txt", data)
		if s.Status != agent.SourceProcessing ||
			s.Type != agent.SourceFile ||
			s.FilePath != "sources/"+s.ID+"/notes.txt" {
			t.Errorf("%+v", s)
		}
		f, err := db.SourceFile(t.Context(), s.ID)
		if err != nil || f.Size != int64(size) || f.Name != "notes.txt" || len(f.SHA256) != 64 {
			t.Fatalf("%d bytes: %+v, %v", size, f, err)
		}
		var out bytes.Buffer
		if err := f.WriteTo(t.Context(), &out); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%d bytes: got %d, %v", size, out.Len(), err)
		}
		if err := db.DeleteSource(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteTo(t.Context(), io.Discard); size > 0 && err == nil {
			t.Error("a deleted file was read")
		}
	}
	if n := parts(t, db); n != 0 {
		t.Errorf("%d parts are left of deleted sources", n)
	}
	_, err := db.SourceFile(t.Context(), "source-unknown")
	wantCode(t, err, agent.CodeNotFound)
}

func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	data := bytes.Repeat([]byte("x"), partSize+10)
	if _, err := db.ReceiveFile(
		t.Context(),
		"a",
		"",
		bytes.NewReader(data),
		int64(len(data))-1,
	); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	broken := errors.New("the client left")
	if _, err := db.ReceiveFile(
		t.Context(),
		"a",
		"",
		io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)),
		1<<30,
	); !errors.Is(err, broken) {
		t.Errorf("cut off: %v", err)
	}
	u, err := db.ReceiveFile(t.Context(), "a", "", iotest.OneByteReader(bytes.NewReader(data[:100])), 100)
	if err != nil || u.Size != 100 {
		t.Fatal(u, err)
	}
	_, err = db.CreateFileSource(t.Context(), " ", agent.DefaultChunking, u)
	wantCode(t, err, agent.CodeValidation)
	u.Discard()
	u.Discard()
	if n := parts(t, db); n != 0 {
		t.Errorf("%d parts are left", n)
	}
	if u, err = db.ReceiveFile(t.Context(), "a", "", bytes.NewReader(data), 1<<30); err != nil {
		t.Fatal(err)
	}
	do(t, db, "INSERT INTO _file_parts VALUES ('upload-of-a-crash', 0, x'00')")
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	if n := parts(t, db); n != 2 {
		t.Errorf("%d parts, want the two of the running upload", n)
	}
	s, err := db.CreateFileSource(t.Context(), "a", agent.DefaultChunking, u)
	if err != nil {
		t.Fatal(err)
	}
	u.Discard()
	if file, err := db.SourceFile(t.Context(), s.ID); err != nil || file.WriteTo(t.Context(), io.Discard) != nil {
		t.Errorf("discarding deleted a source's file: %v", err)
	}
}

// anyWork is all the work that a source of model-1 can have.
var anyWork = WorkFilter{Model: "model-1", Reading: true, Embedding: true}

func texts(n int) []NewChunk {
	chunks := make([]NewChunk, n)
	for i := range chunks {
		chunks[i] = NewChunk{
			Content:       fmt.Sprintf("chunk number %d", i),
			Section:       "Top > Sub",
			Page:          i + 1,
			LaterSections: []string{"Top > Next"},
			Line:          7,
			LastLine:      9,
			PageStarts:    []agent.PageStart{{Page: i + 1}, {Page: i + 2, Offset: 6}},
		}
	}
	return chunks
}

// TestWorkOnASource processes a source from its upload to ready, as the worker does.
func TestWorkOnASource(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	if w, err := db.NextWork(ctx, anyWork); w != nil || err != nil {
		t.Fatalf("work without sources: %+v, %v", w, err)
	}
	first, second := upload(t, db, "a.txt", []byte("a")), upload(t, db, "b.txt", []byte("b"))
	w, err := db.NextWork(ctx, anyWork)
	if err != nil || w.ID != first.ID || w.Chunked || w.Chunking != agent.DefaultChunking {
		t.Fatalf("%+v, %v", w, err)
	}
	n := 2*chunkBatch + 5
	if err := errors.Join(
		db.BeginReading(ctx, w.ID),
		db.AppendChunks(ctx, w.ID, 0, texts(n)),
		db.EndChunks(ctx, w.ID, "model-1"),
	); err != nil {
		t.Fatal(err)
	}
	waiting, err := db.Unembedded(ctx, w.ID, 10)
	if err != nil || len(waiting) != 10 || waiting[3].Content != "chunk number 3" || waiting[3].Section != "Top > Sub" {
		t.Fatalf("%+v, %v", waiting, err)
	}
	vectors := map[int64][]float32{waiting[0].Seq: make([]float32, 512), 1 << 40: make([]float32, 512)}
	vectors[waiting[0].Seq][0] = 1
	for range 2 { // the second time there is nothing to do
		if err := db.PutVectors(ctx, vectors); err != nil {
			t.Fatal(err)
		}
	}
	s, err := db.Source(ctx, w.ID)
	if err != nil || s.Progress == nil || *s.Progress != (agent.Progress{Done: 1, Queued: n - 1, Total: n}) {
		t.Errorf("%+v, %v", s.Progress, err)
	}
	list, _, err := db.Sources(ctx, SourceFilter{Statuses: []string{string(agent.SourceProcessing)}}, Page{Limit: 10})
	if err != nil || len(list) != 2 || !reflect.DeepEqual(list[1].Progress, s.Progress) || list[0].Progress == nil {
		t.Errorf("the list has %+v, %v", list, err)
	}
	chunks, total, err := db.Chunks(ctx, w.ID, Page{Limit: 2, Offset: 100})
	if err != nil ||
		total != n ||
		len(chunks) != 2 ||
		chunks[0].Position != 100 ||
		!reflect.DeepEqual(chunks[0].Metadata, agent.ChunkMetadata{
			SourceName: "a.txt",
			Page:       101,
			Section:    "Top > Sub",
			Sections:   []string{"Top > Sub", "Top > Next"},
			Line:       7,
			LastLine:   9,
			Place:      "pages 101–102 · Top > Sub · Next · lines 7–9",
			LastPage:   102,
			PageStarts: []agent.PageStart{{Page: 101}, {Page: 102, Offset: 6}},
		}) {
		t.Errorf("%+v of %d, %v", chunks, total, err)
	}
	_, err = db.RestartSource(ctx, w.ID, agent.SourceProcessing)
	wantCode(t, err, agent.CodeConflict)
	if err := errors.Join(
		db.FinishSource(ctx, w.ID, nil),
		db.FinishSource(ctx, second.ID, &agent.SourceError{Code: "BROKEN_FILE", Message: "cut"}),
	); err != nil {
		t.Fatal(err)
	}
	if s, err = db.Source(ctx, second.ID); err != nil ||
		s.Status != agent.SourceFailed ||
		s.Error == nil ||
		s.Error.Code != "BROKEN_FILE" ||
		s.Progress != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if events := eventsOf(t, db); len(events) != 2 ||
		events[0].Type != agent.EventSourceReady ||
		events[1].Type != agent.EventSourceError ||
		!strings.Contains(string(events[1].Data), second.ID) {
		t.Errorf("%+v", events)
	}
	if w, err := db.NextWork(ctx, anyWork); w != nil || err != nil {
		t.Errorf("work is left: %+v, %v", w, err)
	}
	if s, err = db.RestartSource(ctx, second.ID, agent.SourceUpdating); err != nil ||
		s.Status != agent.SourceUpdating ||
		s.Error != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if list, total, err := db.Sources(ctx, SourceFilter{Statuses: []string{"ready"}}, Page{Limit: 10}); err != nil ||
		total != 1 ||
		list[0].ID != w.ID ||
		list[0].Chunks != n {
		t.Errorf("%+v of %d, %v", list, total, err)
	}
}

// TestDocumentsApart looks for texts and documents separately.
func TestDocumentsApart(t *testing.T) {
	t.Parallel()
	for name, isDocument := range map[string]bool{
		"a.PDF":    true,
		"b.txt":    false,
		"c":        true,
		"d.tar.MD": false,
		"txt":      true,
		".pdf":     true,
		"e.docx":   true,
	} {
		db := openFolder(t).Default()
		s := upload(t, db, name, []byte("a"))
		for filter, want := range map[DocumentFilter]bool{
			AnyWork:          true,
			WithoutDocuments: !isDocument,
			OnlyDocuments:    isDocument,
		} {
			work := anyWork
			work.TextExtensions, work.Documents = []string{".txt", ".md"}, filter
			w, err := db.NextWork(t.Context(), work)
			if err != nil || (w != nil) != want || w != nil && (w.ID != s.ID || w.Document != isDocument) {
				t.Errorf("%s, filter %d: got %+v, %v", name, filter, w, err)
			}
		}
	}
}

// Searches no longer find a deleted source from then on, and its chunks are deleted in steps.
func TestDeletedSourceIsPurged(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	s := upload(t, db, "a.txt", []byte("a"))
	if err := db.AppendChunks(ctx, s.ID, 0, texts(chunkBatch+1)); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteSource(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.DeleteSource(ctx, s.ID), agent.CodeNotFound)
	wantCode(t, db.AppendChunks(ctx, s.ID, 0, texts(1)), agent.CodeNotFound)
	_, _, err := db.Chunks(ctx, s.ID, Page{Limit: 1})
	wantCode(t, err, agent.CodeNotFound)
	steps := 0
	for more := true; more; steps++ {
		if more, err = db.Purge(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](
		t,
		db,
		"SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM _purge)",
	); n != 0 || steps != 3 {
		t.Errorf("%d rows are left after %d steps", n, steps)
	}
	do(t, db, "INSERT INTO _chunk_text(_chunk_text) VALUES ('integrity-check')")
}

// Starts of pages that are not in the text, as an imported file may have, are ignored.
func TestInvalidPageStarts(t *testing.T) {
	for _, pages := range []string{
		"x",
		`[{"page":1},{"page":2,"offset":-1}]`,
		`[{"page":1},{"page":2,"offset":4}]`,
		`[{"page":1},{"page":2}]`,
	} {
		c := agent.Chunk{Content: "abc"}
		place := placeOf(&c)
		place.Page, place.pages = 7, pages
		if place.set("a.pdf"); c.Metadata.PageStarts != nil ||
			c.Metadata.Place != "page 7" ||
			c.Metadata.LastPage != 7 {
			t.Errorf("%s: %+v", pages, c.Metadata)
		}
	}
}
