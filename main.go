// Satchel is a self-hosted agent automation service: one program, one SQLite
// file for each agent.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // for systems without a time zone database

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/chat"
	"satchel/agent/child"
	"satchel/agent/cli"
	"satchel/agent/credentials"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/agent/mcp"
	"satchel/agent/mcp/registry"
	"satchel/agent/openapi"
	"satchel/agent/script"
	"satchel/browser"
	"satchel/browser/install"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/flow/dispatch"
	"satchel/gateways"
	"satchel/gateways/webhook"
	"satchel/httpapi"
	"satchel/httpapi/auth"
	"satchel/schedule"
	"satchel/schedule/callbacks"
	"satchel/store"
	"satchel/store/replica"
	"satchel/vector"
	"satchel/vector/document"
	"satchel/vector/feed"
	"satchel/vector/models"
)

// Set by the release build.
var (
	version  = "0.1.0-dev"
	commit   string // abbreviated; else from Go's build info
	date     string // of the commit
	releases string // the URL of the releases page
)

func main() {
	if browser.RunChild(os.Args) || document.RunChild(os.Args[1:]) || openapi.RunChild(os.Args[1:]) || script.RunChild(os.Args[1:]) || child.RunChild(os.Args[1:]) {
		return // this is a child process for the browser, a document, the description of an API, scripts or doctor
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "satchel:", err)
		os.Exit(1)
	}
}

// run runs one command; serve runs until ctx is done.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	commands := cli.Program{
		Version: cli.Version{Number: version, Commit: commit, Date: date, Releases: releases}.Complete(), Getenv: os.Getenv, In: os.Stdin, Out: stdout, Notes: os.Stderr,
		Serve:   func(ctx context.Context, c *cli.Config) error { return serve(ctx, c, stdout) },
		Offline: func(c *cli.Config) cli.Offline { return store.Offline{Options: storeOptions(c)} },
		Browser: func(c *cli.Config) cli.Browser { return installed(c) },
		Models: func(c *cli.Config) cli.Models {
			return models.Commands{Library: models.New(c.Data), Allow: c.OutboundAllow}
		},
		System: child.Doctor,
		Probe:  probe,
		Replicas: func(target string) (cli.Replicas, error) {
			t, err := replica.Open(target, os.Getenv)
			return replica.Commands{Target: t}, err
		},
	}
	return commands.Run(ctx, args)
}

func logger(c *cli.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

func storeOptions(c *cli.Config) store.Options {
	o := store.Options{Path: c.Data, OpenFiles: c.OpenFiles, Linked: c.Linked, Log: logger(c)}
	for _, key := range c.MasterKeys {
		o.MasterKeys = append(o.MasterKeys, key[:])
	}
	return o
}

// probe checks whether the server with these settings, on this machine, is ready.
func probe(ctx context.Context, c *cli.Config) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.LocalAddr()+"/api/ready", nil)
	if err != nil {
		return err
	}
	resp, err := egress.New(egress.Policy{AllowPrivate: true, DialTimeout: probeTime, HeaderTimeout: probeTime}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return nil
}

const probeTime = 3 * time.Second

// worker is a part of the program that runs in the background.
type worker interface {
	Start(context.Context) error
	Stop()
}

// statementsEnd is how long SQL statements may still run after the stop signal.
const statementsEnd = 5 * time.Second

func serve(ctx context.Context, c *cli.Config, stdout io.Writer) (err error) {
	a, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.run(ctx, stdout)
}

// app is the server with all its components.
type app struct {
	config    *cli.Config
	log       *slog.Logger
	folder    *store.Folder
	listener  net.Listener
	publicURL string
	own       *egress.Own
	replicas  *replica.Replicator // nil: none are kept
	workers   []worker            // in start order
	started   []worker
	server    *httpapi.Server
}

