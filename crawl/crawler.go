package crawl

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/work"
	"satchel/store"
)

// Options configure a Crawler.
type Options struct {
	store.Env
	// Extract reads the text and the links from the body of a response, in any
	// character set. Clients see its errors if they are *agent.Error; links are
	// followed regardless.
	Extract func(ctx context.Context, address, contentType string, body []byte) (agent.PageContent, error)
	// Render opens a page in a browser and returns what it shows. It enforces
	// the rules of agent/egress itself; its errors are like those of Extract.
	// nil: there is no browser, and plans with Render are rejected.
	Render     func(ctx context.Context, address string) (agent.RenderedPage, error)
	Politeness Politeness
}

// product is the product token of a Crawler in robots.txt.
const product = "Satchel"

// Crawler crawls the websites of the agents' sources in the background.
type Crawler struct {
	options    Options
	politeness Politeness
	client     *egress.Client
	hosts      hosts
	log        *slog.Logger
	onStep     func(name string) // called at each step of the work; for tests
	batch      int               // maximum pages stored in one commit; for tests

	extracting chan struct{} // a token for each page that may be extracted at the same time

	agents  *work.Queue[*store.DB] // agents whose walks must be looked up
	walks   *work.Queue[walkKey]
	lookups atomic.Int64 // number of completed lookups
}

// New returns a Crawler. It does nothing until Start.
func New(options Options) *Crawler {
	politeness := options.Politeness.orDefaults()
	crawler := &Crawler{
		options:    options,
		politeness: politeness,
		log:        options.Logger(),
		onStep:     func(string) {},
		batch:      maxBatch,
		client: egress.New(egress.Policy{
			Allow:         options.Allow,
			MaxResponse:   maxPage,
			HeaderTimeout: politeness.PageTimeout,
		}),
		hosts:      hosts{byName: map[site]*host{}},
		extracting: make(chan struct{}, work.Processors),
	}
	crawler.makeQueues()
	options.Folder.OnPending(crawler.notify)
	return crawler
}

// Check validates a plan: its limits, its globs, and whether its start may be
// reached, as far as that can be determined without network access. The error
// names the field.
func (c *Crawler) Check(p *agent.CrawlPlan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := CheckPatterns(p); err != nil {
		return err
	}
	if p.Render && c.options.Render == nil {
		return agent.Invalid("render", "is not available: no browser is installed on this server")
	}
	_, err := c.parseStart(p)
	return err
}

func (c *Crawler) parseStart(p *agent.CrawlPlan) (*url.URL, error) {
	u, err := c.client.CheckField("url", p.URL)
	if err != nil {
		return nil, err
	}
	if _, ok := normalize(u); !ok {
		return nil, agent.Invalid("url", fmt.Sprintf("must be a URL of at most %d bytes", maxURL))
	}
	return u, nil
}

// newWalk prepares a walk. release releases the host.
func (c *Crawler) newWalk(db *store.DB, work store.CrawlWork) (w *walk, release func(), err error) {
	start, err := c.parseStart(&work.Plan)
	if _, refused := c.client.CheckURL(work.Plan.URL); refused != nil {
		err = refused // parseStart's error names the field of a request
	}
	if err == nil && work.Plan.Render && c.options.Render == nil {
		err = agent.Errorf(CodeNoBrowser, "this source requires a browser, but none is installed on this server")
	}
	if err != nil {
		return nil, nil, err
	}
	w = &walk{
		crawler: c,
		db:      db,
		work:    work,
		site:    siteOf(start),
		start:   start,
		globs:   globsOf(work.Plan),
		allowed: map[string]bool{},
		literal: map[string]bool{},
		renamed: map[string]bool{},
		namedBy: map[string]store.QueuedPage{},
		queued:  map[string]int{},
	}
	host := c.hosts.acquire(w.site, c.politeness)
	userAgent := product + "/" + c.options.Version
	w.fetcher = &fetcher{
		transport:     c.client.Transport(),
		host:          host,
		politeness:    c.politeness,
		userAgent:     userAgent,
		checkRedirect: w.checkRedirect,
	}
	if work.Plan.Render {
		w.fetcher.browser = c.options.Render
	}
	if !work.Plan.IgnoreRobots {
		w.robots = &robots{
			agent: product,
			rules: map[string]*robotsRules{},
			limit: min(robotsTimeout, c.politeness.PageTimeout),
			setDelay: func(d time.Duration) {
				host.widenDelay(min(d, c.politeness.MaxDelay))
			},
			fetch: func(ctx context.Context, address string) (int, []byte, error) {
				if err := host.wait(ctx); err != nil {
					return 0, nil, err
				}
				return readRobots(ctx, c.client.HTTP(), address, userAgent)
			},
		}
	}
	return w, func() { c.hosts.release(w.site) }, nil
}

// extract runs Extract on one of the processors. If it panics, the page cannot
// be read.
func (c *Crawler) extract(
	ctx context.Context,
	address, contentType string,
	body []byte,
) (page agent.PageContent, err error) {
	select {
	case c.extracting <- struct{}{}:
		defer func() { <-c.extracting }()
	case <-ctx.Done():
		return agent.PageContent{}, ctx.Err()
	}
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("extract text of page", "error", r, "stack", string(debug.Stack()))
			err = agent.Errorf(agent.CodeInternal, "the page's text could not be read")
		}
	}()
	return c.options.Extract(ctx, address, contentType, body)
}
