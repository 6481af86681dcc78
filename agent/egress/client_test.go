package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPrivateAddressIsNeverReached(t *testing.T) {
	var hits atomic.Int64
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	port := portOf(t, server)
	inside := fixed(map[string][]string{
		"inside.test": {"127.0.0.1"},
		"mapped.test": {"::ffff:127.0.0.1"},
		"six.test":    {"::1"},
		"nat64.test":  {"64:ff9b::7f00:1"},
	})
	c := client(t, Policy{Resolver: inside.resolver()})
	for _, host := range []string{
		"127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0", "inside.test", "mapped.test",
		"six.test", "nat64.test", "①②⑦.⓪.⓪.①",
	} {
		_, err := get(t, c.Do, "http://"+host+":"+port+"/", nil)
		if !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v, want ErrBlocked", host, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the server was reached %d times", n)
	}
}

func TestOpenedAddressIsReached(t *testing.T) {
	server := serveOn(t, openedIP, "0", text("hello"))
	for name, policy := range map[string]Policy{"Allow": {Allow: openedRange}, "AllowPrivate": {AllowPrivate: true}} {
		if body, err := get(t, client(t, policy).Do, server.URL, nil); body != "hello" || err != nil {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
}

// A name resolves to an allowed address when it is checked and to a blocked one when
// it is dialed.
func TestRebinding(t *testing.T) {
	opened, blockedHits := newServerPair(t, text("hello"))
	var answer atomic.Value
	answer.Store([]string{openedIP})
	c := client(t, Policy{Allow: openedRange, Resolver: names(func(host string) []string {
		if host != "rebind.test" {
			return nil
		}
		return answer.Load().([]string)
	}).resolver()})
	url := "http://rebind.test:" + portOf(t, opened) + "/?k=s3cret"
	if body, err := get(t, c.Do, url, nil); body != "hello" || err != nil {
		t.Fatalf("got %q, %v", body, err)
	}
	c.CloseIdleConnections()
	answer.Store([]string{blockedIP})
	_, err := get(t, c.Do, url, nil)
	var refused *Error
	if !errors.As(err, &refused) ||
		refused.Code != CodeBlocked ||
		refused.Host != "rebind.test" ||
		refused.Addr != netip.MustParseAddr(blockedIP) {
		t.Errorf("got error %#v", err)
	}
	if text := err.Error(); strings.Contains(text, blockedIP) || strings.Contains(text, "s3cret") {
		t.Errorf("the error reveals too much: %s", text)
	}
	if n := blockedHits.Load(); n != 0 {
		t.Errorf("the blocked server was reached %d times", n)
	}
}

func TestEachAddressOfANameIsChecked(t *testing.T) {
	opened, blockedHits := newServerPair(t, text("hello"))
	c := client(t, Policy{Allow: openedRange, Resolver: fixed(map[string][]string{
		"mixed.test":   {blockedIP, "::1", openedIP},
		"blocked.test": {blockedIP, "::1", "10.0.0.1"},
	}).resolver()})
	if body, err := get(t, c.Do, "http://mixed.test:"+portOf(t, opened), nil); body != "hello" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	if _, err := get(t, c.Do, "http://blocked.test:"+portOf(t, opened), nil); !errors.Is(err, ErrBlocked) {
		t.Errorf("%v, want ErrBlocked", err)
	}
	if _, err := get(t, c.Do, "http://nowhere.test", nil); err == nil || errors.Is(err, ErrBlocked) {
		t.Errorf("unknown name: %v", err)
	}
	if n := blockedHits.Load(); n != 0 {
		t.Errorf("the blocked server was reached %d times", n)
	}
}

func TestDialContext(t *testing.T) {
	opened, blockedHits := newServerPair(t, text("hello"))
	port := portOf(t, opened)
	c := client(t, Policy{
		Allow:    openedRange,
		Resolver: fixed(map[string][]string{"blocked.test": {blockedIP}, "opened.test": {openedIP}}).resolver(),
	})
	cases := []struct {
		network, address string
		err              error
	}{
		{"tcp", "127.0.0.1:" + port, nil},
		{"tcp4", "opened.test:" + port, nil},
		{"tcp", "127.0.0.2:" + port, ErrBlocked},
		{"tcp", "blocked.test:" + port, ErrBlocked},
		{"tcp", "0:" + port, ErrBlocked},
		{"tcp", "[fe80::1%lo]:" + port, ErrBlocked},
		{"tcp6", "[::1]:" + port, ErrBlocked},
		{"udp", "127.0.0.1:" + port, ErrBlocked},
		{"unix", "/var/run/docker.sock", ErrBlocked},
		{"ip4:icmp", "127.0.0.1", ErrBlocked},
		{"tcp", "127.0.0.1", ErrURL},
		{"tcp", ":" + port, ErrURL},
		{"tcp", "a b:" + port, ErrURL},
	}
	for _, tc := range cases {
		conn, err := c.DialContext(t.Context(), tc.network, tc.address)
		if conn != nil {
			conn.Close()
		}
		if !errors.Is(err, tc.err) {
			t.Errorf("%s %s: %v, want %v", tc.network, tc.address, err, tc.err)
		}
	}
	if n := blockedHits.Load(); n != 0 {
		t.Errorf("the blocked server was reached %d times", n)
	}
}

// net/http reads the environment once per process, so this test also checks the
// field.
func TestEnvironmentProxyIsIgnored(t *testing.T) {
	var hits atomic.Int64
	proxy := serveOn(t, openedIP, "0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	server := serveOn(t, openedIP, "0", text("direct"))
	c := client(t, Policy{
		Allow:    openedRange,
		Resolver: fixed(map[string][]string{"opened.test": {openedIP}}).resolver(),
	})
	body, err := get(t, c.Do, "http://opened.test:"+portOf(t, server), nil)
	if body != "direct" || err != nil || hits.Load() != 0 || c.transport.Proxy != nil {
		t.Errorf("%q, %v, proxy hits %d, proxy set %v", body, err, hits.Load(), c.transport.Proxy != nil)
	}
}

func TestNoCookiesAreKept(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		_, _ = io.WriteString(w, r.Header.Get("Cookie"))
	}))
	c := client(t, Policy{Allow: openedRange})
	for range 2 {
		if body, err := get(t, c.Do, server.URL, nil); body != "" || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
	}
}

