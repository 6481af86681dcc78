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

// Defaults and limits of what a viewer may request.
const (
	DefaultFPS     = 12
	DefaultQuality = 75 // of JPEG, 1 to 100
	MaxFPS         = 30
	minScale       = 0.1
)

// titleEvery is how often the title of a watched tab is read.
const titleEvery = 500 * time.Millisecond

// Watch is what a viewer wants to see. Zero values mean the defaults.
type Watch struct {
	PageID  string  // of the tab; "" follows the active one and lists all tabs
	FPS     int     // maximum pictures per second, 1 to 30
	Quality int     // of the JPEGs, 1 to 100
	Scale   float64 // of the pictures relative to the viewport, 0.1 to 1
	Status  bool    // also send the state of the session
	// TabsOnly requests no pictures, like the socket by which Steel's viewer learns
	// about tabs.
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

// frameMessage is a frame in the form that viewers receive.
type frameMessage struct {
	PageID  string `json:"pageId"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Favicon string `json:"favicon"`
	Data    string `json:"data"` // JPEG in base64
}

// cast requests pictures of one tab from Chromium, for all of its viewers.
type cast struct {
	live *Live
	page *browser.Page
	wake chan struct{} // holds one token when the viewers, or what they want, have changed
	done chan struct{} // closed when no more pictures follow

	mu      sync.Mutex
	viewers map[*Viewer]Watch
	last    *frame
	seq     int64
	shown   frameMessage // the message that last was encoded from
}

// attach makes viewer a viewer of a tab; the first viewer starts the cast. If there is a
// picture already, the viewer gets it at once.
func (l *Live) attach(viewer *Viewer, page *browser.Page) (*cast, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.casts[page]
	if c == nil {
		c = &cast{
			live:    l,
			page:    page,
			wake:    make(chan struct{}, 1),
			done:    make(chan struct{}),
			viewers: map[*Viewer]Watch{},
		}
		if err := l.spawnLocked(c.run); err != nil {
			return nil, err
		}
		l.casts[page] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.viewers[viewer] = viewer.watch
	notify(c.wake)
	return c, nil
}

// detach removes a viewer. The cast ends with its last one.
func (c *cast) detach(v *Viewer) {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.viewers, v)
	if len(c.viewers) == 0 && c.live.casts[c.page] == c {
		delete(c.live.casts, c.page)
	}
	notify(c.wake)
}

// notify puts a token into a channel unless it holds one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wanted returns the maximum that any viewer wants, or false if there are no viewers.
func (c *cast) wanted() (w Watch, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.viewers {
		w.FPS, w.Quality, w.Scale = max(w.FPS, each.FPS), max(w.Quality, each.Quality), max(w.Scale, each.Scale)
		any = true
	}
	return w, any
}

// run casts until there are no viewers, the tab is closed or ctx ends.
func (c *cast) run(ctx context.Context) {
	defer close(c.done)
	defer c.remove()
	cdp, err := c.page.CDP(ctx)
	if err != nil {
		c.live.log.Debug("cast tab", "page", c.page.ID(), "error", err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		// fails if the tab is closed, which detaches it anyway
		_, _ = browser.Within(ctx, func() (any, error) {
			return nil, cdp.Detach()
		})
	}()
	frames := &frameBuffer{ready: make(chan struct{}, 1)}
	cdp.On("Page.screencastFrame", frames.add)
	changed, unsubscribe := c.page.Session().Changes()
	defer unsubscribe()
	icons := &icons{cdp: cdp, cast: c}
	c.stream(ctx, cdp, frames, changed, icons)
	icons.running.Wait()
}

// remove removes a cast that has ended, so that the next viewer starts a new one.
func (c *cast) remove() {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	if c.live.casts[c.page] == c {
		delete(c.live.casts, c.page)
	}
}

// stream requests pictures as fast as the fastest viewer wants them: Chromium sends the
// next one when the previous one is acknowledged.
func (c *cast) stream(
	ctx context.Context,
	cdp playwright.CDPSession,
	frames *frameBuffer,
	changed <-chan struct{},
	icons *icons,
) {
	var on Watch // settings of the running screencast; zero if none runs
	var next time.Time
	due := time.NewTimer(0)
	defer due.Stop()
	title := time.NewTicker(titleEvery)
	defer title.Stop()
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
		case <-title.C:
			c.page.RefreshTitle()
		case <-changed:
			c.refresh()
			icons.refresh(ctx, c.page.Address())
		case <-frames.ready:
			c.publish(frames.newest())
			icons.refresh(ctx, c.page.Address())
			due.Reset(time.Until(next))
		case now := <-due.C:
			if acknowledge(ctx, cdp, frames.takeUnacknowledged()) {
				next = now.Add(time.Second / time.Duration(on.FPS))
			}
		}
	}
}

// start starts the screencast, or restarts it with other settings.
func (c *cast) start(ctx context.Context, cdp playwright.CDPSession, w Watch) error {
	size := c.page.Session().Viewport()
	return send(ctx, cdp, "Page.startScreencast", map[string]any{
		"format":        "jpeg",
		"quality":       w.Quality,
		"everyNthFrame": 1,
		"maxWidth":      int(math.Round(float64(size.Width) * w.Scale)),
		"maxHeight":     int(math.Round(float64(size.Height) * w.Scale)),
	})
}

// acknowledge lets Chromium send the next picture. It returns false if there was
// nothing to acknowledge.
func acknowledge(ctx context.Context, cdp playwright.CDPSession, ids []any) bool {
	for _, id := range ids {
		// an error does not matter: the loop ends with the tab
		_ = send(ctx, cdp, "Page.screencastFrameAck", map[string]any{"sessionId": id})
	}
	return len(ids) > 0
}

// send calls a method of the DevTools protocol within callTimeout.
func send(ctx context.Context, cdp playwright.CDPSession, method string, params map[string]any) error {
	_, err := call(ctx, cdp, method, params)
	return err
}

// call is send with a result.
func call(
	ctx context.Context,
	cdp playwright.CDPSession,
	method string,
	params map[string]any,
) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := browser.Within(ctx, func() (any, error) {
		return cdp.Send(method, params)
	})
	fields, _ := answer.(map[string]any)
	return fields, err
}

// publish sends a picture to all viewers.
func (c *cast) publish(data string) {
	if data == "" {
		return
	}
	c.update(func(p *frameMessage) { p.Data = data })
}

// refresh sends the last picture again if the address, title or icon has changed.
func (c *cast) refresh() {
	c.update(func(*frameMessage) {})
}

func (c *cast) update(change func(*frameMessage)) {
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
		raw, _ := json.Marshal(p) // a struct of strings cannot fail
		return raw
	})}
	for v := range c.viewers {
		notify(v.wake)
	}
}

// newest returns the last picture, or nil before the first.
func (c *cast) newest() *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// frameBuffer keeps the newest picture received by Playwright's handler, which must
// neither block nor call Playwright. Chromium sends at most a few pictures before one
// is acknowledged.
type frameBuffer struct {
	mu    sync.Mutex
	data  string
	ids   []any
	ready chan struct{}
}

func (s *frameBuffer) add(params map[string]any) {
	data, _ := params["data"].(string)
	s.mu.Lock()
	s.data = data
	s.ids = append(s.ids, params["sessionId"])
	s.mu.Unlock()
	notify(s.ready)
}

func (s *frameBuffer) newest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

func (s *frameBuffer) takeUnacknowledged() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.ids
	s.ids = nil
	return ids
}
