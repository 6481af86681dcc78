package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// chunksOf returns the chunks of a source as "url: text" lines.
func chunksOf(tb testing.TB, db *store.DB, id string) string {
	tb.Helper()
	chunks, _, err := db.Chunks(context.Background(), id, store.Page{Limit: 1000})
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for i, c := range chunks {
		if c.Position != i {
			tb.Errorf("chunk %d has position %d", i, c.Position)
		}
		fmt.Fprintf(&b, "%s %s: %s\n", c.ID, c.Metadata.URL, c.Content)
	}
	return b.String()
}

func recrawl(tb testing.TB, c *Crawler, db *store.DB, id, site string) outcome {
	tb.Helper()
	if _, err := db.RestartSource(context.Background(), id, agent.SourceCrawling); err != nil {
		tb.Fatal(err)
	}
	waitIndexed(tb, c, db, id)
	return outcomeOf(tb, db, id, site)
}

// chunkOf returns the line of chunksOf for an address.
func chunkOf(chunks, address string) string {
	for l := range strings.Lines(chunks) {
		if strings.Contains(l, " "+address+": ") {
			return l
		}
	}
	return ""
}

func TestRecrawlTouchesWhatChanged(t *testing.T) {
	s := newSite(t)
	s.page("/", "start", "/same", "/changing", "/vanishing", "/unlinked", "/tagged", "/flaky", "/moving")
	s.page("/same", "same")
	s.page("/changing", "first")
	s.page("/vanishing", "vanishing")
	s.page("/unlinked", "unlinked")
	s.page("/moving", "moving")
	s.page("/flaky", "flaky", "/behind")
	s.page("/behind", "behind the flaky one")
	notModified := 0
	s.set("/tagged", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			notModified++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		htmlPage("tagged", "/leaf")(w, r)
	})
	s.set("/leaf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
		if r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		htmlPage("leaf")(w, r)
	})
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "again")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	first, before := outcomeOf(t, db, id, s.URL), chunksOf(t, db, id)
	if first.PageCount != 10 || first.ChangedPages != 10 || first.UnchangedPages != 0 || first.RemovedPages != 0 {
		t.Fatalf("the first crawl: %+v", first)
	}

	s.page("/changing", "second")
	s.page("/fresh", "fresh")
	s.set("/vanishing", nil)
	s.set("/moving", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/moved", http.StatusMovedPermanently)
	})
	s.page("/moved", "moving")
	s.set("/flaky", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s.page("/", "start", "/same", "/changing", "/vanishing", "/tagged", "/flaky", "/moving", "/fresh")
	second := recrawl(t, c, db, id, s.URL)
	if want := "/ /behind /changing /flaky /fresh /leaf /moved /same /tagged"; second.paths() != want {
		t.Errorf("pages %s, want %s", second.paths(), want)
	}
	if second.ChangedPages != 3 || second.UnchangedPages != 5 || second.RemovedPages != 3 || second.PageCount != 9 {
		t.Errorf(
			"changed %d, unchanged %d, removed %d, pages %d; want 3, 5, 3, 9",
			second.ChangedPages, second.UnchangedPages, second.RemovedPages, second.PageCount,
		)
	}
	if second.failures() != "/vanishing 404, /flaky 502" || notModified != 1 || second.source.Chunks != 9 {
		t.Errorf("failed %s; %d responses with 304; %d chunks", second.failures(), notModified, second.source.Chunks)
	}
	after := chunksOf(t, db, id)
	for _, kept := range []string{"/", "/same", "/tagged", "/leaf", "/flaky", "/behind"} {
		if l := chunkOf(before, s.URL+kept); l == "" || chunkOf(after, s.URL+kept) != l {
			t.Errorf("the chunk of %s was created again: %q, %q", kept, l, chunkOf(after, s.URL+kept))
		}
	}
	if strings.Contains(after, "first") ||
		strings.Contains(after, "vanishing") ||
		strings.Contains(after, "unlinked") ||
		!strings.Contains(after, "second") {
		t.Errorf("chunks after the second crawl:\n%s", after)
	}

	third := recrawl(t, c, db, id, s.URL)
	if third.ChangedPages != 0 || third.UnchangedPages != 8 || third.RemovedPages != 0 || third.PageCount != 9 {
		t.Errorf("a crawl of an unchanged site: %+v", third)
	}
	s.Close()
	fourth := recrawl(t, c, db, id, s.URL)
	if fourth.source.Status != agent.SourceFailed ||
		fourth.source.Chunks != 9 ||
		chunksOf(t, db, id) != after ||
		fourth.paths() != third.paths() {
		t.Errorf("a crawl of a site that is down: %+v", fourth.source)
	}
}

func TestNotModifiedOfAnotherPageIsFetched(t *testing.T) {
	s := newSite(t)
	tagged := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			htmlPage(text)(w, r)
		}
	}
	s.page("/", "start", "/door")
	s.set("/door", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/red", http.StatusFound) })
	s.set("/red", tagged("red"))
	s.set("/blue", tagged("blue"))
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "doors")
	id := create(t, db, planOf(s.URL))
	waitIndexed(t, c, db, id)
	s.set("/door", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/blue", http.StatusFound) })
	o := recrawl(t, c, db, id, s.URL)
	if o.paths() != "/ /blue" || !strings.Contains(chunksOf(t, db, id), "blue: blue") {
		t.Errorf("pages %s\n%s", o.paths(), chunksOf(t, db, id))
	}
}

func TestUnchangedPageKeepsItsLinks(t *testing.T) {
	s := newSite(t)
	for _, n := range []int{3, 30} { // a list that is stored with the page, and one that is too long for that
		var links []string
		for i := range n {
			link := fmt.Sprintf("/%d/%s/%d", n, strings.Repeat("x", 200), i)
			s.page(link, fmt.Sprintf("leaf %d of %d", i, n))
			links = append(links, link)
		}
		start := fmt.Sprintf("/start/%d", n)
		s.set(start, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			htmlPage("start", links...)(w, r)
		})
		folder := openFolder(t, t.TempDir())
		c := newCrawler(t, folder, nil)
		db := newAgent(t, folder, "leads")
		id := create(t, db, planOf(s.URL+start))
		waitIndexed(t, c, db, id)
		if o := recrawl(t, c, db, id, s.URL); o.PageCount != n+1 || o.UnchangedPages != n+1 || o.RemovedPages != 0 {
			t.Errorf("%d links: %d pages, %d unchanged, %d removed", n, o.PageCount, o.UnchangedPages, o.RemovedPages)
		}
	}
}
