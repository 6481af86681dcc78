package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/browser"
)

// Two presses of a button are a double click when they come within this time
// and distance, in viewport pixels.
const (
	doubleClickTime     = 500 * time.Millisecond
	doubleClickDistance = 6
)

// navigateTimeout bounds a person's navigation.
const navigateTimeout = 60 * time.Second

// maxSelection limits the selected text that is returned, in bytes.
const maxSelection = 256 << 10

// Controller controls a session for one person. Do must not be called concurrently.
type Controller struct {
	live    *Live
	session *browser.Session
	pageID  string // tab to act in when a message names no open tab; "" means the active one

	page             *browser.Page // whose DevTools session cdp is
	cdp              playwright.CDPSession
	pressed          int    // buttons that are down, as in DOM's MouseEvent.buttons
	typed            string // text typed by the last keyDown, until a char event repeats it
	clicks           clicks
	field            string             // Chromium's id of the field that was offered last; "" if none was
	cancelNavigation context.CancelFunc // cancels the navigation in progress
}

// Controller returns a controller of a session for one person. It acts in the tab with
// this id unless a message names another open one; "" means the active tab. The caller
// must close it.
func (l *Live) Controller(s *browser.Session, pageID string) *Controller {
	return &Controller{
		live:             l,
		session:          s,
		pageID:           pageID,
		cancelNavigation: func() {},
	}
}

// Close releases the pressed buttons.
func (c *Controller) Close() {
	c.cancelNavigation()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	c.detach(ctx)
}

// Do performs a person's input. answer is the reply to send, or nil. An invalid message
// is INVALID_ACTION.
func (c *Controller) Do(ctx context.Context, in Input) (answer []byte, err error) {
	c.session.Touch()
	page, err := c.target(in)
	if err != nil {
		return nil, err
	}
	answer, err = c.act(ctx, page, in)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		c.live.mu.Lock()
		defer c.live.mu.Unlock()
		_ = c.live.spawnLocked(func(context.Context) { page.EndIfHung() }) // fails while the server is stopping
	}
	return answer, err
}

func (c *Controller) act(ctx context.Context, page *browser.Page, in Input) (answer []byte, err error) {
	switch in.Kind {
	case "mouseEvent":
		return c.mouse(ctx, page, in.Mouse)
	case "keyEvent":
		return c.key(ctx, page, in.Key)
	case "setField":
		return nil, c.setField(ctx, page, in.Text)
	case "insertText":
		if err := c.attach(ctx, page); err != nil {
			return nil, err
		}
		return nil, send(ctx, c.cdp, "Input.insertText", map[string]any{"text": in.Text})
	case "navigation":
		return nil, c.navigate(ctx, page, in)
	case "selectTab":
		return nil, c.session.Activate(ctx, page)
	case "getSelectedText":
		return c.selection(ctx, page)
	case "closeTab":
		return nil, page.Close(ctx)
	default: // newTab; ParseInput accepts no others
		_, err := c.session.OpenPage(ctx)
		return nil, err
	}
}

// target returns the tab that a message refers to: the one that it names, or else the
// one that c is bound to, or else the active one. Viewers use names of their own
// ("default") for what they show, so an unknown id is ignored, except for closing and
// selecting tabs, where it means that the tab is gone.
func (c *Controller) target(in Input) (*browser.Page, error) {
	if in.PageID != "" && in.PageID != defaultPage {
		page := c.session.Page(in.PageID)
		if page != nil {
			return page, nil
		}
		if in.Kind == "closeTab" || in.Kind == "selectTab" {
			return nil, agent.NotFound("page", in.PageID)
		}
	}
	page := c.session.ActivePage()
	if c.pageID != "" {
		page = c.session.Page(c.pageID)
	}
	if page == nil {
		return nil, agent.NotFound("page", c.pageID)
	}
	return page, nil
}

// defaultPage is the id that Steel's viewer uses for the only tab that it shows.
const defaultPage = "default"

