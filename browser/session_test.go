package browser

import (
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

func TestSessionFromOpenToClose(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, nil)
	s := openIn(t, b, db, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": "<title>Hello</title><p>hi"})
	p := s.ActivePage()
	if _, err := p.page.Goto(url + "/"); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "the title", func() bool { return p.Title() == "Hello" && p.URL() == url+"/" })
	if s.Page(p.ID()) != p || len(s.Pages()) != 1 {
		t.Errorf("the tab is not found by its id: %v", s.Pages())
	}
	second, err := s.OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.ActivePage() != second || s.Pages()[0] != p {
		t.Error("a new tab is not active, or changes the order of tabs")
	}
	if err := s.Activate(t.Context(), p); err != nil || s.ActivePage() != p {
		t.Errorf("the first tab does not become active again: %v", err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-second.Done()
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "a blank tab in place of the last one", func() bool {
		return len(s.Pages()) == 1 && s.ActivePage() != nil
	})

	list, total, err := b.List(t.Context(), db, store.Page{Limit: 10})
	if err != nil ||
		total != 1 ||
		list[0].ID != s.ID() ||
		list[0].Status != agent.SessionActive ||
		list[0].Viewport != agent.DefaultViewport {
		t.Errorf("the list: %+v, %d, %v", list, total, err)
	}
	if err := b.Delete(t.Context(), db, s.ID()); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if _, err := b.Session(db, s.ID()); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a closed session is found: %v", err)
	}
	if err := b.Delete(t.Context(), db, s.ID()); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a deleted session is closed again: %v", err)
	}
	if n := len(s.chromium.browser.Contexts()); n != 0 {
		t.Errorf("%d profiles remain in Chromium", n)
	}
	b.Stop()
	if pid := s.chromium.folder.pid(chromiumName); pid != 0 && running(pid) {
		t.Error("Chromium outlives its Browser")
	}
	b.Stop()
}

func TestSessionsAreIsolated(t *testing.T) {
	t.Parallel()
	url := serveSite(t, map[string]string{
		"/":     `<script>document.cookie = "a=1"; localStorage.b = 2</script>`,
		"/look": `<script>document.title = document.cookie + (localStorage.b || "nothing")</script>`,
	})
	first, second := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	if _, err := first.ActivePage().page.Goto(url + "/"); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[*Session]string{first: "a=12", second: "nothing"} {
		p := s.ActivePage()
		if _, err := p.page.Goto(url + "/look"); err != nil {
			t.Fatal(err)
		}
		s.waitFor(t, want, func() bool { return p.Title() == want })
	}
}

func TestTakeover(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	if err := s.Takeover(t.Context(), true); err != nil || s.Status() != agent.SessionTakeover {
		t.Errorf("after the takeover: %v, %v", s.Status(), err)
	}
	row, err := s.browser.Describe(t.Context(), s.db, s.ID())
	if err != nil || row.Status != agent.SessionTakeover {
		t.Errorf("the row: %+v, %v", row, err)
	}
	if err := s.Takeover(t.Context(), false); err != nil || s.Status() != agent.SessionActive {
		t.Errorf("after handing back: %v, %v", s.Status(), err)
	}
	s.end("")
	if err := s.Takeover(t.Context(), true); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("an ended session is taken over: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, func(o *Options) { o.AgentMax, o.MaxSessions, o.ChromiumIdle = 2, 3, time.Second/2 })
	openIn(t, b, db, agent.SessionOptions{})
	last := openIn(t, b, db, agent.SessionOptions{})
	if _, err := b.Create(t.Context(), db, agent.SessionOptions{}); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("a session too many: %v", err)
	}
	last.end("")
	s := openIn(t, b, db, agent.SessionOptions{})
	for _, other := range b.open() {
		other.end("")
	}
	<-s.chromium.cleaned // it was idle
	if s := openIn(t, b, db, agent.SessionOptions{}); s.Status() != agent.SessionActive {
		t.Errorf("after the idle time: %v", s.Status())
	}
}
