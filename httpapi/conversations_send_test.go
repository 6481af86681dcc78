package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slackTeam is a fake Slack with a gateway connected to it.
type slackTeam struct {
	gateway string
	sent    chan string // bodies of the messages that it received
}

func (c *testClient) slack(t *testing.T) slackTeam {
	t.Helper()
	team := slackTeam{sent: make(chan string, 10)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chat.postMessage" {
			team.sent <- string(body)
		}
		_, _ = w.Write([]byte(`{"ok":true,"user_id":"UBOT","channel":"D1","ts":"1.5"}`))
	}))
	t.Cleanup(server.Close)
	made := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"slack","name":"Team","config":{"botToken":"xoxb","signingSecret":"s","apiBaseUrl":"`+server.URL+`"}}`,
	)
	team.gateway = "/api/agents/default/gateways/" + made["id"].(string)
	if v := c.must(t, 200, "POST", team.gateway+"/verify", ""); v["success"] != true {
		t.Fatal(v)
	}
	return team
}

// post delivers a message of a Slack user.
func (team slackTeam) post(t *testing.T, c *testClient, ts, text string) {
	t.Helper()
	body := fmt.Sprintf(
		`{"type":"event_callback","team_id":"T1","event_id":"Ev%s","event":{"type":"message","channel":"D1",`+
			`"channel_type":"im","user":"U1","text":%q,"ts":%q}}`,
		ts,
		text,
		ts,
	)
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte("s"))
	mac.Write([]byte("v0:" + at + ":" + body))
	c.with("X-Slack-Request-Timestamp", at).
		with("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil))).
		must(t, 200, "POST", team.gateway+"/webhook", body)
}

// TestSendInConversation checks that a person can answer a Slack message through the API,
// and that an MCP client may answer until then.
func TestSendInConversation(t *testing.T) {
	c := newTestClient(t)
	team := c.slack(t)
	team.post(t, c, "1.2", "Where is it?")
	list := c.must(t, 200, "GET", "/api/agents/default/conversations", "")["conversations"].([]any)
	if len(list) != 1 {
		t.Fatal(list)
	}
	id := list[0].(map[string]any)["id"].(string)
	session := c.mcpSession(t, "default", "2026-07-28")
	for _, call := range []struct {
		arguments, has string
		failed         bool
	}{
		{`{"conversation_id":"` + id + `","message":"I look."}`, `"delivery":{"status":"pending"}`, false},
		{`{"type":"slack","to":"C7","message":"Look!"}`, `"message_id":"1.5"`, false},
		{`{"type":"sms","to":"+1","message":"Look!"}`, "VALIDATION_ERROR: gateway_id", true},
		{`{"type":"x","to":"+1","message":"Look!"}`, "VALIDATION_ERROR: ", true},
		{`{"type":"slack","message":"Look!"}`, "VALIDATION_ERROR: channel is required", true},
		{`{"message":"Look!"}`, "VALIDATION_ERROR: conversation_id", true},
	} {
		if text, failed := callTool(t, session, "send_message", call.arguments); failed != call.failed ||
			!strings.Contains(text, call.has) {
			t.Errorf("%s: %s", call.arguments, text)
		}
	}
	said := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+id+"/messages",
		`{"role":"assistant","content":"On its way.","send":true}`,
	)
	if nested(said, "metadata.delivery.status") != "pending" || nested(said, "metadata.author") != "human" {
		t.Errorf("%v", said)
	}
	received := map[string]bool{}
	for range 3 {
		received[<-team.sent] = true
	}
	for _, want := range []string{
		`{"channel":"D1","text":"I look."}`,
		`{"channel":"C7","text":"Look!"}`,
		`{"channel":"D1","text":"On its way."}`,
	} {
		if !received[want] {
			t.Errorf("%s is not in %v", want, received)
		}
	}
	if text, failed := callTool(
		t,
		session,
		"send_message",
		`{"conversation_id":"`+id+`","message":"Too late."}`,
	); !failed || !strings.HasPrefix(text, "CONFLICT: a person has taken over") {
		t.Errorf("a muted conversation: %s", text)
	}
	for _, body := range []string{
		`{"role":"user","content":"x","send":true}`,
		`{"role":"assistant","content":"","send":true}`,
	} {
		c.must(t, 400, "POST", "/api/agents/default/conversations/"+id+"/messages", body)
	}
}
