package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
)

// flakySlack creates a gateway to a fake Slack that rejects messages until repaired is
// set.
func flakySlack(t *testing.T, c *testClient, at string) (gateway string, repaired *atomic.Bool, received chan string) {
	t.Helper()
	repaired, received = new(atomic.Bool), make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chat.postMessage" && !repaired.Load() {
			received <- "refused"
			_, _ = w.Write([]byte(`{"ok":false,"error":"channel_not_found"}`))
			return
		}
		if r.URL.Path == "/chat.postMessage" {
			received <- string(body)
		}
		_, _ = w.Write([]byte(`{"ok":true,"user_id":"UBOT","channel":"D1","ts":"1.5"}`))
	}))
	t.Cleanup(server.Close)
	made := c.must(
		t, 201, "POST", at+"/gateways",
		`{"type":"slack","name":"Team","config":{"botToken":"xoxb","signingSecret":"s","apiBaseUrl":"`+server.URL+`"}}`,
	)
	gateway = at + "/gateways/" + made["id"].(string)
	if v := c.must(t, 200, "POST", gateway+"/verify", ""); v["success"] != true {
		t.Fatal(v)
	}
	return gateway, repaired, received
}

// delivery reads the delivery of a conversation's newest message once it is no
// longer waiting.
func (c *testClient) delivery(t *testing.T, conversation string) (d map[string]any) {
	t.Helper()
	c.until(t, conversation, "has its newest message sent", func() bool {
		page := c.must(t, 200, "GET", conversation+"/messages?order=desc&limit=1", "")["messages"].([]any)
		d, _ = page[0].(map[string]any)["delivery"].(map[string]any)
		return d["status"] != "pending" && d["status"] != "sending"
	})
	return d
}

