package egress

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// redirectTo redirects to the query's "to" with status 302.
func redirectTo(w http.ResponseWriter, r *http.Request) {
	if to := r.URL.Query().Get("to"); to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return
	}
	var seen []string
	for name := range r.Header {
		seen = append(seen, name)
	}
	slices.Sort(seen)
	_, _ = io.WriteString(w, strings.Join(seen, " "))
}

// redirectURL returns a URL on base that redirects through the hops in turn.
func redirectURL(base string, hops ...string) string {
	if len(hops) == 0 {
		return base
	}
	return base + "?to=" + url.QueryEscape(redirectURL(hops[0], hops[1:]...))
}

func TestRedirectsMeetTheSameChecks(t *testing.T) {
	opened, blockedHits := newServerPair(t, http.HandlerFunc(redirectTo))
	port := portOf(t, opened)
	c := client(t, Policy{
		Allow:    openedRange,
		Resolver: fixed(map[string][]string{"blocked.test": {blockedIP}, "opened.test": {openedIP}}).resolver(),
	})
	cases := []struct {
		to  string
		err error
	}{
		{"http://opened.test:" + port + "/", nil},
		{"/relative", nil},
		{"http://127.0.0.2:" + port + "/", ErrBlocked},
		{"http://blocked.test:" + port + "/", ErrBlocked},
		{"//blocked.test:" + port + "/", ErrBlocked},
		{"http://[::ffff:127.0.0.2]:" + port + "/", ErrBlocked},
		{"http://2130706434:" + port + "/", ErrBlocked},
		{"http://169.254.169.254/latest/meta-data/", ErrBlocked},
		{"file:///etc/passwd", ErrScheme},
		{"gopher://127.0.0.1:" + port + "/", ErrScheme},
		{"ftp://127.0.0.1:" + port + "/", ErrScheme},
		{"http://user:hunter2@127.0.0.1:" + port + "/", ErrURL},
		{"http:///", ErrURL},
	}
	for _, tc := range cases {
		_, err := get(t, c.Do, redirectURL(opened.URL, "http://opened.test:"+port, tc.to), nil)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.to, err, tc.err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains the password: %v", tc.to, err)
		}
	}
	if n := blockedHits.Load(); n != 0 {
		t.Errorf("the blocked server was reached %d times", n)
	}
}

func TestRedirectCount(t *testing.T) {
	var hits atomic.Int64
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		left, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if left == 0 {
			_, _ = io.WriteString(w, "end")
			return
		}
		http.Redirect(w, r, "/"+strconv.Itoa(left-1), http.StatusFound)
	}))
	c := client(t, Policy{Allow: openedRange})
	library := &http.Client{
		Transport:     c.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
	}
	for name, do := range map[string]func(*http.Request) (*http.Response, error){
		"Do":                     c.Do,
		"HTTP":                   c.HTTP().Do,
		"a library's own client": library.Do,
	} {
		if body, err := get(t, do, server.URL+"/5", nil); body != "end" || err != nil {
			t.Errorf("%s, five: %q, %v", name, body, err)
		}
		hits.Store(0)
		if _, err := get(t, do, server.URL+"/1000", nil); !errors.Is(err, ErrRedirects) {
			t.Errorf("%s, many: %v, want ErrRedirects", name, err)
		}
		if n := hits.Load(); n != MaxRedirects+1 {
			t.Errorf("%s: %d requests, want %d", name, n, MaxRedirects+1)
		}
	}
}

