// Package registry manages the MCP servers of agents. It checks a server when
// it is registered, when servers are listed and every five minutes, stores the
// result, and calls tools by the server's id.
package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/mcp"
	"satchel/agent/work"
	"satchel/store"
)

// Timeouts and intervals of checks.
const (
	inspectTimeout = 10 * time.Second // for one server
	listTimeout    = time.Second      // how long a list waits for its checks
	recheckAfter   = 10 * time.Second // a server is not checked again this soon
	checkInterval  = 5 * time.Minute
	agentsAtOnce   = 8  // agents whose servers are being read
	checksAtOnce   = 64 // servers being checked
)

// Options configure a Registry.
type Options struct {
	store.Env
	// Logins makes the credentials of servers that a person logs in to.
	Logins Logins
	// Programs runs the servers that are programs; nil: there are none.
	Programs *mcp.Programs
	// Variables returns the environment variables of a credential of type env.
	Variables func(ctx context.Context, db *store.DB, ref string) (map[string]string, error)
}

// Registry manages the MCP servers of all agents.
type Registry struct {
	folder      *store.Folder
	guard       *egress.Client
	client      *mcp.Client
	log         *slog.Logger
	credentials store.CredentialFinder
	logins      Logins
	programs    *mcp.Programs
	variables   func(context.Context, *store.DB, string) (map[string]string, error)
	now         func() time.Time
	every       time.Duration
	wait        time.Duration                    // of a list
	checked     func(*store.DB, agent.MCPServer) // called after each check; for tests

	agents *work.Queue[*store.DB] // agents whose servers must be read
	checks *work.Queue[serverKey]
}

// New returns a Registry.
func New(options Options) *Registry {
	if options.Programs == nil {
		options.Programs = mcp.NewPrograms(mcp.ProgramOptions{})
	}
	guard := egress.New(egress.Policy{
		Allow:         options.Allow,
		MaxResponse:   -1,
		HeaderTimeout: mcp.DefaultCallTimeout,
	})
	registry := &Registry{
		folder:      options.Folder,
		guard:       guard,
		credentials: options.Credentials,
		logins:      options.Logins,
		programs:    options.Programs,
		variables:   options.Variables,
		log:         options.Logger(),
		now:         time.Now,
		every:       checkInterval,
		wait:        listTimeout,
		client: mcp.New(mcp.Options{
			HTTP:     guard.HTTP(),
			Version:  options.Version,
			Programs: options.Programs,
		}),
		checked: func(*store.DB, agent.MCPServer) {},
	}
	registry.makeQueues()
	options.Folder.OnPending(registry.notify)
	return registry
}

// Create registers a server. It is checked first, and stored whatever the
// result. A URL that can never be reached is a VALIDATION_ERROR.
func (r *Registry) Create(
	ctx context.Context,
	db *store.DB,
	server agent.MCPServer,
	auth agent.MCPAuth,
) (agent.MCPServer, error) {
	if err := server.Validate(auth); err != nil {
		return server, err
	}
	if err := r.checkAddresses(server, auth); err != nil {
		return server, err
	}
	if err := db.CheckMCPServerLimit(ctx); err != nil {
		return server, err
	}
	server.ID = agent.NewID(agent.KindMCP)
	tools, err := r.inspect(ctx, db, &server, &auth)
	if err != nil {
		return server, err
	}
	made, err := db.CreateMCPServer(ctx, server, auth, tools)
	if err != nil {
		r.programs.Forget(db.ID(), server.ID)
	}
	return made, err
}

// checkAddresses refuses addresses that can never be reached.
func (r *Registry) checkAddresses(server agent.MCPServer, auth agent.MCPAuth) error {
	if server.Command != "" {
		if !r.programs.Has(server.Command) {
			return agent.Invalid("command", "names no command of the operator's file (--allow-stdio-mcp)")
		}
		return nil
	}
	if err := r.checkURL("url", server.URL); err != nil {
		return err
	}
	for field, raw := range map[string]string{"auth.token_url": auth.TokenURL, "auth.issuer": auth.Issuer} {
		if err := r.checkURL(field, raw); err != nil &&
			raw != "" &&
			(auth.Type == agent.MCPAuthOAuth2 || auth.Type == agent.MCPAuthLogin) {
			return err
		}
	}
	return nil
}

// inspect checks a server that is not stored yet, and fills in its fields and
// credentials from the result.
func (r *Registry) inspect(
	ctx context.Context,
	db *store.DB,
	mcpServer *agent.MCPServer,
	auth *agent.MCPAuth,
) ([]agent.MCPTool, error) {
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	var tools []agent.MCPTool
	server, err := r.prepareCall(ctx, db, *mcpServer, *auth)
	if agent.ErrorCode(err) == agent.CodeValidation || agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, err
	}
	if err == nil {
		tools, err = r.client.Tools(limited, server)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	setOutcome(mcpServer, err)
	if needsDiscovery(*auth) {
		auth.Issuer = r.client.Issuer(mcpServer.URL)
	}
	return tools, nil
}

