package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/agent/egress"
)

// Limits of Render.
const (
	maxRenders    = 3
	maxRendered   = 10 << 20        // characters of HTML
	settleTime    = 3 * time.Second // for what a page loads after it has loaded
	renderTimeout = time.Minute
)

// Render opens a URL in a separate profile, outside any session, waits until
// the page has loaded and its network is idle, and returns what it shows. The
// same egress rules apply as for sessions; a refusal is an *egress.Error. Only
// a few pages are rendered at the same time.
func (b *Browser) Render(ctx context.Context, address string) (agent.RenderedPage, error) {
	select {
	case b.rendering <- struct{}{}:
		defer func() { <-b.rendering }()
	case <-ctx.Done():
		return agent.RenderedPage{}, ctx.Err()
	}
	if _, err := b.guard.CheckURL(address); err != nil {
		return agent.RenderedPage{}, err
	}
	chromium, err := b.acquireChromium(true)
	if err != nil {
		return agent.RenderedPage{}, err
	}
	defer b.releaseChromium(chromium)
	var refused refusedHosts
	proxy, err := b.guard.Proxy(egress.ProxyOptions{Refused: refused.note, Port: b.port})
	if err != nil {
		return agent.RenderedPage{}, err
	}
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	page, err := chromium.render(ctx, proxy, address)
	if cause := refused.of(page.Final); cause != nil && !errors.Is(err, playwright.ErrTimeout) {
		return agent.RenderedPage{}, cause // the page shown was the proxy's refusal
	}
	return page, err
}

// refusedHosts records the hosts that a page was refused.
type refusedHosts struct {
	mu    sync.Mutex
	hosts map[string]*egress.Error
	first *egress.Error
}

func (r *refusedHosts) note(e *egress.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first, r.hosts = e, map[string]*egress.Error{}
	}
	if len(r.hosts) < maxRefusals {
		r.hosts[e.Host] = e
	}
}

// of returns the refusal of a URL, or for "", if nothing was shown, the first
// refusal.
func (r *refusedHosts) of(address string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		return nil
	}
	if address == "" {
		return r.first
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	if e := r.hosts[u.Hostname()]; e != nil {
		return e
	}
	return nil
}

// render opens a URL in a profile whose traffic goes through proxy.
func (c *chromium) render(ctx context.Context, proxy *egress.Proxy, address string) (agent.RenderedPage, error) {
	block := playwright.ServiceWorkerPolicyBlock
	profile, err := c.newProfile(ctx, proxy, playwright.BrowserNewContextOptions{
		AcceptDownloads: playwright.Bool(false),
		ServiceWorkers:  block,
	})
	if err != nil {
		return agent.RenderedPage{}, renderError("the browser could not open a page", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_, _ = Within(ctx, func() (any, error) {
			return nil, profile.Close()
		}) // the outcome does not matter
	}()
	return Within(ctx, func() (agent.RenderedPage, error) {
		return loadPage(profile, address)
	})
}

// loadPage opens a URL in a tab of a profile and reads what it shows. Slow
// calls have their own timeouts, and end when the profile is closed.
func loadPage(profile playwright.BrowserContext, address string) (agent.RenderedPage, error) {
	if err := profile.AddInitScript(playwright.Script{Content: playwright.String(withoutWebRTC)}); err != nil {
		return agent.RenderedPage{}, renderError("the browser could not open a page", err)
	}
	page, err := profile.NewPage()
	if err != nil {
		return agent.RenderedPage{}, renderError("the browser could not open a page", err)
	}
	answer, err := page.Goto(address, playwright.PageGotoOptions{
		Timeout: playwright.Float(renderTimeout.Seconds() * 1000),
	})
	if err != nil {
		return agent.RenderedPage{}, renderError("the browser could not load the page", err)
	}
	if answer == nil {
		return agent.RenderedPage{}, renderError("the page did not respond", nil)
	}
	// A page that never becomes idle is read as it is.
	err = page.WaitForLoadState(playwright.PageWaitForLoadStateOptions{
		State:   playwright.LoadStateNetworkidle,
		Timeout: playwright.Float(float64(settleTime.Milliseconds())),
	})
	if err != nil && !errors.Is(err, playwright.ErrTimeout) {
		return agent.RenderedPage{}, renderError("the page ended while it was read", err)
	}
	html, err := page.Evaluate(fmt.Sprintf("() => document.documentElement.outerHTML.slice(0, %d)", maxRendered+1))
	if err != nil {
		return agent.RenderedPage{}, renderError("the page could not be read", err)
	}
	text, _ := html.(string)
	if len(text) > maxRendered {
		return agent.RenderedPage{}, agent.Errorf(
			agent.CodeFileTooLarge,
			"the page has more than %d MB of HTML",
			maxRendered>>20,
		)
	}
	return agent.RenderedPage{
		Final:  page.URL(),
		Status: answer.Status(),
		HTML:   text,
	}, nil
}

func renderError(what string, err error) error {
	return agent.Errorf(agent.CodeUpstream, "%s", what).Because(err)
}
