package vector

import (
	"context"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// crawled completes a crawl of one page. The text "" means that the server responded
// that the page is not modified.
func crawled(t *testing.T, db *store.DB, id, text string) {
	t.Helper()
	ctx, address := context.Background(), "https://example.com/"
	o := store.PageOutcome{URL: address, Final: address, Status: 200, Known: text == ""}
	if text != "" {
		o.Page = &store.ReadPage{Title: "Page", Text: text, Hash: text}
	}
	ending, err := db.PutPages(ctx, id, []store.PageOutcome{o}, &store.WalkEnd{Indexed: 1, Tried: 1})
	if err != nil || ending != store.CrawlEnded {
		t.Fatal(ending, err)
	}
}

func TestPagesAreCutAndKept(t *testing.T) {
	ctx := context.Background()
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "pages")
	plan := agent.CrawlPlan{
		URL:      "https://example.com/",
		MaxPages: 5,
		Chunking: agent.Chunking{Size: 60, Overlap: 0, Method: "recursive"},
	}
	made, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, "site", plan)
	if err != nil {
		t.Fatal(err)
	}
	id := made.ID
	ix := newIndex(t, folder, &fake{model: "first"})
	start(t, ix)
	wait(t, ix, db)
	if s := source(t, db, id); s.Status != agent.SourceCrawling {
		t.Fatalf("before the crawl the source is %s", s.Status)
	}
	again := func(ix *Index, text string) []agent.Chunk {
		t.Helper()
		crawled(t, db, id, text)
		wait(t, ix, db)
		if s := source(t, db, id); s.Status != agent.SourceReady || s.EmbeddingModel != ix.embedder.Model() {
			t.Fatalf("after the crawl the source is %s, of model %q", s.Status, s.EmbeddingModel)
		}
		chunks, _, err := db.Chunks(ctx, id, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return chunks
	}
	text := string(lines("otter", 250))
	first := again(ix, text)
	if len(first) != 100 ||
		first[0].Metadata.URL != "https://example.com/" ||
		first[0].Metadata.Section != "Page" ||
		first[99].Position != 99 {
		t.Fatalf("%d chunks, the first %+v", len(first), first[0])
	}
	restart := func() {
		t.Helper()
		if _, err := db.RestartSource(ctx, id, agent.SourceCrawling); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	if kept := again(ix, ""); kept[0].ID != first[0].ID || kept[99].ID != first[99].ID {
		t.Error("a page that is not modified was split again")
	}
	ix.Stop()

	// With another model every chunk is embedded again, its page modified or not.
	second := newIndex(t, folder, &fake{model: "second"})
	start(t, second)
	restart()
	if other := again(second, ""); len(other) != 100 || other[0].ID != first[0].ID {
		t.Error("chunks were split again for another model")
	}
	if found := search(t, second, db, Query{Text: first[3].Content, Limit: 1}); len(found) != 1 ||
		!strings.Contains(found[0].Content, "otter") {
		t.Errorf("found %+v", found)
	}
	restart()
	if short := again(second, "something else"); len(short) != 1 ||
		short[0].Content != "something else" ||
		short[0].Position != 0 {
		t.Errorf("after a change: %+v", short)
	}
}
