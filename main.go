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
	"syscall"
	"time"
	_ "time/tzdata" // schedules need time zones where the machine has none

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/child"
	"satchel/agent/cli"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/agent/mcp/registry"
	"satchel/agent/script"
	"satchel/browser"
	"satchel/browser/install"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/flow/dispatch"
	"satchel/gateways"
	"satchel/httpapi"
	"satchel/httpapi/auth"
	"satchel/schedule"
	"satchel/schedule/callbacks"
	"satchel/store"
	"satchel/vector"
	"satchel/vector/document"
	"satchel/vector/feed"
)

// version is set by the release build.
var version = "0.1.0-dev"

func main() {
	if browser.RunChild(os.Args) || document.RunChild(os.Args[1:]) || script.RunChild(os.Args[1:]) || child.RunChild(os.Args[1:]) {
		return // this process was started to be the browser, to read one document, to run scripts, or by doctor
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "satchel:", err)
		os.Exit(1)
	}
}

// run runs one command line; serve runs until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	commands := cli.Program{
		Version: version, Getenv: os.Getenv, Out: stdout,
		Serve:   func(ctx context.Context, c *cli.Config) error { return serve(ctx, c, stdout) },
		Offline: func(c *cli.Config) cli.Offline { return store.Offline{Options: storeOptions(c)} },
		Browser: func(c *cli.Config) cli.Browser { return installed(c) },
		System:  child.Doctor,
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
	o := store.Options{Path: c.Data, OpenFiles: c.OpenFiles, Log: logger(c)}
	for _, key := range c.MasterKeys {
		o.MasterKeys = append(o.MasterKeys, key[:])
	}
	return o
}

// worker is a part of the house that works in the background.
type worker interface {
	Start(context.Context) error
	Stop()
}

// statementsEnd is how long after the signal to stop statements may still run.
const statementsEnd = 5 * time.Second

