package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// wantStopped wants a source to have ended because ada@x.y stopped it, with one event.
func wantStopped(t *testing.T, db *DB, id string) {
	t.Helper()
	s, err := db.Source(t.Context(), id)
	if err != nil ||
		s.Status != agent.SourceFailed ||
		s.Error == nil ||
		*s.Error != (agent.SourceError{Code: agent.SourceStopped, Message: "stopped by ada@x.y"}) ||
		s.Progress != nil {
		t.Errorf("%+v, error %+v, %v", s, s.Error, err)
	}
	events := eventsOf(t, db)
	if n := len(events); n == 0 ||
		events[n-1].Type != agent.EventSourceError ||
		!strings.Contains(string(events[n-1].Data), "stopped by ada@x.y") {
		t.Errorf("events %+v", events)
	}
}

func TestStopUpload(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := WithActor(t.Context(), "ada@x.y")
	s := upload(t, db, "a.txt", []byte("a"))
	if err := errors.Join(db.BeginReading(ctx, s.ID), db.AppendChunks(ctx, s.ID, 0, texts(3))); err != nil {
		t.Fatal(err)
	}
	audited(t, db, ctx, "source stopped", func() error {
		_, err := db.StopSource(ctx, s.ID)
		return err
	})
	wantStopped(t, db, s.ID)
	_, err := db.StopSource(ctx, s.ID)
	wantCode(t, err, agent.CodeConflict)
	_, err = db.StopSource(ctx, "source-unknown")
	wantCode(t, err, agent.CodeNotFound)

	// The reading that was in progress changes nothing any more.
	wantCode(t, db.AppendChunks(ctx, s.ID, 3, texts(1)), agent.CodeNotFound)
	wantCode(t, db.DropChunks(ctx, s.ID), agent.CodeNotFound)
	wantCode(t, db.FinishSource(ctx, s.ID, nil), agent.CodeNotFound)
	if err := errors.Join(db.EndChunks(ctx, s.ID, "model-1"), db.NoteProblem(ctx, s.ID, nil)); err != nil {
		t.Fatal(err)
	}
	wantStopped(t, db, s.ID)
	if s, err := db.Source(ctx, s.ID); err != nil || s.Chunks != 3 || s.EmbeddingModel != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if w, err := db.NextWork(ctx, anyWork); w != nil || err != nil {
		t.Errorf("work is left: %+v, %v", w, err)
	}
	if s, err = db.RestartSource(ctx, s.ID, agent.SourceUpdating); err != nil ||
		s.Status != agent.SourceUpdating ||
		s.Error != nil {
		t.Errorf("restarted: %+v, %v", s, err)
	}
	if w, err := db.NextWork(ctx, anyWork); w == nil || w.ID != s.ID || err != nil {
		t.Errorf("after the restart: %+v, %v", w, err)
	}
}

// page is the outcome of an address that is a page with links.
func page(address string, depth int, links ...string) PageOutcome {
	return PageOutcome{
		URL:    address,
		Final:  address,
		Depth:  depth,
		Status: 200,
		Links:  links,
		Page:   &ReadPage{Title: address, Text: "text of " + address, Hash: "hash of " + address, Links: links},
	}
}

