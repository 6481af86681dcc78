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
	"/two":      `<title>Two</title><body style="background:#00f">second`,
	"/form":     `<title>Form</title><form action="/done"><input name=q autofocus style="position:absolute;left:0;top:0;width:400px;height:100px"></form>`,
	"/done":     `<title>Done</title>`,
	"/icon.png": "\x89PNG\r\n\x1a\n----",
}

func TestWatch(t *testing.T) {
	st := newStage(t, pages)
	s := st.session(t, "/")
	v := st.watch(t, s, Watch{})
	first := v.until(t, "the tab list", func(m seen) bool { return m.Type == "tabList" && m.Tabs[0].Title == "One" })
	if len(first.Tabs) != 1 || first.Tabs[0].ID != first.Tabs[0].PageID || first.FirstTabID != first.Tabs[0].PageID || first.ActiveTabID != first.FirstTabID {
		t.Errorf("%+v", first)
	}
	frame := v.until(t, "a frame", isFrame)
	if frame.PageID != first.FirstTabID || frame.size(t) != image.Pt(800, 600) {
		t.Errorf("%s %v", frame.PageID, frame.size(t))
	}
	v.until(t, "the icon", func(m seen) bool {
		return isFrame(m) && strings.HasPrefix(m.Favicon, "data:image/png;base64,") && m.Title == "One"
	})

	late := st.watch(t, s, Watch{PageID: first.FirstTabID, FPS: 2})
	if got := late.until(t, "a late viewer's frame", isFrame); got.Title != "One" || got.Favicon == "" {
		t.Errorf("a late viewer sees %q", got.Title)
	}

	tabs := st.watch(t, s, Watch{TabsOnly: true})
	shows := func(pageID string) func(seen) bool {
		return func(m seen) bool {
			if isFrame(m) {
				t.Error("a picture for one who wants none")
			}
			return m.Type == "activeTabChange" && m.PageID == pageID
		}
	}
	tabs.until(t, "which tab is active", shows(first.FirstTabID))
	h := st.live.Controller(s, "")
	defer h.Close()
	click := func(x, y string) {
		t.Helper()
		h.do(t, `{"type":"mouseEvent","event":"mousePressed","x":`+x+`,"y":`+y+`,"button":"left"}`,
			`{"type":"mouseEvent","event":"mouseReleased","x":`+x+`,"y":`+y+`,"button":"left"}`)
	}
	click("150", "150")
	v.until(t, "the click", func(m seen) bool { return m.Title == "clicked" })
	click("350", "320")
	two := v.until(t, "the second tab", func(m seen) bool { return m.Type == "tabList" && len(m.Tabs) == 2 && m.Tabs[1].Title == "Two" })
	if two.ActiveTabID != two.Tabs[1].PageID || two.FirstTabID != first.FirstTabID {
		t.Errorf("%+v", two)
	}
	v.until(t, "a frame of the second tab", func(m seen) bool { return isFrame(m) && m.PageID == two.ActiveTabID && m.Title == "Two" })
	tabs.until(t, "that the second is active", shows(two.ActiveTabID))
	h.do(t, `{"type":"closeTab","pageId":"`+two.ActiveTabID+`"}`)
	v.until(t, "its closing", func(m seen) bool { return m.Type == "tabClosed" && m.PageID == two.ActiveTabID })
	v.until(t, "the list", func(m seen) bool { return m.Type == "tabList" && len(m.Tabs) == 1 })
	v.until(t, "the first tab again", func(m seen) bool { return isFrame(m) && m.PageID == first.FirstTabID })
	if err := st.browser.Delete(t.Context(), st.db, s.ID()); err != nil {
		t.Fatal(err)
	}
	v.ends(t)
	late.ends(t)
}

