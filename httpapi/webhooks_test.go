package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// newWebhookTarget is a webhook target that sends the bodies it receives to got.
func newWebhookTarget(t *testing.T) (url string, got chan string) {
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

func (w *contractClient) checkWebhooks(t *testing.T, agent string) {
	t.Helper()
	url, got := newWebhookTarget(t)
	id := w.create(t, agent+"/webhooks", `{"url":"`+url+`","events":["contact.*"]}`)
	at := agent + "/webhooks/" + id
	w.request(t, 400, "POST", agent+"/webhooks", `{"url":"`+url+`","events":["x"]}`)
	w.request(t, 200, "GET", agent+"/webhooks", "")
	w.request(t, 200, "GET", at, "")
	w.request(t, 200, "PUT", at, `{"events":["*"]}`)
	w.request(t, 200, "POST", at+"/rotate", "")
	w.request(t, 200, "POST", at+"/test", "")
	receive(t, got)
	list := w.request(t, 200, "GET", at+"/deliveries", "")
	delivery, _ := nested(list.json, "deliveries.0.id").(string)
	w.request(t, 200, "POST", at+"/deliveries/"+delivery+"/redeliver", "")
	receive(t, got)
	w.request(t, 404, "POST", at+"/deliveries/delivery-x/redeliver", "")
	w.request(t, 200, "GET", at+"/deliveries/"+delivery, "")
	w.request(t, 404, "GET", at+"/deliveries/delivery-x", "")
	w.request(t, 200, "GET", agent+"/deliveries?status=delivered", "")
	w.request(t, 400, "GET", agent+"/deliveries?status=lost", "")
	w.request(t, 200, "GET", agent+"/events?limit=2", "")
	w.request(t, 400, "GET", agent+"/events?type=weather", "")
	w.request(t, 204, "DELETE", at, "")
	w.request(t, 404, "GET", at, "")
}

// nested is at, for use where a parameter hides that name.
func nested(value any, path string) any { return at(value, path) }

// TestSubscription tests a subscription up to its deliveries, by API and SQL, and looks
// for its secret where it must not be.
func TestSubscription(t *testing.T) {
	c := newOwnClient(t)
	url, got := newWebhookTarget(t)
	made := c.must(t, 201, "POST", "/api/agents/default/webhooks", `{"url":"`+url+`","events":["contact.created"]}`)
	id, secret := made["id"].(string), made["secret"].(string)
	if made["active"] != true ||
		at(made, "failure_count").(interface{ String() string }).String() != "0" ||
		made["last_status"] != nil {
		t.Errorf("created %v", made)
	}
	contact := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"INSERT INTO contacts(name) VALUES ('by SQL')"}`,
	)
	first, second := receive(t, got), receive(t, got)
	if all := first + second; !strings.Contains(all, contact["id"].(string)) ||
		!strings.Contains(all, "by SQL") ||
		!strings.Contains(all, `"agent_id":"default"`) {
		t.Errorf("delivered %s and %s", first, second)
	}
	for _, path := range []string{"/webhooks", "/webhooks/" + id, "/webhooks/" + id + "/deliveries", "/logs"} {
		if a := c.send(t, "GET", "/api/agents/default"+path, ""); strings.Contains(
			a.text,
			strings.TrimPrefix(secret, "whsec_"),
		) {
			t.Errorf("%s shows the secret", path)
		}
	}
	rotated := c.must(t, 200, "POST", "/api/agents/default/webhooks/"+id+"/rotate", "")
	if s, _ := rotated["secret"].(string); s == secret || !strings.HasPrefix(s, "whsec_") {
		t.Errorf("rotated to %q", s)
	}
	c.must(t, 204, "DELETE", "/api/agents/default/webhooks/"+id, "")
	if n := at(
		c.must(t, 200, "GET", "/api/agents/default/webhooks", ""),
		"meta.total",
	).(interface{ String() string }).String(); n != "0" {
		t.Errorf("%s subscriptions are left", n)
	}
}
