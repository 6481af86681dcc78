package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/document"
)

// testSite is a site on a loopback socket that counts its requests.
type testSite struct {
	*httptest.Server
	mu       sync.Mutex
	pages    map[string]http.HandlerFunc // by path and query
	requests map[string]int
	other    http.HandlerFunc // for URLs that are not in pages; nil: 404
}

func newSite(tb testing.TB) *testSite {
	tb.Helper()
	s := &testSite{pages: map[string]http.HandlerFunc{}, requests: map[string]int{}}
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close)
	return s
}

func (s *testSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.URL.RequestURI()]++
	h := s.pages[r.URL.RequestURI()]
	if h == nil {
		h = s.other
	}
	s.mu.Unlock()
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h(w, r)
}

// set replaces the handler of an address; nil removes it.
func (s *testSite) set(address string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil {
		delete(s.pages, address)
		return
	}
	s.pages[address] = h
}

// page sets an HTML page with links.
func (s *testSite) page(address, text string, links ...string) {
	s.set(address, htmlPage(text, links...))
}

func htmlPage(text string, links ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, pageOf(text, links...))
	}
}

func pageOf(text string, links ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<title>On %s</title><p>%s</p>", text, text)
	for _, link := range links {
		fmt.Fprintf(&b, "<a href=%q></a>", link)
	}
	return b.String()
}

func (s *testSite) count(address string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[address]
}

// total returns the number of requests, without those for robots.txt.
func (s *testSite) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, k := range s.requests {
		if address != "/robots.txt" {
			n += k
		}
	}
	return n
}

// noDelays is a Politeness without delays.
var noDelays = Politeness{
	Delay:         -1,
	MaxDelay:      time.Microsecond,
	MaxRetryAfter: time.Millisecond,
	PageTimeout:   20 * time.Second,
}

var loopback = agent.MustAddressRanges("127.0.0.0/8")

func openFolder(tb testing.TB, path string) *store.Folder {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := folder.Close(); err != nil {
			tb.Error("close the folder:", err)
		}
	})
	return folder
}

func newAgent(tb testing.TB, folder *store.Folder, name string) *store.DB {
	tb.Helper()
	db, err := folder.CreateAgent(context.Background(), agent.Agent{Name: name}, "")
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// newCrawler returns a started Crawler; change may be nil.
func newCrawler(tb testing.TB, folder *store.Folder, change func(*Options)) *Crawler {
	tb.Helper()
	o := Options{
		Env:        store.Env{Folder: folder, Allow: loopback, Version: "test", Log: slog.New(slog.DiscardHandler)},
		Extract:    document.ReadPage,
		Politeness: noDelays,
	}
	if change != nil {
		change(&o)
	}
	c := New(o)
	tb.Cleanup(c.Stop)
	if err := c.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return c
}

// onStored returns a step function for a Crawler that sends each time a page was
// stored.
func onStored(stored chan<- struct{}) func(string) {
	return func(step string) {
		if step != "page" {
			return
		}
		select {
		case stored <- struct{}{}:
		default:
		}
	}
}

// planOf returns a plan with the default limits.
func planOf(start string) agent.CrawlPlan {
	return agent.CrawlPlan{URL: start, MaxPages: 50, MaxDepth: 5, Chunking: agent.DefaultChunking}
}

func create(tb testing.TB, db *store.DB, plan agent.CrawlPlan) string {
	tb.Helper()
	s, err := db.CreateCrawlSource(context.Background(), agent.SourceCrawl, "site", plan)
	if err != nil {
		tb.Fatal(err)
	}
	return s.ID
}

// waitIndexed waits for an agent's crawls, stores each page as one chunk, in place of
// the index, and completes the sources.
func waitIndexed(tb testing.TB, c *Crawler, db *store.DB, ids ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Wait(ctx, db); err != nil {
		tb.Fatal("waiting for the crawl:", err)
	}
	for _, id := range ids {
		index(tb, db, id)
	}
}

func index(tb testing.TB, db *store.DB, id string) {
	tb.Helper()
	ctx := context.Background()
	if s, err := db.Source(ctx, id); err != nil {
		tb.Fatal(err)
	} else if s.Status == agent.SourceFailed {
		return
	}
	for {
		p, err := db.PendingPage(ctx, id)
		if err != nil {
			tb.Fatal(err)
		}
		if p == nil {
			break
		}
		chunks := []store.NewChunk{{Content: p.Text, Section: p.Title, URL: p.URL}}
		if p.Drop {
			chunks = nil
		}
		if err := db.ReplacePageChunks(ctx, id, *p, chunks); err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.OrderChunks(ctx, id); err != nil {
		tb.Fatal(err)
	}
	if err := db.FinishSource(ctx, id, nil); err != nil {
		tb.Fatal(err)
	}
}

// outcome is the result that a crawl wrote into its source's config.
type outcome struct {
	PageCount      int
	LastCrawledAt  string
	PageHashes     map[string]string
	ChangedPages   int
	UnchangedPages int
	RemovedPages   int
	FailedPages    []agent.FailedPage

	source agent.Source
	site   string
}

func outcomeOf(tb testing.TB, db *store.DB, id, site string) outcome {
	tb.Helper()
	s, err := db.Source(context.Background(), id)
	if err != nil {
		tb.Fatal(err)
	}
	o := outcome{source: s, site: site}
	if err := json.Unmarshal(s.Config, &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

// paths returns the indexed pages without scheme and host, sorted.
func (o outcome) paths() string {
	var paths []string
	for address := range o.PageHashes {
		paths = append(paths, strings.TrimPrefix(address, o.site))
	}
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

// failures returns the failed pages as "path status".
func (o outcome) failures() string {
	var list []string
	for _, f := range o.FailedPages {
		list = append(list, fmt.Sprintf("%s %d", strings.TrimPrefix(f.URL, o.site), f.Status))
	}
	return strings.Join(list, ", ")
}

// walkSite crawls a site once, in a new folder.
func walkSite(tb testing.TB, s *testSite, change func(*agent.CrawlPlan)) outcome {
	tb.Helper()
	folder := openFolder(tb, tb.TempDir())
	c := newCrawler(tb, folder, nil)
	db := newAgent(tb, folder, "crawler")
	plan := planOf(s.URL + "/")
	if change != nil {
		change(&plan)
	}
	id := create(tb, db, plan)
	waitIndexed(tb, c, db, id)
	return outcomeOf(tb, db, id, s.URL)
}

func mustURL(tb testing.TB, raw string) *url.URL {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}
