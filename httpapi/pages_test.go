package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// addressOf returns where an embedded file is served.
func addressOf(name string) string {
	switch name {
	case consoleFiles + "app/index.html":
		return "/"
	case "docs/index.html":
		return "/docs"
	case consoleFiles + "app/live.html":
		return livePath + "/session-x"
	}
	return "/" + strings.TrimSuffix(strings.Replace(name, consoleFiles, "console/", 1), packed)
}

// eachPage calls run for every embedded file, by its name without packed, except those of
// Swagger UI, which TestSwaggerUIIsUnchanged reads.
func eachPage(t *testing.T, run func(name, text string)) {
	t.Helper()
	err := fs.WalkDir(pageFiles, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "docs/swagger-ui") {
			return err
		}
		name = strings.TrimSuffix(name, packed)
		data, err := embedded(name)
		if err != nil {
			return err
		}
		run(name, string(data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPagesAreServed(t *testing.T) {
	c := newTestClient(t)
	eachPage(t, func(name, text string) {
		a := c.with("Accept-Encoding", "identity").do(t, "GET", addressOf(name), http.NoBody, "")
		if a.StatusCode != 200 || a.text != text {
			t.Errorf("%s: %d with %d bytes, want %d", name, a.StatusCode, len(a.text), len(text))
		}
		for header, want := range map[string]string{
			"Content-Type":            pageMedia[path.Ext(name)],
			"Content-Security-Policy": policyOf(name),
			"X-Content-Type-Options":  "nosniff",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-cache",
			"Vary":                    "Accept-Encoding",
		} {
			if got := a.Header.Get(header); got != want || want == "" {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		tag := a.Header.Get("ETag")
		if again := c.with("If-None-Match", tag).do(t, "GET", addressOf(name), http.NoBody, ""); tag == "" ||
			again.StatusCode != 304 ||
			again.text != "" {
			t.Errorf("%s: %d for a file that is cached", name, again.StatusCode)
		}
		if head := c.do(t, "HEAD", addressOf(name), http.NoBody, ""); head.StatusCode != 200 || head.text != "" {
			t.Errorf("%s: HEAD returns %d with %d bytes", name, head.StatusCode, len(head.text))
		}
	})
}

func TestPagesAreCompressed(t *testing.T) {
	c := newTestClient(t)
	for accept, want := range map[string]bool{
		"gzip":           true,
		"br, gzip;q=0.5": true,
		"*":              true,
		"gzip;q=0":       false,
		"br":             false,
		"identity":       false,
	} {
		a := c.with("Accept-Encoding", accept).do(t, "GET", "/console/app/main.css", http.NoBody, "")
		if got := a.Header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %s: gzip %v, want %v", accept, got, want)
			continue
		}
		if !want {
			continue
		}
		unpacked, err := gzip.NewReader(strings.NewReader(a.text))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		original, _ := embedded(consoleFiles + "app/main.css")
		if err != nil || !bytes.Equal(plain, original) {
			t.Errorf("Accept-Encoding %s: %v, %d bytes of %d", accept, err, len(plain), len(original))
		}
	}
}

// TestPagesHoldNoInlineCode checks that the pages work under their own policy.
func TestPagesHoldNoInlineCode(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<script(?:\s+type="module")?\s*>|<style|\sstyle\s*=|\son[a-z]+\s*=|` +
		`javascript:|<base|(?:src|href)="(?:https?:)?//`)
	reference := regexp.MustCompile(`(?:src|href)="([^"#]*)`)
	c := newTestClient(t)
	eachPage(t, func(name, text string) {
		if path.Ext(name) != ".html" {
			return
		}
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s contains %q", name, found)
		}
		for _, r := range reference.FindAllStringSubmatch(text, -1) {
			if r[1] == "" {
				continue
			}
			if a := c.do(t, "GET", path.Join("/", r[1]), http.NoBody, ""); a.StatusCode != 200 {
				t.Errorf("%s refers to %s, which returns %d", name, r[1], a.StatusCode)
			}
		}
	})
}

// TestScriptsMakeNoMarkup checks that scripts pass no user text to anything that a
// browser parses as markup or code, and store the API key in nothing that outlives its
// tab.
func TestScriptsMakeNoMarkup(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	markup := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|` +
		`createContextualFragment|srcdoc|DOMParser|\beval\(|new Function|setTimeout\("|localStorage[^\n]*satchel\.key`)
	scripts := 0
	err := fs.WalkDir(os.DirFS("console/src"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".css" {
			return err
		}
		scripts++
		text, err := os.ReadFile(path.Join("console/src", name))
		if found := markup.Find(text); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
		return err
	})
	if err != nil || scripts < 20 {
		t.Errorf("%d scripts were read: %v", scripts, err)
	}
}

// TestConsoleImports checks that every file that a built script imports exists.
func TestConsoleImports(t *testing.T) {
	imported := regexp.MustCompile(`from"(\.[^"]+)"|import"(\.[^"]+)"`)
	eachPage(t, func(name, text string) {
		if !strings.HasPrefix(name, consoleFiles) || path.Ext(name) != ".js" {
			return
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if file := path.Join(path.Dir(name), m[1]+m[2]); !fileExists(file) {
				t.Errorf("%s imports %s, which does not exist", name, file)
			}
		}
	})
}

func fileExists(name string) bool {
	_, err := embedded(name)
	return err == nil
}

// embedded returns a file of the pages by its name without packed.
func embedded(name string) ([]byte, error) {
	content, err := pageFiles.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	file, err := pageFiles.Open(name + packed)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}

// TestSwaggerUIIsUnchanged compares third-party files with their checksums in
// docs/README.md, for browsers and for clients that cannot unpack gzip.
func TestSwaggerUIIsUnchanged(t *testing.T) {
	c := newTestClient(t)
	for name, want := range map[string]string{
		"/docs/swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
		"/docs/swagger-ui.css":       "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
	} {
		for coding, c := range map[string]*testClient{"gzip": c, "none": c.with("Accept-Encoding", "identity")} {
			a := c.do(t, "GET", name, http.NoBody, "") // unpacks gzip
			if sum := sha256.Sum256([]byte(a.text)); a.StatusCode != 200 || hex.EncodeToString(sum[:]) != want {
				t.Errorf("%s, compression %s: %d with the SHA-256 %x", name, coding, a.StatusCode, sum)
			}
		}
	}
}

func TestAddressesOutsideTheInterface(t *testing.T) {
	c := newTestClient(t)
	for _, tc := range []apiCase{
		{"unknown page", "GET", "/nothing", "", 404, code("NOT_FOUND")},
		{"unknown file of the console", "GET", "/console/nothing.js", "", 404, code("NOT_FOUND")},
		{"no directory listing", "GET", "/console/", "", 404, code("NOT_FOUND")},
		{"path traversal", "GET", "/console/..%2f..%2fmaster.key", "", 404, code("NOT_FOUND")},
		{"posting to a page", "POST", "/", "{}", 405, code("METHOD_NOT_ALLOWED")},
	} {
		tc.run(t, c)
	}
}

// TestHead checks that HEAD has the status and the headers of GET, but on streams.
func TestHead(t *testing.T) {
	c := newTestClient(t)
	ask := func(method, path, site string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, c.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", site)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	for path, status := range map[string]int{
		"/":                                   200,
		"/api/health":                         200,
		"/api/ready":                          200,
		"/api/agents/default/contacts":        200,
		"/api/agents/default/contacts/export": 200,
		"/api/agents/nothing":                 404,
	} {
		head, get := ask("HEAD", path, "none"), ask("GET", path, "none")
		if head.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, head.StatusCode, status)
		}
		for _, name := range []string{"Content-Type", "ETag", "X-RateLimit-Limit"} {
			if head.Header.Get(name) != get.Header.Get(name) {
				t.Errorf("%s: %s is %q, with GET %q", path, name, head.Header.Get(name), get.Header.Get(name))
			}
		}
	}
	if head := ask("HEAD", "/api/agents/default/stream", "none"); head.StatusCode != 405 {
		t.Errorf("a stream: %d", head.StatusCode)
	}
	if head, get :=
		ask("HEAD", "/api/agents", "cross-site"),
		ask("GET", "/api/agents", "cross-site"); head.StatusCode != 403 || get.StatusCode != 403 {
		t.Errorf("from another site: %d, with GET %d", head.StatusCode, get.StatusCode)
	}
}

func TestMetrics(t *testing.T) {
	c := newOwnClient(t)
	c.must(t, 200, "GET", "/api/agents/default", "")
	a := c.do(t, "GET", "/metrics", http.NoBody, "")
	for _, line := range []string{
		`satchel_agents 1`,
		`satchel_http_requests_total{method="GET",route="/agents/{id}",status="200"} 1`,
	} {
		if a.StatusCode != 200 || !strings.Contains(a.text, line) {
			t.Errorf("%d without %s", a.StatusCode, line)
		}
	}
	if media := a.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/plain; version=0.0.4") {
		t.Errorf("the media type is %s", media)
	}
	for line := range strings.Lines(a.text) {
		if strings.HasPrefix(line, "# TYPE ") && strings.Count(a.text, line) > 1 {
			t.Errorf("more than one %s", line)
		}
	}
	key := c.must(
		t, 201, "POST", "/api/keys",
		`{"name":"prometheus","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	if a := c.do(t, "GET", "/metrics", http.NoBody, ""); a.StatusCode != 401 {
		t.Errorf("metrics of a closed server without an identity: %d", a.StatusCode)
	}
	if a := c.with("X-API-Key", "satchel_bad").do(t, "GET", "/metrics", http.NoBody, ""); a.StatusCode != 401 {
		t.Errorf("a bad key: %d", a.StatusCode)
	}
	if a := c.with("X-API-Key", key).do(t, "GET", "/metrics", http.NoBody, ""); a.StatusCode != 200 {
		t.Errorf("a key: %d", a.StatusCode)
	}
}

func BenchmarkPage(b *testing.B) {
	_, server := openService(b)
	for _, address := range []string{"/", "/docs/swagger-ui-bundle.js"} {
		b.Run(strings.ReplaceAll(address, "/", "_"), func(b *testing.B) {
			request, err := http.NewRequestWithContext(b.Context(), "GET", "http://localhost"+address, nil)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("Accept-Encoding", "gzip")
			for b.Loop() {
				w := discard{header: http.Header{}}
				server.Handler().ServeHTTP(&w, request)
				if w.status != 200 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// discard is a response writer that discards everything.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
