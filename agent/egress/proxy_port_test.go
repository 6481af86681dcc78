package egress

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func newProxyPort(t *testing.T) *ProxyPort {
	t.Helper()
	port, err := ListenProxies("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Close)
	return port
}

// throughPort returns a client that uses the proxy at a port with credentials.
func throughPort(t *testing.T, port *ProxyPort, user *url.Userinfo) *http.Client {
	t.Helper()
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: port.Addr().String(), User: user})}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A port serves each proxy only to clients with its credentials.
func TestProxyPortWantsCredentials(t *testing.T) {
	port := newProxyPort(t)
	first, second := newProxy(t, ProxyOptions{Port: port}), newProxy(t, ProxyOptions{Port: port})
	opened, hits := newServerPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/407" {
			w.WriteHeader(http.StatusProxyAuthRequired)
		}
		fmt.Fprint(w, "hello", r.Header.Get("Proxy-Authorization"))
	}))
	target := "http://opened.test:" + portOf(t, opened) + "/"
	user, password := first.Credentials()
	other, otherPassword := second.Credentials()
	if password == otherPassword || len(password) < 20 {
		t.Fatalf("passwords %q and %q", password, otherPassword)
	}
	for name, c := range map[string]struct {
		user *url.Userinfo
		want int
	}{
		"none":           {nil, 407},
		"wrong password": {url.UserPassword(user, "x"), 407},
		"wrong user":     {url.UserPassword("x", password), 407},
		"first":          {url.UserPassword(user, password), 200},
		"second":         {url.UserPassword(other, otherPassword), 200},
	} {
		resp, err := throughPort(t, port, c.user).Get(target)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want ||
			c.want == 200 && string(body) != "hello" ||
			c.want == 407 && resp.Header.Get("Proxy-Authenticate") == "" {
			t.Errorf("%s: %d %q", name, resp.StatusCode, body)
		}
	}
	c := throughPort(t, port, url.UserPassword(user, password))
	if resp, err := c.Get(ProxyCheckURL); err != nil || resp.StatusCode != 200 {
		t.Errorf("the check: %v, %v", resp, err)
	}
	if resp, err := c.Get("http://blocked.test:" + portOf(t, opened) + "/"); err != nil ||
		resp.StatusCode != 403 ||
		hits.Load() != 0 {
		t.Errorf("an address that the policy blocks: %v, %v, %d hits", resp, err, hits.Load())
	}
	if resp, err := c.Get("http://opened.test:" + portOf(t, opened) + "/407"); err != nil || resp.StatusCode != 502 {
		t.Errorf("a server that requests the proxy's credentials: %v, %v", resp, err)
	}
	first.Close()
	if resp, err := c.Get(target); err != nil || resp.StatusCode != 407 {
		t.Errorf("after the proxy was closed: %v, %v", resp, err)
	}
}

// Without credentials no tunnel is opened, and an open tunnel ends with its proxy.
func TestProxyPortTunnels(t *testing.T) {
	port := newProxyPort(t)
	p := newProxy(t, ProxyOptions{Port: port})
	started := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
	}))
	var err error
	if server.Listener, err = net.Listen("tcp", net.JoinHostPort(openedIP, "0")); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	target := "https://" + server.Listener.Addr().String() + "/"
	get := func(user *url.Userinfo) (*http.Response, error) {
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: port.Addr().String(), User: user})
		t.Cleanup(transport.CloseIdleConnections)
		return (&http.Client{Transport: transport}).Get(target)
	}
	if _, err := get(nil); err == nil || !strings.Contains(err.Error(), "Proxy Authentication Required") {
		t.Fatalf("without credentials: %v", err)
	}
	resp, err := get(url.UserPassword(p.Credentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-started
	p.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the tunnel ended as if complete: %q", body)
	}
}

// A plain request in progress also ends with its proxy.
func TestProxyPortEndsRequests(t *testing.T) {
	port := newProxyPort(t)
	p := newProxy(t, ProxyOptions{Port: port})
	started := make(chan struct{})
	opened, _ := newServerPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
	}))
	resp, err := throughPort(t, port, url.UserPassword(p.Credentials())).Get(
		"http://opened.test:" + portOf(t, opened) + "/",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-started
	p.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the response ended as if complete")
	}
}
