package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
)

// Defaults and bounds of a Client.
const (
	DefaultListTimeout = 20 * time.Second
	DefaultCallTimeout = 60 * time.Second
	MaxBytes           = 8 << 20 // of all that a server sends while it is asked once
	MaxTools           = 1000    // of one server
	MaxSchema          = 64 << 10
	MaxListing         = 1 << 20 // of all schemas and descriptions together
	MaxDescription     = 8192    // characters; the rest is cut

	maxPages      = 100
	maxRemembered = 1000 // servers of which something is kept in memory, and tokens
	maxRetries    = 2    // of a stream that a server cut
)

// Options say how a Client works.
type Options struct {
	// HTTP makes the calls: the guarded client of package egress, without a
	// limit to answers and with a header's time limit of no less than those here.
	HTTP                     *http.Client
	Version                  string        // of the program, for User-Agent
	ListTimeout, CallTimeout time.Duration // 0: their defaults
}

// Server is an MCP server as it is called.
type Server struct {
	URL  string
	Auth agent.MCPAuth
}

// Client calls MCP servers. Each call is a session of its own, so a server
// that was restarted is no trouble. It may be used by many goroutines.
type Client struct {
	options Options
	sdk     *sdk.Client
	now     func() time.Time

	mu       sync.Mutex
	known    map[string]era
	mirrored map[string]bool // by address: whether tools want arguments in headers too
	tokens   map[tokenKey]token
	issuers  map[string]string // by address: who gives out tokens, as it was found
}

// New makes a Client.
func New(o Options) *Client {
	if o.ListTimeout <= 0 {
		o.ListTimeout = DefaultListTimeout
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	return &Client{options: o, now: time.Now, known: map[string]era{}, mirrored: map[string]bool{},
		tokens: map[tokenKey]token{}, issuers: map[string]string{},
		sdk: sdk.NewClient(&sdk.Implementation{Name: "satchel", Title: "Satchel", Version: o.Version},
			// Nobody is there to answer what a server asks back.
			&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})}
}

// era is how a server speaks.
type era string

const (
	streamable era = "streamable HTTP, newest protocol"
	stateful   era = "streamable HTTP, protocol before 2026-07-28"
	sse        era = "HTTP with SSE"
)

// lastStateful is the newest protocol that begins with a handshake.
const lastStateful = "2025-11-25"

// ask connects to a server and does one thing with it. A failure is a *Fault,
// or what do returned as an *agent.Error, or the context's end.
func (c *Client) ask(ctx context.Context, s Server, limit time.Duration, do func(context.Context, *sdk.ClientSession) error) error {
	again, err := c.askOnce(ctx, s, limit, do)
	if again { // the server took a kept token back
		_, err = c.askOnce(ctx, s, limit, do)
	}
	return err
}

func (c *Client) askOnce(ctx context.Context, s Server, limit time.Duration, do func(context.Context, *sdk.ClientSession) error) (again bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	x, err := c.newExchange(limited, s)
	if err != nil {
		return false, err
	}
	session, err := c.connect(limited, s, x)
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
	a := x.seen()
	if a.keptToken && a.status == http.StatusUnauthorized {
		c.dropToken(s)
		return true, err
	}
	return false, x.explain(limited, err)
}

// connect opens a session in the way that worked last, else in the newest that
// the server understands.
func (c *Client) connect(ctx context.Context, s Server, x *exchange) (*sdk.ClientSession, error) {
	ways := []era{streamable, sse}
	known := c.remembered(s.URL)
	if known != "" && known != streamable {
		ways = append([]era{known}, ways...)
	}
	var first error
	var seen answered
	for i, way := range ways {
		x.set(answered{})
		session, err := c.open(ctx, s, x, way)
		if err == nil {
			if way == streamable && session.InitializeResult().ProtocolVersion <= lastStateful {
				way = stateful
			}
			c.remember(s.URL, way)
			return session, nil
		}
		if i == 0 || way == streamable {
			first, seen = err, x.seen()
		}
		if ctx.Err() != nil || !x.seen().maySpeakOtherwise(way == known) {
			break
		}
	}
	x.set(seen)
	return nil, first
}

func (c *Client) open(ctx context.Context, s Server, x *exchange, way era) (*sdk.ClientSession, error) {
	if way == sse {
		return c.sdk.Connect(ctx, &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: x.client(), MaxEventSize: MaxBytes},
			&sdk.ClientSessionOptions{ProtocolVersion: lastStateful})
	}
	options := &sdk.ClientSessionOptions{}
	if way == stateful {
		options.ProtocolVersion = lastStateful
	}
	return c.sdk.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: x.client(), MaxRetries: maxRetries,
		DisableStandaloneSSE: true, MaxEventSize: MaxBytes}, options)
}

func (c *Client) remembered(url string) era {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[url]
}

func (c *Client) remember(url string, way era) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep(c.known, url, way)
}

// keep remembers a value, and forgets all others when they become too many.
func keep[K comparable, V any](m map[K]V, key K, value V) {
	if _, known := m[key]; !known && len(m) >= maxRemembered {
		clear(m)
	}
	m[key] = value
}
