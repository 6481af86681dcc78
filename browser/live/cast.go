package live

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/browser"
)

// What a viewer gets that asks for nothing else, and the most it may ask for.
const (
	DefaultFPS     = 12
	DefaultQuality = 75 // of JPEG, 1 to 100
	MaxFPS         = 30
	minScale       = 0.1
)

// lookEvery is how often the title of a tab that is watched is read.
const lookEvery = 500 * time.Millisecond

// Watch is what a viewer wants to see. Zero values mean the defaults.
type Watch struct {
	PageID  string  // of the tab; "" follows the active one and tells of all tabs
	FPS     int     // pictures a second at most, 1 to 30
	Quality int     // of the JPEGs, 1 to 100
	Scale   float64 // of the pictures against the viewport, 0.1 to 1
	Status  bool    // tell what state the session is in, too
	// TabsOnly wants no pictures, as Steel's viewer does of the socket by which
	// it learns of tabs.
	TabsOnly bool
}

func (w Watch) withDefaults() Watch {
	if w.FPS <= 0 {
		w.FPS = DefaultFPS
	}
	if w.Quality <= 0 {
		w.Quality = DefaultQuality
	}
	if w.Scale <= 0 || math.IsNaN(w.Scale) {
		w.Scale = 1
	}
	w.FPS, w.Quality, w.Scale = min(w.FPS, MaxFPS), min(w.Quality, 100), max(min(w.Scale, 1), minScale)
	return w
}

// frame is one picture of a tab. All viewers share its encoded form.
type frame struct {
	seq     int64
	encoded func() []byte
}

