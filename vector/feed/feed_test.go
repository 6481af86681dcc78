package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTemplates(t *testing.T) {
	item := decode(t, `{"title":"{{secret}}","n":1.50,"tags":["a","b"],"none":null,"yes":true,"deep":{"x":[{"y":1}]}}`)
	for text, want := range map[string]string{
		"{{title}}": "{{secret}}", "a {{ n }} b": "a 1.50 b", "{{tags}}": "a, b",
		"{{none}}{{gone}}": "", "{{yes}}": "true", "{{deep}}": `{"x":[{"y":1}]}`, "{{deep.x[0].y}}": "1",
		"}} plain {": "}} plain {", "": "",
	} {
		parsed, err := ParseTemplate(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := parsed.Render(item); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	for _, bad := range []string{"{{", "{{a", "{{a..b}}", strings.Repeat("{{a}}", 1001)} {
		if _, err := ParseTemplate(bad); err == nil {
			t.Errorf("%.20q is accepted as a template", bad)
		}
	}
}

func TestRowsBecomeItems(t *testing.T) {
	columns, err := FindColumns(agent.DatabaseConfig{IDColumn: "id", TitleColumn: "name"}, []string{
		"id", "name", "notes", "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	item := columns.Item([]any{"c-1", "Ada\n Lovelace", " sums ", int64(7)})
	if item.ID != "c-1" || item.Title != "Ada Lovelace" || item.Text != "notes: sums\nn: 7\n" {
		t.Errorf("got %+v", item)
	}
	plain, _ := FindColumns(agent.DatabaseConfig{}, []string{"a"})
	one, same, other := plain.Item([]any{"x"}), plain.Item([]any{"x"}), plain.Item([]any{"y"})
	if one.ID != same.ID || one.ID == other.ID || !strings.HasPrefix(one.ID, "sha256:") {
		t.Errorf("ids %s %s %s", one.ID, same.ID, other.ID)
	}
	if long := columns.Item([]any{strings.Repeat("i", 300), nil, nil, nil}); len(long.ID) > maxID || long.Text != "" {
		t.Errorf("got %+v", long)
	}
}

// server is an API on a loopback socket.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	answer   func(w http.ResponseWriter, r *http.Request, n int) // n counts from 1
}

func newServer(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *server {
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		_, _ = fmt.Fprint(&body, readAll(r))
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.bodies = append(s.bodies, body.String())
		n := len(s.requests)
		s.mu.Unlock()
		s.answer(w, r, n)
	}))
	t.Cleanup(s.Close)
	return s
}

func readAll(r *http.Request) string {
	var b strings.Builder
	buf := make([]byte, 1024)
	for {
		n, err := r.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// newClient returns a client that records its waits instead of sleeping.
func newClient(waits *[]time.Duration) *Client {
	c := NewClient(agent.MustAddressRanges("127.0.0.0/8"), "test")
	c.sleep = func(ctx context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return ctx.Err()
	}
	return c
}

func configOf(url string, change func(*agent.APIConfig)) agent.APIConfig {
	d := agent.DefaultChunking
	c := agent.APIConfig{URL: url, ChunkSize: d.Size, Overlap: d.Overlap, ChunkMethod: d.Method}
	if change != nil {
		change(&c)
	}
	c.Fill()
	return c
}

func TestPages(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch q := r.URL.Query(); {
		case r.URL.Path == "/cursor" && q.Get("after") == "":
			fmt.Fprint(w, `{"list":[{"id":1}],"next":"abc="}`)
		case r.URL.Path == "/cursor":
			fmt.Fprintf(w, `{"list":[{"id":%q}],"next":null}`, q.Get("after"))
		case r.URL.Path == "/links":
			fmt.Fprint(w, `{"list":[{"id":1}],"next":"/links2?x=1"}`)
		case r.URL.Path == "/away":
			fmt.Fprint(w, `{"list":[],"next":"https://elsewhere.example/x"}`)
		default:
			fmt.Fprintf(w, `[{"id":%q,"name":"N"},7,"text"]`, q.Get("p")+q.Get("keep"))
		}
	})
	var waits []time.Duration
	c, ctx := newClient(&waits), t.Context()
	numbered := configOf(s.URL+"/?keep=k&p=5", func(c *agent.APIConfig) {
		c.IDPath, c.Pagination = "id", agent.Pagination{Type: "page", Param: "p"}
	})
	page, err := c.Page(ctx, numbered, nil, 2, "")
	if err != nil ||
		len(page.Items) != 3 ||
		page.Items[0].ID != "7k" ||
		page.Items[0].Title != "N" ||
		page.Items[0].Text != "id: 7k\nname: N\n" ||
		page.Items[1].Text != "7\n" {
		t.Errorf("got %+v, %v", page, err)
	}
	cursor := func(path, param string) agent.APIConfig {
		return configOf(s.URL+path, func(c *agent.APIConfig) {
			c.ItemsPath, c.IDPath, c.Pagination = "list", "id", agent.Pagination{
				Type:     "cursor",
				Param:    param,
				NextPath: "next",
			}
		})
	}
	if page, err = c.Page(ctx, cursor("/cursor", "after"), nil, 0, ""); err != nil || page.Next != "abc=" {
		t.Errorf("got %+v, %v", page, err)
	}
	if page, err = c.Page(ctx, cursor("/cursor", "after"), nil, 1, page.Next); err != nil ||
		page.Next != "" ||
		page.Items[0].ID != "abc=" {
		t.Errorf("got %+v, %v", page, err)
	}
	if page, err = c.Page(ctx, cursor("/links", ""), nil, 0, ""); err != nil || page.Next != "/links2?x=1" {
		t.Errorf("got %+v, %v", page, err)
	}
	if _, err = c.Page(ctx, cursor("/links", ""), nil, 1, page.Next); agent.ErrorCode(err) != CodeAnswer {
		t.Errorf("a response without the list: %v", err)
	}
	if last := s.requests[len(s.requests)-1].URL.String(); last != "/links2?x=1" {
		t.Errorf("the next page was requested as %s", last)
	}
	if _, err = c.Page(
		ctx,
		cursor("/away", ""),
		nil,
		1,
		"https://elsewhere.example/x",
	); agent.ErrorCode(err) != CodeLeft {
		t.Errorf("a page on another host: %v", err)
	}
}

func TestRequests(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, `{}`) })
	var waits []time.Duration
	c := newClient(&waits)
	for _, change := range []func(*agent.APIConfig){
		func(c *agent.APIConfig) { c.Auth = agent.APIAuth{Type: "basic", Username: "u", Password: "p"} },
		func(c *agent.APIConfig) { c.Auth = agent.APIAuth{Type: "header", Name: "X-Key", Value: "k"} },
		func(c *agent.APIConfig) {
			c.Method, c.Body, c.Headers = "post", json.RawMessage(`{"q":1}`), map[string]string{"user-agent": "mine"}
		},
		func(c *agent.APIConfig) { c.Method, c.Body = "POST", json.RawMessage(`"query { all }"`) },
	} {
		if page, err := c.Page(t.Context(), configOf(s.URL, change), nil, 0, ""); err != nil || len(page.Items) != 1 {
			t.Errorf("got %+v, %v", page, err)
		}
	}
	if u, p, _ := s.requests[0].BasicAuth(); u != "u" ||
		p != "p" ||
		s.requests[0].Header.Get("User-Agent") != "Satchel/test" {
		t.Errorf("basic: %v", s.requests[0].Header)
	}
	if s.requests[1].Header.Get("X-Key") != "k" {
		t.Errorf("header: %v", s.requests[1].Header)
	}
	if r := s.requests[2]; r.Method != "POST" ||
		s.bodies[2] != `{"q":1}` ||
		r.Header.Get("Content-Type") != "application/json" ||
		r.Header.Get("User-Agent") != "mine" {
		t.Errorf("body: %s %q %v", r.Method, s.bodies[2], r.Header)
	}
	if s.bodies[3] != "query { all }" {
		t.Errorf("body of text: %q", s.bodies[3])
	}
}

