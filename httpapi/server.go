package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/browse"
	agentchat "satchel/agent/chat"
	"satchel/agent/credentials"
	"satchel/agent/mcp"
	"satchel/agent/mcp/registry"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/gateways"
	"satchel/gateways/subscription"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/schedule"
	"satchel/store"
	"satchel/store/cluster"
	"satchel/store/replica"
	"satchel/vector"
)

// Parts are the parts of the program that the routes use.
type Parts struct {
	Folder      *store.Folder
	Index       *vector.Index
	Crawler     *crawl.Crawler
	Flow        *flow.Engine
	Webhooks    *subscription.Subscriptions
	Scheduler   *schedule.Scheduler
	Chat        *agentchat.Chat
	Gateways    *gateways.Gateways
	Toolbox     *agentchat.Toolbox
	APIs        *apis.APIs
	MCP         *registry.Registry
	Catalogue   *mcp.Catalogue // nil if it is off
	Credentials *credentials.Credentials
	Browser     *browser.Browser
	Navigator   *browse.Navigator // carries out instructions in browser sessions
	Live        *live.Live
	Replicas    *replica.Replicator // nil if none are kept
	Cluster     cluster.Directory   // nil if the server is not in a cluster
}

// Options configure the server.
type Options struct {
	Parts
	Verifier       *auth.Verifier // nil if there is no identity proxy
	NoAuth         bool           // no access control, regardless of other settings
	DefaultRole    agent.Role     // of callers without an identity, see auth.Options
	DefaultRoleSet bool
	RateLimits     map[string]int // requests per minute by class; nil for no limits
	TrustedProxies []netip.Prefix
	CORSOrigins    []string
	CORSConfigured bool   // CORSOrigins was set by the operator
	PublicURL      string // without a trailing slash
	MaxUpload      int64  // bytes of a file
	Version        string
	Log            *slog.Logger
}

// Server serves the API and the console on one listener.
type Server struct {
	options Options
	folder  *store.Folder
	index   *vector.Index
	flow    *flow.Engine
	streams context.Context // done when the server begins to stop
	// of all connections; done when a stopping server cuts the requests that still run
	requests   context.Context
	cut        context.CancelCauseFunc // ends requests
	chat       *agentchat.Chat
	toolbox    *agentchat.Toolbox
	policy     *auth.Policy
	limiter    *rest.Limiter
	memory     *rest.Memory // for request bodies
	log        *slog.Logger
	echo       *echo.Echo
	http       *http.Server
	routes     map[routeKey]*rest.Route
	posts      map[routeKey]int64 // the largest bodies of routes outside the API
	table      []*rest.Route
	metrics    *metrics
	describe   func() (rest.Packed, error)
	sockets    sockets
	feeds      changeFeeds
	pingEvery  time.Duration
	guardEvery time.Duration
	cutAfter   time.Duration // cutTimeout
	gateways   gatewayCache
	runs       runs
	forwarder  *forwarder // nil if the server is not in a cluster
	names      sync.Map   // names of people that their entries have, by adminEntry

	mu     sync.Mutex
	served chan struct{}
}

// routeKey is the method and echo's path of a route.
type routeKey struct{ method, path string }

// Connection limits in addition to rest.ReadTimeout and rest.WriteTimeout.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	drainTimeout   = 8 * time.Second
	cutTimeout     = 6 * time.Second // requests that still run are cut, and have the rest of drainTimeout to say so
)