// picture is a frame as it goes out.
type picture struct {
	PageID  string `json:"pageId"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Favicon string `json:"favicon"`
	Data    string `json:"data"` // JPEG in base64
}

// cast asks Chromium for pictures of one tab, for all who watch it.
type cast struct {
	live *Live
	page *browser.Page
	wake chan struct{} // holds one token when viewers or what they want changed
	done chan struct{} // closed when no more pictures come

	mu      sync.Mutex
	viewers map[*Viewer]Watch
	last    *frame
	seq     int64
	shown   picture // what last was made of
}

// attach makes v a viewer of a tab; the first one starts the cast. A picture
// that is there already is seen at once.
func (l *Live) attach(v *Viewer, p *browser.Page) (*cast, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.casts[p]
	if c == nil {
		c = &cast{live: l, page: p, wake: make(chan struct{}, 1), done: make(chan struct{}), viewers: map[*Viewer]Watch{}}
		if err := l.spawnLocked(c.run); err != nil {
			return nil, err
		}
		l.casts[p] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.viewers[v] = v.watch
	poke(c.wake)
	return c, nil
}

// detach ends the cast with its last viewer.
func (c *cast) detach(v *Viewer) {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.viewers, v)
	if len(c.viewers) == 0 && c.live.casts[c.page] == c {
		delete(c.live.casts, c.page)
	}
	poke(c.wake)
}

// poke leaves a token where there is none.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wanted is the most that any viewer wants; false when there is none left.
func (c *cast) wanted() (w Watch, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.viewers {
		w.FPS, w.Quality, w.Scale = max(w.FPS, each.FPS), max(w.Quality, each.Quality), max(w.Scale, each.Scale)
		any = true
	}
	return w, any
}

// run casts until nobody watches, the tab is closed or ctx ends.
func (c *cast) run(ctx context.Context) {
	defer close(c.done)
	defer c.forget()
	cdp, err := c.page.CDP(ctx)
	if err != nil {
		c.live.log.Debug("a tab cannot be shown", "page", c.page.ID(), "error", err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		_, _ = browser.Within(ctx, func() (any, error) { return nil, cdp.Detach() }) // a tab that is gone takes it along
	}()
	shutter := &shutter{ready: make(chan struct{}, 1)}
	cdp.On("Page.screencastFrame", shutter.take)
	changed, unsubscribe := c.page.Session().Changes()
	defer unsubscribe()
	icons := &icons{cdp: cdp, cast: c}
	c.pump(ctx, cdp, shutter, changed, icons)
	icons.running.Wait()
}

// forget takes a cast that cannot run from the list, so that the next viewer
// tries anew.
func (c *cast) forget() {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	if c.live.casts[c.page] == c {
		delete(c.live.casts, c.page)
	}
}

// pump takes pictures as fast as the fastest viewer wants them: Chromium makes
// the next one when the one before is acknowledged.
func (c *cast) pump(ctx context.Context, cdp playwright.CDPSession, s *shutter, changed <-chan struct{}, icons *icons) {
	var on Watch // what the screencast runs with; zero while it does not
	var next time.Time
	due := time.NewTimer(0)
	defer due.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		want, any := c.wanted()
		if !any {
			return
		}
		if want.Quality != on.Quality || want.Scale != on.Scale {
			if err := c.start(ctx, cdp, want); err != nil {
				return
			}
		}
		on = want
		select {
		case <-ctx.Done():
			return
		case <-c.page.Done():
			return
		case <-c.wake:
		case <-look.C:
			c.page.Look()
		case <-changed:
			c.retitle()
			icons.look(ctx, c.page.URL())
		case <-s.ready:
			c.publish(s.newest())
			icons.look(ctx, c.page.URL())
			due.Reset(time.Until(next))
		case now := <-due.C:
			if acknowledge(ctx, cdp, s.unacknowledged()) {
				next = now.Add(time.Second / time.Duration(on.FPS))
			}
		}
	}
}

// start begins the screencast, or begins it anew with other sizes.
func (c *cast) start(ctx context.Context, cdp playwright.CDPSession, w Watch) error {
	size := c.page.Session().Viewport()
	return send(ctx, cdp, "Page.startScreencast", map[string]any{"format": "jpeg", "quality": w.Quality, "everyNthFrame": 1,
		"maxWidth": int(math.Round(float64(size.Width) * w.Scale)), "maxHeight": int(math.Round(float64(size.Height) * w.Scale))})
}

// acknowledge lets Chromium make the next picture; false when there was
// nothing to acknowledge.
func acknowledge(ctx context.Context, cdp playwright.CDPSession, ids []any) bool {
	for _, id := range ids {
		_ = send(ctx, cdp, "Page.screencastFrameAck", map[string]any{"sessionId": id}) // the loop ends with the tab
	}
	return len(ids) > 0
}

// send calls a method of the DevTools protocol within callTimeout.
func send(ctx context.Context, cdp playwright.CDPSession, method string, params map[string]any) error {
	_, err := ask(ctx, cdp, method, params)
	return err
}

// ask is send with the answer.
func ask(ctx context.Context, cdp playwright.CDPSession, method string, params map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := browser.Within(ctx, func() (any, error) { return cdp.Send(method, params) })
	fields, _ := answer.(map[string]any)
	return fields, err
}

// publish shows a picture to all viewers.
func (c *cast) publish(data string) {
	if data == "" {
		return
	}
	c.show(func(p *picture) { p.Data = data })
}

// retitle shows the last picture again when address, title or icon changed.
func (c *cast) retitle() { c.show(func(*picture) {}) }

func (c *cast) show(change func(*picture)) {
	url, title, icon := c.page.URL(), c.page.Title(), c.live.icon(c.page)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.shown
	p.PageID, p.URL, p.Title, p.Favicon = c.page.ID(), url, title, icon
	change(&p)
	if p.Data == "" || c.last != nil && p == c.shown {
		return
	}
	c.shown = p
	c.seq++
	c.last = &frame{seq: c.seq, encoded: sync.OnceValue(func() []byte {
		raw, _ := json.Marshal(p) // a struct of strings
		return raw
	})}
	for v := range c.viewers {
		poke(v.wake)
	}
}

// newest is the last picture; nil before the first.
func (c *cast) newest() *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// shutter takes pictures as they come from Playwright's handler, which must
// neither block nor call Playwright. Chromium has a few unacknowledged ones
// under way at most.
type shutter struct {
	mu    sync.Mutex
	data  string
	ids   []any
	ready chan struct{}
}

func (s *shutter) take(params map[string]any) {
	data, _ := params["data"].(string)
	s.mu.Lock()
	s.data = data
	s.ids = append(s.ids, params["sessionId"])
	s.mu.Unlock()
	poke(s.ready)
}

func (s *shutter) newest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

func (s *shutter) unacknowledged() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.ids
	s.ids = nil
	return ids
}
