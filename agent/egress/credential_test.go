package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
)

func TestHostsOfCredentials(t *testing.T) {
	hosts, err := ParseHosts("hosts", []string{
		"api.example.com", "*.example.org", "example.net:8443", "http://10.0.0.5:8080", "[::1]:9000", "bücher.example",
	})
	if err != nil {
		t.Fatal(err)
	}
	for address, fits := range map[string]bool{
		"https://api.example.com/v1":           true,
		"https://API.example.com:443/":         true,
		"https://a.example.org/":               true,
		"https://a.b.example.org/":             true,
		"https://example.net:8443/":            true,
		"http://10.0.0.5:8080/x":               true,
		"https://[::1]:9000/":                  true,
		"https://xn--bcher-kva.example/":       true,
		"http://api.example.com/":              false,
		"https://api.example.com:444/":         false,
		"https://api.example.com.evil.com/":    false,
		"https://evilapi.example.com/":         false,
		"https://evil.com/api.example.com":     false,
		"https://evil.com#api.example.com":     false,
		"https://evil.com?api.example.com":     false,
		"https://api.example.com@evil.com/":    false,
		"https://user@api.example.com/":        false,
		"https://api.example.com./":            false,
		"https://example.org/":                 false,
		"https://notexample.org/":              false,
		"https://.example.org/":                false,
		"https://a.example.org.evil.com/":      false,
		"https://example.net/":                 false,
		"https://10.0.0.5:8080/":               false,
		"http://10.0.0.50:8080/":               false,
		"https://api%2eexample.com/":           false,
		"https://api.example.com%00.evil.com/": false,
		"https://ａｐｉ.example.com/":             true, // the same name once it is resolved
		"https://аpi.example.com/":             false,
		"ftp://api.example.com/":               false,
		"https://[::ffff:127.0.0.1]:9000/":     false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			u = nil
		}
		if got := hosts.Fit(u); got != fits {
			t.Errorf("%s: %v", address, got)
		}
	}
	for _, entry := range []string{
		"", "*", "*.com", "*.co.uk", "*.github.io", "*.s3.amazonaws.com", "*.localhost", "a.*.example.com",
		"*.*.example.com", "a/b", "https://a.example.com/x", "a@b.example", "a.example:0", "a.example:99999",
		"a.example:", "a b", "*.10.0.0.1", "ftp://a.example", "a.example?x", "a.example#x", "0x7f.1",
		"a..example", "a.example.",
	} {
		if _, err := ParseHosts("hosts", []string{entry}); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%q is accepted: %v", entry, err)
		}
	}
}

// badge is a credential that sets a header.
type badge struct {
	hosts  Hosts
	secret string
	query  bool
	renew  func() (bool, error)
}

func (b *badge) Fits(u *url.URL) bool { return b.hosts.Fit(u) }
func (b *badge) Apply(req *http.Request) error {
	if b.query {
		req.URL.RawQuery = "key=" + b.secret
		return nil
	}
	req.Header.Set("X-Badge", b.secret)
	return nil
}
func (b *badge) Renew(context.Context) (bool, error) {
	if b.renew == nil {
		return false, nil
	}
	return b.renew()
}
func (b *badge) Secrets() []string { return []string{b.secret} }

// recorder is a server that records the badges that it receives.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	received []string // badge of each request, by header or query
}

func newRecorder(t *testing.T, handle http.HandlerFunc) *recorder {
	s := &recorder{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.received = append(s.received, r.Header.Get("X-Badge")+r.URL.Query().Get("key"))
		s.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *recorder) badges() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.received, ",")
}

const badgeSecret = "sesame-open-4711"

func loopback() Policy { return Policy{Allow: agent.MustAddressRanges("127.0.0.0/8")} }

func withBadge(t *testing.T, b *badge, hosts ...string) context.Context {
	t.Helper()
	var err error
	if b.hosts, err = ParseHosts("hosts", hosts); err != nil {
		t.Fatal(err)
	}
	b.secret = badgeSecret
	return WithCredential(t.Context(), b)
}

func fetchWith(t *testing.T, ctx context.Context, c *Client, address string) (string, *http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), resp, nil
}

