package live

import (
	"encoding/json"
	"image"
	"strings"
	"testing"

	"satchel/browser"
)

var pages = map[string]string{
	"/": `<title>One</title><link rel="icon" href="/icon.png"><body style="margin:0;background:#fff">
<input id=a style="position:absolute;left:10px;top:10px;width:300px;height:30px" oninput="document.title='typed:'+this.value">
<div onclick="document.title='clicked'" style="position:absolute;left:100px;top:100px;width:100px;height:100px;background:red"></div>
<a href="/two" target="_blank" style="position:absolute;left:300px;top:300px;width:100px;height:40px;background:#0f0">two</a>
<p id=p style="position:absolute;left:10px;top:400px" ondblclick="document.title='double'">selectable words</p>`,
	"/two": `<title>Two</title><body style="background:#00f">second`,
	"/form": `<title>Form</title><form action="/done"><input name=q autofocus style="position:absolute;left:0;` +
		`top:0;width:400px;height:100px"></form>`,
	"/done":     `<title>Done</title>`,
	"/icon.png": "\x89PNG\r\n\x1a\n----",
}

func TestWatch(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	v := ts.newViewer(t, s, Watch{})
	first := v.waitFor(t, "the tab list", func(m viewerMessage) bool {
		return m.Type == "tabList" && m.Tabs[0].Title == "One"
	})
	if len(first.Tabs) != 1 ||
		first.Tabs[0].ID != first.Tabs[0].PageID ||
		first.FirstTabID != first.Tabs[0].PageID ||
		first.ActiveTabID != first.FirstTabID {
		t.Errorf("got %+v", first)
	}
	frame := v.waitFor(t, "a frame", isFrame)
	if frame.PageID != first.FirstTabID || frame.size(t) != image.Pt(800, 600) {
		t.Errorf("got %s %v", frame.PageID, frame.size(t))
	}
	v.waitFor(t, "the icon", func(m viewerMessage) bool {
		return isFrame(m) && strings.HasPrefix(m.Favicon, "data:image/png;base64,") && m.Title == "One"
	})

	late := ts.newViewer(t, s, Watch{PageID: first.FirstTabID, FPS: 2})
	if got := late.waitFor(t, "a late viewer's frame", isFrame); got.Title != "One" || got.Favicon == "" {
		t.Errorf("a late viewer sees %q", got.Title)
	}

	tabs := ts.newViewer(t, s, Watch{TabsOnly: true})
	activates := func(pageID string) func(viewerMessage) bool {
		return func(m viewerMessage) bool {
			if isFrame(m) {
				t.Error("a viewer of tabs only received a frame")
			}
			return m.Type == "activeTabChange" && m.PageID == pageID
		}
	}
	tabs.waitFor(t, "which tab is active", activates(first.FirstTabID))
	h := ts.live.Controller(s, "")
	defer h.Close()
	click := func(x, y string) {
		t.Helper()
		h.send(
			t,
			`{"type":"mouseEvent","event":"mousePressed","x":`+x+`,"y":`+y+`,"button":"left"}`,
			`{"type":"mouseEvent","event":"mouseReleased","x":`+x+`,"y":`+y+`,"button":"left"}`,
		)
	}
	click("150", "150")
	v.waitFor(t, "the click", func(m viewerMessage) bool { return m.Title == "clicked" })
	click("350", "320")
	two := v.waitFor(t, "the second tab", func(m viewerMessage) bool {
		return m.Type == "tabList" && len(m.Tabs) == 2 && m.Tabs[1].Title == "Two"
	})
	if two.ActiveTabID != two.Tabs[1].PageID || two.FirstTabID != first.FirstTabID {
		t.Errorf("got %+v", two)
	}
	v.waitFor(t, "a frame of the second tab", func(m viewerMessage) bool {
		return isFrame(m) && m.PageID == two.ActiveTabID && m.Title == "Two"
	})
	tabs.waitFor(t, "that the second is active", activates(two.ActiveTabID))
	h.send(t, `{"type":"closeTab","pageId":"`+two.ActiveTabID+`"}`)
	v.waitFor(t, "the closed tab", func(m viewerMessage) bool {
		return m.Type == "tabClosed" && m.PageID == two.ActiveTabID
	})
	v.waitFor(t, "the list", func(m viewerMessage) bool { return m.Type == "tabList" && len(m.Tabs) == 1 })
	v.waitFor(t, "the first tab again", func(m viewerMessage) bool {
		return isFrame(m) && m.PageID == first.FirstTabID
	})
	if err := ts.browser.Delete(t.Context(), ts.db, s.ID()); err != nil {
		t.Fatal(err)
	}
	v.waitEnd(t)
	late.waitEnd(t)
}

