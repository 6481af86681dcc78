package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent/egress"
	"satchel/httpapi/prometheus"
	"satchel/httpapi/rest"
	"satchel/store/cluster"
)

// forwardAnswer is how long another server may take to begin its response. Its own time
// limits are much shorter.
const forwardAnswer = time.Hour

// forwarder forwards requests to other servers of the cluster.
type forwarder struct {
	directory  cluster.Directory
	hasSession func(id string) bool // whether a browser session is open here
	limiter    *rest.Limiter        // knows the address of a client
	streams    context.Context      // done when the server begins to stop
	timeout    time.Duration
	bodies     *bodies
	proxy      *httputil.ReverseProxy
	requests   *prometheus.CounterVec
}

// newForwarder returns the forwarder of a server in a cluster.
func (s *Server) newForwarder(directory cluster.Directory) *forwarder {
	f := &forwarder{
		directory: directory,
		limiter:   s.limiter,
		streams:   s.streams,
		timeout:   forwardTimeout,
		bodies:    newBodies(s.folder.Path(), s.memory),
		hasSession: func(id string) bool {
			return s.options.Browser.Find(id) != nil
		},
		requests: s.metrics.registry.CounterVec(
			"satchel_cluster_forwarded_total",
			"Requests forwarded to other servers of the cluster, by outcome.",
			"outcome",
		),
	}
	// The addresses of the cluster's servers are the operator's.
	client := egress.New(egress.Policy{
		AllowPrivate:  true,
		MaxResponse:   -1,
		Verbatim:      true,
		HeaderTimeout: forwardAnswer,
	})
	f.proxy = &httputil.ReverseProxy{
		Transport:      client.Transport(),
		FlushInterval:  -1,
		Rewrite:        f.rewrite,
		ModifyResponse: f.receive,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			hopOf(r).err = err
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.metrics.cluster(directory)
	return f
}

// hop is one attempt to forward a request.
type hop struct {
	to     *url.URL
	from   string // the address of the client, and where it connected to
	cancel context.CancelFunc
	stop   func() bool // keeps a stop of the server from canceling it; nil for requests that end on their own
	err    error
}

type hopKey struct{}

func hopOf(r *http.Request) *hop {
	return r.Context().Value(hopKey{}).(*hop)
}

// forward forwards a request to another server. An error means that no response was
// written.
func (f *forwarder) forward(c echo.Context, node cluster.Node) error {
	to, err := url.Parse(node.URL)
	if err != nil {
		return err
	}
	request, control := c.Request(), http.NewResponseController(c.Response())
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	h := &hop{
		to:     to,
		from:   f.limiter.Address(request).String() + ", " + localAddress(request),
		cancel: cancel,
	}
	// The deadlines of this connection are extended as bytes move; the other server
	// limits how long it waits.
	// a test's recorder has none
	_ = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
	out := request.WithContext(context.WithValue(ctx, hopKey{}, h))
	if request.ContentLength != 0 {
		out.Body = &deadlineBody{ReadCloser: request.Body, control: control}
	}
	defer func() {
		if h.stop != nil {
			h.stop()
		}
	}()
	// A server that was suspended or can no longer be reached never answers.
	defer context.AfterFunc(f.directory.Lifetime(node.Session), cancel)()
	w := &deadlineWriter{ResponseWriter: c.Response(), control: control}
	f.proxy.ServeHTTP(w, out)
	f.requests.Inc(outcomeOf(h.err))
	if c.Response().Committed || w.hijacked {
		return nil // a response that has begun cannot become an error
	}
	return h.err
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, errMoved):
		return "moved"
	}
	return "failed"
}

// rewrite prepares the request for the other server: the same request with the client's
// address, signed.
func (f *forwarder) rewrite(p *httputil.ProxyRequest) {
	h := hopOf(p.In)
	p.Out.URL.Scheme, p.Out.URL.Host = h.to.Scheme, h.to.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Host = p.In.Host
	p.Out.Header.Set(echo.HeaderXForwardedFor, h.from)
	f.directory.Sign(p.Out)
}

// receive checks the header of a response. Responses that never end by themselves are
// ended when this server begins to stop.
func (f *forwarder) receive(resp *http.Response) error {
	if resp.StatusCode == http.StatusMisdirectedRequest {
		return errMoved
	}
	if resp.StatusCode == http.StatusSwitchingProtocols ||
		strings.HasPrefix(resp.Header.Get(echo.HeaderContentType), "text/event-stream") {
		h := hopOf(resp.Request)
		h.stop = context.AfterFunc(f.streams, h.cancel)
	}
	return nil
}

// retriable reports whether a request that failed can be sent again: nothing was done,
// or it only reads.
func retriable(err error, r *http.Request) bool {
	return errors.Is(err, errMoved) ||
		egress.IsUnsent(err) ||
		r.Context().Err() == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// restoreClient makes a forwarded request appear to come from the original client.
func restoreClient(c echo.Context) {
	r := c.Request()
	client, local, _ := strings.Cut(r.Header.Get(echo.HeaderXForwardedFor), ", ")
	r.Header.Del(echo.HeaderXForwardedFor)
	r.RemoteAddr = net.JoinHostPort(client, "0")
	if addr, err := netip.ParseAddr(local); err == nil {
		at := net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 0))
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at)))
	}
}

// localAddress returns the address at which a client reached this server.
func localAddress(r *http.Request) string {
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return ""
}

// deadlineBody is a request body with a read deadline for each part instead of the whole.
type deadlineBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(rest.ReadTimeout)) // a test's recorder has none
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // as above
	}
	return n, err
}

// deadlineWriter writes a response with a write deadline for each part instead of the
// whole.
type deadlineWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	hijacked bool
}

// Hijack takes the connection over, for a WebSocket.
func (w *deadlineWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.control.Hijack()
	w.hijacked = err == nil
	return conn, buffered, err
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(rest.WriteTimeout)) // a test's recorder has none
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the features of the underlying writer.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
