package egress

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ProxyCheckURL is a URL that every Proxy at a ProxyPort answers with status 200,
// whatever its policy.
const ProxyCheckURL = "http://" + proxyCheckHost + "/"

const proxyCheckHost = "proxy-check.invalid"

// proxyUser is the user name in the credentials of every Proxy.
const proxyUser = "session"

// ProxyPort is a port at which programs on other machines reach Proxies. A request
// reaches the Proxy whose credentials it carries (RFC 9110, 11.7); any other is
// answered with 407.
type ProxyPort struct {
	*Server

	mu      sync.Mutex
	proxies map[[sha256.Size]byte]*Proxy // by the hash of the value of Proxy-Authorization
}

// ListenProxies listens on an address, host:port, for the Proxies made with it.
func ListenProxies(address string) (p *ProxyPort, err error) {
	p = &ProxyPort{proxies: map[[sha256.Size]byte]*Proxy{}}
	p.Server, err = Serve(address, &http.Server{
		Handler:           p,
		ReadHeaderTimeout: tunnelHandshake,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxProxyHeader,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	})
	return p, err
}

type connKey struct{}

// add gives a proxy random credentials under which it is reached.
func (p *ProxyPort) add(proxy *Proxy) {
	proxy.password = rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxies[proxy.key()] = proxy
}

func (p *ProxyPort) remove(proxy *Proxy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.proxies, proxy.key())
}

// find returns the proxy whose credentials a request carries, or nil.
func (p *ProxyPort) find(r *http.Request) *Proxy {
	scheme, value, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proxies[sha256.Sum256([]byte(value))]
}

// ServeHTTP passes a request to the proxy whose credentials it carries.
func (p *ProxyPort) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	proxy := p.find(request)
	if proxy == nil {
		response.Header().Set("Proxy-Authenticate", `Basic realm="satchel"`)
		http.Error(response, http.StatusText(http.StatusProxyAuthRequired), http.StatusProxyAuthRequired)
		return
	}
	// The connection is closed with the proxy, which has no server of its own.
	conn, ok := request.Context().Value(connKey{}).(net.Conn)
	if !ok || !proxy.track(conn) {
		http.Error(response, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer proxy.untrack(conn)
	if request.URL.Host == proxyCheckHost {
		response.WriteHeader(http.StatusOK)
		return
	}
	request.Header.Del("Proxy-Authorization")
	proxy.ServeHTTP(response, request)
}

// Credentials returns the user name and password of a proxy at a ProxyPort.
// They are empty for a proxy with its own loopback port.
func (p *Proxy) Credentials() (user, password string) {
	if p.password == "" {
		return "", ""
	}
	return proxyUser, p.password
}

// key returns the proxy's key in a ProxyPort.
func (p *Proxy) key() [sha256.Size]byte {
	return sha256.Sum256([]byte(base64.StdEncoding.EncodeToString([]byte(proxyUser + ":" + p.password))))
}
