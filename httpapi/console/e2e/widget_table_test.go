package e2e

import (
	"fmt"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// TestWidgetShowsTables shows a wide table in the widget: words are not broken, and the
// table scrolls.
func TestWidgetShowsTables(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	m := apitest.NewModelServer(t, func(int, map[string]any) string {
		return "| Product | Price | Weight | Allergens | Shelf life | Supplier | Reference |\n" +
			"|---|---|---|---|---|---|---|\n| Rye sourdough bread | 6.80 | 1250 g | gluten, nuts | 5 days | Mill at " +
			"the river | RYE-1250-L |\n\n- [x] done"
	})
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1","auto_reply":true}`,
	)
	site, paste := newShopSite(t)
	id := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"web","name":"Shop","config":{"allowedOrigins":["`+site.URL+`"]}}`,
	)["id"]
	ts.must(t, 200, "POST", "/api/agents/default/gateways/"+fmt.Sprint(id)+"/verify", "")
	snippet := ts.must(t, 200, "GET", "/api/agents/default/gateways/"+fmt.Sprint(id)+"/widget", "")["snippet"].(string)
	paste(strings.Replace(snippet, "http://localhost", ts.url, 1))
	s := ts.openShop(t, 375, site.URL)
	s.sendMessage("Which breads are there?")
	s.waitMessage("bot", "RYE-1250-L")
	s.frame.waitFor(`document.querySelector(".sw-text .table-frame")`)
	if got := s.frame.eval(`(() => {
		const frame = document.querySelector(".sw-text .table-frame"), price = [...frame.querySelectorAll("td")].find((c) => c.textContent === "6.80");
		const range = document.createRange();
		range.selectNodeContents(price);
		return range.getClientRects().length + " line, scrolls: " + (frame.scrollWidth > frame.clientWidth) + ", " + document.querySelector("li.task").textContent;
	})()`); got != "1 line, scrolls: true, ☑ done" {
		t.Errorf("the price has %v", got)
	}
	s.checkPage("a table")
}
