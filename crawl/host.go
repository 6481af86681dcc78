package crawl

import (
	"context"
	"sync"
	"time"

	"satchel/agent/clock"
)

// Politeness is how a host is treated by all crawls together. A zero field
// means its default.
type Politeness struct {
	Connections   int           // at the same time; default 2
	Delay         time.Duration // between the starts of two requests; default 100 ms, negative for none
	MaxDelay      time.Duration // upper limit for a Crawl-delay of robots.txt; default 10 s
	MaxRetryAfter time.Duration // longest wait for a host that asks to retry later; default 30 s
	PageTimeout   time.Duration // for one page including redirects and body; default 30 s
}

func (p Politeness) orDefaults() Politeness {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	if p.Connections <= 0 {
		p.Connections = 2
	}
	set(&p.Delay, 100*time.Millisecond)
	set(&p.MaxDelay, 10*time.Second)
	set(&p.MaxRetryAfter, 30*time.Second)
	set(&p.PageTimeout, 30*time.Second)
	return p
}

// hosts holds the hosts that are being crawled.
type hosts struct {
	mu     sync.Mutex
	byName map[site]*host
}

// host spaces the requests to one site.
type host struct {
	slots chan struct{}
	users int // walks; guarded by hosts.mu

	mu   sync.Mutex
	gap  time.Duration
	next time.Time // when the next request may start
}

// acquire returns the host of a site. Call release when the walk has ended.
func (hs *hosts) acquire(s site, p Politeness) *host {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byName[s]
	if h == nil {
		h = &host{slots: make(chan struct{}, p.Connections), gap: p.Delay}
		hs.byName[s] = h
	}
	h.users++
	return h
}

func (hs *hosts) release(s site) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.byName[s]; h != nil {
		if h.users--; h.users == 0 {
			delete(hs.byName, s)
		}
	}
}

// connect waits for one of the host's connections. disconnect releases it.
func (h *host) connect(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *host) disconnect() { <-h.slots }

// wait waits until the next request may start.
func (h *host) wait(ctx context.Context) error {
	h.mu.Lock()
	start := time.Now()
	if h.next.After(start) {
		start = h.next
	}
	h.next = start.Add(h.gap)
	h.mu.Unlock()
	remaining := time.Until(start)
	if remaining <= 0 {
		return ctx.Err()
	}
	return clock.Sleep(ctx, remaining)
}

// pause prevents requests for a while.
func (h *host) pause(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.next) {
		h.next = until
	}
}

// widenDelay increases the time between two requests.
func (h *host) widenDelay(gap time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap = max(h.gap, gap)
}