// New returns a server that does nothing until Start.
func New(options Options) *Server {
	server := &Server{
		options:    options,
		folder:     options.Folder,
		index:      options.Index,
		flow:       options.Flow,
		chat:       options.Chat,
		toolbox:    options.Toolbox,
		policy:     options.policy(),
		limiter:    rest.NewLimiter(options.RateLimits, options.TrustedProxies, time.Now),
		log:        options.Log,
		echo:       echo.New(),
		routes:     map[routeKey]*rest.Route{},
		pingEvery:  pingEvery,
		guardEvery: rest.GuardInterval,
		cutAfter:   cutTimeout,
		memory:     rest.NewMemory(rest.BodyMemory, rest.BodyPatience),
		posts:      map[routeKey]int64{},
	}
	if server.log == nil {
		server.log = slog.Default()
	}
	server.feeds = changeFeeds{
		server:  server,
		feeds:   map[*store.DB]*changeFeed{},
		streams: map[string]int{},
	}
	server.folder.OnPending(server.feeds.agentChanged)
	server.metrics = newMetrics(server.folder)
	if options.Replicas != nil {
		server.metrics.replication(options.Replicas)
	}
	server.describe = sync.OnceValues(func() (rest.Packed, error) {
		document, err := server.description().Describe()
		return rest.Pack(echo.MIMEApplicationJSON, document), err
	})
	server.echo.HTTPErrorHandler = server.handleError
	var endStreams context.CancelFunc
	server.streams, endStreams = context.WithCancel(context.Background())
	server.requests, server.cut = context.WithCancelCause(context.Background())
	if options.Cluster != nil {
		server.forwarder = server.newForwarder(options.Cluster)
	}
	server.echo.Use(lingerAfterResponse, server.forwardRequest, server.admitRequest)
	server.table = server.api()
	for _, r := range server.table {
		path, handler := r.EchoPath(), server.serve(r)
		server.echo.Add(r.Method, path, handler)
		if r.AnswersHead() {
			server.echo.HEAD(path, handler)
		}
		server.routes[routeKey{r.Method, path}] = r
	}
	server.mcpEndpoints()
	server.socketEndpoints()
	server.pages()
	server.http = &http.Server{
		Handler:           server.echo,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       rest.ReadTimeout,
		WriteTimeout:      rest.WriteTimeout,
		BaseContext:       func(net.Listener) context.Context { return server.requests },
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(server.log.Handler(), slog.LevelDebug),
	}
	server.http.RegisterOnShutdown(endStreams)
	return server
}

// policy returns the access policy.
func (o *Options) policy() *auth.Policy {
	return auth.New(auth.Options{
		Folder:         o.Folder,
		Verifier:       o.Verifier,
		NoAuth:         o.NoAuth,
		DefaultRole:    o.DefaultRole,
		DefaultRoleSet: o.DefaultRoleSet,
		CORSOrigins:    o.CORSOrigins,
		CORSConfigured: o.CORSConfigured,
		PublicURL:      o.PublicURL,
		Log:            o.Log,
	})
}

// Open reports whether access is open: everyone acts as owner.
func (s *Server) Open() bool { return s.policy.Open() }

// DefaultRole returns the role on the default agent of callers without an identity.
func (s *Server) DefaultRole() agent.DefaultRole {
	return s.policy.DefaultRole()
}

// Handler returns the complete service as an http.Handler.
func (s *Server) Handler() http.Handler { return s.echo }

// Headers that are the same in all responses share their values.
var noSniff, noReferrer, noStore, apiVersion = []string{"nosniff"}, []string{
	"no-referrer",
}, []string{"no-store"}, []string{"1"}

// admitRequest comes before the handler of every request: it sets the request id, checks
// host and origin, counts the request, and recovers from panics.
func (s *Server) admitRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		began := time.Now()
		next := next
		if readEventProtocols(c.Request()) {
			next = s.overSocket(next)
		}
		method := c.Request().Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route := s.routes[routeKey{method, c.Path()}]
		end := func() {}
		if route != nil {
			end = rest.Compress(c)
		}
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
			moved := hasMoved(c, err)
			if err != nil && !moved {
				s.handleError(err, c)
			}
			end()
			if moved {
				return
			}
			s.metrics.observe(route, c.Response().Status, time.Since(began))
		}()
		if chain, ok := agent.ReadChain(c.Request().Header.Get(agent.ChainHeader)); ok {
			c.SetRequest(c.Request().WithContext(store.WithChain(c.Request().Context(), chain)))
		}
		header := c.Response().Header()
		header.Set(echo.HeaderXRequestID, requestID(c.Request()))
		header[echo.HeaderXContentTypeOptions] = noSniff
		header[echo.HeaderReferrerPolicy] = noReferrer
		path := c.Request().URL.Path
		if path != "/api" && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, mcpPath) {
			return next(c)
		}
		header["X-Api-Version"] = apiVersion
		header[echo.HeaderCacheControl] = noStore
		s.policy.SetCORS(header, c.Request())
		if c.Request().Method == http.MethodOptions {
			return s.preflight(c)
		}
		if route == nil || !route.OwnProof() {
			if err := s.policy.CheckSite(c.Request()); err != nil {
				return err
			}
		}
		limit := rest.General
		if route != nil {
			limit = route.Class
		}
		if err := s.limiter.Check(c, limit, s.rateKey(c, limit)); err != nil {
			return err
		}
		return next(c)
	}
}

