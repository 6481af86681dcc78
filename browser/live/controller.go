package live

import (
	"context"
	"encoding/json"
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

// maxSelection is how much of a selected text is handed over, in bytes.
const maxSelection = 256 << 10

// Controller acts in a session for one person. Do is for one goroutine.
type Controller struct {
	live    *Live
	session *browser.Session
	pageID  string // acts here when a message names no open tab; "": in the active one

	page             *browser.Page // whose DevTools session cdp is
	cdp              playwright.CDPSession
	pressed          int    // buttons that are down, as DOM's MouseEvent.buttons
	typed            string // what the last key typed as it went down, until a char repeats it
	clicks           clicks
	cancelNavigation context.CancelFunc // ends the navigation under way
}

// Controller makes a person's controller of a session. It acts in the tab of
// this id unless a message names another open one; "" is the active one. The
// caller closes it.
func (l *Live) Controller(s *browser.Session, pageID string) *Controller {
	return &Controller{live: l, session: s, pageID: pageID, cancelNavigation: func() {}}
}

// Close releases the pressed buttons.
func (c *Controller) Close() {
	c.cancelNavigation()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	c.detach(ctx)
}

// Do passes a person's input on, as soon as the page accepts it. answer is what
// to send back; nil for nothing. Faults of the message are INVALID_ACTION.
func (c *Controller) Do(ctx context.Context, in Input) (answer []byte, err error) {
	c.session.Touch()
	page, err := c.target(in)
	if err != nil {
		return nil, err
	}
	switch in.Kind {
	case "mouseEvent":
		return nil, c.mouse(ctx, page, in.Mouse)
	case "keyEvent":
		return nil, c.key(ctx, page, in.Key)
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
	default: // newTab: ParseInput knows no other
		_, err := c.session.OpenPage(ctx)
		return nil, err
	}
}

// target returns the tab that a message means: the one that it names, else the
// one that h is bound to, else the active one. Viewers have names of their own
// for what they show ("default"), so an unknown id counts as none, but for
// closing and selecting tabs, where it is that of a tab which is gone.
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

// defaultPage is what Steel's viewer calls the only tab that it shows.
const defaultPage = "default"

// attach opens a DevTools session with a tab, and keeps it until another tab is
// acted in.
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
			_ = send(ctx, c.cdp, "Input.dispatchMouseEvent", map[string]any{"type": "mouseReleased", "x": c.clicks.x, "y": c.clicks.y, "button": button, "clickCount": 1})
		}
	}
	cdp := c.cdp
	_, _ = browser.Within(ctx, func() (any, error) { return nil, cdp.Detach() }) // a tab that is gone takes it along
	c.page, c.cdp, c.pressed, c.typed = nil, nil, 0, ""
}

// clicks counts the clicks of a double click.
type clicks struct {
	at     time.Time
	x, y   float64
	button string
	n      int
}

func (c *clicks) press(m Mouse, now time.Time) int {
	again := m.Button == c.button && now.Sub(c.at) <= doubleClickTime && math.Hypot(m.X-c.x, m.Y-c.y) <= doubleClickDistance
	if !again || c.n >= 3 {
		c.n = 0
	}
	*c = clicks{at: now, x: m.X, y: m.Y, button: m.Button, n: c.n + 1}
	return c.n
}

// mouse passes a mouse event on. Viewers need not send which buttons are down
// while the mouse moves: it is remembered here, so that dragging works.
func (c *Controller) mouse(ctx context.Context, page *browser.Page, m Mouse) error {
	if err := c.attach(ctx, page); err != nil {
		return err
	}
	params := map[string]any{"type": m.Type, "x": m.X, "y": m.Y, "modifiers": m.Modifiers, "button": m.Button}
	bit := buttonBits[m.Button]
	switch m.Type {
	case "mousePressed":
		c.pressed |= bit
		n := c.clicks.press(m, time.Now())
		if m.Clicks > 0 {
			n = max(n, m.Clicks)
		}
		params["clickCount"] = n
	case "mouseReleased":
		c.pressed &^= bit
		params["clickCount"] = max(c.clicks.n, m.Clicks, 1)
	case "mouseWheel":
		params["deltaX"], params["deltaY"] = m.DeltaX, m.DeltaY
	case "mouseMoved":
		if c.pressed&1 != 0 {
			params["button"] = "left"
		}
	}
	params["buttons"] = c.pressed
	return send(ctx, c.cdp, "Input.dispatchMouseEvent", params)
}

// key passes a key on. A printable key that goes down types itself; a char
// that follows for the same key is not typed again.
func (c *Controller) key(ctx context.Context, page *browser.Page, k Key) error {
	if err := c.attach(ctx, page); err != nil {
		return err
	}
	params := map[string]any{"type": k.Type, "key": k.Key, "code": k.Code, "modifiers": k.Modifiers}
	if id := k.virtualID(); id > 0 {
		params["windowsVirtualKeyCode"], params["nativeVirtualKeyCode"] = id, id
	}
	switch k.Type {
	case "keyDown":
		text := k.text()
		c.typed = text
		params["type"] = "rawKeyDown"
		if text != "" {
			params["type"], params["text"] = "keyDown", text
		}
	case "char":
		text := k.text()
		if text == "" || text == c.typed {
			c.typed = ""
			return nil
		}
		params["text"] = text
	case "keyUp":
		c.typed = ""
	}
	return send(ctx, c.cdp, "Input.dispatchKeyEvent", params)
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
		// What comes of it is seen in the picture.
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

// selectionScript is the text that is marked, in a field or on the page; never
// that of a password.
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
	answer, err := call(ctx, c.cdp, "Runtime.evaluate", map[string]any{"expression": selectionScript, "returnByValue": true, "timeout": 1000})
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
