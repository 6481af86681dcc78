package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/egress"
)

// Defaults and limits of a Client.
const (
	DefaultListTimeout = 20 * time.Second
	DefaultCallTimeout = 60 * time.Second
	MaxBytes           = 8 << 20 // total size of a server's responses to one request
	MaxTools           = 1000    // per server
	MaxSchema          = 64 << 10
	MaxListing         = 1 << 20 // all schemas and descriptions together
	MaxDescription     = 8192    // characters; the rest is cut off

	maxPages      = 100
	maxRemembered = 1000 // servers with state kept in memory, and tokens
	maxRetries    = 2    // of a stream that the server closed
)

// Options configure a Client.
type Options struct {
	// HTTP makes the requests: the guarded client of package egress, without a
	// limit on responses and with a header timeout no shorter than the timeouts
	// here.
	HTTP                     *http.Client
	Version                  string        // of the program, for User-Agent
	ListTimeout, CallTimeout time.Duration // 0: their defaults
	Programs                 *Programs     // nil: there are none
}

// Server is an MCP server to call.
type Server struct {
	Program *Program // unless nil, it runs as a program and has no URL
	URL     string
	Auth    agent.MCPAuth
	// Credential, unless nil, is attached to the requests in place of Auth.
	Credential egress.Credential
}

// secrets returns the secret texts of a server's configuration.
func (s Server) secrets() []string {
	all := s.Auth.Secrets()
	if s.Program != nil {
		for _, value := range s.Program.Env {
			all = append(all, value)
		}
	}
	return all
}

// Client calls MCP servers. Each call of one with a URL is a separate session, so
// a restarted server is no problem. It is safe for concurrent use.
type Client struct {
	options Options
	sdk     *sdk.Client
	now     func() time.Time

	mu       sync.Mutex
	known    map[string]transport
	mirrored map[string]bool // by URL: whether tools also want arguments in headers
	tokens   map[tokenKey]token
	issuers  map[string]string // by URL: the authorization server that was discovered
}

// New returns a Client.
func New(options Options) *Client {
	if options.ListTimeout <= 0 {
		options.ListTimeout = DefaultListTimeout
	}
	if options.CallTimeout <= 0 {
		options.CallTimeout = DefaultCallTimeout
	}
	if options.Programs == nil {
		options.Programs = NewPrograms(ProgramOptions{})
	}
	c := &Client{
		options:  options,
		now:      time.Now,
		known:    map[string]transport{},
		mirrored: map[string]bool{},
		tokens:   map[tokenKey]token{},
		issuers:  map[string]string{},
		sdk: sdk.NewClient(
			&sdk.Implementation{Name: "satchel", Title: "Satchel", Version: options.Version},
			// Requests of a server to the client are declined.
			&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}},
		),
	}
	options.Programs.sdk = c.sdk
	return c
}

// transport is a server's version of the transport.
type transport string

const (
	streamable transport = "streamable HTTP, newest protocol"
	stateful   transport = "streamable HTTP, protocol before 2026-07-28"
	sse        transport = "HTTP with SSE"
)

// lastStateful is the newest protocol version that starts with a handshake.
const lastStateful = "2025-11-25"

// ask connects to a server and does one thing with it. An error is a *Fault, an
// *agent.Error returned by do, or the context's.
func (c *Client) ask(
	ctx context.Context,
	s Server,
	limit time.Duration,
	do func(context.Context, *sdk.ClientSession) error,
) error {
	if s.Program != nil {
		return c.askProgram(ctx, s, limit, do)
	}
	again, err := c.askOnce(ctx, s, limit, do)
	if again { // the server rejected a cached token
		_, err = c.askOnce(ctx, s, limit, do)
	}
	return err
}

func (c *Client) askOnce(
	ctx context.Context,
	server Server,
	limit time.Duration,
	do func(context.Context, *sdk.ClientSession) error,
) (again bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	exchange, err := c.newExchange(limited, server)
	if err != nil {
		return false, err
	}
	session, err := c.connect(limited, server, exchange)
	if err == nil {
		defer session.Close()
		err = do(limited, session)
	}
	if err == nil {
		return false, nil
	}
	if ctx.Err() == context.Canceled {
		return false, ctx.Err()
	}
	a := exchange.lastResponse()
	if a.keptToken && a.status == http.StatusUnauthorized {
		c.dropToken(server)
		return true, err
	}
	return false, exchange.explain(limited, err)
}

// connect opens a session with the transport that last worked, or else the
// newest one that the server supports.
func (c *Client) connect(ctx context.Context, server Server, exchange *exchange) (*sdk.ClientSession, error) {
	ways := []transport{streamable, sse}
	known := c.knownTransport(server.URL)
	if known != "" && known != streamable {
		ways = append([]transport{known}, ways...)
	}
	var first error
	var seen answered
	for index, way := range ways {
		exchange.set(answered{})
		session, err := c.open(ctx, server, exchange, way)
		if err == nil {
			if way == streamable && session.InitializeResult().ProtocolVersion <= lastStateful {
				way = stateful
			}
			c.rememberTransport(server.URL, way)
			return session, nil
		}
		if index == 0 || way == streamable {
			first, seen = err, exchange.lastResponse()
		}
		if ctx.Err() != nil || !exchange.lastResponse().mayUseOtherTransport(way == known) {
			break
		}
	}
	exchange.set(seen)
	return nil, first
}

func (c *Client) open(
	ctx context.Context,
	server Server,
	exchange *exchange,
	way transport,
) (*sdk.ClientSession, error) {
	if way == sse {
		return c.sdk.Connect(
			ctx,
			&sdk.SSEClientTransport{
				Endpoint:     server.URL,
				HTTPClient:   exchange.client(),
				MaxEventSize: MaxBytes,
			},
			&sdk.ClientSessionOptions{ProtocolVersion: lastStateful},
		)
	}
	options := &sdk.ClientSessionOptions{}
	if way == stateful {
		options.ProtocolVersion = lastStateful
	}
	return c.sdk.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             server.URL,
		HTTPClient:           exchange.client(),
		MaxRetries:           maxRetries,
		DisableStandaloneSSE: true,
		MaxEventSize:         MaxBytes,
	}, options)
}

func (c *Client) knownTransport(url string) transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[url]
}

func (c *Client) rememberTransport(url string, way transport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cache(c.known, url, way)
}

// cache stores a value, and clears the map if it has grown too large.
func cache[K comparable, V any](m map[K]V, key K, value V) {
	if _, known := m[key]; !known && len(m) >= maxRemembered {
		clear(m)
	}
	m[key] = value
}