// post registers a route outside the API whose handler reads a body of at most most bytes,
// 0 for none.
func (s *Server) post(path string, most int64, handle func(*rest.Call) error) {
	s.posts[routeKey{http.MethodPost, path}] = most
	s.echo.POST(path, func(e echo.Context) error {
		c := &rest.Call{
			Context: e.Request().Context(),
			HTTP:    e,
			Body:    s.memory.Body(most),
		}
		c.Body.From(s.limiter.Network(e.Request()))
		defer c.Body.Release()
		return handle(c)
	})
}

// preflight answers a browser's CORS preflight request.
func (s *Server) preflight(c echo.Context) error {
	var more []string
	if strings.HasPrefix(c.Request().URL.Path, mcpPath) {
		more = []string{mcpHeaders}
	}
	s.policy.SetPreflight(c.Response().Header(), more...)
	return c.NoContent(http.StatusNoContent)
}

// rateKey returns whom a request counts for instead of its address, or "": requests of
// platforms count for their gateway and address, and authentic ones for the gateway too;
// see receivePost. So a stranger who sends others uses up nothing of the gateway's limit. A
// gateway that is not yet known may not exist, so its requests count for the address.
func (s *Server) rateKey(c echo.Context, class rest.Class) string {
	if id := c.Param("gatewayId"); class == rest.Inbound && s.gateways.known(id) {
		return id + " " + s.limiter.Network(c.Request()).String()
	}
	return ""
}

// errStopping is the error of requests that were cut because the server is stopping.
var errStopping = agent.Errorf(agent.CodeUnavailable, "the server is stopping; try again")

// handleError is echo's error handler.
func (s *Server) handleError(err error, c echo.Context) {
	rest.WriteError(c, s.reason(c, err), s.log)
}

// reason returns the error to respond with, after the headers that belong to it.
func (*Server) reason(c echo.Context, err error) error {
	err = rest.Reason(c.Request().Context(), err)
	if errors.Is(err, cluster.ErrUnavailable) && agent.ErrorCode(err) != agent.CodeUnavailable {
		err = unavailable(err)
	}
	setRetryAfter(c, err)
	return err
}

// setRetryAfter sets the header if the server cannot answer at present.
func setRetryAfter(c echo.Context, err error) {
	if agent.ErrorCode(err) == agent.CodeUnavailable {
		c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter)
	}
}

// logError logs an error for which the handler writes the response itself.
func (s *Server) logError(c *rest.Call, err error) {
	rest.LogFailure(c.HTTP, err, s.log)
}

// requestID returns the client's own id if it is short and plain.
func requestID(request *http.Request) string {
	id := request.Header.Get(echo.HeaderXRequestID)
	if len(id) == 0 || len(id) > 64 {
		return agent.NewID("request")
	}
	for _, c := range []byte(id) {
		if !(c >= '0' && c <= '9' ||
			c >= 'a' && c <= 'z' ||
			c >= 'A' && c <= 'Z' ||
			c == '-' ||
			c == '_' ||
			c == '.') {
			return agent.NewID("request")
		}
	}
	return id
}

// Start serves on l until Stop and returns immediately.
func (s *Server) Start(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != nil {
		return
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve HTTP", "error", err)
		}
	}()
}

// Done is closed when the server has stopped serving. Call it after Start.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Stop stops listening and gives accepted requests a few seconds to finish. Those that
// still run are then answered with 503, or their connections are closed.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	defer time.AfterFunc(s.cutAfter, func() { s.cut(errStopping) }).Stop()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("abort requests during shutdown", "error", err)
		_ = s.http.Close()
	}
	s.sockets.stop()
	s.runs.stop()
	if s.served != nil {
		<-s.served
	}
}