func TestCredentialOnRedirects(t *testing.T) {
	c := New(loopback())
	other := newRecorder(t, redirectTo)
	first := newRecorder(t, redirectTo)
	at := func(s *recorder) string { return s.URL }
	for name, tc := range map[string]struct {
		path         []string
		hosts        []string
		first, other string
	}{
		"to itself":             {[]string{at(first), at(first)}, []string{at(first)}, "B,B", ""},
		"to another host":       {[]string{at(first), at(other)}, []string{at(first)}, "B", "-"},
		"there and back":        {[]string{at(first), at(other), at(first)}, []string{at(first)}, "B,-", "-"},
		"to another of its own": {[]string{at(first), at(other)}, []string{at(first), at(other)}, "B", "B"},
	} {
		first.received, other.received = nil, nil
		ctx := withBadge(t, &badge{}, tc.hosts...)
		if _, _, err := fetchWith(t, ctx, c, redirectURL(tc.path[0], tc.path[1:]...)); err != nil {
			t.Fatal(name, err)
		}
		want := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "-", ""), "B", badgeSecret) }
		if first.badges() != want(tc.first) || other.badges() != want(tc.other) {
			t.Errorf("%s: the first host received %q, the other %q", name, first.badges(), other.badges())
		}
	}
}

func TestCredentialIsNotSentElsewhere(t *testing.T) {
	c := New(loopback())
	s := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {})
	ctx := withBadge(t, &badge{}, "api.example.com", "127.0.0.1")
	_, _, err := fetchWith(t, ctx, c, s.URL)
	if !errors.Is(err, &Error{Code: CodeCredentialHost}) || s.badges() != "" || len(s.received) != 0 {
		t.Errorf("another host: %v, it received %d requests", err, len(s.received))
	}
	// Behind a proxy, a Host header reaches the server that it names.
	ctx = withBadge(t, &badge{}, s.URL)
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	req.Host = "evil.example"
	if _, err := c.Do(req); !errors.Is(err, &Error{Code: CodeCredentialHost}) || len(s.received) != 0 {
		t.Errorf("another Host header: %v", err)
	}
	// Without https only to addresses that the operator allowed.
	public := New(Policy{Resolver: fixed(map[string][]string{"plain.example": {"93.184.215.14"}}).resolver()})
	ctx = withBadge(t, &badge{}, "http://plain.example")
	if _, _, err := fetchWith(
		t, ctx, public, "http://plain.example/",
	); !errors.Is(err, &Error{Code: CodeCredentialHost}) {
		t.Errorf("plain http: %v", err)
	}
}

func TestCredentialIsMaskedInResponses(t *testing.T) {
	c := New(loopback())
	s := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		w.Header().Set("X-Echo", key)
		for _, piece := range []string{"your key is ", key[:7], key[7:], " and again ", key, "; sesame-open"} {
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	})
	body, resp, err := fetchWith(t, withBadge(t, &badge{query: true}, s.URL), c, s.URL+"/x")
	if err != nil {
		t.Fatal(err)
	}
	if body != "your key is ******** and again ********; sesame-open" || resp.Header.Get("X-Echo") != agent.Mask {
		t.Errorf("%q, header %q", body, resp.Header.Get("X-Echo"))
	}
	if shown := resp.Request.URL.String(); strings.Contains(shown, badgeSecret) {
		t.Errorf("the response contains the URL %s", shown)
	}
}

func TestCredentialIsRenewedOnce(t *testing.T) {
	c := New(loopback())
	s := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Badge") != "renewed-token-1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write(raw)
	})
	for _, works := range []bool{true, false} {
		b := &badge{}
		ctx := withBadge(t, b, s.URL)
		calls := 0
		b.renew = func() (bool, error) {
			calls++
			if works {
				b.secret = "renewed-token-1"
			}
			return true, nil
		}
		req, _ := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("the body"))
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if (resp.StatusCode == 200) != works || calls != 1 || string(raw) != "the body" {
			t.Errorf("works %v: status %d after %d renewals, %q", works, resp.StatusCode, calls, raw)
		}
	}
}
