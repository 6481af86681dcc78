// Package registry keeps the MCP servers of agents: it looks at a server when
// it is registered, when servers are listed and every five minutes, remembers
// what was found, and calls tools by the server's id.
package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/mcp"
	"satchel/store"
)

// How long and how often servers are looked at.
const (
	lookTimeout = 10 * time.Second // at one server, when it is registered or by the clock
	listTimeout = 5 * time.Second  // at all servers of a list together
	fresh       = 10 * time.Second // a list does not look again so soon
	every       = 5 * time.Minute
	atOnce      = 8 // servers looked at at the same time, for a list and by the clock
)

// Options say how a Registry works.
type Options struct {
	Folder  *store.Folder
	Allow   []netip.Prefix // private ranges that outbound calls may reach
	Version string         // of the program, for User-Agent
	Log     *slog.Logger   // nil: slog.Default()
}

// Registry knows the MCP servers of all agents.
type Registry struct {
	folder *store.Folder
	guard  *egress.Client
	client *mcp.Client
	log    *slog.Logger
	now    func() time.Time
	every  time.Duration
	looked func(*store.DB, agent.MCPServer) // is told of each look by the clock; tests set it

	mu  sync.Mutex
	has map[*store.DB]bool // whether an agent has servers, as far as it was seen

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New makes a Registry.
func New(o Options) *Registry {
	guard := egress.New(egress.Policy{Allow: o.Allow, MaxResponse: -1, HeaderTimeout: mcp.DefaultCallTimeout})
	r := &Registry{folder: o.Folder, guard: guard, log: o.Log, now: time.Now, every: every, has: map[*store.DB]bool{},
		client: mcp.New(mcp.Options{HTTP: guard.HTTP(), Version: o.Version}), looked: func(*store.DB, agent.MCPServer) {}}
	if r.log == nil {
		r.log = slog.Default()
	}
	return r
}

// Create registers a server. It is looked at first, and kept whatever is
// found; an address that can never be reached is a VALIDATION_ERROR.
func (r *Registry) Create(ctx context.Context, db *store.DB, s agent.MCPServer, auth agent.MCPAuth) (agent.MCPServer, error) {
	if err := s.Validate(auth); err != nil {
		return s, err
	}
	if err := r.checkURL("url", s.URL); err != nil {
		return s, err
	}
	for field, raw := range map[string]string{"auth.token_url": auth.TokenURL, "auth.issuer": auth.Issuer} {
		if err := r.checkURL(field, raw); err != nil && raw != "" && auth.Type == agent.MCPAuthOAuth2 {
			return s, err
		}
	}
	if err := db.RoomForMCPServer(ctx); err != nil {
		return s, err
	}
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	tools, err := r.client.Tools(limited, mcp.Server{URL: s.URL, Auth: auth})
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	found(&s, err)
	if findsIssuer(auth) {
		auth.Issuer = r.client.Issuer(s.URL)
	}
	made, err := db.CreateMCPServer(ctx, s, auth, tools)
	if err == nil {
		r.saw(db, true)
	}
	return made, err
}

// findsIssuer tells whether credentials are for the authorization server that
// the MCP server will be found to have.
func findsIssuer(auth agent.MCPAuth) bool {
	return auth.Type == agent.MCPAuthOAuth2 && auth.TokenURL == "" && auth.Issuer == ""
}

func (r *Registry) checkURL(field, raw string) error {
	if _, err := r.guard.CheckURL(raw); err != nil {
		return agent.Invalid(field, "cannot be reached from here: "+err.Error())
	}
	return nil
}

// found writes what came of a look at s into it.
func found(s *agent.MCPServer, err error) {
	s.Status, s.LastError = mcp.StatusOf(err), ""
	if err != nil {
		s.LastError = agent.Explain(err)
	}
}

// saw notes whether an agent has servers.
func (r *Registry) saw(db *store.DB, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has[db] = some
}

// Delete removes a server.
func (r *Registry) Delete(ctx context.Context, db *store.DB, id string) error {
	return db.DeleteMCPServer(ctx, id)
}

// List lists servers after a look at those of the page that were not looked at
// just now. It takes five seconds at most; a server that is not done by then
// is listed as disconnected.
func (r *Registry) List(ctx context.Context, db *store.DB, p store.Page) ([]agent.MCPServer, int, error) {
	servers, total, err := db.MCPServers(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	looks := r.line()
	for i := range servers {
		if r.now().Sub(servers[i].CheckedAt.Time) > fresh {
			looks.add(limited, func() { r.look(limited, db, &servers[i]) })
		}
	}
	looks.Wait()
	if total > 0 {
		r.saw(db, true)
	}
	return servers, total, ctx.Err()
}

// line runs functions, a few at the same time.
type line struct {
	sync.WaitGroup
	places chan struct{}
}

func (r *Registry) line() *line { return &line{places: make(chan struct{}, atOnce)} }

// add waits for a place and runs f in it, unless ctx ends before.
func (l *line) add(ctx context.Context, f func()) {
	select {
	case l.places <- struct{}{}:
		l.Go(func() { defer func() { <-l.places }(); f() })
	case <-ctx.Done():
	}
}

// look asks a server for its tools, and stores and writes into s what came of
// it. A look that was cut says nothing.
func (r *Registry) look(ctx context.Context, db *store.DB, s *agent.MCPServer) ([]agent.MCPTool, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	auth, err := db.MCPCredentials(ctx, *s)
	var tools []agent.MCPTool
	if err == nil {
		tools, err = r.client.Tools(ctx, mcp.Server{URL: s.URL, Auth: auth})
	}
	if ctx.Err() == context.Canceled {
		return nil, ctx.Err()
	}
	seen := *s
	found(&seen, err)
	// The look itself may have used up the time.
	noted, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	noteErr := db.NoteMCPServer(noted, seen, tools)
	if issuer := r.client.Issuer(s.URL); noteErr == nil && findsIssuer(auth) && issuer != "" {
		noteErr = db.KeepMCPIssuer(noted, seen, issuer)
	}
	if noteErr != nil {
		r.log.Warn("what was found of an MCP server could not be stored", "agent", db.ID(), "server", s.ID, "error", noteErr)
	}
	seen.CheckedAt = agent.At(r.now())
	*s = seen
	return tools, err
}

// Tools lists the tools of a server. When it cannot be asked the last listing
// is returned with stale set; without one the error.
func (r *Registry) Tools(ctx context.Context, db *store.DB, id string) (tools []agent.MCPTool, stale bool, err error) {
	s, err := db.MCPServer(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if tools, err = r.look(ctx, db, &s); err == nil {
		return tools, false, nil
	}
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	known, listErr := db.MCPListing(ctx, id)
	if listErr != nil || known == nil {
		return nil, false, err
	}
	return known, true, nil
}

// Call calls a tool of one of the agent's servers; results and errors are as
// of mcp.Client.Call, and NOT_FOUND or CONFLICT when the server or its
// credentials are not there.
func (r *Registry) Call(ctx context.Context, db *store.DB, serverID, tool string, arguments json.RawMessage) (any, error) {
	s, err := db.MCPServer(ctx, serverID)
	if err != nil {
		return nil, err
	}
	auth, err := db.MCPCredentials(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.client.Call(ctx, mcp.Server{URL: s.URL, Auth: auth}, tool, arguments)
}