// serve opens everything from the ground up, runs until ctx ends, and closes
// it in the opposite order.
func serve(ctx context.Context, c *cli.Config, stdout io.Writer) (err error) {
	options := storeOptions(c)
	warnUnconfined(options.Log, child.Offered())
	folder, err := store.Open(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	verifier, err := identityProxy(ctx, c, options.Log)
	if err != nil {
		return err
	}
	if verifier == nil && !folder.KeyMade() && !c.NoAuth && !c.Loopback() {
		return fmt.Errorf("%s can be reached from other machines and nothing controls access: set EDGE_ACCESS_AUD, make an API key with \"satchel key create\", or start with --no-auth to mean it", c.Addr)
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	publicURL := c.PublicAddress(listener.Addr())
	index := vector.New(folder, vector.Local(), options.Log)
	embedders := egress.New(egress.Policy{Allow: c.OutboundAllow})
	index.SetRemote(vector.Remote{Feeds: feed.NewClient(c.OutboundAllow, version), Provider: llm.NewEmbeddings(embedders.HTTP(), embedders.CheckURL)})
	browsers := browser.New(browserOptions(c, folder, options.Log))
	crawler := crawl.New(crawl.Options{Folder: folder, Allow: c.OutboundAllow, Extract: document.ReadPage, Render: rendered(browsers), Version: version, Log: options.Log})
	scripts := script.New(script.Options{Fetch: egress.New(egress.Policy{Allow: c.OutboundAllow}).Do})
	views := live.New(live.Options{Browser: browsers, PublicURL: publicURL, Log: options.Log})
	own := egress.NewOwn(publicURL)
	engine := flow.New(flow.Options{Folder: folder, Index: index, Scripts: scripts, Allow: c.OutboundAllow, Own: own, Version: version, Log: options.Log})
	webhooks := gateways.NewWebhooks(gateways.Options{Folder: folder, Allow: c.OutboundAllow, Own: own, Version: version, Log: options.Log})
	platforms := gateways.New(gateways.Options{Folder: folder, Allow: c.OutboundAllow, Version: version, Address: publicURL, Public: c.PublicURLSet, Log: options.Log})
	poller := gateways.NewPoller(platforms)
	engine.Register(flow.MessageKinds(platforms))
	engine.Browse(browsers, views)
	// The model is streamed, so its answers have a bound of their own and no header may be late.
	models := egress.New(egress.Policy{Allow: c.OutboundAllow, MaxResponse: -1, HeaderTimeout: llm.DefaultTimeout})
	servers := registry.New(registry.Options{Folder: folder, Allow: c.OutboundAllow, Version: version, Log: options.Log})
	toolbox := chat.NewToolbox(chat.ToolOptions{Scripts: scripts, MCP: servers.Call, HTTP: egress.New(egress.Policy{Allow: c.OutboundAllow}), Version: version, Log: options.Log})
	chats := chat.New(chat.Options{Model: llm.New(llm.Options{HTTP: models.HTTP(), CheckURL: models.CheckURL}), Index: index, Tools: toolbox.Tools, Log: options.Log})
	answerer := gateways.NewAnswerer(platforms, chats.Answer)
	dispatcher := dispatch.New(folder, options.Log, dispatch.Consumer{Name: store.ConsumerWebhooks, Handle: webhooks.Handle},
		dispatch.Consumer{Name: store.ConsumerWorkflows, Handle: engine.OnEvents})
	engine.Register(map[string]*flow.Kind{"chat": flow.ChatKind(chats), "tool": flow.ToolKind(toolbox)})
	runs := callbacks.Callbacks{Engine: engine, Chat: chats, Toolbox: toolbox}
	scheduler := schedule.New(schedule.Options{Folder: folder, Allow: c.OutboundAllow, Own: own, Version: version, Log: options.Log, Runners: runs.Runners(), Tasks: runs.Task})
	server := httpapi.New(httpapi.Options{
		Folder: folder, Index: index, Crawler: crawler, Scheduler: scheduler, Flow: engine, Webhooks: webhooks, Gateways: platforms,
		Chat: chats, Toolbox: toolbox, MCP: servers, Browser: browsers, Live: views, Verifier: verifier, NoAuth: c.NoAuth, DefaultRole: defaultRole(c.DefaultRole),
		RateLimits: c.RateLimits, TrustedProxies: c.TrustedProxies, CORSOrigins: c.CORSOrigins, CORSByHand: c.CORSOriginsSet,
		PublicURL: publicURL, MaxUpload: int64(c.MaxUploadMB) << 20, Version: version, Log: options.Log,
	})
	work := store.Background(context.WithoutCancel(ctx)) // background work ends by Stop, in its order
	for _, w := range []worker{folder, index, scripts, browsers, views, engine, crawler, webhooks, platforms, poller, answerer, dispatcher, scheduler, servers} {
		if err := w.Start(work); err != nil {
			return errors.Join(err, listener.Close())
		}
		defer w.Stop()
	}
	server.Start(listener)
	defer server.Stop()
	fmt.Fprintf(stdout, "Satchel %s listens on http://%s\nAccess is %s\nData lies in %s\n", version, listener.Addr(), accessText(c, server.Open()), folder.Path())
	select {
	case <-ctx.Done():
		folder.EndBy(time.Now().Add(statementsEnd))
		return nil
	case <-server.Done():
		return errors.New("the server stopped by itself, see the log")
	}
}

// warnUnconfined logs when scripts and documents have limits, but nothing that
// keeps them from files and the network.
func warnUnconfined(log *slog.Logger, offered child.Confinement) {
	if offered.None() {
		log.Warn("this system offers neither Landlock nor seccomp: scripts and readers of documents have limits of time and memory only")
	}
}

// identityProxy checks the tokens of the operator's proxy; nil without one.
// Its address is the operator's word, so it may be a private one.
func identityProxy(ctx context.Context, c *cli.Config, log *slog.Logger) (*auth.Verifier, error) {
	if c.AccessAUD == "" {
		return nil, nil
	}
	return auth.NewVerifier(ctx, auth.VerifierOptions{JWKSURL: c.AccessJWKSURL, Audience: c.AccessAUD,
		Issuer: c.AccessIssuer, Client: egress.New(egress.Policy{AllowPrivate: true}).HTTP(), Log: log})
}

// installed says where to look for Chromium and its driver.
func installed(c *cli.Config) install.Options {
	return install.Options{Chromium: c.Chromium, Driver: c.BrowserDriver, Getenv: os.Getenv}
}

// browserOptions say how browser sessions run.
func browserOptions(c *cli.Config, folder *store.Folder, log *slog.Logger) browser.Options {
	find := func(ctx context.Context) (browser.Program, error) {
		p, err := install.Find(ctx, installed(c))
		return browser.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
	}
	return browser.Options{Folder: folder, Find: find, Allow: c.OutboundAllow, Warm: c.WarmBrowser, MaxDownload: int64(c.MaxUploadMB) << 20, Log: log}
}

// rendered lets crawls see pages as a browser shows them.
func rendered(b *browser.Browser) func(context.Context, string) (crawl.RenderedPage, error) {
	return func(ctx context.Context, address string) (crawl.RenderedPage, error) {
		page, err := b.Render(ctx, address)
		return crawl.RenderedPage(page), err
	}
}

// accessText says who may do what, for the start.
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

func defaultRole(name string) agent.Role {
	if name == "none" {
		return agent.RoleNone
	}
	return agent.Role(name)
}