func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name     string
		answer   func(w http.ResponseWriter, r *http.Request, n int)
		requests int
		waits    []time.Duration
		code     agent.Code
	}{
		{"Retry-After", func(w http.ResponseWriter, _ *http.Request, n int) {
			if n < 3 {
				w.Header().Set("Retry-After", fmt.Sprint(n*30))
				w.WriteHeader(429)
			} else {
				fmt.Fprint(w, `[]`)
			}
		}, 3, []time.Duration{30 * time.Second, 60 * time.Second}, ""},
		{"long Retry-After", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(503)
		}, maxAttempts, []time.Duration{maxWait, maxWait, maxWait}, agent.CodeUpstream},
		{
			"no Retry-After",
			func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) },
			maxAttempts,
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
			agent.CodeUpstream,
		},
		{
			"not found",
			func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(404) },
			1,
			nil,
			agent.CodeUpstream,
		},
		{
			"not JSON",
			func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, "<html>") },
			1,
			nil,
			CodeAnswer,
		},
		{
			"two values",
			func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, "{} {}") },
			1,
			nil,
			CodeAnswer,
		},
		{"a number", func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, "5") }, 1, nil, CodeAnswer},
		{"truncated", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "[1")
		}, maxAttempts, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, agent.CodeUpstream},
		{"endless", func(w http.ResponseWriter, r *http.Request, _ int) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 64<<10)); err != nil {
					return
				}
			}
		}, 1, nil, "RESPONSE_TOO_LARGE"},
	} {
		s := newServer(t, tc.answer)
		var waits []time.Duration
		_, err := newClient(&waits).Page(t.Context(), configOf(s.URL, nil), nil, 0, "")
		if agent.ErrorCode(err) != tc.code || len(s.requests) != tc.requests || !slices.Equal(waits, tc.waits) {
			t.Errorf("%s: %v after %d requests and waits %v", tc.name, err, len(s.requests), waits)
		}
	}
}

