package store

import (
	"context"
	"errors"
	"testing"
)

// TestSearchesTakeTurnsWhileIndexing checks that while rows have to be indexed, only one
// search of a file examines them, and the others wait for it within their contexts.
func TestSearchesTakeTurnsWhileIndexing(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	fillPeople(t, db, wantedRows)
	search := func(ctx context.Context, text string) error {
		_, _, err := db.Contacts(ctx, nil, Page{Limit: 1, Search: text})
		return err
	}
	if err := search(t.Context(), "person"); err != nil { // requests the index
		t.Fatal(err)
	}
	select {
	case <-f.partsRequested:
	default:
		t.Error("the index is not built immediately")
	}
	db.file.examining <- struct{}{} // another search
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := search(canceled, "person"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second search: %v", err)
	}
	if err := search(t.Context(), ""); err != nil {
		t.Error(err)
	}
	waiting := make(chan error)
	go func() { waiting <- search(t.Context(), "person") }()
	growAll(t, db)
	<-db.file.examining
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	db.file.examining <- struct{}{}
	if err := search(canceled, "person"); err != nil {
		t.Errorf("when all is indexed: %v", err)
	}
}
