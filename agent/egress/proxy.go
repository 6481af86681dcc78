package egress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Limits of a Proxy.
const (
	maxTunnels      = 512
	maxProxyHeader  = 256 << 10 // a browser's cookies
	tunnelHandshake = 30 * time.Second
)

// ProxyFailureHeader is set on responses that a Proxy sends instead of the
// server's: ProxyRefused if the URL was refused, ProxyFailed for any other
// failure. Servers cannot send it through the proxy.
const (
	ProxyFailureHeader = "X-Satchel-Proxy"
	ProxyRefused       = "refused"
	ProxyFailed        = "failed"
)

// ProxyOptions configure a Proxy.
type ProxyOptions struct {
	// Upstream is an HTTP proxy to use, with user information if it requires
	// authentication; nil connects directly. The policy applies to its own
	// address. It then resolves host names, so the policy applies only to hosts
	// written as addresses.
	Upstream *url.URL
	// Port is where the proxy is reached, with its own credentials; nil means a
	// loopback port without credentials.
	Port *ProxyPort
	// RefuseAll refuses everything.
	RefuseAll bool
	// Refused is called for each connection that was not made because of its
	// destination. It must not block.
	Refused func(*Error)
}

// Proxy is an HTTP proxy, on a loopback port or at a ProxyPort, for a program that
// opens its own connections, such as a browser: all its traffic goes through the
// Client. It forwards requests (RFC 9110, 7.6) and opens tunnels with CONNECT
// (9.3.6).
type Proxy struct {
	client   *Client
	options  ProxyOptions
	forward  *httputil.ReverseProxy
	password string // at a ProxyPort; then it has no server
	server   *Server

	mu      sync.Mutex
	closed  bool
	tunnels map[net.Conn]struct{}
	running sync.WaitGroup
}

// Proxy starts a proxy that enforces c's policy. Close stops it.
func (c *Client) Proxy(options ProxyOptions) (*Proxy, error) {
	if options.Refused == nil {
		options.Refused = func(*Error) {}
	}
	direct := *c
	direct.policy.Verbatim = true
	direct.transport = c.transport.Clone()
	direct.transport.DisableCompression = true // bodies are forwarded unchanged
	direct.transport.MaxResponseHeaderBytes = maxProxyHeader
	if options.Upstream != nil {
		direct.transport.Proxy = http.ProxyURL(options.Upstream)
	}
	proxy := &Proxy{
		client:  &direct,
		options: options,
		tunnels: map[net.Conn]struct{}{},
	}
	quiet := log.New(io.Discard, "", 0)
	proxy.forward = &httputil.ReverseProxy{
		Rewrite:        func(*httputil.ProxyRequest) {},
		Transport:      guard{&direct},
		FlushInterval:  -1,
		ModifyResponse: rejectProxyAuth,
		ErrorLog:       quiet,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			proxy.fail(w, err)
		},
	}
	if options.Port != nil {
		options.Port.add(proxy)
		return proxy, nil
	}
	var err error
	proxy.server, err = Serve("127.0.0.1:0", &http.Server{
		Handler:           proxy,
		ReadHeaderTimeout: tunnelHandshake,
		MaxHeaderBytes:    maxProxyHeader,
	})
	return proxy, err
}

// URL returns the proxy's URL, such as http://127.0.0.1:port.
func (p *Proxy) URL() string {
	if p.server == nil {
		return "http://" + p.options.Port.Addr().String()
	}
	return "http://" + p.server.Addr().String()
}

// Close closes every connection and waits until all are done.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for conn := range p.tunnels {
		conn.Close()
	}
	p.mu.Unlock()
	if p.server == nil {
		p.options.Port.remove(p)
	} else {
		p.server.Close()
	}
	p.running.Wait()
	p.client.CloseIdleConnections()
}

// ServeHTTP handles one request of the program.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.options.RefuseAll:
		http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Host == "": // not a proxy request: something found the port
		http.Error(w, "this is a proxy", http.StatusBadRequest)
	case r.Header.Get("Upgrade") != "": // a browser opens a tunnel for that
		http.Error(w, "use CONNECT", http.StatusNotImplemented)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// rejectProxyAuth prevents a server from imitating the proxy's responses: a
// browser that is asked for credentials again assumes that those it has are
// wrong.
func rejectProxyAuth(r *http.Response) error {
	r.Header.Del(ProxyFailureHeader)
	if r.StatusCode == http.StatusProxyAuthRequired {
		return errors.New("it answers with status 407")
	}
	return nil
}

// fail answers a request that was not forwarded, without revealing details.
func (p *Proxy) fail(w http.ResponseWriter, err error) {
	status, why := http.StatusBadGateway, ProxyFailed
	var refused *Error
	if errors.As(err, &refused) && refused.Refused() {
		p.options.Refused(refused)
		status, why = http.StatusForbidden, ProxyRefused
	}
	w.Header().Set(ProxyFailureHeader, why)
	http.Error(w, http.StatusText(status), status)
}

// connect opens a tunnel and keeps it until either side closes it.
func (p *Proxy) connect(response http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), tunnelHandshake)
	defer cancel()
	out, rest, err := p.dial(ctx, request.Host)
	if err != nil {
		p.fail(response, err)
		return
	}
	defer out.Close()
	if !p.track(out) {
		http.Error(response, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer p.untrack(out)
	in, buffered, err := http.NewResponseController(response).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if !p.track(in) {
		return
	}
	defer p.untrack(in)
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	splice(in, buffered.Reader, out, rest)
}

// track registers a connection for Close. It returns false if there are too
// many, or the proxy is closing.
func (p *Proxy) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.tunnels) >= 2*maxTunnels {
		return false
	}
	p.tunnels[conn] = struct{}{}
	p.running.Add(1)
	return true
}

func (p *Proxy) untrack(conn net.Conn) {
	p.mu.Lock()
	delete(p.tunnels, conn)
	p.mu.Unlock()
	p.running.Done()
}

// dial connects to host:port, through the upstream proxy if there is one. rest
// reads what has already arrived from the other side, and then the remainder.
func (p *Proxy) dial(ctx context.Context, address string) (conn net.Conn, rest io.Reader, err error) {
	up := p.options.Upstream
	if up == nil {
		conn, err = p.client.DialContext(ctx, "tcp", address)
		return conn, conn, err
	}
	host, port, err := splitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	if _, err := p.client.policy.checkHost(host, port); err != nil {
		return nil, nil, err
	}
	conn, err = p.client.DialContext(ctx, "tcp", withPort(up))
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	header := http.Header{}
	if up.User != nil {
		password, _ := up.User.Password()
		header.Set(
			"Proxy-Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(up.User.Username()+":"+password)),
		)
	}
	ask := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: header,
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxHeader))
	if err = ask.Write(conn); err == nil {
		var answer *http.Response
		if answer, err = http.ReadResponse(reader, ask); err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New("the upstream proxy answered " + answer.Status)
		}
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	early, _ := reader.Peek(reader.Buffered())
	return conn, io.MultiReader(bytes.NewReader(early), conn), nil
}

// withPort returns the address of a proxy. The default port is 80.
func withPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// splice copies in both directions until both sides are done or one fails.
func splice(a net.Conn, fromA io.Reader, b net.Conn, fromB io.Reader) {
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn, r io.Reader) {
		_, err := io.Copy(to, r)
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			to.Close()
			from.Close()
		}
	}
	both.Go(func() { copyTo(b, a, fromA) })
	both.Go(func() { copyTo(a, b, fromB) })
	both.Wait()
}
