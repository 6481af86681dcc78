package vector

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// openFolder opens a data folder for one test.
func openFolder(t testing.TB, path string) *store.Folder {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error("close the folder:", err)
		}
	})
	return folder
}

// newIndex returns an Index that is stopped before the folder is closed.
func newIndex(t testing.TB, folder *store.Folder, e Embedder) *Index {
	t.Helper()
	ix := New(folder, e, slog.New(slog.DiscardHandler))
	t.Cleanup(ix.Stop)
	return ix
}

func newAgent(t testing.TB, folder *store.Folder, name string) *store.DB {
	t.Helper()
	db, err := folder.CreateAgent(context.Background(), agent.Agent{Name: name}, "")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// upload creates a source from a file.
func upload(t testing.TB, db *store.DB, name string, data []byte, c agent.Chunking) agent.Source {
	t.Helper()
	u, err := db.ReceiveFile(context.Background(), name, "", bytes.NewReader(data), 100<<20)
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.CreateFileSource(context.Background(), name, c, u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wait waits until an agent has no pending work.
func wait(t testing.TB, ix *Index, db *store.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := ix.Wait(ctx, db); err != nil {
		t.Fatal("waiting for the agent's work:", err)
	}
}

func start(t testing.TB, ix *Index) {
	t.Helper()
	if err := ix.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// source reads a source, which must exist.
func source(t testing.TB, db *store.DB, id string) agent.Source {
	t.Helper()
	s, err := db.Source(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func search(t testing.TB, ix *Index, db *store.DB, q Query) []Result {
	t.Helper()
	found, err := ix.Search(context.Background(), db, q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