// TestInbox handles a conversation as people do in an inbox.
func TestInbox(t *testing.T) {
	c := newTestClient(t)
	const at = "/api/agents/default"
	gateway, repaired, received := flakySlack(t, c, at)
	c.must(t, 400, "POST", gateway+"/simulate", `{"from":"","text":"x"}`)
	said := c.must(t, 201, "POST", gateway+"/simulate", `{"from":"U7","name":"Ada","text":"Where is my order?"}`)
	conversation := at + "/conversations/" + said["conversation_id"].(string)
	c.must(t, 201, "POST", gateway+"/simulate", `{"from":"U7","text":"Hello?"}`)

	row := c.must(
		t,
		200,
		"GET",
		at+"/conversations?status=open&unread=true&search=where+is",
		"",
	)["conversations"].([]any)[0].(map[string]any)
	for field, want := range map[string]string{
		"last_message": "content:Hello?",
		"contact":      "name:Ada",
		"gateway":      "type:team_chat",
		"unread":       "2",
		"status":       "open",
		"assignee":     "<nil>",
	} {
		if got := fmt.Sprint(row[field]); !strings.Contains(got, want) {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	if got := c.must(
		t,
		200,
		"GET",
		at+"/conversations/counts",
		"",
	); fmt.Sprint(got) != "map[all:1 mine:0 needs_human:0 open:1 unread:1]" {
		t.Errorf("counts %v", got)
	}
	c.must(t, 400, "GET", at+"/conversations?assignee=me", "") // an open server knows no email addresses
	c.must(t, 400, "GET", at+"/conversations?status=closed", "")
	if got := c.must(
		t, 200, "PUT", conversation,
		`{"read":true,"assignee":"Bob@example.com","needs_human":true}`,
	); fmt.Sprint(got["unread"]) != "0" || got["assignee"] != "bob@example.com" {
		t.Errorf("changed to %v", got)
	}
	for query, want := range map[string]int{
		"assignee=bob@example.com": 1,
		"assignee=none":            0,
		"unread=true":              0,
		"needs_human=true":         1,
		"channel=chat":             0,
		"search=ada":               1,
		"search=nobody":            0,
	} {
		if got := c.must(t, 200, "GET", at+"/conversations?"+query, "")["conversations"].([]any); len(got) != want {
			t.Errorf("%s: %d conversations, want %d", query, len(got), want)
		}
	}

	c.must(t, 201, "POST", conversation+"/messages", `{"role":"note","content":"He called before"}`)
	c.must(t, 400, "POST", conversation+"/messages", `{"role":"note","content":"x","send":true}`)
	sent := c.must(t, 201, "POST", conversation+"/messages", `{"role":"assistant","content":"I look","send":true}`)
	if got := <-received; got != "refused" {
		t.Errorf("Slack received %s", got)
	}
	if d := c.delivery(t, conversation); d["status"] != "failed" ||
		!strings.Contains(fmt.Sprint(d["error"]), "channel_not_found") {
		t.Errorf("delivery %v", d)
	}
	if got := c.must(t, 200, "GET", conversation, ""); got["muted"] != true ||
		got["needs_human"] != false ||
		!strings.Contains(fmt.Sprint(got["last_message"]), "author:human") {
		t.Errorf("after the answer of a person %v", got)
	}
	repaired.Store(true)
	resend := fmt.Sprintf("%s/messages/%v/resend", conversation, sent["id"])
	c.must(t, 200, "POST", resend, "")
	if got := <-received; !strings.Contains(got, "I look") {
		t.Errorf("Slack received %s", got)
	}
	if d := c.delivery(t, conversation); d["status"] != "sent" || d["sent_at"] == nil {
		t.Errorf("delivery %v", d)
	}
	c.must(t, 409, "POST", resend, "")

	got := c.must(
		t,
		200,
		"POST",
		at+"/conversations/batch",
		`{"ids":["conversation-gone","`+said["conversation_id"].(string)+`"],"change":{"status":"resolved"}}`,
	)
	if len(got["updated"].([]any)) != 1 {
		t.Errorf("updated %v", got)
	}
	c.must(t, 201, "POST", gateway+"/simulate", `{"from":"U7","text":"Thanks"}`)
	if got := c.must(t, 200, "GET", conversation, ""); got["status"] != "open" || fmt.Sprint(got["unread"]) != "1" {
		t.Errorf("after a new message %v", got)
	}
	c.must(t, 200, "PUT", conversation+"/draft", `{"text":"You are wel"}`)
	if got := c.must(t, 200, "GET", conversation+"/draft", ""); got["text"] != "You are wel" {
		t.Errorf("draft %v", got)
	}
	c.must(t, 200, "PUT", conversation+"/draft", `{"text":""}`)
	if got := c.must(t, 200, "GET", conversation+"/draft", ""); got["text"] != "" || got["updated_at"] != nil {
		t.Errorf("draft %v", got)
	}
}

func (w *contractClient) checkInbox(t *testing.T, at string) {
	gateway, repaired, received := flakySlack(t, w.testClient, at)
	said := w.request(t, 201, "POST", gateway+"/simulate", `{"from":"U7","name":"Ada","text":"Where is my order?"}`)
	conversation := at + "/conversations/" + said.json["conversation_id"].(string)
	sent := w.request(t, 201, "POST", conversation+"/messages", `{"role":"assistant","content":"I look","send":true}`)
	<-received
	w.delivery(t, conversation)
	repaired.Store(true)
	w.request(t, 200, "POST", fmt.Sprintf("%s/messages/%v/resend", conversation, sent.json["id"]), "")
	<-received
	w.delivery(t, conversation)
	w.request(t, 200, "GET", at+"/conversations?status=open", "")
	w.request(t, 200, "GET", conversation, "")
	w.request(t, 200, "GET", at+"/conversations/counts", "")
	w.request(
		t,
		200,
		"POST",
		at+"/conversations/batch",
		`{"ids":["`+said.json["conversation_id"].(string)+`"],"change":{"status":"resolved","assignee":null}}`,
	)
	w.request(t, 200, "GET", conversation+"/draft", "")
	w.request(t, 200, "PUT", conversation+"/draft", `{"text":"You"}`)
	reply := at + "/replies/" + w.create(t, at+"/replies", `{"shortcut":"hours","text":"We are open from 9 to 17."}`)
	w.request(t, 409, "POST", at+"/replies", `{"shortcut":"Hours","text":"x"}`)
	w.request(t, 200, "GET", at+"/replies", "")
	w.request(t, 200, "PUT", reply, `{"text":"Always."}`)
	w.request(t, 204, "DELETE", reply, "")
}

// TestMessageOfExecution: a message that an execution adds by a request is the
// workflow's: automatic replies stay on.
func TestMessageOfExecution(t *testing.T) {
	c := newTestClient(t)
	const at = "/api/agents/default"
	gateway, repaired, received := flakySlack(t, c, at)
	repaired.Store(true)
	said := c.must(t, 201, "POST", gateway+"/simulate", `{"from":"D7","text":"Where is my order?"}`)
	conversation := at + "/conversations/" + said["conversation_id"].(string)
	execution := c.with(agent.ChainHeader, agent.Chain{Root: "execution-1", Depth: 1}.Signed())
	for _, body := range []string{
		`{"role":"assistant","content":"On its way","metadata":{"author_email":"ada@example.com"}}`,
		`{"role":"assistant","content":"On its way","send":true}`,
	} {
		m := execution.must(t, 201, "POST", conversation+"/messages", body)
		if nested(m, "metadata.author") != agent.AuthorWorkflow ||
			nested(m, "metadata.execution_id") != "execution-1" ||
			nested(m, "metadata.author_email") != nil {
			t.Errorf("%s: %v", body, m)
		}
	}
	if body := <-received; !strings.Contains(body, "On its way") {
		t.Error(body)
	}
	if got := c.must(t, 200, "GET", conversation, ""); got["muted"] != false || fmt.Sprint(got["unread"]) != "0" {
		t.Errorf("conversation %v", got)
	}
	c.must(t, 201, "POST", conversation+"/messages", `{"role":"assistant","content":"I look","send":true}`)
	<-received // a person's answer is really sent
	if d := c.delivery(t, conversation); d["status"] != "sent" {
		t.Errorf("delivery %v", d)
	}
	if got := c.must(t, 200, "GET", conversation, ""); got["muted"] != true {
		t.Errorf("after a person's answer %v", got)
	}
}