// attach opens a DevTools session with a tab and keeps it until input is for another
// tab.
func (c *Controller) attach(ctx context.Context, page *browser.Page) error {
	if c.page == page {
		return nil
	}
	c.detach(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cdp, err := page.CDP(ctx)
	if err != nil {
		return err
	}
	c.page, c.cdp = page, cdp
	return nil
}

func (c *Controller) detach(ctx context.Context) {
	if c.cdp == nil {
		return
	}
	for button, bit := range buttonBits {
		if c.pressed&bit != 0 {
			_ = send(ctx, c.cdp, "Input.dispatchMouseEvent", map[string]any{
				"type":       "mouseReleased",
				"x":          c.clicks.x,
				"y":          c.clicks.y,
				"button":     button,
				"clickCount": 1,
			})
		}
	}
	cdp := c.cdp
	// fails if the tab is closed, which detaches it anyway
	_, _ = browser.Within(ctx, func() (any, error) {
		return nil, cdp.Detach()
	})
	c.page, c.cdp, c.pressed, c.typed, c.field = nil, nil, 0, "", ""
}

// clicks counts the clicks of a double click.
type clicks struct {
	at     time.Time
	x, y   float64
	button string
	n      int
}

func (c *clicks) press(m Mouse, now time.Time) int {
	again := m.Button == c.button &&
		now.Sub(c.at) <= doubleClickTime &&
		math.Hypot(m.X-c.x, m.Y-c.y) <= doubleClickDistance
	if !again || c.n >= 3 {
		c.n = 0
	}
	*c = clicks{
		at:     now,
		x:      m.X,
		y:      m.Y,
		button: m.Button,
		n:      c.n + 1,
	}
	return c.n
}

// mouse sends a mouse event to the page. Viewers need not report which buttons are down
// while the mouse moves: they are remembered here, so that dragging works.
func (c *Controller) mouse(ctx context.Context, page *browser.Page, mouse Mouse) (answer []byte, err error) {
	if err := c.attach(ctx, page); err != nil {
		return nil, err
	}
	params := map[string]any{
		"type":      mouse.Type,
		"x":         mouse.X,
		"y":         mouse.Y,
		"modifiers": mouse.Modifiers,
		"button":    mouse.Button,
	}
	bit := buttonBits[mouse.Button]
	switch mouse.Type {
	case "mousePressed":
		c.pressed |= bit
		n := c.clicks.press(mouse, time.Now())
		if mouse.Clicks > 0 {
			n = max(n, mouse.Clicks)
		}
		params["clickCount"] = n
		if mouse.Button == "left" {
			answer = c.offer(ctx, fmt.Sprintf("%s(%g, %g)", findField, mouse.X, mouse.Y))
		}
	case "mouseReleased":
		c.pressed &^= bit
		params["clickCount"] = max(c.clicks.n, mouse.Clicks, 1)
	case "mouseWheel":
		params["deltaX"], params["deltaY"] = mouse.DeltaX, mouse.DeltaY
	case "mouseMoved":
		if c.pressed&1 != 0 {
			params["button"] = "left"
		}
	}
	params["buttons"] = c.pressed
	return answer, send(ctx, c.cdp, "Input.dispatchMouseEvent", params)
}

// key sends a key event to the page. A printable key types its character on keyDown; a
// char event that follows for the same key is not typed again.
func (c *Controller) key(ctx context.Context, page *browser.Page, key Key) (answer []byte, err error) {
	if err := c.attach(ctx, page); err != nil {
		return nil, err
	}
	if key.opensField() {
		if answer := c.offer(ctx, findField+"()"); answer != nil {
			return answer, nil
		}
	}
	params := map[string]any{
		"type":      key.Type,
		"key":       key.Key,
		"code":      key.Code,
		"modifiers": key.Modifiers,
	}
	if id := key.virtualID(); id > 0 {
		params["windowsVirtualKeyCode"], params["nativeVirtualKeyCode"] = id, id
	}
	switch key.Type {
	case "keyDown":
		text := key.text()
		c.typed = text
		params["type"] = "rawKeyDown"
		if text != "" {
			params["type"], params["text"] = "keyDown", text
		}
	case "char":
		text := key.text()
		if text == "" || text == c.typed {
			c.typed = ""
			return nil, nil
		}
		params["text"] = text
	case "keyUp":
		c.typed = ""
	}
	return nil, send(ctx, c.cdp, "Input.dispatchKeyEvent", params)
}

// navigate starts a navigation without waiting for it: a page that loads slowly
// must not block mouse input or another navigation.
func (c *Controller) navigate(ctx context.Context, page *browser.Page, in Input) error {
	c.cancelNavigation()
	ctx, c.cancelNavigation = context.WithTimeout(context.WithoutCancel(ctx), navigateTimeout)
	cancel := c.cancelNavigation
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	return c.live.spawnLocked(func(life context.Context) {
		defer cancel()
		stop := context.AfterFunc(life, cancel)
		defer stop()
		// The outcome is visible in the picture.
		switch in.Action {
		case "goto":
			_ = page.Navigate(ctx, in.URL)
		case "back":
			_ = page.History(ctx, browser.Back)
		case "forward":
			_ = page.History(ctx, browser.Forward)
		default:
			_ = page.History(ctx, browser.Reload)
		}
	})
}

// selectionScript returns the selected text of a field or of the page, but never that
// of a password.
const selectionScript = `(() => {
	const field = document.activeElement;
	if (field && /^(input|textarea)$/i.test(field.tagName) && field.type !== "password") {
		try {
			const text = field.value.slice(field.selectionStart, field.selectionEnd);
			if (text) return text;
		} catch {}
	}
	return String(getSelection() || "");
})()`

func (c *Controller) selection(ctx context.Context, page *browser.Page) ([]byte, error) {
	if err := c.attach(ctx, page); err != nil {
		return nil, err
	}
	answer, err := call(ctx, c.cdp, "Runtime.evaluate", map[string]any{
		"expression":    selectionScript,
		"returnByValue": true,
		"timeout":       1000,
	})
	if err != nil {
		return nil, err
	}
	result, _ := answer["result"].(map[string]any)
	text, _ := result["value"].(string)
	return json.Marshal(struct {
		Type   string `json:"type"`
		PageID string `json:"pageId"`
		Text   string `json:"text"`
	}{"selectedTextResponse", page.ID(), agent.Clip(text, maxSelection)})
}
