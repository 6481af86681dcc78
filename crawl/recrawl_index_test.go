package crawl

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/vector" // which main connects with a Crawler
	"satchel/vector/document"
)

// countingEmbedder counts the texts that are embedded.
type countingEmbedder struct {
	vector.Embedder
	texts atomic.Int64
}

func (e *countingEmbedder) Embed(ctx context.Context, text string) ([]float32, error) {
	e.texts.Add(1)
	return e.Embedder.Embed(ctx, text)
}

// changingSite serves pages under their numbers, with or without ETags.
type changingSite struct {
	*httptest.Server
	mu    sync.Mutex
	pages []string
	etags bool
}

func newChangingSite(tb testing.TB, pages []string, etags bool) *changingSite {
	s := &changingSite{pages: append([]string(nil), pages...), etags: etags}
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close)
	return s
}

func (s *changingSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi("0" + r.URL.Path[1:])
	if err != nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	page := s.pages[n]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if s.etags {
		w.Header().Set("ETag", fmt.Sprintf(`"%d-%d"`, n, len(page)))
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(page)) // handles If-None-Match
}

// indexedCrawler is a Crawler and an Index of one folder, connected as in main.
type indexedCrawler struct {
	tb      testing.TB
	crawler *Crawler
	index   *vector.Index
	db      *store.DB
	texts   *atomic.Int64
}

func newIndexedCrawler(tb testing.TB, embedder vector.Embedder) indexedCrawler {
	folder := openFolder(tb, tb.TempDir())
	counting := &countingEmbedder{Embedder: embedder}
	ix := vector.New(folder, counting, slog.New(slog.DiscardHandler))
	c := newCrawler(tb, folder, func(o *Options) { o.Extract = document.ReadPage })
	tb.Cleanup(ix.Stop)
	if err := ix.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return indexedCrawler{tb, c, ix, newAgent(tb, folder, "whole"), &counting.texts}
}

// waitIndexed waits until the site is crawled and embedded.
func (w indexedCrawler) waitIndexed(id string) outcome {
	w.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := w.crawler.Wait(ctx, w.db); err != nil {
		w.tb.Fatal(err)
	}
	if err := w.index.Wait(ctx, w.db); err != nil {
		w.tb.Fatal(err)
	}
	o := outcomeOf(w.tb, w.db, id, "")
	if o.source.Status != agent.SourceReady {
		w.tb.Fatalf("the source is %s: %+v", o.source.Status, o.source.Error)
	}
	return o
}

func (w indexedCrawler) recrawl(id string) outcome {
	w.tb.Helper()
	if _, err := w.db.RestartSource(context.Background(), id, agent.SourceCrawling); err != nil {
		w.tb.Fatal(err)
	}
	return w.waitIndexed(id)
}

// constantEmbedder is an Embedder that returns the same vector for all texts.
type constantEmbedder struct{}

func (constantEmbedder) Model() string { return "flat" }

func (constantEmbedder) Embed(context.Context, string) ([]float32, error) {
	v := make([]float32, 512)
	v[0] = 1
	return v, nil
}

func TestRecrawlEmbedsWhatChanged(t *testing.T) {
	for _, etags := range []bool{true, false} {
		t.Run(fmt.Sprint("ETags ", etags), func(t *testing.T) {
			s := newChangingSite(t, smallPages(), etags)
			w := newIndexedCrawler(t, constantEmbedder{})
			id := create(t, w.db, planOf(s.URL))
			first := w.waitIndexed(id)
			embedded := w.texts.Load()
			if first.PageCount != 50 ||
				first.ChangedPages != 50 ||
				embedded != int64(first.source.Chunks) ||
				embedded < 50 {
				t.Fatalf(
					"%d pages, %d changed, %d chunks, %d embedded",
					first.PageCount, first.ChangedPages, first.source.Chunks, embedded,
				)
			}
			again := w.recrawl(id)
			if again.UnchangedPages != 50 || again.ChangedPages != 0 || w.texts.Load() != embedded {
				t.Errorf("an unchanged site: %d unchanged, %d embedded", again.UnchangedPages, w.texts.Load()-embedded)
			}
			s.mu.Lock()
			s.pages[7] = pageOf("page 7 says something else now", "/8")
			s.mu.Unlock()
			again = w.recrawl(id)
			if again.UnchangedPages != 49 || again.ChangedPages != 1 || w.texts.Load() != embedded+1 {
				t.Errorf(
					"one changed page of one chunk: %d changed, %d embedded",
					again.ChangedPages,
					w.texts.Load()-embedded,
				)
			}
		})
	}
}

// BenchmarkRecrawl crawls a site of 50 small pages twice, without changes between.
// "walk" is the time until all text is extracted and stored; "ready" is the time
// until the source is ready, embedded by the built-in model. The ratios are those of
// the second crawl to the first.
func BenchmarkRecrawl(b *testing.B) {
	for _, etags := range []bool{true, false} {
		name := map[bool]string{true: "ETag", false: "none"}[etags]
		b.Run(name, func(b *testing.B) {
			s := newChangingSite(b, smallPages(), etags)
			w := newIndexedCrawler(b, vector.Local())
			extracted := benchRecrawl(b, s.URL)
			var total [4]time.Duration
			for b.Loop() {
				first, again := extracted()
				total[0], total[1] = total[0]+first, total[1]+again
				start := time.Now()
				id := create(b, w.db, planOf(s.URL))
				w.waitIndexed(id)
				total[2] += time.Since(start)
				embedded := w.texts.Load()
				start = time.Now()
				w.recrawl(id)
				total[3] += time.Since(start)
				if w.texts.Load() != embedded {
					b.Fatal("an unchanged site was embedded again")
				}
				if err := w.db.DeleteSource(context.Background(), id); err != nil {
					b.Fatal(err)
				}
			}
			for i, name := range []string{"walk", "walk-again", "ready", "ready-again"} {
				b.ReportMetric(total[i].Seconds()*1000/float64(b.N), name+"-ms")
			}
			b.ReportMetric(total[1].Seconds()/total[0].Seconds(), "walk-ratio")
			b.ReportMetric(total[3].Seconds()/total[2].Seconds(), "ready-ratio")
		})
	}
}

// benchRecrawl returns a function that crawls a site twice, without an index.
func benchRecrawl(b *testing.B, site string) func() (first, again time.Duration) {
	folder := openFolder(b, b.TempDir())
	c := newCrawler(b, folder, func(o *Options) { o.Extract = document.ReadPage })
	db := newAgent(b, folder, "twice")
	walk := func() time.Duration {
		start := time.Now()
		if err := c.Wait(context.Background(), db); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	return func() (time.Duration, time.Duration) {
		id := create(b, db, planOf(site))
		first := walk()
		index(b, db, id)
		if _, err := db.RestartSource(context.Background(), id, agent.SourceCrawling); err != nil {
			b.Fatal(err)
		}
		return first, walk()
	}
}