// secureServer serves TLS and HTTP/2 with a certificate for example.com and
// 127.0.0.1; roots trusts it.
func secureServer(
	t *testing.T,
	config *tls.Config,
	handler http.Handler,
) (server *httptest.Server, roots *x509.CertPool) {
	t.Helper()
	server = httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.TLS = config
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, roots
}

func TestTLS(t *testing.T) {
	server, roots := secureServer(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	if body, err := get(
		t,
		client(t, Policy{Allow: openedRange, RootCAs: roots}).Do,
		server.URL,
		nil,
	); body != "HTTP/2.0" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := get(t, client(t, Policy{Allow: openedRange}).Do, server.URL, nil); !errors.As(err, &unknown) {
		t.Errorf("an untrusted certificate: %v", err)
	}
	var mismatch x509.HostnameError
	c := client(t, Policy{
		Allow:    openedRange,
		RootCAs:  roots,
		Resolver: fixed(map[string][]string{"other.test": {openedIP}}).resolver(),
	})
	if _, err := get(t, c.Do, "https://other.test:"+portOf(t, server), nil); !errors.As(err, &mismatch) {
		t.Errorf("another name's certificate: %v", err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	server, roots := secureServer(
		t,
		&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		text("old"),
	)
	body, err := get(t, client(t, Policy{Allow: openedRange, RootCAs: roots}).Do, server.URL, nil)
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %q, %v", body, err)
	}
}

// After status 101 there is a connection: both directions, no limit.
func TestSwitchingProtocols(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := stream.ReadString('\n')
		_, _ = io.WriteString(conn, line)
	}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := client(t, Policy{Allow: openedRange, MaxResponse: 1}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("%T cannot be written to", resp.Body)
	}
	if _, err := io.WriteString(stream, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stream).ReadString('\n'); line != "ping\n" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
}

// Twenty concurrent requests open twenty connections, of which eight are reused
// for the next eight requests.
func TestIdleConnectionsAreBounded(t *testing.T) {
	const calls = 20
	var opened atomic.Int64
	closed := make(chan struct{}, calls)
	var arrived sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, Policy{Allow: openedRange})
	concurrently := func(n int) {
		arrived.Add(n)
		var done sync.WaitGroup
		for range n {
			done.Go(func() {
				if _, err := get(t, c.Do, server.URL, nil); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	concurrently(calls)
	for range calls - maxIdlePerHost {
		waitFor(t, closed)
	}
	concurrently(maxIdlePerHost)
	if n := opened.Load(); n != calls {
		t.Errorf("%d connections, want %d", n, calls)
	}
	c.HTTP().CloseIdleConnections()
	for range maxIdlePerHost {
		waitFor(t, closed)
	}
}

// waitFor fails a test that would hang.
func waitFor(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case <-signal:
	case <-ctx.Done():
		t.Fatal("timed out waiting for the signal")
	}
}
