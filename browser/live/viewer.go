package live

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"satchel/agent"
	"satchel/browser"
)

// retryCast is how long a viewer waits before it retries a cast that ended while it was
// watching.
const retryCast = time.Second

// maxReplies limits the queued replies to a viewer's own requests.
const maxReplies = 16

// Viewer is a subscriber to a session's pictures and tabs. Only Reply may be called
// concurrently with Next.
type Viewer struct {
	live        *Live
	session     *browser.Session
	watch       Watch
	wake        chan struct{}
	changed     <-chan struct{}
	unsubscribe func() // unsubscribes from changed

	tabs       []string // ids of the tabs that the viewer knows of
	sentList   string   // the tab list that was sent last
	sentActive string   // the active tab that was sent last
	sentStatus string   // the status that was sent last
	cast       *cast    // the cast being watched, or nil
	sentFrame  int64    // number of the picture that was sent last
	next       time.Time

	mu      sync.Mutex
	replies [][]byte
}

// Watch returns a viewer of a session. A tab that is not open is NOT_FOUND. The caller
// must close the viewer.
func (l *Live) Watch(s *browser.Session, w Watch) (*Viewer, error) {
	if w.PageID != "" && s.Page(w.PageID) == nil {
		return nil, agent.NotFound("page", w.PageID)
	}
	v := &Viewer{
		live:    l,
		session: s,
		watch:   w.withDefaults(),
		wake:    make(chan struct{}, 1),
	}
	v.changed, v.unsubscribe = s.Changes()
	return v, nil
}

// Close ends watching. Next must not be running, and must not be called afterwards.
func (v *Viewer) Close() {
	v.detach()
	v.unsubscribe()
}

func (v *Viewer) detach() {
	if v.cast != nil {
		v.cast.detach(v)
		v.cast = nil
	}
}

// Reply has Next return a message before the next picture. If too many replies are
// queued, it is dropped, because the viewer does not read them.
func (v *Viewer) Reply(message []byte) {
	v.mu.Lock()
	if len(v.replies) < maxReplies {
		v.replies = append(v.replies, message)
	}
	v.mu.Unlock()
	notify(v.wake)
}

func (v *Viewer) reply() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.replies) == 0 {
		return nil
	}
	first := v.replies[0]
	v.replies = v.replies[1:]
	return first
}

// Next waits for the next message to the viewer, as JSON: a reply, a change of the
// session or its tabs, or the newest picture. It returns io.EOF when no more messages
// follow.
func (v *Viewer) Next(ctx context.Context) ([]byte, error) {
	for {
		select {
		case <-v.session.Done():
			return nil, io.EOF
		default:
		}
		if message := v.nextMessage(); message != nil {
			return message, nil
		}
		page := v.page()
		if page == nil && v.watch.PageID != "" {
			return nil, io.EOF
		}
		if err := v.attach(page); err != nil {
			return nil, err
		}
		wait := time.Hour
		if f := v.newFrame(); f != nil {
			if wait = time.Until(v.next); wait <= 0 {
				v.sentFrame, v.next = f.seq, time.Now().Add(time.Second/time.Duration(v.watch.FPS))
				return f.encoded(), nil
			}
		}
		if err := v.wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// wait waits until there may be a message to send.
func (v *Viewer) wait(ctx context.Context, wait time.Duration) error {
	var ended chan struct{}
	if v.cast != nil {
		ended = v.cast.done
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-v.session.Done():
	case <-v.changed:
	case <-v.wake:
	case <-timer.C:
	case <-ended:
		v.detach()
		again := time.NewTimer(retryCast)
		defer again.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.changed:
		case <-again.C:
		}
	}
	return nil
}

// page returns the tab that the viewer wants to see, or nil.
func (v *Viewer) page() *browser.Page {
	if v.watch.TabsOnly {
		return nil
	}
	if v.watch.PageID != "" {
		return v.session.Page(v.watch.PageID)
	}
	return v.session.ActivePage()
}

// attach watches a tab instead of the previous one.
func (v *Viewer) attach(page *browser.Page) error {
	if v.cast != nil && v.cast.page == page || v.cast == nil && page == nil {
		return nil
	}
	v.detach()
	if page == nil {
		return nil
	}
	c, err := v.live.attach(v, page)
	v.cast, v.sentFrame = c, 0
	return err
}

// newFrame returns the newest picture, or nil if the viewer has it already.
func (v *Viewer) newFrame() *frame {
	if v.cast == nil {
		return nil
	}
	if f := v.cast.newest(); f != nil && f.seq != v.sentFrame {
		return f
	}
	return nil
}

// nextMessage returns the next message other than a picture, or nil.
func (v *Viewer) nextMessage() []byte {
	if message := v.reply(); message != nil {
		return message
	}
	if v.watch.Status {
		if status := string(v.live.status(v.session)); status != v.sentStatus {
			v.sentStatus = status
			return []byte(status)
		}
	}
	if v.watch.PageID != "" {
		return v.closedMessage()
	}
	return v.tabsMessage()
}

type tabClosed struct {
	Type   string `json:"type"`
	PageID string `json:"pageId"`
}

// closedMessage returns, once, the message that the viewer's only tab was closed.
func (v *Viewer) closedMessage() []byte {
	if v.session.Page(v.watch.PageID) != nil || v.sentList != "" {
		return nil
	}
	raw, _ := json.Marshal(tabClosed{"tabClosed", v.watch.PageID}) // strings cannot fail
	v.sentList = string(raw)
	return raw
}

// tab is an open tab. Id is Steel's name for pageId.
type tab struct {
	PageID  string `json:"pageId"`
	ID      string `json:"id"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Favicon string `json:"favicon"`
}

type tabList struct {
	Type     string `json:"type"`
	Tabs     []tab  `json:"tabs"`
	FirstID  string `json:"firstTabId"`
	ActiveID string `json:"activeTabId"`
}

type activeTab struct {
	Type   string `json:"type"`
	PageID string `json:"pageId"`
}

// tabsMessage reports closed tabs one by one, then those that are open, then
// which is active: without the last, Steel's viewer shows the last tab of the
// list.
func (v *Viewer) tabsMessage() []byte {
	pages := v.session.Pages()
	list := tabList{Type: "tabList", Tabs: make([]tab, 0, len(pages))}
	open := map[string]bool{}
	for _, p := range pages {
		open[p.ID()] = true
		list.Tabs = append(list.Tabs, tab{
			PageID:  p.ID(),
			ID:      p.ID(),
			URL:     p.URL(),
			Title:   p.Title(),
			Favicon: v.live.icon(p),
		})
	}
	for i, id := range v.tabs {
		if !open[id] {
			v.tabs = append(v.tabs[:i:i], v.tabs[i+1:]...)
			raw, _ := json.Marshal(tabClosed{"tabClosed", id})
			return raw
		}
	}
	if len(pages) > 0 {
		list.FirstID = pages[0].ID()
	}
	if active := v.session.ActivePage(); active != nil {
		list.ActiveID = active.ID()
	}
	raw, _ := json.Marshal(list)
	if string(raw) == v.sentList {
		if list.ActiveID == v.sentActive || list.ActiveID == "" {
			return nil
		}
		v.sentActive = list.ActiveID
		raw, _ = json.Marshal(activeTab{"activeTabChange", v.sentActive})
		return raw
	}
	v.sentList, v.tabs = string(raw), v.tabs[:0]
	for _, t := range list.Tabs {
		v.tabs = append(v.tabs, t.PageID)
	}
	return raw
}
