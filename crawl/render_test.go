package crawl

import (
	"context"
	"strings"
	"testing"

	"satchel/agent"
)

// TestRender crawls through a browser that renders other text than the server sends.
func TestRender(t *testing.T) {
	s := newSite(t)
	s.page("/", "an empty frame")
	s.set("/robots.txt", htmlPage("")) // no rules: everything is allowed
	browser := func(_ context.Context, address string) (agent.RenderedPage, error) {
		page := agent.RenderedPage{Final: address, Status: 200}
		switch strings.TrimPrefix(address, s.URL) {
		case "/":
			page.HTML = pageOf("what a script wrote", "/moved", "/away", "/large", "/none", "/broken")
		case "/moved":
			page.Final, page.HTML = s.URL+"/here", pageOf("moved here")
		case "/away":
			page.Final, page.HTML = "http://other.example/", pageOf("somewhere else")
		case "/large":
			page.HTML = strings.Repeat("x", maxPage+1)
		case "/none":
			page.Status, page.HTML = 404, pageOf("not found")
		default:
			return page, agent.Errorf(agent.CodeUpstream, "the browser could not open the page")
		}
		return page, nil
	}
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) { o.Render = browser })
	db := newAgent(t, folder, "crawler")
	plan := planOf(s.URL + "/")
	plan.Render = true
	if err := c.Check(&plan); err != nil {
		t.Fatal(err)
	}
	id := create(t, db, plan)
	waitIndexed(t, c, db, id)
	o := outcomeOf(t, db, id, s.URL)
	if got := o.paths(); got != "/ /here" {
		t.Errorf("indexed pages %q", got)
	}
	if got := o.failures(); got != "/large 0, /none 404, /broken 0" {
		t.Errorf("failed pages %q", got)
	}
	if text := chunksOf(t, db, id); !strings.Contains(text, "what a script wrote") ||
		strings.Contains(text, "empty frame") {
		t.Errorf("the text is %q", text)
	}
	if n := s.total(); n != 0 {
		t.Errorf("%d pages were fetched without the browser", n)
	}
}

func TestRenderWithoutBrowser(t *testing.T) {
	s := newSite(t)
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, nil)
	db := newAgent(t, folder, "crawler")
	plan := planOf(s.URL + "/")
	plan.Render = true
	if err := c.Check(&plan); agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), "render") {
		t.Errorf("a plan that needs a browser: %v", err)
	}
	// A source that was created when there was a browser.
	id := create(t, db, plan)
	waitIndexed(t, c, db, id)
	if o := outcomeOf(t, db, id, s.URL); o.source.Error == nil || o.source.Error.Code != string(CodeNoBrowser) {
		t.Errorf("after the crawl: %+v", o.source)
	}
}