// prepareCall returns a server ready to be called, with its credential.
func (r *Registry) prepareCall(
	ctx context.Context,
	db *store.DB,
	mcpServer agent.MCPServer,
	auth agent.MCPAuth,
) (server mcp.Server, err error) {
	if mcpServer.Command == "" {
		server = mcp.Server{URL: mcpServer.URL, Auth: auth}
		server.Credential, err = r.credentials.Find(ctx, db, mcpServer.Credential)
		return server, err
	}
	server.Program = &mcp.Program{
		Agent:   db.ID(),
		Server:  mcpServer.ID,
		Command: mcpServer.Command,
	}
	if mcpServer.Credential != "" {
		server.Program.Env, err = r.variables(ctx, db, mcpServer.Credential)
	}
	return server, err
}

// Update changes a server, which is checked as on registration. Credentials stay
// with the host that they were given for.
func (r *Registry) Update(
	ctx context.Context,
	db *store.DB,
	id string,
	change agent.MCPServerChange,
) (agent.MCPServer, error) {
	before, err := db.MCPServer(ctx, id)
	if err != nil {
		return before, err
	}
	server := before
	if change.Auth.Given && before.AuthType == agent.MCPAuthLogin {
		server.Credential = "" // that of the login before
	}
	change.Name.Into(&server.Name)
	change.URL.Into(&server.URL)
	change.Command.Into(&server.Command)
	change.Credential.Into(&server.Credential)
	auth := change.Auth.Value
	if !change.Auth.Given {
		if before.AuthType != agent.MCPAuthNone && agent.Origin(server.URL) != agent.Origin(before.URL) {
			return server, agent.Invalid("auth", "must be given anew for another host")
		}
		if auth, err = db.MCPCredentials(ctx, before); err != nil {
			return server, err
		}
	}
	given := server
	if server.Credential == before.Credential && before.AuthType == agent.MCPAuthLogin {
		given.Credential = ""
	}
	if err := given.Validate(auth); err != nil {
		return server, err
	}
	if err := r.checkAddresses(server, auth); err != nil {
		return server, err
	}
	tools, err := r.inspect(ctx, db, &server, &auth)
	if err != nil {
		return server, err
	}
	return db.UpdateMCPServer(ctx, server, auth, tools)
}

// needsDiscovery reports whether the authorization server of credentials has to be
// discovered, because the credentials name none.
func needsDiscovery(auth agent.MCPAuth) bool {
	return auth.Type == agent.MCPAuthOAuth2 && auth.TokenURL == "" && auth.Issuer == ""
}

func (r *Registry) checkURL(field, raw string) error {
	_, err := r.guard.CheckField(field, raw)
	return err
}

// setOutcome sets the outcome of a check in s.
func setOutcome(s *agent.MCPServer, err error) {
	s.Status, s.LastError = mcp.StatusOf(err), ""
	if err != nil {
		s.LastError = agent.Explain(err)
	}
}

// Delete removes a server, and ends it if it is a program.
func (r *Registry) Delete(ctx context.Context, db *store.DB, id string) error {
	err := db.DeleteMCPServer(ctx, id)
	if err == nil {
		r.programs.Forget(db.ID(), id)
	}
	return err
}

// Commands returns the names of the operator's commands, sorted.
func (r *Registry) Commands() []string {
	return r.programs.Names()
}

// fetchTools requests a server's tools and stores the outcome in the database and
// in s. An interrupted request has no outcome.
func (r *Registry) fetchTools(ctx context.Context, db *store.DB, mcpServer *agent.MCPServer) ([]agent.MCPTool, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	auth, err := db.MCPCredentials(ctx, *mcpServer)
	var tools []agent.MCPTool
	var server mcp.Server
	if err == nil {
		server, err = r.prepareCall(ctx, db, *mcpServer, auth)
	}
	if err == nil {
		tools, err = r.client.Tools(ctx, server)
	}
	if ctx.Err() == context.Canceled {
		return nil, ctx.Err()
	}
	seen := *mcpServer
	setOutcome(&seen, err)
	// The request itself may have used up the time.
	noted, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectTimeout)
	defer cancel()
	noteErr := db.NoteMCPServer(noted, seen, tools)
	if issuer := r.client.Issuer(mcpServer.URL); noteErr == nil && needsDiscovery(auth) && issuer != "" {
		noteErr = db.KeepMCPIssuer(noted, seen, issuer)
	}
	if noteErr != nil {
		r.log.Warn("store status of MCP server", "agent", db.ID(), "server", mcpServer.ID, "error", noteErr)
	}
	seen.CheckedAt = agent.At(r.now())
	*mcpServer = seen
	return tools, err
}

// Tools returns the tools of a server. If it cannot be reached, the last list
// is returned with stale set, or the error if there is none.
func (r *Registry) Tools(ctx context.Context, db *store.DB, id string) (tools []agent.MCPTool, stale bool, err error) {
	s, err := db.MCPServer(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if tools, err = r.fetchTools(ctx, db, &s); err == nil {
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

// Call calls a tool of one of the agent's servers. Results and errors are those
// of mcp.Client.Call, and NOT_FOUND or CONFLICT if the server or its
// credentials do not exist.
func (r *Registry) Call(
	ctx context.Context,
	db *store.DB,
	serverID, tool string,
	arguments json.RawMessage,
) (any, error) {
	s, err := db.MCPServer(ctx, serverID)
	if err != nil {
		return nil, err
	}
	auth, err := db.MCPCredentials(ctx, s)
	if err != nil {
		return nil, err
	}
	server, err := r.prepareCall(ctx, db, s, auth)
	if err != nil {
		return nil, err
	}
	return r.client.Call(ctx, server, tool, arguments)
}
