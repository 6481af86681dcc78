package apitest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/browse"
	agentchat "satchel/agent/chat"
	"satchel/agent/credentials"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/agent/mcp"
	"satchel/agent/mcp/registry"
	"satchel/agent/script"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/flow/dispatch"
	"satchel/gateways"
	"satchel/gateways/subscription"
	"satchel/schedule"
	"satchel/schedule/callbacks"
	"satchel/store"
	"satchel/store/cluster"
	"satchel/store/replica"
	"satchel/vector"
	"satchel/vector/document"
)

// Parts has the fields of httpapi.Parts, and converts to it.
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
	Catalogue   *mcp.Catalogue
	Credentials *credentials.Credentials
	Browser     *browser.Browser
	Navigator   *browse.Navigator
	Live        *live.Live
	Replicas    *replica.Replicator
	Cluster     cluster.Directory
}

// Open starts the parts of a service with an empty folder, and stops them at the end of
// the test.
func Open(tb testing.TB) Parts {
	tb.Helper()
	parts, stop, err := Start(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return parts
}

// Start starts the parts of a service with an empty folder at a path; they may connect to
// loopback addresses. The function that it returns stops them.
func Start(path string) (Parts, func() error, error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		return Parts{}, nil, err
	}
	index := vector.New(folder, vector.Local(), quiet)
	loopback := agent.MustAddressRanges("127.0.0.0/8")
	creds := credentials.New(credentials.Options{
		Env: store.Env{
			Folder:  folder,
			Allow:   loopback,
			Version: "test",
			Log:     quiet,
		},
		Address: "http://localhost",
	})
	index.SetRemote(vector.NewRemote(store.Env{
		Allow:       loopback,
		Version:     "test",
		Credentials: creds.Find,
	}))
	if err := index.Start(context.Background()); err != nil {
		return Parts{}, nil, err
	}
	crawler := crawl.New(crawl.Options{
		Env:        store.Env{Folder: folder, Allow: loopback, Log: quiet},
		Extract:    document.ReadPage,
		Politeness: crawl.Politeness{Delay: -1},
	})
	if err := crawler.Start(context.Background()); err != nil {
		return Parts{}, nil, err
	}
	webhooks := subscription.New(store.Env{
		Folder:  folder,
		Allow:   agent.MustAddressRanges("127.0.0.0/8"),
		Version: "test",
		Log:     quiet,
	})
	scripts := script.New(script.Options{Fetch: egress.New(egress.Policy{Allow: loopback}).Do})
	engine := flow.New(flow.Options{
		Env: store.Env{
			Folder:      folder,
			Allow:       agent.MustAddressRanges("127.0.0.0/8"),
			Version:     "test",
			Log:         quiet,
			Credentials: creds.Find,
		},
		Index:   index,
		Scripts: scripts,
	})
	servers := registry.New(registry.Options{
		Env: store.Env{
			Folder:      folder,
			Allow:       loopback,
			Version:     "test",
			Log:         quiet,
			Credentials: creds.Find,
		},
		Logins: creds,
	})
	described := apis.New(store.Env{
		Folder:      folder,
		Allow:       loopback,
		Version:     "test",
		Log:         quiet,
		Credentials: creds.Find,
	})
	toolbox := agentchat.NewToolbox(agentchat.ToolOptions{
		Scripts:     scripts,
		MCP:         servers.Call,
		Workflow:    engine.RunTool,
		HTTP:        egress.New(egress.Policy{Allow: loopback}),
		Credentials: creds.Find,
		APIs:        described,
		Version:     "test",
		Log:         quiet,
	})
	chats := agentchat.New(agentchat.Options{
		Model: llm.New(llm.Options{Allow: loopback}),
		Index: index,
		Tools: toolbox.Tools,
		Log:   quiet,
	})
	engine.Register(map[string]*flow.Kind{
		"chat":      flow.ChatKind(chats),
		"tool":      flow.ToolKind(toolbox),
		"operation": flow.OperationKind(described),
	})
	platforms := gateways.New(gateways.Options{
		Env: store.Env{
			Folder:  folder,
			Allow:   loopback,
			Version: "test",
			Log:     quiet,
		},
		Address: "http://127.0.0.1:8787",
	})
	engine.Register(flow.MessageKinds(platforms))
	poller, answerer := gateways.NewPoller(platforms), gateways.NewAnswerer(platforms, chats.Answer)
	dispatcher := dispatch.New(
		folder,
		quiet,
		dispatch.Consumer{Name: store.ConsumerWebhooks, Handle: webhooks.Handle},
		dispatch.Consumer{Name: store.ConsumerWorkflows, Handle: engine.OnEvents},
	)
	browsers := browser.New(browser.Options{
		Env:  store.Env{Folder: folder, Allow: loopback, Log: quiet},
		CDP:  2,
		Find: Chromium,
	})
	views := live.New(live.Options{
		Browser:   browsers,
		PublicURL: "http://localhost",
		Log:       quiet,
	})
	engine.Browse(browsers, views)
	navigator := browse.New(browse.Options{
		Chat: chats,
		Live: views,
		Log:  quiet,
	})
	engine.Instruct(
		navigator,
		credentials.New(credentials.Options{Env: store.Env{Folder: folder, Log: quiet}}).Variables,
	)
	if err := errors.Join(
		scripts.Start(context.Background()),
		engine.Start(context.Background()),
		webhooks.Start(context.Background()),
		platforms.Start(context.Background()),
		poller.Start(context.Background()),
		answerer.Start(context.Background()),
		dispatcher.Start(context.Background()),
	); err != nil {
		return Parts{}, nil, err
	}
	scheduler := schedule.New(schedule.Options{
		Env: store.Env{
			Folder: folder,
			Allow:  agent.MustAddressRanges("127.0.0.0/8"),
			Log:    quiet,
		},
		Runners: callbacks.Callbacks{
			Engine:  engine,
			Chat:    chats,
			Toolbox: toolbox,
		}.Runners(),
	})
	if err := scheduler.Start(context.Background()); err != nil {
		return Parts{}, nil, err
	}
	if err := errors.Join(
		browsers.Start(context.Background()),
		views.Start(context.Background()),
		navigator.Start(context.Background()),
	); err != nil {
		return Parts{}, nil, err
	}
	stop := func() error {
		navigator.Stop()
		views.Stop()
		browsers.Stop()
		dispatcher.Stop()
		answerer.Stop()
		poller.Stop()
		platforms.Stop()
		webhooks.Stop()
		scheduler.Stop()
		crawler.Stop()
		engine.Stop()
		scripts.Stop()
		index.Stop()
		return folder.Close()
	}
	return Parts{
		Folder:      folder,
		Gateways:    platforms,
		Index:       index,
		Crawler:     crawler,
		Scheduler:   scheduler,
		Flow:        engine,
		Webhooks:    webhooks,
		Chat:        chats,
		Toolbox:     toolbox,
		APIs:        described,
		Browser:     browsers,
		Live:        views,
		Navigator:   navigator,
		MCP:         servers,
		Credentials: creds,
	}, stop, nil
}
