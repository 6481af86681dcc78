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
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // for systems without a time zone database

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/browse"
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
	"satchel/agent/work"
	"satchel/browser"
	"satchel/browser/install"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/flow/dispatch"
	"satchel/gateways"
	"satchel/gateways/subscription"
	"satchel/httpapi"
	"satchel/httpapi/auth"
	"satchel/schedule"
	"satchel/schedule/callbacks"
	"satchel/store"
	"satchel/store/cluster"
	"satchel/store/replica"
	"satchel/vector"
	"satchel/vector/document"
	"satchel/vector/models"
	"satchel/vector/models/compare"
)

// Set by the release build.
var (
	version  = "0.1.0-dev"
	commit   string // abbreviated; else from Go's build info
	date     string // of the commit
	releases string // the URL of the releases page
)

func main() {
	if runChild(os.Args) {
		return
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * work.Processors)
	}
	if os.Getenv("GOGC") == "" {
		work.DelayCollection()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		status := 1
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err, status = errors.New("interrupted"), 130 // as a shell reports SIGINT
		}
		fmt.Fprintln(
			os.Stderr,
			"satchel:",
			strings.TrimPrefix(err.Error(), string(agent.ErrorCode(err))+": "),
		)
		os.Exit(status)
	}
}

// runChild reports whether this process is a child that the program started: to control
// the browser, read a document or an API description, run scripts, or for doctor. If so,
// it has done its work.
func runChild(args []string) bool {
	return browser.RunChild(args) ||
		document.RunChild(args[1:]) ||
		openapi.RunChild(args[1:]) ||
		script.RunChild(args[1:]) ||
		child.RunChild(args[1:])
}

// run runs one command; serve runs until ctx is done.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	commands := cli.Program{
		Version: cli.Version{
			Number:   version,
			Commit:   commit,
			Date:     date,
			Releases: releases,
		}.Complete(),
		Getenv: os.Getenv,
		In:     os.Stdin,
		Out:    stdout,
		Notes:  os.Stderr,
		Serve: func(ctx context.Context, c *cli.Config) error {
			return serve(ctx, c, stdout)
		},
		Offline: func(c *cli.Config) cli.Offline {
			return store.Offline{Options: storeOptions(c)}
		},
		Browser: func(c *cli.Config) cli.Browser { return installation(c) },
		Models: func(c *cli.Config) cli.Models {
			return compare.Commands{Commands: models.Commands{Library: models.New(c.Data), Allow: c.OutboundAllow}}
		},
		System:  child.Doctor,
		Cluster: openCluster,
		Replicas: func(target string) (cli.Replicas, error) {
			t, err := replica.Open(target, os.Getenv)
			return replica.Commands{Target: t}, err
		},
	}
	return commands.Run(ctx, args)
}

func storeOptions(c *cli.Config) store.Options {
	o := store.Options{
		Path:      c.Data,
		OpenFiles: c.OpenFiles,
		Linked:    c.Linked,
		Log:       c.Logger(os.Stderr),
	}
	for _, key := range c.MasterKeys {
		o.MasterKeys = append(o.MasterKeys, key[:])
	}
	return o
}

// worker is a part of the program that runs in the background.
type worker interface {
	Start(context.Context) error
	Stop()
}

// statementsEnd is how long SQL statements may keep running after the stop signal.
const statementsEnd = 5 * time.Second

func serve(ctx context.Context, c *cli.Config, stdout io.Writer) (err error) {
	a, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, a.Close())
	}()
	return a.run(ctx, stdout)
}

// app is the server with all its components.
type app struct {
	config    *cli.Config
	log       *slog.Logger
	folder    *store.Folder
	listener  net.Listener
	publicURL string
	replicas  *replica.Replicator // nil if none are kept
	cluster   *cluster.Cluster    // nil if the server is not in a cluster
	workers   []worker            // in start order
	started   []worker
	server    *httpapi.Server
}

