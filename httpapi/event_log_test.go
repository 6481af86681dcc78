package httpapi

import (
	"fmt"
	"testing"
)

// TestEventList reads events by type and page by page, and a delivery with its request
// body.
func TestEventList(t *testing.T) {
	c := newTestClient(t)
	url, got := newWebhookTarget(t)
	hook := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/webhooks",
		`{"url":"`+url+`","events":["contact.created"]}`,
	)["id"].(string)
	for _, name := range []string{"Ada", "Bob", "Cleo"} {
		c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"`+name+`"}`)
	}
	first := c.must(t, 200, "GET", "/api/agents/default/events?type=contact.*&limit=2", "")
	if at(first, "events.0.data.contact.name") != "Cleo" ||
		at(first, "events.1.data.contact.name") != "Bob" ||
		at(first, "meta.has_more") != true {
		t.Errorf("the first page: %v", first)
	}
	rest := c.must(
		t,
		200,
		"GET",
		fmt.Sprintf("/api/agents/default/events?type=contact.*&limit=2&cursor=%v", at(first, "meta.next_cursor")),
		"",
	)
	if at(rest, "events.0.data.contact.name") != "Ada" ||
		at(rest, "meta.has_more") != false ||
		at(rest, "meta.next_cursor") != nil {
		t.Errorf("the second page: %v", rest)
	}
	if found := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/events?search=bob&from=2020-01-01T00:00:00Z",
		"",
	); at(found, "events.0.seq") != at(first, "events.1.seq") {
		t.Errorf("found: %v", found)
	}
	if none := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/events?to=2020-01-01T00:00:00Z",
		"",
	); len(none["events"].([]any)) != 0 {
		t.Errorf("before the first event: %v", none)
	}
	for query, field := range map[string]string{
		"type=weather":   "type",
		"cursor=x":       "cursor",
		"limit=0":        "limit",
		"from=yesterday": "from",
	} {
		if a := c.send(t, "GET", "/api/agents/default/events?"+query, ""); a.StatusCode != 400 ||
			at(a.json, "error.details.field") != field {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.text)
		}
	}
	for range 3 {
		receive(t, got)
	}
	all := c.must(t, 200, "GET", "/api/agents/default/deliveries?webhook_id="+hook, "")
	if fmt.Sprint(at(all, "meta.total")) != "3" {
		t.Errorf("deliveries: %v", all)
	}
	one := c.must(
		t,
		200,
		"GET",
		fmt.Sprintf("/api/agents/default/webhooks/%s/deliveries/%v", hook, at(all, "deliveries.2.id")),
		"",
	)
	if at(one, "body.type") != "contact.created" ||
		at(one, "body.data.contact.name") != "Ada" ||
		at(one, "body.id") != one["event_id"] {
		t.Errorf("a delivery: %v", one)
	}
	if none := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/deliveries?webhook_id=webhook-none",
		"",
	); len(none["deliveries"].([]any)) != 0 {
		t.Errorf("of another subscription: %v", none)
	}
}