func TestStopCrawl(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := WithActor(t.Context(), "ada@x.y")
	plan := agent.CrawlPlan{URL: "http://a/", MaxPages: 9, MaxDepth: 3, Chunking: agent.DefaultChunking}
	s, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, "site", plan)
	if err != nil {
		t.Fatal(err)
	}
	missing := PageOutcome{
		URL:     "http://a/b",
		Final:   "http://a/b",
		Depth:   1,
		Status:  404,
		Problem: &agent.SourceError{Code: "UPSTREAM_ERROR", Message: "gone"},
	}
	if _, err := db.PutPages(
		ctx,
		s.ID,
		[]PageOutcome{page("http://a/", 0, "http://a/b", "http://a/c"), missing},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	stopped, err := db.StopSource(ctx, s.ID)
	if err != nil ||
		stopped.Status != agent.SourceProcessing ||
		stopped.Error == nil ||
		stopped.Error.Message != "stopped by ada@x.y" {
		t.Fatalf("%+v, %v", stopped, err)
	}
	if !strings.Contains(string(stopped.Config), `"pageCount":1`) ||
		!strings.Contains(string(stopped.Config), `"url":"http://a/b"`) {
		t.Errorf("config %s", stopped.Config)
	}
	if left, err := db.CrawlWork(ctx); len(left) != 0 || err != nil {
		t.Errorf("the crawl is still wanted: %+v, %v", left, err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _pages WHERE state = 'queued'"); n != 0 {
		t.Errorf("%d addresses are left in the queue", n)
	}
	_, err = db.PutPages(ctx, s.ID, []PageOutcome{page("http://a/c", 1)}, nil)
	wantCode(t, err, agent.CodeNotFound)

	// The page is indexed, and then the source ends as stopped.
	if err := db.AdoptModel(ctx, s.ID, "model-1"); err != nil {
		t.Fatal(err)
	}
	w, err := db.NextWork(ctx, anyWork)
	if err != nil || w == nil || !w.Reading || w.Delayed {
		t.Fatalf("%+v, %v", w, err)
	}
	p, err := db.PendingPage(ctx, s.ID)
	if err != nil || p.URL != "http://a/" {
		t.Fatalf("%+v, %v", p, err)
	}
	chunks := []NewChunk{{Content: "one", URL: p.URL}, {Content: "two", URL: p.URL}}
	if err := errors.Join(
		db.ReplacePageChunks(ctx, s.ID, *p, chunks),
		db.NoteProblem(ctx, s.ID, nil),
		db.FinishSource(ctx, s.ID, nil),
	); err != nil {
		t.Fatal(err)
	}
	wantStopped(t, db, s.ID)
	if len(eventsOf(t, db)) != 1 {
		t.Errorf("events %+v", eventsOf(t, db))
	}

	// A crawl of what is known already keeps the page until it is read again.
	if _, err := db.RestartSource(ctx, s.ID, agent.SourceUpdating); err != nil {
		t.Fatal(err)
	}
	if known, err := db.KnownPages(ctx, s.ID); err != nil || len(known) != 1 || known["http://a/"].Known == "" {
		t.Errorf("known %+v, %v", known, err)
	}
}

// A crawl that has read nothing ends at once, and so does one whose pages are being
// indexed.
func TestStopCrawlAtOnce(t *testing.T) {
	t.Parallel()
	for name, outcomes := range map[string][]PageOutcome{
		"nothing":  nil,
		"indexing": {page("http://a/", 0, "http://a/b")},
	} {
		db := openFolder(t).Default()
		ctx := WithActor(t.Context(), "ada@x.y")
		s, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, name, agent.CrawlPlan{
			URL:      "http://a/",
			MaxPages: 9,
			Chunking: agent.DefaultChunking,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(outcomes) > 0 {
			if _, err := db.PutPages(ctx, s.ID, outcomes, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := db.StopSource(ctx, s.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.StopSource(ctx, s.ID); err != nil {
			t.Fatal(err)
		}
		wantStopped(t, db, s.ID)
	}
}

// A page that was to be dropped when a source was stopped is found again.
func TestStopWhileDroppingPages(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := t.Context()
	s, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, "site", agent.CrawlPlan{
		URL:      "http://a/",
		MaxPages: 9,
		MaxDepth: 3,
		Chunking: agent.DefaultChunking,
	})
	if err != nil {
		t.Fatal(err)
	}
	crawl := func(outcomes ...PageOutcome) {
		t.Helper()
		if _, err := db.PutPages(ctx, s.ID, outcomes, &WalkEnd{Indexed: len(outcomes), Tried: 9}); err != nil {
			t.Fatal(err)
		}
	}
	crawl(page("http://a/", 0, "http://a/b"), page("http://a/b", 1))
	do(t, db, "UPDATE _pages SET pending = ''")
	for _, outcomes := range [][]PageOutcome{
		{page("http://a/", 0)},
		{
			page("http://a/", 0, "http://a/b"),
			{URL: "http://a/b", Final: "http://a/b", Depth: 1, Known: true, Status: 304},
		},
	} {
		if s, err := db.Source(ctx, s.ID); err != nil {
			t.Fatal(err)
		} else if s.Progress != nil {
			if _, err := db.StopSource(ctx, s.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.RestartSource(ctx, s.ID, agent.SourceUpdating); err != nil {
			t.Fatal(err)
		}
		crawl(outcomes...)
	}
	var pending []string
	for {
		p, err := db.PendingPage(ctx, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			break
		}
		if pending = append(pending, p.URL); p.Drop {
			t.Errorf("%s is dropped", p.URL)
		}
		if err := db.ReplacePageChunks(ctx, s.ID, *p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(pending, []string{"http://a/b"}) {
		t.Errorf("pending %v", pending)
	}
}

func TestWhileUnfinished(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	for name, end := range map[string]func(id string) error{
		"stopped": func(id string) error {
			_, err := db.StopSource(t.Context(), id)
			return err
		},
		"deleted": func(id string) error { return db.DeleteSource(t.Context(), id) },
		"ready":   func(id string) error { return db.FinishSource(t.Context(), id, nil) },
	} {
		s := upload(t, db, name, []byte("a"))
		ctx, cancel := db.WhileUnfinished(t.Context(), s.ID)
		if ctx.Err() != nil {
			t.Errorf("%s: ended before", name)
		}
		if err := end(s.ID); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		wantCode(t, context.Cause(ctx), agent.CodeNotFound)
		cancel()
	}
	s := upload(t, db, "cancelled", []byte("a"))
	ctx, cancel := db.WhileUnfinished(t.Context(), s.ID)
	cancel()
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error(context.Cause(ctx))
	}
}