func TestKeys(t *testing.T) {
	st := newStage(t, pages)
	s := st.session(t, "/")
	v := st.watch(t, s, Watch{})
	h := st.live.Controller(s, "")
	defer h.Close()
	h.do(t, `{"type":"mouseEvent","event":{"type":"mousePressed","x":50,"y":25,"button":"left","clickCount":1}}`, `{"type":"mouseEvent","event":{"type":"mouseReleased","x":50,"y":25,"button":"left"}}`)
	// A key types as it goes down, its char not again; a char alone types; text is typed as it is.
	h.do(t, `{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA","modifiers":0}`, `{"type":"keyEvent","event":"char","key":"a","modifiers":0}`, `{"type":"keyEvent","event":"keyUp","key":"a","code":"KeyA"}`,
		`{"type":"keyEvent","event":{"type":"char","key":"b","text":"b"}}`,
		`{"type":"keyEvent","pageId":"","event":{"type":"keyDown","text":"ü","key":"ü","code":"","keyCode":252}}`,
		`{"type":"keyEvent","event":"keyDown","key":"x","code":"KeyX"}`, `{"type":"keyEvent","event":"keyDown","key":"Backspace","code":"Backspace"}`)
	v.until(t, "the text", func(m seen) bool { return m.Title == "typed:abü" })
	h.do(t, `{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA","modifiers":2}`, `{"type":"keyEvent","event":"keyDown","key":"c","code":"KeyC"}`)
	v.until(t, "Control+A and a letter", func(m seen) bool { return m.Title == "typed:c" })
	h.do(t, `{"type":"mouseEvent","event":"mousePressed","x":40,"y":425}`, `{"type":"mouseEvent","event":"mouseReleased","x":40,"y":425}`,
		`{"type":"mouseEvent","event":"mousePressed","x":40,"y":425}`, `{"type":"mouseEvent","event":"mouseReleased","x":40,"y":425}`)
	v.until(t, "a double click", func(m seen) bool { return m.Title == "double" })
	var selected seen
	if err := json.Unmarshal(h.do(t, `{"type":"getSelectedText","pageId":"`+s.ActivePage().ID()+`"}`), &selected); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(selected.Text) != "selectable" || selected.Type != "selectedTextResponse" || selected.PageID != s.ActivePage().ID() {
		t.Errorf("%+v", selected)
	}
	h.do(t, `{"type":"navigation","action":"goto","url":"`+st.site.URL+`/form"}`)
	v.until(t, "the form", func(m seen) bool { return m.Title == "Form" })
	h.do(t, `{"type":"mouseEvent","event":"mousePressed","x":50,"y":50}`, `{"type":"mouseEvent","event":"mouseReleased","x":50,"y":50}`, `{"type":"keyEvent","event":"keyDown","key":"Enter","code":"Enter"}`)
	v.until(t, "the form's end", func(m seen) bool { return m.Title == "Done" })
	h.do(t, `{"type":"navigation","event":{"action":"back"}}`)
	v.until(t, "the way back", func(m seen) bool { return m.Title == "Form" })
	h.do(t, `{"type":"navigation","event":{"action":"forward"}}`)
	v.until(t, "the way forward", func(m seen) bool { return m.Title == "Done" })
}

// Viewers name the tab of their socket by names of their own: Steel's says
// "default".
func TestUnknownPageIDs(t *testing.T) {
	st := newStage(t, pages)
	s := st.session(t, "/")
	first := s.ActivePage()
	second, err := s.OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bound, free := st.live.Controller(s, first.ID()), st.live.Controller(s, "")
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
	bound.do(t, `{"type":"navigation","pageId":"default","event":{"url":"`+st.site.URL+`/two"}}`)
	v := st.watch(t, s, Watch{PageID: first.ID()})
	v.until(t, "the tab of the socket", func(m seen) bool { return m.Title == "Two" })
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	if page, err := bound.target(Input{Kind: "mouseEvent", PageID: "default"}); err == nil {
		t.Errorf("input for a closed tab goes to %v", page)
	}
}