func TestKeys(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	v := ts.newViewer(t, s, Watch{})
	h := ts.live.Controller(s, "")
	defer h.Close()
	h.send(
		t,
		`{"type":"mouseEvent","event":{"type":"mousePressed","x":50,"y":25,"button":"left","clickCount":1}}`,
		`{"type":"mouseEvent","event":{"type":"mouseReleased","x":50,"y":25,"button":"left"}}`,
	)
	// keyDown types a key, and a following char does not type it again; a char without keyDown types, too.
	h.send(
		t,
		`{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA","modifiers":0}`,
		`{"type":"keyEvent","event":"char","key":"a","modifiers":0}`,
		`{"type":"keyEvent","event":"keyUp","key":"a","code":"KeyA"}`,
		`{"type":"keyEvent","event":{"type":"char","key":"b","text":"b"}}`,
		`{"type":"keyEvent","pageId":"","event":{"type":"keyDown","text":"ü","key":"ü","code":"","keyCode":252}}`,
		`{"type":"keyEvent","event":"keyDown","key":"x","code":"KeyX"}`,
		`{"type":"keyEvent","event":"keyDown","key":"Backspace","code":"Backspace"}`,
	)
	v.waitFor(t, "the text", func(m viewerMessage) bool { return m.Title == "typed:abü" })
	h.send(
		t,
		`{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA","modifiers":2}`,
		`{"type":"keyEvent","event":"keyDown","key":"c","code":"KeyC"}`,
	)
	v.waitFor(t, "Control+A and a letter", func(m viewerMessage) bool { return m.Title == "typed:c" })
	h.send(
		t,
		`{"type":"mouseEvent","event":"mousePressed","x":40,"y":425}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":40,"y":425}`,
		`{"type":"mouseEvent","event":"mousePressed","x":40,"y":425}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":40,"y":425}`,
	)
	v.waitFor(t, "a double click", func(m viewerMessage) bool { return m.Title == "double" })
	var selected viewerMessage
	if err := json.Unmarshal(
		h.send(t, `{"type":"getSelectedText","pageId":"`+s.ActivePage().ID()+`"}`),
		&selected,
	); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(selected.Text) != "selectable" ||
		selected.Type != "selectedTextResponse" ||
		selected.PageID != s.ActivePage().ID() {
		t.Errorf("got %+v", selected)
	}
	h.send(t, `{"type":"navigation","action":"goto","url":"`+ts.site.URL+`/form"}`)
	v.waitFor(t, "the form", func(m viewerMessage) bool { return m.Title == "Form" })
	h.send(
		t,
		`{"type":"mouseEvent","event":"mousePressed","x":50,"y":50}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":50,"y":50}`,
		`{"type":"keyEvent","event":"keyDown","key":"Enter","code":"Enter"}`,
	)
	v.waitFor(t, "the submitted form", func(m viewerMessage) bool { return m.Title == "Done" })
	h.send(t, `{"type":"navigation","event":{"action":"back"}}`)
	v.waitFor(t, "going back", func(m viewerMessage) bool { return m.Title == "Form" })
	h.send(t, `{"type":"navigation","event":{"action":"forward"}}`)
	v.waitFor(t, "going forward", func(m viewerMessage) bool { return m.Title == "Done" })
}

// Some viewers have their own names for the tab of their socket: Steel's sends
// "default".
func TestUnknownPageIDs(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	first := s.ActivePage()
	second, err := s.OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bound, free := ts.live.Controller(s, first.ID()), ts.live.Controller(s, "")
	defer bound.Close()
	defer free.Close()
	for _, c := range []struct {
		name       string
		controller *Controller
		kind       string
		pageID     string
		want       *browser.Page
	}{
		{"bound, none", bound, "mouseEvent", "", first},
		{"bound, default", bound, "mouseEvent", "default", first},
		{"bound, unknown", bound, "keyEvent", "page-x", first},
		{"bound, another tab", bound, "mouseEvent", second.ID(), second},
		{"bound, default to close", bound, "closeTab", "default", first},
		{"not bound, none", free, "mouseEvent", "", second},
		{"not bound, default", free, "navigation", "default", second},
		{"not bound, unknown", free, "mouseEvent", "0", second},
		{"not bound, the other tab", free, "mouseEvent", first.ID(), first},
		{"not bound, default to close", free, "closeTab", "default", second},
		// Closing a closed tab a second time must not close another.
		{"bound, unknown to close", bound, "closeTab", "page-x", nil},
		{"not bound, unknown to close", free, "closeTab", "page-x", nil},
		{"not bound, unknown to show", free, "selectTab", "page-x", nil},
	} {
		page, err := c.controller.target(Input{Kind: c.kind, PageID: c.pageID})
		if page != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v", c.name, page, err)
		}
	}
	bound.send(t, `{"type":"navigation","pageId":"default","event":{"url":"`+ts.site.URL+`/two"}}`)
	v := ts.newViewer(t, s, Watch{PageID: first.ID()})
	v.waitFor(t, "the tab of the socket", func(m viewerMessage) bool { return m.Title == "Two" })
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	if page, err := bound.target(Input{Kind: "mouseEvent", PageID: "default"}); err == nil {
		t.Errorf("input for a closed tab goes to %v", page)
	}
}
