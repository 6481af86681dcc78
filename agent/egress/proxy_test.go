package egress

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// newProxy starts a proxy with a policy for opened.test and blocked.test.
func newProxy(t testing.TB, o ProxyOptions) *Proxy {
	t.Helper()
	c := client(t, Policy{
		Allow:       openedRange,
		MaxResponse: -1,
		Resolver:    fixed(map[string][]string{"opened.test": {openedIP}, "blocked.test": {blockedIP}}).resolver(),
	})
	p, err := c.Proxy(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// proxyClient returns a client that uses a proxy.
func proxyClient(t testing.TB, p *Proxy, tlsTo *httptest.Server) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	if tlsTo != nil {
		transport = tlsTo.Client().Transport.(*http.Transport).Clone()
	}
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport.Proxy = http.ProxyURL(u)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func TestProxyKeepsToThePolicy(t *testing.T) {
	var refused atomic.Int64
	p := newProxy(t, ProxyOptions{Refused: func(*Error) { refused.Add(1) }})
	opened, blockedHits := newServerPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(ProxyFailureHeader, "made up")
		fmt.Fprint(w, r.Host, " ", r.Header.Get("X-Forwarded-For"), r.Header.Get("Proxy-Connection"))
	}))
	port := portOf(t, opened)
	c := proxyClient(t, p, nil)
	for _, tc := range []struct {
		host   string
		status int
	}{
		{"opened.test", 200}, {openedIP, 200}, {"blocked.test", 403}, {blockedIP, 403}, {"169.254.169.254", 403},
		{"localhost", 200}, {"[::1]", 403}, {"2130706433", 403}, {"0x7f.1", 403}, {"unknown.test", 502},
	} {
		resp, err := c.Get("http://" + tc.host + ":" + port + "/")
		if err != nil {
			t.Errorf("%s: %v", tc.host, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if tc.host == "localhost" {
			continue // the test's resolver does not know it, or only knows that it is allowed
		}
		want := map[int]string{200: "", 403: ProxyRefused, 502: ProxyFailed}[tc.status]
		if resp.StatusCode != tc.status || resp.Header.Get(ProxyFailureHeader) != want {
			t.Errorf("%s: %d %q %q", tc.host, resp.StatusCode, resp.Header.Get(ProxyFailureHeader), body)
		}
		if tc.status == 200 && string(body) != tc.host+":"+port+" " {
			t.Errorf("%s: the server received %q", tc.host, body)
		}
	}
	if blockedHits.Load() != 0 || refused.Load() < 5 {
		t.Errorf(
			"the blocked server was reached %d times, %d refusals were reported",
			blockedHits.Load(),
			refused.Load(),
		)
	}
}

func TestProxyTunnels(t *testing.T) {
	secure := httptest.NewTLSServer(text("sealed"))
	t.Cleanup(secure.Close)
	up := upstreamProxy(t)
	for name, o := range map[string]ProxyOptions{"direct": {}, "upstream": {Upstream: up.url}} {
		c := proxyClient(t, newProxy(t, o), secure)
		resp, err := c.Get(secure.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "sealed" {
			t.Errorf("%s: %q", name, body)
		}
		if _, err := c.Get("https://" + blockedIP + ":1/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: a blocked address: %v", name, err)
		}
	}
	if up.requests.Load() != 1 {
		t.Errorf("the upstream proxy received %d requests", up.requests.Load())
	}
	open := newProxy(t, ProxyOptions{Upstream: &url.URL{Scheme: "http", Host: blockedIP + ":1"}})
	if _, err := proxyClient(t, open, secure).Get(secure.URL); err == nil {
		t.Error("an upstream proxy at a blocked address was used")
	}
}

// upstream is a proxy that requires a password.
type upstream struct {
	url      *url.URL
	requests atomic.Int64
}

func upstreamProxy(t *testing.T) *upstream {
	u := &upstream{}
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect ||
			r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:secret")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		u.requests.Add(1)
		out, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		splice(in, in, out, out)
	}))
	u.url, _ = url.Parse(server.URL)
	u.url.User = url.UserPassword("ada", "secret")
	return u
}

// Close ends tunnels. A request that is not for a proxy gets no useful
// response.
func TestProxyClose(t *testing.T) {
	hold, err := net.Listen("tcp", openedIP+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hold.Close() })
	p := newProxy(t, ProxyOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", hold.Addr())
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("got %q, %v", line, err)
	}
	for _, path := range []string{"/", "http://"} {
		resp, err := http.Get(p.URL() + strings.TrimPrefix(path, "http://"))
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a request as to a server: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
	}
	p.Close()
	if _, err := io.Copy(io.Discard, answer); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the tunnel was not closed: %v", err)
	}
	blocked := newProxy(t, ProxyOptions{RefuseAll: true})
	if _, err := proxyClient(t, blocked, nil).Get("https://" + openedIP + ":1/"); err == nil {
		t.Error("a closed proxy forwards a request")
	}
}
