package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestConsoleFeedback rates an answer badly in a long chat, and finds it from Activity.
func TestConsoleFeedback(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	chat := base + "/conversations/" + ts.must(t, 201, "POST", base+"/conversations", `{}`)["id"].(string) + "/messages"
	ts.must(t, 201, "POST", chat, `{"role":"user","content":`+quoted("May I return "+hostile)+`}`)
	rated := ts.must(t, 201, "POST", chat, `{"role":"assistant","content":`+quoted("No. "+hostile)+`}`)["id"]
	for range 10 {
		ts.must(t, 201, "POST", chat, `{"role":"user","content":"Another question"}`)
		ts.must(t, 201, "POST", chat, `{"role":"assistant","content":"`+strings.Repeat("Another answer. ", 60)+`"}`)
	}
	p := ts.openConsole(t, 1280)
	p.open("activity/feedback", hasText("No feedback yet"))
	ts.must(
		t,
		200,
		"PUT",
		fmt.Sprint(base, "/messages/", rated, "/feedback"),
		`{"rating":-1,"comment":`+quoted("Wrong: "+hostile)+`}`,
	)
	p.waitFor(hasText("May I return")) // without a reload
	p.checkPage("feedback")
	p.eval(`void (window.scrolls = 0, Element.prototype.scrollIntoView = () => { scrolls++; })`)
	p.eval(`location.hash += "?rating=good"`)
	p.waitFor(hasText("No feedback matches"))
	p.eval(`location.hash = location.hash.replace("good", "bad")`)
	p.waitFor(hasText("May I return"))
	if n := p.eval(`scrolls`); n != float64(0) {
		t.Errorf("the page was scrolled %v times when its filter was changed", n)
	}
	p.reloadPage()
	p.waitFor(hasText("May I return"))
	p.clickOn(`[...document.querySelectorAll("#main td a")].find((a) => a.textContent.startsWith("May I return"))`)
	p.waitFor(fmt.Sprintf(
		`((r) => r.top >= 0 && r.bottom <= innerHeight)(document.getElementById("message-%v").getBoundingClientRect())`,
		rated,
	))
}
