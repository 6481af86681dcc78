package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// target is a receiver of webhooks that hands on what it gets.
func target(t *testing.T) (url string, got chan string) {
	t.Helper()
	got = make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("webhook-id") + " " + string(body)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func receive(t *testing.T, got chan string) string {
	t.Helper()
	select {
	case d := <-got:
		return d
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was delivered")
		return ""
	}
}

func (w *witness) askOfWebhooks(t *testing.T, agent string) {
	t.Helper()
	url, got := target(t)
	id := w.made(t, agent+"/webhooks", `{"url":"`+url+`","events":["contact.*"]}`)
	at := agent + "/webhooks/" + id
	w.ask(t, 400, "POST", agent+"/webhooks", `{"url":"`+url+`","events":["x"]}`)
	w.ask(t, 200, "GET", agent+"/webhooks", "")
	w.ask(t, 200, "GET", at, "")
	w.ask(t, 200, "PUT", at, `{"events":["*"]}`)
	w.ask(t, 200, "POST", at+"/rotate", "")
	w.ask(t, 200, "POST", at+"/test", "")
	receive(t, got)
	list := w.ask(t, 200, "GET", at+"/deliveries", "")
	delivery, _ := nested(list.json, "deliveries.0.id").(string)
	w.ask(t, 200, "POST", at+"/deliveries/"+delivery+"/redeliver", "")
	receive(t, got)
	w.ask(t, 404, "POST", at+"/deliveries/delivery-x/redeliver", "")
	w.ask(t, 200, "GET", at+"/deliveries/"+delivery, "")
	w.ask(t, 404, "GET", at+"/deliveries/delivery-x", "")
	w.ask(t, 200, "GET", agent+"/deliveries?status=delivered", "")
	w.ask(t, 400, "GET", agent+"/deliveries?status=lost", "")
	w.ask(t, 200, "GET", agent+"/events?limit=2", "")
	w.ask(t, 400, "GET", agent+"/events?type=weather", "")
	w.ask(t, 204, "DELETE", at, "")
	w.ask(t, 404, "GET", at, "")
}

// nested is at under a name that a parameter of that name does not hide.
func nested(value any, path string) any { return at(value, path) }

// TestSubscription walks from a subscription to its delivery, by API and SQL,
// and looks for its secret where it must not be.
func TestSubscription(t *testing.T) {
	c := newVisitor(t)
	url, got := target(t)
	made := c.must(t, 201, "POST", "/api/agents/default/webhooks", `{"url":"`+url+`","events":["contact.created"]}`)
	id, secret := made["id"].(string), made["secret"].(string)
	if made["active"] != true || at(made, "failure_count").(interface{ String() string }).String() != "0" || made["last_status"] != nil {
		t.Errorf("made %v", made)
	}
	contact := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	c.must(t, 200, "POST", "/api/agents/default/sql/execute", `{"query":"INSERT INTO contacts(name) VALUES ('by SQL')"}`)
	first, second := receive(t, got), receive(t, got)
	if all := first + second; !strings.Contains(all, contact["id"].(string)) || !strings.Contains(all, "by SQL") || !strings.Contains(all, `"agent_id":"default"`) {
		t.Errorf("delivered %s and %s", first, second)
	}
	for _, path := range []string{"/webhooks", "/webhooks/" + id, "/webhooks/" + id + "/deliveries", "/logs"} {
		if a := c.send(t, "GET", "/api/agents/default"+path, ""); strings.Contains(a.text, strings.TrimPrefix(secret, "whsec_")) {
			t.Errorf("%s shows the secret", path)
		}
	}
	rotated := c.must(t, 200, "POST", "/api/agents/default/webhooks/"+id+"/rotate", "")
	if s, _ := rotated["secret"].(string); s == secret || !strings.HasPrefix(s, "whsec_") {
		t.Errorf("rotated to %q", s)
	}
	c.must(t, 204, "DELETE", "/api/agents/default/webhooks/"+id, "")
	if n := at(c.must(t, 200, "GET", "/api/agents/default/webhooks", ""), "meta.total").(interface{ String() string }).String(); n != "0" {
		t.Errorf("%s subscriptions are left", n)
	}
}
