package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// unpack returns the text of a response in gzip.
func unpack(t *testing.T, a answer) string {
	t.Helper()
	packed, err := gzip.NewReader(strings.NewReader(a.text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestAnswersAreCompressed(t *testing.T) {
	c := newOwnClient(t)
	const root = "/api/agents/default"
	c.must(t, 201, "POST", "/api/agents", `{"name":"empty"}`)
	for i := range 40 {
		c.must(
			t, 201, "POST", root+"/contacts",
			fmt.Sprintf(`{"name":"Contact %d","notes":"some text that many contacts share"}`, i),
		)
		c.must(
			t, 201, "POST", root+"/calendar",
			fmt.Sprintf(`{"title":"Task %d","start_time":"2027-01-04T09:00:00Z"}`, i),
		)
	}
	noise := make([]byte, 8<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	upload := func(name string, content []byte) string {
		body, media := multipartForm(t, nil, name, content, nil)
		a := c.do(t, "POST", root+"/sources", body, media)
		if a.StatusCode != 201 {
			t.Fatal(a.text)
		}
		return root + "/sources/" + a.json["id"].(string) + "/file"
	}
	text := upload("long.md", bytes.Repeat([]byte("Parcels leave at four.\n"), 200))
	pdf := upload("long.pdf", append([]byte("%PDF-1.4\n"), noise...))
	for _, tc := range []struct {
		name, path, accept string
		want               bool
	}{
		{"a long list", "/default/contacts", "gzip", true},
		{"among others", "/default/contacts", "br;q=1.0, gzip;q=0.8, *;q=0.1", true},
		{"a weight of zero for the rest", "/default/contacts", "*;q=0, gzip", true},
		{"in capitals", "/default/contacts", "GZIP", true},
		{"not wanted", "/default/contacts", "gzip;q=0, *", false},
		{"not known", "/default/contacts", "br, zstd", false},
		{"a short response", "/default/contacts?limit=1", "gzip", false},
		{"a stream of JSON", "/default/contacts/export?format=json", "gzip", true},
		{"a short stream", "/empty/contacts/export?format=json", "gzip", false},
		{"a stream of CSV", "/default/contacts/export", "gzip", true},
		{"the calendar", "/default/calendar.ics", "gzip", true},
		{"the tables", "/default/sql/schema", "gzip", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plain := c.with("Accept-Encoding", "identity").do(t, "GET", "/api/agents"+tc.path, http.NoBody, "")
			a := c.with("Accept-Encoding", tc.accept).do(t, "GET", "/api/agents"+tc.path, http.NoBody, "")
			checkCompressed(t, a, tc.want, plain.text)
		})
	}
	t.Run("a text file", func(t *testing.T) {
		a := c.with("Accept-Encoding", "gzip").do(t, "GET", text, http.NoBody, "")
		checkCompressed(t, a, true, strings.Repeat("Parcels leave at four.\n", 200))
	})
	t.Run("a PDF", func(t *testing.T) {
		a := c.with("Accept-Encoding", "gzip").do(t, "GET", pdf, http.NoBody, "")
		checkCompressed(t, a, false, "%PDF-1.4\n"+string(noise))
	})
	t.Run("a response without a body", func(t *testing.T) {
		id := c.must(t, 201, "POST", root+"/contacts", `{"name":"Short"}`)["id"].(string)
		a := c.with("Accept-Encoding", "gzip").do(t, "DELETE", root+"/contacts/"+id, http.NoBody, "")
		if a.StatusCode != 204 || a.Header.Get("Content-Encoding") != "" || a.text != "" {
			t.Errorf("%d %v %q", a.StatusCode, a.Header, a.text)
		}
	})
	t.Run("an error", func(t *testing.T) {
		a := c.with("Accept-Encoding", "gzip").do(t, "GET", root+"/contacts?limit=0", http.NoBody, "")
		if a.StatusCode != 400 ||
			a.Header.Get("Content-Encoding") != "" ||
			at(a.json, "error.code") != "VALIDATION_ERROR" {
			t.Errorf("%d %v %q", a.StatusCode, a.Header, a.text)
		}
	})
}

func checkCompressed(t *testing.T, a answer, want bool, plain string) {
	t.Helper()
	if a.StatusCode != 200 ||
		(a.Header.Get("Content-Encoding") == "gzip") != want ||
		!strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Accept-Encoding") {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	text := a.text
	if want {
		if text = unpack(t, a); len(a.text) >= len(text) {
			t.Errorf("%d bytes compressed to %d", len(text), len(a.text))
		}
	}
	if text != plain {
		t.Errorf("%d bytes that differ from the %d of the plain response", len(text), len(plain))
	}
}

// TestStreamsAreNotCompressed reads the first events of a stream that stays
// open.
func TestStreamsAreNotCompressed(t *testing.T) {
	c := newTestClient(t)
	m := newModelServer(t, func(int, map[string]any) string { return strings.Repeat("A long answer. ", 200) })
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`,
	)
	a := c.with("Accept-Encoding", "gzip").do(
		t,
		"POST",
		"/api/agents/default/chat",
		strings.NewReader(`{"message":"Hi","stream":true}`),
		"application/json",
	)
	if a.Header.Get("Content-Type") != "text/event-stream" ||
		a.Header.Get("Content-Encoding") != "" ||
		!strings.Contains(a.text, "event: done") {
		t.Errorf("%v %.100s", a.Header, a.text)
	}
}

func TestDescriptionIsCompressed(t *testing.T) {
	c, _ := openWith(t, func(o *Options) { o.RateLimits = map[string]int{"general": 2} })
	for range 5 {
		a := c.with("Accept-Encoding", "gzip").do(t, "GET", "/api/openapi.json", http.NoBody, "")
		if a.StatusCode != 200 ||
			a.Header.Get("Content-Encoding") != "gzip" ||
			a.Header.Get("X-RateLimit-Limit") != "" {
			t.Fatalf("%d %v", a.StatusCode, a.Header)
		}
		text := unpack(t, a)
		if !json.Valid([]byte(text)) || len(a.text)*5 > len(text) {
			t.Errorf("%d bytes of %d", len(a.text), len(text))
		}
		again := c.with("If-None-Match", a.Header.Get("ETag")).do(t, "GET", "/api/openapi.json", http.NoBody, "")
		if again.StatusCode != 304 ||
			again.text != "" ||
			again.Header.Get("ETag") != a.Header.Get("ETag") ||
			again.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%d %v", again.StatusCode, again.Header)
		}
	}
	for range 5 {
		if a := c.do(t, "GET", "/docs", http.NoBody, ""); a.StatusCode != 200 {
			t.Errorf("/docs: %d", a.StatusCode)
		}
	}
}
