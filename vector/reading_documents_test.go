package vector

import (
	"context"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/document"
)

// hangingReader reads documents as document.Read does, except that one whose name
// begins with "hang" arrives and takes until the test ends it.
type hangingReader struct {
	arrived chan string
	mu      sync.Mutex
	ends    map[string]chan struct{} // by name
}

// end ends the reading of a document.
func (r *hangingReader) end(name string) { close(r.ended(name)) }

func (r *hangingReader) ended(name string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends[name] == nil {
		r.ends[name] = make(chan struct{})
	}
	return r.ends[name]
}

func (r *hangingReader) read(
	ctx context.Context,
	name, media string,
	data []byte,
	limits document.Limits,
) (*document.Document, error) {
	if !strings.HasPrefix(name, "hang") {
		return document.Read(ctx, name, media, data, limits)
	}
	r.arrived <- name
	select {
	case <-r.ended(name):
		return nil, agent.Errorf(document.CodeTimeout, "reading the file took too long")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hangingIndex returns an Index with such a reader, on a machine of two processors.
func hangingIndex(t *testing.T, folder *store.Folder) (*Index, *hangingReader) {
	ix := newIndex(t, folder, &fake{model: "fake"})
	ix.processors = make(chan struct{}, 1)
	r := &hangingReader{arrived: make(chan string, 100), ends: map[string]chan struct{}{}}
	ix.readDocument = r.read
	return ix, r
}

// ready waits until a source is ready.
func ready(t *testing.T, db *store.DB, s agent.Source) {
	t.Helper()
	unfinished, cancel := db.WhileUnfinished(t.Context(), s.ID)
	defer cancel()
	<-unfinished.Done()
	if got := source(t, db, s.ID); got.Status != agent.SourceReady {
		t.Errorf("%s is %s: %+v", s.Name, got.Status, got.Error)
	}
}

// While a document hangs, the agent's texts are read and embedded, and so are the texts
// and the documents of others.
func TestHangingDocumentsHoldUpNoOthers(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	busy, other := newAgent(t, folder, "busy"), newAgent(t, folder, "other")
	ix, reader := hangingIndex(t, folder)
	start(t, ix)
	hanging := []string{"hang 1.pdf", "hang 2.pdf", "hang 3.docx", "hang without extension"}
	for _, name := range hanging {
		upload(t, busy, name, []byte("%PDF-1.4\n"), small)
	}
	first := <-reader.arrived
	for _, db := range []*store.DB{busy, other} {
		for _, name := range []string{"a.txt", "b.md", "c.csv", "d.json", "e.html"} {
			data := lines("otter", 3)
			if name == "d.json" {
				data = []byte(`{"otter": 1}`)
			}
			ready(t, db, upload(t, db, name, data, small))
		}
	}
	ready(t, other, upload(t, other, "manual.pdf", testdata(t, "../document/testdata/manual.pdf"), small))
	if len(reader.arrived) > 0 {
		t.Errorf("%s is read beside %s of the same agent", <-reader.arrived, first)
	}
	for _, name := range hanging {
		reader.end(name)
	}
	wait(t, ix, busy)
	if n := len(reader.arrived); n != 3 {
		t.Errorf("%d other documents were read, want 3", n)
	}
}

// Agents whose last document took too long only wait for each other.
func TestLateAgentsWaitForEachOther(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	ix, reader := hangingIndex(t, folder)
	first, second, good := newAgent(t, folder, "first"), newAgent(t, folder, "second"), newAgent(t, folder, "good")
	pdf := []byte("%PDF-1.4\n")
	arrives := func(want string) {
		t.Helper()
		if got := <-reader.arrived; got != want {
			t.Fatalf("%s is read, want %s", got, want)
		}
	}
	start(t, ix)
	upload(t, first, "hang 1.pdf", pdf, small)
	arrives("hang 1.pdf")
	upload(t, second, "hang 2.pdf", pdf, small)
	arrives("hang 2.pdf") // by the other reader
	upload(t, first, "hang 3.pdf", pdf, small)
	upload(t, second, "hang 4.pdf", pdf, small)
	reader.end("hang 1.pdf")
	arrives("hang 3.pdf")
	reader.end("hang 2.pdf")
	for range 3 {
		ready(t, good, upload(t, good, "manual.pdf", testdata(t, "../document/testdata/manual.pdf"), small))
	}
	if len(reader.arrived) > 0 {
		t.Errorf("%s is read beside that of another late agent", <-reader.arrived)
	}
	reader.end("hang 3.pdf")
	arrives("hang 4.pdf")
	reader.end("hang 4.pdf")
	wait(t, ix, second)
	ready(t, second, upload(t, second, "manual.pdf", testdata(t, "../document/testdata/manual.pdf"), small))
	wait(t, ix, second)
	if ix.documentQueue(second) != ix.documents {
		t.Error("an agent whose document was read is still late")
	}
}