// Redirects send no credentials to another host, and are not followed to a private one.
func TestRedirects(t *testing.T) {
	secret := func(c *agent.APIConfig) {
		c.Auth = agent.APIAuth{Type: "header", Name: "X-Plain", Value: "s3cret"}
		c.Headers = map[string]string{"X-Odd": "s3cret"}
	}
	away := newServer(t, func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, "[]") })
	other := strings.Replace(away.URL, "127.0.0.1", "localhost", 1)
	to := away.URL + "/a"
	s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path == "/here" {
			fmt.Fprint(w, "[]")
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	var waits []time.Duration
	c := newClient(&waits)
	if _, err := c.Page(t.Context(), configOf(s.URL, secret), nil, 0, ""); err != nil {
		t.Fatal(err)
	}
	if h := away.requests[0].Header; h.Get("X-Plain") != "" || h.Get("X-Odd") != "" {
		t.Errorf("another host received %v", h)
	}
	if _, err := c.Page(
		t.Context(),
		configOf(s.URL, func(c *agent.APIConfig) { c.Method, c.Body = "POST", json.RawMessage(`{"key":"s3cret"}`) }),
		nil,
		0,
		"",
	); agent.ErrorCode(err) != CodeLeft || len(away.requests) != 1 {
		t.Errorf("a body for another host: %v, %d requests", err, len(away.requests))
	}
	to = s.URL + "/here"
	if _, err := c.Page(t.Context(), configOf(s.URL, secret), nil, 0, ""); err != nil ||
		s.requests[len(s.requests)-1].Header.Get("X-Plain") != "s3cret" {
		t.Errorf("a redirect on the host: %v", err)
	}
	to = "http://10.0.0.1/"
	if _, err := c.Page(t.Context(), configOf(s.URL, secret), nil, 0, ""); agent.ErrorCode(err) != "BLOCKED_ADDRESS" {
		t.Errorf("a redirect to a private address: %v", err)
	}
	closed := NewClient(nil, "test")
	if _, err := closed.Page(t.Context(), configOf(other, nil), nil, 0, ""); agent.ErrorCode(err) != "BLOCKED_ADDRESS" {
		t.Errorf("a name of a private address: %v", err)
	}
	bad := configOf(away.URL, nil)
	if err := closed.Check(&bad); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a private address: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Page(ended, configOf(s.URL, nil), nil, 0, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "{{x}}", "{{a.b[0].c}} text", "{{", "\x00"} {
		f.Add(seed, `{"a":{"b":[{"c":1}]}}`)
	}
	f.Fuzz(func(t *testing.T, text, raw string) {
		var value any
		if json.Unmarshal([]byte(raw), &value) != nil {
			value = raw
		}
		if parsed, err := ParseTemplate(text); err == nil {
			parsed.Render(value)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`[]`,
		`{"data":[{"id":1,"title":"x"}],"next":"y"}`,
		`[[[[]]]]`, `{"data":5}`, `null`, `{"next":{}}`,
	} {
		f.Add([]byte(seed))
	}
	c := NewClient(nil, "test")
	p, err := c.plan(configOf("https://example.com", func(c *agent.APIConfig) {
		c.ItemsPath, c.IDPath, c.Pagination = "data", "id", agent.Pagination{Type: "cursor", NextPath: "next"}
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		page, err := p.read(body)
		if err != nil {
			return
		}
		for _, item := range page.Items {
			if item.ID == "" || len(item.ID) > maxID {
				t.Errorf("an item with the id %q", item.ID)
			}
		}
	})
}
