package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// crawlSite is a site of plain text pages and a page of links.
type crawlSite struct {
	*httptest.Server
	hours atomic.Value  // the text of /hours
	hold  chan struct{} // if not nil, /slow responds once it is closed
	slow  chan struct{} // receives when /slow is requested
	gone  atomic.Pointer[string]
}

func newSite(t *testing.T) *crawlSite {
	t.Helper()
	s := &crawlSite{slow: make(chan struct{}, 10)}
	s.hours.Store("We open at nine.")
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone := s.gone.Load(); gone != nil && *gone == r.URL.Path {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(
				w,
				`<title>Harbour</title><main><p>A bakery at the harbour, with bread of many kinds for `+
					`everybody who comes by.</p></main>`,
			)
			for _, path := range []string{"/hours", "/returns", "/missing", "/slow"} {
				fmt.Fprintf(w, "<a href=%q></a>", path)
			}
		case "/hours":
			fmt.Fprint(w, s.hours.Load())
		case "/returns":
			fmt.Fprint(w, "Bring a loaf back within two days and we give your money back.")
		case "/slow":
			s.slow <- struct{}{}
			if s.hold != nil {
				select {
				case <-s.hold:
				case <-r.Context().Done():
				}
			}
			fmt.Fprint(w, "A slow page.")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// waitIndexed waits until the work on a source has ended, and returns it.
func (c *testClient) waitIndexed(t *testing.T, path string) (source map[string]any) {
	t.Helper()
	c.until(t, path, "is read", func() bool {
		source = c.must(t, 200, "GET", path, "")
		return source["status"] == "ready" || source["status"] == "error"
	})
	return source
}

func TestCrawl(t *testing.T) {
	c, site := newOwnClient(t), newSite(t)
	sources := "/api/agents/default/sources"
	a := c.send(t, "POST", sources+"/crawl", `{"url":"`+site.URL+`","name":"Harbour","maxDepth":2}`)
	id := fmt.Sprint(a.json["id"])
	if a.StatusCode != 201 ||
		a.Header.Get("Location") != "/api/agents/default/sources/"+id ||
		a.json["status"] != "crawling" ||
		a.json["type"] != "crawl" {
		t.Fatalf("%d %s %s", a.StatusCode, a.Header.Get("Location"), a.text)
	}
	config, _ := a.json["config"].(map[string]any)
	if last, given := config["lastCrawledAt"]; fmt.Sprint(config["pageCount"]) != "0" || !given || last != nil {
		t.Errorf("before the first crawl has ended, the config is %v", config)
	}
	path := sources + "/" + id
	source := c.waitIndexed(t, path)
	for field, want := range map[string]string{
		"status":                      "ready",
		"config.pageCount":            "4",
		"config.changedPages":         "4",
		"config.unchangedPages":       "0",
		"config.removedPages":         "0",
		"config.maxPages":             "50",
		"config.maxDepth":             "2",
		"config.failedPages.0.url":    site.URL + "/missing",
		"config.failedPages.0.status": "404",
		"config.failedPages.0.error":  "the server answered 404 Not Found",
	} {
		if got := fmt.Sprint(at(source, field)); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	if hash := fmt.Sprint(
		source["config"].(map[string]any)["pageHashes"].(map[string]any)[site.URL+"/hours"],
	); len(hash) != 64 {
		t.Errorf("the hash of /hours is %q", hash)
	}
	if at(source, "progress") != nil ||
		at(source, "config.lastCrawledAt") == nil ||
		fmt.Sprint(source["chunks"]) != "4" {
		t.Errorf("the source is %v", source)
	}
	listed := c.must(t, 200, "GET", sources, "")
	if at(listed, "sources.0.config.pageHashes") != nil || fmt.Sprint(at(listed, "sources.0.config.pageCount")) != "4" {
		t.Errorf("listed as %v", listed)
	}
	found := c.must(t, 200, "GET", sources+"/search?query=refund+for+bread&limit=1", "")
	if at(found, "results.0.metadata.url") != site.URL+"/returns" ||
		at(found, "results.0.metadata.source_name") != "Harbour" {
		t.Errorf("found %v", found)
	}

	before := c.must(t, 200, "GET", path+"/chunks", "")
	site.hours.Store("We open at ten.")
	gone := "/returns"
	site.gone.Store(&gone)
	again := c.must(t, 200, "POST", path+"/reindex", "")
	if again["id"] != id || again["type"] != "crawl" || again["status"] != "crawling" || again["message"] == "" {
		t.Errorf("reindex returns %v", again)
	}
	source = c.waitIndexed(t, path)
	for field, want := range map[string]string{
		"status":                "ready",
		"config.pageCount":      "3",
		"config.changedPages":   "1",
		"config.unchangedPages": "2",
		"config.removedPages":   "1",
		"chunks":                "3",
	} {
		if got := fmt.Sprint(at(source, field)); got != want {
			t.Errorf("after reindex %s is %s, want %s", field, got, want)
		}
	}
	after := c.must(t, 200, "GET", path+"/chunks", "")
	if at(before, "chunks.0.id") != at(after, "chunks.0.id") || at(before, "chunks.1.id") == at(after, "chunks.1.id") {
		t.Errorf("chunks before %v\nafter %v", before, after)
	}
	apiCase{
		"refresh", "POST", path + "/refresh", "", 200,
		map[string]any{"status": "updating", "type": "crawl"},
	}.run(t, c)
	c.waitIndexed(t, path)
	apiCase{"delete", "DELETE", path, "", 200, map[string]any{"success": true}}.run(t, c)
	apiCase{"deleted", "GET", path, "", 404, code("NOT_FOUND")}.run(t, c)
}

func TestPageAsSource(t *testing.T) {
	c, site := newTestClient(t), newSite(t)
	sources := "/api/agents/default/sources"
	made := c.must(
		t, 201, "POST", sources,
		`{"type":"url","name":"Hours","url":"`+site.URL+`/hours","config":{"chunk_size":300}}`,
	)
	if made["type"] != "url" ||
		made["status"] != "crawling" ||
		fmt.Sprint(at(made, "config.depth")) != "0" ||
		fmt.Sprint(at(made, "config.max_pages")) != "50" {
		t.Errorf("created %v", made)
	}
	source := c.waitIndexed(t, sources+"/"+fmt.Sprint(made["id"]))
	if source["status"] != "ready" ||
		fmt.Sprint(at(source, "config.pageCount")) != "1" ||
		fmt.Sprint(at(source, "config.chunk_size")) != "300" {
		t.Errorf("settled as %v", source)
	}
	failing := c.must(
		t, 201, "POST", sources,
		`{"type":"url","name":"Nothing","url":"`+site.URL+`/nothing","config":{"depth":1,"max_pages":3}}`,
	)
	source = c.waitIndexed(t, sources+"/"+fmt.Sprint(failing["id"]))
	if source["status"] != "error" ||
		at(source, "error.code") != "UPSTREAM_ERROR" ||
		!strings.Contains(fmt.Sprint(at(source, "error.message")), "404") {
		t.Errorf("settled as %v", source)
	}
}

func TestWhileCrawling(t *testing.T) {
	c, site := newTestClient(t), newSite(t)
	site.hold = make(chan struct{})
	sources := "/api/agents/default/sources"
	made := c.must(t, 201, "POST", sources+"/crawl", `{"url":"`+site.URL+`/","name":"Held"}`)
	path := sources + "/" + fmt.Sprint(made["id"])
	<-site.slow
	for fmt.Sprint(at(c.must(t, 200, "GET", path, ""), "progress.total")) == "0" { // pages are stored in groups
	}
	apiCase{"reindex while crawling", "POST", path + "/reindex", "", 409, code("CONFLICT")}.run(t, c)
	apiCase{"refresh while crawling", "POST", path + "/refresh", "", 409, code("CONFLICT")}.run(t, c)
	held := c.must(t, 200, "GET", path, "")
	if held["status"] != "crawling" || fmt.Sprint(at(held, "progress.queued")) == "0" {
		t.Errorf("while crawling: %v", held)
	}
	// The pages fetched so far can be searched already.
	for len(c.must(t, 200, "GET", sources+"/search?query=bakery&mode=keyword", "")["results"].([]any)) == 0 {
	}
	other := c.must(t, 201, "POST", sources+"/crawl", `{"url":"`+site.URL+`/hours","name":"Beside"}`)
	if second := c.waitIndexed(t, sources+"/"+fmt.Sprint(other["id"])); second["status"] != "ready" {
		t.Errorf("a crawl at the same time: %v", second)
	}
	stopped := c.must(t, 200, "POST", path+"/stop", "")
	if stopped["id"] != made["id"] ||
		at(stopped, "error.code") != "STOPPED" ||
		at(stopped, "error.message") != "stopped" {
		t.Errorf("stopped: %v", stopped)
	}
	stopped = c.waitIndexed(t, path)
	if stopped["status"] != "error" ||
		at(stopped, "error.code") != "STOPPED" ||
		at(stopped, "progress") != nil ||
		fmt.Sprint(at(stopped, "config.pageCount")) == "0" {
		t.Errorf("after the stop: %v", stopped)
	}
	apiCase{"stop again", "POST", path + "/stop", "", 409, code("CONFLICT")}.run(t, c)
	apiCase{"stop an unknown source", "POST", sources + "/source-unknown/stop", "", 404, code("NOT_FOUND")}.run(t, c)
	if found := c.must(t, 200, "GET", sources+"/search?query=bakery", "")["results"].([]any); len(found) == 0 {
		t.Error("the pages of a stopped crawl are not found")
	}
	apiCase{"crawl again", "POST", path + "/refresh", "", 200, map[string]any{"status": "updating"}}.run(t, c)
	<-site.slow
	apiCase{"delete while crawling", "DELETE", path, "", 200, map[string]any{"success": true}}.run(t, c)
	apiCase{"deleted", "GET", path, "", 404, code("NOT_FOUND")}.run(t, c)
}