// A caller may handle redirects itself.
func TestRedirectsMayBeLeftToTheCaller(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(redirectTo))
	mine := client(t, Policy{Allow: openedRange}).HTTP()
	mine.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := mine.Get(redirectURL(server.URL, "/next"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestCredentialsStayOnTheirHosts(t *testing.T) {
	plain := serveOn(t, openedIP, "0", http.HandlerFunc(redirectTo))
	other := serveOn(t, openedIP, "0", http.HandlerFunc(redirectTo))
	secure, roots := secureServer(t, nil, http.HandlerFunc(redirectTo))
	c := client(t, Policy{Allow: openedRange, RootCAs: roots, Resolver: fixed(map[string][]string{
		"a.test":      {openedIP},
		"b.test":      {openedIP},
		"sub.a.test":  {openedIP},
		"example.com": {openedIP},
	}).resolver()})
	a, b, sub :=
		"http://a.test:"+portOf(t, plain), "http://b.test:"+portOf(t, plain), "http://sub.a.test:"+portOf(t, plain)
	otherPort, tls := "http://a.test:"+portOf(t, other), "https://example.com:"+portOf(t, secure)
	downgraded := "http://example.com:" + portOf(t, plain)
	cases := []struct {
		name string
		url  string
		keep bool
	}{
		{"no redirect", a, true},
		{"same host", redirectURL(a, "/next"), true},
		{"same host, twice, by TLS", redirectURL(tls, tls, tls), true},
		{"other host", redirectURL(a, b), false},
		{"same host, then another", redirectURL(a, a, b), false},
		{"other host twice", redirectURL(a, b, b), false},
		{"other host and back", redirectURL(a, b, a), false},
		{"subdomain", redirectURL(a, sub), false},
		{"other port", redirectURL(a, otherPort), false},
		{"https to http", redirectURL(tls, downgraded), false},
		{"https to http and back", redirectURL(tls, downgraded, tls), false},
	}
	secrets := []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "X-Api-Key", "Api-Key", "Apikey",
		"X-Auth-Token", "Private-Token", "X-Shopify-Access-Token", "X-Client-Secret", "X-Webhook-Secret",
		"X-Hub-Signature-256", "Mcp-Session-Id", "X-Password", "X-Amz-Security-Token", "X-Acme",
	}
	header := http.Header{"Accept": {"text/plain"}, "Accept-Language": {"en"}}
	for _, name := range secrets {
		header[name] = []string{"s3cret"}
	}
	for _, tc := range cases {
		body, err := get(t, c.Do, tc.url, header)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		seen := strings.Fields(body)
		for _, name := range secrets {
			if slices.Contains(seen, name) != tc.keep {
				t.Errorf("%s: %s kept %v, want %v", tc.name, name, !tc.keep, tc.keep)
			}
		}
		if !slices.Contains(seen, "Accept-Language") || !slices.Contains(seen, "Accept") {
			t.Errorf("%s: plain headers are lost: %s", tc.name, body)
		}
		if !tc.keep && slices.Contains(seen, "Referer") {
			t.Errorf("%s: the Referer was sent", tc.name)
		}
	}
	if header.Get("Authorization") == "" {
		t.Error("the caller's own header was changed")
	}
}

func TestUsualUpgradeKeepsCredentials(t *testing.T) {
	cases := []struct {
		from, to string
		same     bool
	}{
		{"http://a.test/", "https://a.test/", true},
		{"http://a.test:80/", "https://a.test:443/x", true},
		{"http://a.test/", "http://A.TEST/", true},
		{"http://a.test:8080/", "https://a.test/", false},
		{"http://a.test/", "https://a.test:8443/", false},
		{"http://a.test/", "https://b.test/", false},
		{"https://a.test/", "http://a.test/", false},
		{"https://a.test:443/", "https://a.test/", true},
		{"https://a.test/", "https://a.test./", false},
	}
	for _, tc := range cases {
		from, _ := url.Parse(tc.from)
		to, _ := url.Parse(tc.to)
		if got := sameParty(from, to); got != tc.same {
			t.Errorf("%s to %s: %v", tc.from, tc.to, got)
		}
	}
}

// signingTransport sets a token on each request, as OAuth libraries do. It must be
// sent only in the first hop.
type signingTransport struct{ next http.RoundTripper }

func (s signingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer s3cret")
	return s.next.RoundTrip(req)
}

func TestTransportsAboveCannotLeak(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(redirectTo))
	c := client(t, Policy{Allow: openedRange, Resolver: fixed(map[string][]string{"b.test": {openedIP}}).resolver()})
	library := &http.Client{Transport: signingTransport{c.Transport()}}
	b := "http://b.test:" + portOf(t, server)
	if body, err := get(t, library.Do, server.URL, nil); !strings.Contains(body, "Authorization") || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	if body, err := get(t, library.Do, redirectURL(server.URL, b), nil); strings.Contains(body, "Authorization") ||
		err != nil {
		t.Errorf("got %q, %v", body, err)
	}
}

// closeRecorder records that a request's body was closed.
type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error {
	c.closed = true
	return nil
}

func TestRefusedRequests(t *testing.T) {
	c := client(t, Policy{})
	body := &closeRecorder{Reader: strings.NewReader("x")}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://10.0.0.1/?k=s3cret", body)
	_, err := c.Do(req)
	if !errors.Is(err, ErrBlocked) ||
		strings.Contains(err.Error(), "s3cret") ||
		!strings.Contains(err.Error(), "k=***") {
		t.Errorf("got error %v", err)
	}
	if !body.closed {
		t.Error("the request body was not closed")
	}
	if _, err := c.Transport().RoundTrip(&http.Request{Method: http.MethodGet}); !errors.Is(err, ErrURL) {
		t.Errorf("no URL: %v", err)
	}
}

// TestBodiesFollowRedirects: 307 and 308 repeat the request with its body at the
// new address, as in net/http and curl; another host gets no header that may be a
// secret.
func TestBodiesFollowRedirects(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, status)
				return
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Method+" "+string(body)+" "+r.Header.Get("Content-Type"))
			for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Acme", "Idempotency-Key"} {
				_, _ = io.WriteString(w, " "+r.Header.Get(name))
			}
		}))
		c := client(t, Policy{
			Allow:    openedRange,
			Verbatim: true,
			Resolver: fixed(map[string][]string{"b.test": {openedIP}}).resolver(),
		})
		for to, want := range map[string]string{
			"http://b.test:" + portOf(t, server) + "/": "PUT text text/plain     ",
			server.URL +
				"/next": "PUT text text/plain Authorization Cookie X-Api-Key X-Acme Idempotency-Key",
		} {
			req, err := http.NewRequestWithContext(
				t.Context(),
				http.MethodPut,
				redirectURL(server.URL, to),
				strings.NewReader("text"),
			)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "text/plain")
			for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Acme", "Idempotency-Key"} {
				req.Header.Set(name, name)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if resp.Body.Close() != nil || err != nil || string(got) != want {
				t.Errorf("%d to %s: %q, %v", status, to, got, err)
			}
		}
	}
}
