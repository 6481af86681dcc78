package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"satchel/browser/install/installtest"
)

// installedBrowser finds Chromium and its driver, and returns the flags that name them.
func installedBrowser(t *testing.T) []string {
	t.Helper()
	p := installtest.Need(t)
	return []string{"--chromium", p.Chromium, "--browser-driver", p.Driver}
}

// TestRenderedCrawl crawls a site whose text a script writes, with the whole program.
func TestRenderedCrawl(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>Harbour Bakery</title><main id=m></main><script>
			document.getElementById("m").innerHTML = "<p>" + ["If a loaf is not to your liking, bring it back", "within two days. We give your money back."].join(" ") + "</p>"</script>`)
	}))
	t.Cleanup(site.Close)
	s := start(
		t,
		append(
			installedBrowser(t),
			"--data", filepath.Join(t.TempDir(), "data"),
			"--outbound-allow", "127.0.0.1/32",
		)...,
	)
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	source := s.call(
		t,
		"POST",
		"/agents/bakery/sources/crawl",
		map[string]any{"url": site.URL, "name": "Site", "render": true},
		201,
	)
	s.waitFor(t, "/agents/bakery", "/sources/"+source["id"].(string), "ready")
	s.wantSearch(t, "can I get a refund for bread I did not enjoy", "money back")
}

// TestNoBrowser checks the errors of what needs a browser where there is none.
func TestNoBrowser(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"), "--chromium", none)
	answer := s.call(t, "POST", "/agents/default/browser", map[string]any{}, 500)
	if e, _ := answer["error"].(map[string]any); e["code"] != "BROWSER_ERROR" ||
		!strings.Contains(fmt.Sprint(e["message"]), "satchel browser install") {
		t.Errorf("%v", answer)
	}
}