// open creates the components without starting them.
func open(ctx context.Context, c *cli.Config) (_ *app, err error) {
	options := storeOptions(c)
	a := &app{config: c, log: options.Log}
	warnUnconfined(a.log, child.Offered())
	if c.Replicate != "" {
		if err := a.replicate(&options); err != nil {
			return nil, err
		}
	}
	if a.folder, err = store.Open(options); err != nil {
		return nil, err
	}
	verifier, err := a.access(ctx)
	var programs *mcp.Programs
	if err == nil {
		programs, err = stdioPrograms(c)
	}
	if err == nil {
		a.listener, err = net.Listen("tcp", c.Addr)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.publicURL = c.PublicAddress(a.listener.Addr())
	a.own = egress.NewOwn(a.publicURL)
	a.assemble(verifier, programs)
	return a, nil
}

// replicate prepares that replicas are kept of what the folder's agents commit.
func (a *app) replicate(options *store.Options) error {
	c := a.config
	target, err := replica.Open(c.Replicate, os.Getenv)
	if err != nil {
		return fmt.Errorf("replicate: %q %w", c.Replicate, err)
	}
	a.replicas = replica.New(replica.Options{Target: target, Path: c.Data, Keep: time.Duration(c.ReplicateDays) * 24 * time.Hour, Log: a.log})
	options.Capture = a.replicas
	return nil
}

// stdioPrograms returns what runs MCP servers as programs, with the commands of the
// operator's file.
func stdioPrograms(c *cli.Config) (*mcp.Programs, error) {
	o := mcp.ProgramOptions{Folder: filepath.Join(c.Data, "mcp"), Environment: os.Environ()}
	var err error
	if c.StdioMCP != "" {
		o.Commands, err = mcp.ReadCommands(c.StdioMCP)
	}
	return mcp.NewPrograms(o), err
}

// access returns the verifier of the operator's identity proxy, or nil if there is
// none. It returns an error if other machines could connect without access control.
func (a *app) access(ctx context.Context) (*auth.Verifier, error) {
	c := a.config
	verifier, err := identityProxy(ctx, c, a.log)
	if err == nil && verifier == nil && !a.folder.KeyMade() && !c.NoAuth && !c.Loopback() {
		err = fmt.Errorf("%s can be reached from other machines and nothing controls access: set EDGE_ACCESS_AUD, make an API key with \"satchel key create\", or start with --no-auth to mean it", c.Addr)
	}
	return verifier, err
}

// assemble creates the components from the lowest layer to the highest and passes
// each its dependencies.
func (a *app) assemble(verifier *auth.Verifier, programs *mcp.Programs) {
	c, log := a.config, a.log
	creds := credentials.New(credentials.Options{Env: a.env(), Address: a.publicURL})
	env := a.env()
	env.Credentials = creds.Find
	described := apis.New(env)
	index := a.knowledge(env)
	scripts := script.New(script.Options{Fetch: a.client().Do})
	browsers := browser.New(browserOptions(c, env))
	views := live.New(live.Options{Browser: browsers, PublicURL: a.publicURL, Log: log})
	crawler := crawl.New(crawl.Options{Env: env, Extract: readPage, Render: rendered(browsers)})
	servers := registry.New(registry.Options{Env: env, Logins: creds, Programs: programs, Variables: creds.Variables})
	toolbox := chat.NewToolbox(chat.ToolOptions{Scripts: scripts, MCP: servers.Call, HTTP: a.client(), Credentials: creds.Find, APIs: described, Version: version, Log: log})
	chats := chat.New(chat.Options{Model: a.models(), Index: index, Tools: toolbox.Tools, Log: log})
	platforms := gateways.New(gateways.Options{Env: env, Address: a.publicURL, Public: c.PublicURLSet})
	webhooks := webhook.New(env)
	engine := flow.New(flow.Options{Env: env, Index: index, Scripts: scripts})
	engine.Browse(browsers, views)
	engine.Register(flow.MessageKinds(platforms))
	engine.Register(map[string]*flow.Kind{"chat": flow.ChatKind(chats), "tool": flow.ToolKind(toolbox), "operation": flow.OperationKind(described)})
	dispatcher := dispatch.New(a.folder, log, dispatch.Consumer{Name: store.ConsumerWebhooks, Handle: webhooks.Handle},
		dispatch.Consumer{Name: store.ConsumerWorkflows, Handle: engine.OnEvents})
	called := callbacks.Callbacks{Engine: engine, Chat: chats, Toolbox: toolbox}
	scheduler := schedule.New(schedule.Options{Env: env, Runners: called.Runners(), Tasks: called.Task})
	a.workers = []worker{a.folder, index, scripts, browsers, views, engine, crawler, webhooks, platforms,
		gateways.NewPoller(platforms), gateways.NewAnswerer(platforms, chats.Answer), dispatcher, scheduler, servers}
	a.server = httpapi.New(httpapi.Options{
		Folder: a.folder, Index: index, Crawler: crawler, Scheduler: scheduler, Flow: engine, Webhooks: webhooks, Gateways: platforms,
		Chat: chats, Toolbox: toolbox, APIs: described, MCP: servers, Catalogue: a.catalogue(), Credentials: creds, Browser: browsers, Live: views, Verifier: verifier, NoAuth: c.NoAuth, DefaultRole: defaultRole(c.DefaultRole),
		Replicas: a.replicas, RateLimits: c.RateLimits, TrustedProxies: c.TrustedProxies, CORSOrigins: c.CORSOrigins, CORSByHand: c.CORSOriginsSet,
		PublicURL: a.publicURL, MaxUpload: int64(c.MaxUploadMB) << 20, Version: version, Log: log,
	})
}

// env returns the environment that all background components share.
func (a *app) env() store.Env {
	return store.Env{Folder: a.folder, Allow: a.config.OutboundAllow, Own: a.own, Version: version, Log: a.log}
}

// client returns a guarded client for URLs set by an agent's owner.
func (a *app) client() *egress.Client {
	return egress.New(egress.Policy{Allow: a.config.OutboundAllow})
}

// knowledge returns the index, which may read from APIs and use a provider's
// embeddings.
func (a *app) knowledge(env store.Env) *vector.Index {
	index, embedders := vector.New(a.folder, vector.Local(), a.log), a.client()
	index.SetRemote(vector.Remote{Credentials: env.Credentials, Feeds: feed.NewClient(a.config.OutboundAllow, version), Provider: llm.NewEmbeddings(embedders.HTTP(), embedders.CheckURL)})
	return index
}

// models returns the client for language model providers. Their responses are
// streamed, so package llm limits their size; response headers have a timeout here.
func (a *app) models() *llm.Client {
	out := egress.New(egress.Policy{Allow: a.config.OutboundAllow, MaxResponse: -1, HeaderTimeout: llm.DefaultTimeout})
	return llm.New(llm.Options{HTTP: out.HTTP(), CheckURL: out.CheckURL})
}

// catalogue returns the catalogue of MCP servers. The operator configures its
// address, so it may be private.
func (a *app) catalogue() *mcp.Catalogue {
	out := egress.New(egress.Policy{AllowPrivate: true, MaxResponse: mcp.CatalogueBytes})
	return mcp.NewCatalogue(out, a.config.MCPRegistry, version)
}

// run starts the components and serves until ctx is done.
func (a *app) run(ctx context.Context, stdout io.Writer) error {
	work := store.Background(context.WithoutCancel(ctx)) // background work is ended by Stop, in order
	if a.replicas != nil {
		a.replicas.Start(work, a.folder)
	}
	for _, w := range a.workers {
		if err := w.Start(work); err != nil {
			return err
		}
		a.started = append(a.started, w)
	}
	a.server.Start(a.listener)
	fmt.Fprintf(stdout, "Satchel %s listens on http://%s\nAccess is %s\nData lies in %s\n", version, a.listener.Addr(), accessText(a.config, a.server.Open()), a.folder.Path())
	fmt.Fprint(stdout, linkedText(a.folder.Linked(), a.publicURL))
	select {
	case <-ctx.Done():
		a.folder.EndBy(time.Now().Add(statementsEnd))
		return nil
	case <-a.server.Done():
		return errors.New("the server stopped by itself, see the log")
	}
}

// Close stops the started workers in reverse order and closes the files.
func (a *app) Close() error {
	var err error
	switch {
	case a.server != nil && len(a.started) == len(a.workers):
		a.server.Stop()
	case a.listener != nil:
		err = a.listener.Close()
	}
	for _, w := range slices.Backward(a.started) {
		w.Stop()
	}
	if a.replicas == nil {
		return errors.Join(err, a.folder.Close())
	}
	a.replicas.Stop()
	err = errors.Join(err, a.folder.Close())
	a.replicas.Close()
	return err
}

// warnUnconfined logs a warning if child processes for scripts and documents are
// not kept from files and the network.
func warnUnconfined(log *slog.Logger, offered child.Confinement) {
	if offered.None() {
		log.Warn("this system offers neither Landlock nor seccomp: scripts and readers of documents have limits of time and memory only")
	}
}

// identityProxy returns the verifier of the tokens of the operator's proxy, or nil
// if there is none. The operator configures its address, so it may be private.
func identityProxy(ctx context.Context, c *cli.Config, log *slog.Logger) (*auth.Verifier, error) {
	if c.AccessAUD == "" {
		return nil, nil
	}
	return auth.NewVerifier(ctx, auth.VerifierOptions{JWKSURL: c.AccessJWKSURL, Audience: c.AccessAUD,
		Issuer: c.AccessIssuer, Client: egress.New(egress.Policy{AllowPrivate: true}).HTTP(), Log: log})
}

// installed returns where to look for Chromium and its driver.
func installed(c *cli.Config) install.Options {
	return install.Options{Chromium: c.Chromium, Driver: c.BrowserDriver, Getenv: os.Getenv}
}

// browserOptions returns the options of browser sessions.
func browserOptions(c *cli.Config, env store.Env) browser.Options {
	find := func(ctx context.Context) (browser.Program, error) {
		p, err := install.Find(ctx, installed(c))
		return browser.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
	}
	return browser.Options{Env: env, Find: find, Warm: c.WarmBrowser, MaxDownload: int64(c.MaxUploadMB) << 20}
}

// readPage reads a crawled page with the reader of uploaded files.
func readPage(ctx context.Context, address, contentType string, body []byte) (crawl.Page, error) {
	page, err := document.ReadPage(ctx, address, contentType, body)
	return crawl.Page(page), err
}

// rendered returns a function that reads pages as rendered by a browser.
func rendered(b *browser.Browser) func(context.Context, string) (crawl.RenderedPage, error) {
	return func(ctx context.Context, address string) (crawl.RenderedPage, error) {
		page, err := b.Render(ctx, address)
		return crawl.RenderedPage(page), err
	}
}

// accessText describes the access control, for the start message.
func accessText(c *cli.Config, open bool) string {
	if c.NoAuth {
		return "open (--no-auth): everyone who reaches it acts as owner"
	}
	role := "the role " + c.DefaultRole
	if c.DefaultRole == "none" {
		role = "no role"
	}
	strangers := "callers without an identity or an API key have " + role + " on the default agent (--default-role or SATCHEL_DEFAULT_ROLE: viewer, admin or none) and none elsewhere"
	if open {
		return "open: everyone who reaches it acts as owner, until the first API key is made; from then on " + strangers
	}
	return "under access control: " + strangers
}

// linkedText says where the console shows the agent of "satchel open".
func linkedText(db *store.DB, publicURL string) string {
	if db == nil {
		return ""
	}
	text := fmt.Sprintf("Opened %s: %s/#/agents/%s\n", db.Agent().Name, publicURL, db.ID())
	if db.Agent().Status == agent.StatusPaused {
		text += "It is paused: nothing runs by itself until it is set to active.\n"
	}
	return text
}

func defaultRole(name string) agent.Role {
	if name == "none" {
		return agent.RoleNone
	}
	return agent.Role(name)
}