// open opens the folder and the port, and creates the components without starting
// them.
func open(ctx context.Context, config *cli.Config) (_ *app, err error) {
	if err := store.CheckDescriptors(); err != nil {
		return nil, err
	}
	options := storeOptions(config)
	a := &app{config: config, log: options.Log}
	child.SupportedConfinement().Warn(a.log)
	if config.Replicate != "" {
		if err := a.replicate(&options); err != nil {
			return nil, err
		}
	}
	if config.Cluster != "" {
		if err := a.share(ctx, &options); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	if a.folder, err = store.Open(options); err != nil {
		if a.cluster != nil {
			a.cluster.Close()
		}
		return nil, err
	}
	if err := a.listen(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// listen opens the port, once access control is settled, and creates the components, some
// of which need the server's address.
func (a *app) listen(ctx context.Context) error {
	config := a.config
	verifier, err := a.access(ctx)
	if err != nil {
		return err
	}
	programs, err := mcp.OpenPrograms(config.StdioMCP, mcp.ProgramOptions{
		Folder:      filepath.Join(config.Data, "mcp"),
		Environment: os.Environ(),
	})
	if err != nil {
		return err
	}
	if a.listener, err = net.Listen("tcp", config.Addr); err != nil {
		return err
	}
	a.publicURL = config.PublicAddress(a.listener.Addr())
	a.assemble(verifier, programs)
	return nil
}

// replicate sends the folder's commits to the operator's target for replicas.
func (a *app) replicate(options *store.Options) error {
	c := a.config
	target, err := replica.Open(c.Replicate, os.Getenv)
	if err != nil {
		return fmt.Errorf("replicate: %q %w", c.Replicate, err)
	}
	a.replicas = replica.New(replica.Options{
		Target: target,
		Path:   c.Data,
		Keep:   time.Duration(c.ReplicateDays) * 24 * time.Hour,
		Log:    a.log,
	})
	options.Capture = a.replicas
	return nil
}

// share makes the folder's agents part of a cluster.
func (a *app) share(ctx context.Context, options *store.Options) (err error) {
	c := a.config
	switch {
	case len(options.MasterKeys) == 0:
		return errors.New("SATCHEL_MASTER_KEY must be set, to the same value on all servers")
	case c.Replicate != "":
		return errors.New("replicas cannot be kept of a cluster: back its database up, and unset --replicate")
	case c.Linked != "":
		return errors.New("a file cannot be opened in a cluster: unset --cluster")
	}
	a.cluster, err = cluster.Open(ctx, clusterOptions(c, *options))
	options.Cluster = a.cluster
	return err
}

func clusterOptions(c *cli.Config, o store.Options) cluster.Options {
	return cluster.Options{
		URL:        c.Cluster,
		MasterKeys: o.MasterKeys,
		Path:       c.Data,
		Version:    version,
		Log:        o.Log,
	}
}

// openCluster opens a cluster without joining it as a server.
func openCluster(ctx context.Context, c *cli.Config) (cli.Cluster, error) {
	return cluster.Open(ctx, clusterOptions(c, storeOptions(c)))
}

// access returns the verifier of the operator's identity proxy, or nil if there is
// none. It returns an error if other machines could connect without access control.
func (a *app) access(ctx context.Context) (*auth.Verifier, error) {
	config := a.config
	if config.AccessAUD != "" {
		return auth.NewVerifier(ctx, auth.VerifierOptions{
			JWKSURL:  config.AccessJWKSURL,
			Audience: config.AccessAUD,
			Issuer:   config.AccessIssuer,
			Log:      a.log,
		})
	}
	if a.folder.HasHadKeys() || config.NoAuth || config.Loopback() {
		return nil, nil
	}
	return nil, fmt.Errorf(
		"%s can be reached from other machines and nothing controls access: set EDGE_ACCESS_AUD, make an API key "+
			"with \"satchel key create\", or start with --no-auth to mean it",
		config.Addr,
	)
}

// assemble creates the components, each after those it uses.
func (a *app) assemble(verifier *auth.Verifier, programs *mcp.Programs) {
	config, log := a.config, a.log
	env := store.Env{
		Folder:  a.folder,
		Allow:   config.OutboundAllow,
		Own:     egress.NewOwnHosts(a.publicURL),
		Version: version,
		Log:     log,
	}
	client := egress.New(egress.Policy{Allow: config.OutboundAllow}) // for URLs of agents' owners
	parts := httpapi.Parts{Folder: a.folder, Replicas: a.replicas}
	if a.cluster != nil {
		parts.Cluster = a.cluster
	}

	parts.Credentials = credentials.New(credentials.Options{Env: env, Address: a.publicURL})
	env.Credentials = parts.Credentials.Find
	parts.APIs = apis.New(env)
	parts.Index = vector.New(a.folder, vector.Local(), log)
	parts.Index.SetRemote(vector.NewRemote(env))
	scripts := script.New(script.Options{Fetch: client.Do})
	parts.Browser = browser.New(browser.Options{
		Env:         env,
		Find:        findBrowser(config),
		Warm:        config.WarmBrowser,
		MaxDownload: maxUpload(config),
		CDP:         config.AllowCDP,
		Remote:      browser.Remote{URL: config.BrowserCDP, ProxyAddr: config.BrowserProxyAddr},
	})
	parts.Live = live.New(live.Options{
		Browser:   parts.Browser,
		PublicURL: a.publicURL,
		Log:       log,
	})
	parts.Crawler = crawl.New(crawl.Options{
		Env:     env,
		Extract: document.ReadPage,
		Render:  parts.Browser.Render,
	})
	parts.Catalogue = mcp.NewCatalogue(config.MCPRegistry, version)
	parts.MCP = registry.New(registry.Options{
		Env:       env,
		Logins:    parts.Credentials,
		Programs:  programs,
		Variables: parts.Credentials.Variables,
	})
	parts.Toolbox = chat.NewToolbox(chat.ToolOptions{
		Scripts: scripts,
		MCP:     parts.MCP.Call,
		HTTP:    client,
		Workflow: func(ctx context.Context, db *store.DB, run chat.WorkflowRun) (any, error) {
			return parts.Flow.RunTool(ctx, db, run)
		},
		Credentials: env.Credentials,
		APIs:        parts.APIs,
		Version:     version,
		Log:         log,
	})
	parts.Chat = chat.New(chat.Options{
		Model: llm.New(llm.Options{Allow: config.OutboundAllow}),
		Index: parts.Index,
		Tools: parts.Toolbox.Tools,
		Log:   log,
		Browser: func(db *store.DB) ([]chat.Tool, func()) {
			return parts.Navigator.Tools(db)
		},
	})
	parts.Navigator = browse.New(browse.Options{
		Chat:    parts.Chat,
		Live:    parts.Live,
		Browser: parts.Browser,
		Log:     log,
	})
	parts.Gateways = gateways.New(gateways.Options{
		Env:     env,
		Address: a.publicURL,
		Public:  config.PublicURLSet,
	})
	poller, answerer := gateways.NewPoller(parts.Gateways), gateways.NewAnswerer(parts.Gateways, parts.Chat.Answer)
	parts.Webhooks = subscription.New(env)

	parts.Flow = flow.New(flow.Options{
		Env:     env,
		Index:   parts.Index,
		Scripts: scripts,
	})
	parts.Flow.Browse(parts.Browser, parts.Live)
	parts.Flow.Instruct(parts.Navigator, parts.Credentials.Variables)
	parts.Flow.Register(flow.MessageKinds(parts.Gateways))
	parts.Flow.Register(map[string]*flow.Kind{
		"chat":      flow.ChatKind(parts.Chat),
		"tool":      flow.ToolKind(parts.Toolbox),
		"operation": flow.OperationKind(parts.APIs),
	})
	dispatcher := dispatch.New(
		a.folder,
		log,
		dispatch.Consumer{Name: store.ConsumerWebhooks, Handle: parts.Webhooks.Handle},
		dispatch.Consumer{Name: store.ConsumerWorkflows, Handle: parts.Flow.OnEvents},
	)
	called := callbacks.Callbacks{
		Engine:  parts.Flow,
		Chat:    parts.Chat,
		Toolbox: parts.Toolbox,
	}
	parts.Scheduler = schedule.New(schedule.Options{
		Env:     env,
		Runners: called.Runners(),
		Tasks:   called.Task,
	})

	a.workers = []worker{
		a.folder, parts.Index, scripts, parts.Browser, parts.Live, parts.Navigator, parts.Flow, parts.Crawler,
		parts.Webhooks, parts.Gateways, poller, answerer, dispatcher, parts.Scheduler, parts.MCP,
	}
	a.server = httpapi.New(httpapi.Options{
		Parts:          parts,
		Verifier:       verifier,
		NoAuth:         config.NoAuth,
		DefaultRole:    config.Role(),
		DefaultRoleSet: config.DefaultRoleSet,
		RateLimits:     config.RateLimits,
		TrustedProxies: config.TrustedProxies,
		CORSOrigins:    config.CORSOrigins,
		CORSConfigured: config.CORSOriginsSet,
		PublicURL:      a.publicURL,
		MaxUpload:      maxUpload(config),
		Version:        version,
		Log:            log,
	})
}

// maxUpload returns the largest file that may be uploaded or downloaded, in bytes.
func maxUpload(c *cli.Config) int64 { return int64(c.MaxUploadMB) << 20 }

// installation returns where to look for Chromium and its driver.
func installation(c *cli.Config) install.Options {
	return install.Options{
		Chromium: c.Chromium,
		Driver:   c.BrowserDriver,
		Remote:   c.BrowserCDP != "",
		Getenv:   os.Getenv,
	}
}

// findBrowser returns the function that finds Chromium when it is first needed.
func findBrowser(c *cli.Config) func(context.Context) (browser.Program, error) {
	return func(ctx context.Context) (browser.Program, error) {
		p, err := install.Find(ctx, installation(c))
		return browser.Program{
			Chromium:    p.Chromium,
			Driver:      p.Driver,
			Environment: os.Environ(),
			Explain:     install.Explain,
		}, err
	}
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
	if a.cluster != nil {
		url, err := a.config.NodeURL(a.listener.Addr())
		if err == nil {
			err = a.cluster.Start(work, a.folder, url)
		}
		if err != nil {
			return err
		}
	}
	a.server.Start(a.listener)
	fmt.Fprintf(
		stdout,
		"Satchel %s listens on http://%s\nAccess is %s\nData is in %s\n",
		version,
		a.listener.Addr(),
		a.config.Access(a.server.Open(), a.server.DefaultRole()),
		a.folder.Path(),
	)
	fmt.Fprint(stdout, linkedText(a.folder.Linked(), a.publicURL))
	select {
	case <-ctx.Done():
		a.drain(work)
		a.folder.InterruptAt(time.Now().Add(statementsEnd))
		return nil
	case <-a.server.Done():
		return errors.New("the server stopped by itself, see the log")
	}
}

// drainTime is how long a stopping server may take to move its agents to other servers,
// one at a time. The others take over the rest once it has stopped.
const drainTime = 20 * time.Second

func (a *app) drain(ctx context.Context) {
	if a.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := a.cluster.Drain(ctx, cluster.Stopping); err != nil {
		a.log.Info(
			"this server could not move its agents: the other servers take them over once it has stopped",
			"reason",
			err,
		)
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
	if a.cluster != nil {
		defer a.cluster.Close()
	}
	if a.replicas != nil {
		a.replicas.Stop()
		defer a.replicas.Close()
	}
	return errors.Join(err, a.folder.Close())
}

// linkedText returns the message with the console's URL for the agent of "satchel open".
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
