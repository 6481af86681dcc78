package flow

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/gateways"
	"satchel/store"
)

// TestEmailNode sends email from a workflow: templates in an HTML body are
// escaped, and the idempotency key is that of the run.
func TestEmailNode(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	g := gateways.New(gateways.Options{Env: store.Env{Folder: folder, Allow: loopback}})
	e.Register(MessageKinds(g))
	var keys []string
	var mails []map[string]any
	resend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/emails" {
			raw, _ := io.ReadAll(r.Body)
			mail := map[string]any{}
			_ = json.Unmarshal(raw, &mail)
			mails, keys = append(mails, mail), append(keys, r.Header.Get("Idempotency-Key"))
		}
		_, _ = w.Write([]byte(`{"id":"mail-1","data":[]}`))
	}))
	t.Cleanup(resend.Close)
	db := folder.Default()
	made1, _, err := g.Create(t.Context(), db, "resend", agent.GatewayChange{
		Name: agent.Some("Mail"),
		Config: agent.Some(agent.GatewayConfigChange{
			APIKey:      agent.Some("k"),
			FromAddress: agent.Some("a@example.com"),
			APIBaseURL:  agent.Some(resend.URL),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Verify(t.Context(), db, made1.ID); err != nil || !v.Success {
		t.Fatal(v, err)
	}
	w := createWorkflow(t, db, e, `t trigger
		m email {"to":["{{email}}","b@example.com"],"cc":"\"C, Cy\" <c@example.com>, d@example.com","subject":"Hi {{name}}","body":"<p>{{name}}</p>","html":true}
		t -> m`)
	s := execute(t, db, e, w, `{"email":"ada@example.com","name":"<b>Ada</b>"}`)
	if got := string(s.Execution.Output); got != `{"accepted":["ada@example.com","b@example.com","c@example.com",`+
		`"d@example.com"],"message_id":"mail-1"}` {
		t.Errorf("%s, output %s", summarize(s.Results), got)
	}
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	if m["html"] != "<p>&lt;b&gt;Ada&lt;/b&gt;</p>" ||
		m["subject"] != "Hi <b>Ada</b>" ||
		m["text"] != nil ||
		!reflect.DeepEqual(m["to"], []any{"ada@example.com", "b@example.com"}) ||
		!reflect.DeepEqual(m["cc"], []any{`"C, Cy" <c@example.com>`, "d@example.com"}) {
		t.Errorf("mail %v", m)
	}
	if !strings.HasSuffix(keys[0], ":m:0") || !strings.HasPrefix(keys[0], "execution-") {
		t.Errorf("key %q", keys[0])
	}
}

// TestEmailNodeAnswers: what a workflow sends to the sender of the email that started
// it is an automatic answer, within a bound; programs get none.
func TestEmailNodeAnswers(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	g := gateways.New(gateways.Options{Env: store.Env{Folder: folder, Allow: loopback}})
	e.Register(MessageKinds(g))
	var mails []string
	resend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/emails" {
			raw, _ := io.ReadAll(r.Body)
			mails = append(mails, string(raw))
		}
		_, _ = w.Write([]byte(`{"id":"mail-1","data":[]}`))
	}))
	t.Cleanup(resend.Close)
	db := folder.Default()
	gate, _, err := g.Create(t.Context(), db, "resend", agent.GatewayChange{
		Name: agent.Some("Mail"),
		Config: agent.Some(agent.GatewayConfigChange{
			APIKey:      agent.Some("k"),
			FromAddress: agent.Some("a@example.com"),
			APIBaseURL:  agent.Some(resend.URL),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Verify(t.Context(), db, gate.ID); err != nil || !v.Success {
		t.Fatal(v, err)
	}
	n := 0
	received := func(from, metadata string) string {
		t.Helper()
		n++
		id := strconv.Itoa(n)
		in := agent.Inbound{
			ID:       id,
			Thread:   id,
			Text:     "Hello",
			From:     agent.ContactChange{Email: agent.Some(from)},
			Metadata: json.RawMessage(metadata),
		}
		r, err := db.ReceiveInbound(
			t.Context(),
			gate.ID,
			[]store.Receipt{{EventID: id, Messages: []agent.Inbound{in}}},
			0,
		)
		if err != nil {
			t.Fatal(err)
		}
		return string(mustJSON(map[string]any{"message": r.Messages[0], "from": from}))
	}
	answer := createWorkflow(t, db, e, `t trigger
		m email {"to":"{{from}}","subject":"S","body":"Thanks"}
		t -> m`)
	inner := createWorkflow(t, db, e, `t trigger
		m email {"to":"{{from}}","cc":"boss@example.com","subject":"S","body":"Thanks"}
		t -> m`)
	outer := createWorkflow(t, db, e, `t trigger
		w workflow {"workflow_id":"`+inner.ID+`","input":{"from":"{{from}}"},"wait":true}
		t -> w`)
	execute(t, db, e, answer, received("ada@example.com", `{"message_id":"<1@x>"}`))
	execute(t, db, e, answer, `{"from":"ada@example.com"}`)
	if len(mails) != 2 ||
		!strings.Contains(mails[0], `"Auto-Submitted":"auto-replied"`) ||
		!strings.Contains(mails[0], `"In-Reply-To":"\u003c1@x\u003e"`) ||
		!strings.Contains(mails[1], `"Auto-Submitted":"auto-generated"`) ||
		strings.Contains(mails[1], "In-Reply-To") {
		t.Errorf("%v", mails)
	}
	for _, w := range []agent.Workflow{answer, outer} {
		s := execute(t, db, e, w, received("robot@example.com", `{"auto_submitted":"auto-replied"}`))
		if s.Execution.Error != nil {
			t.Errorf("%s", summarize(s.Results))
		}
	}
	execute(t, db, e, answer, received("other@example.com", `{"auto_submitted":"list","reply_to":"team@example.com"}`))
	if len(mails) != 2 {
		t.Errorf("a program was answered: %v", mails[2:])
	}
	mails = nil
	for i := range 30 {
		execute(t, db, e, answer, received("silent+"+strconv.Itoa(i)+"@example.com", `{}`))
	}
	if len(mails) != 20 {
		t.Errorf("%d answers", len(mails))
	}
	execute(t, db, e, answer, `{"from":"silent@example.com"}`)
	if len(mails) != 21 {
		t.Error("what is no answer is not sent")
	}
}

// TestTextNodes sends through each platform that accepts text.
func TestTextNodes(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	g := gateways.New(gateways.Options{Env: store.Env{Folder: folder, Allow: loopback}})
	e.Register(MessageKinds(g))
	received := ""
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/botb/sendMessage", "/chat.postMessage", "/channels/C1/messages",
			"/2010-04-01/Accounts/AC1/Messages.json":
			received = string(raw)
		}
		_, _ = w.Write([]byte(`{"ok":true,"user_id":"U1","id":"9","sid":"SM1","status":"active","channel":"C1","channel_id":"C1","ts":"1.5",
			"result":{"id":9,"is_bot":true,"message_id":5,"chat":{"id":42}}}`))
	}))
	t.Cleanup(vendor.Close)
	db := folder.Default()
	const telegram = `{"botToken":"b"}`
	for name, c := range map[string]struct{ config, node, hears, output string }{
		"chatbot_a": {
			telegram,
			`{"to":42,"message":"hi {{name}}"}`,
			`"text":"hi \u003cAda\u003e"`,
			`{"chat_id":42,"message_id":5}`,
		},
		"chatbot_a HTML": {
			telegram,
			`{"to":42,"message":"<b>hi</b> {{name}}","parse_mode":"html"}`,
			`"text":"\u003cb\u003ehi\u003c/b\u003e \u0026lt;Ada\u0026gt;","parse_mode":"HTML"`,
			`{"chat_id":42,"message_id":5}`,
		},
		"chatbot_a value": {
			telegram,
			`{"to":42,"message":"{{name}}","parse_mode":"HTML"}`,
			`"text":"\u0026lt;Ada\u0026gt;"`,
			`{"chat_id":42,"message_id":5}`,
		},
		"chatbot_a V2": {telegram, `{"to":42,"message":"*hi* {{name}} {{phone}}","parse_mode":"MarkdownV2"}`,
			`"text":"*hi* \u003cAda\\\u003e \\+1 555 0100"`, `{"chat_id":42,"message_id":5}`},
		"team_chat mrkdwn": {
			`{"botToken":"b","signingSecret":"s"}`,
			`{"channel":"C1","message":"<!here> {{name}}","format":"mrkdwn"}`,
			`"text":"\u003c!here\u003e \u0026lt;Ada\u0026gt;"`,
			`{"channel":"C1","ts":"1.5"}`,
		},
		"team_chat": {
			`{"botToken":"b","signingSecret":"s"}`,
			`{"channel":"C1","message":"hi {{name}}","thread_ts":"1.2"}`,
			`{"channel":"C1","text":"hi \u0026lt;Ada\u0026gt;","thread_ts":"1.2"}`,
			`{"channel":"C1","ts":"1.5"}`,
		},
		"community_chat": {
			`{"botToken":"b","applicationId":"9","publicKey":"` + strings.Repeat("ab", 32) + `"}`,
			`{"channel":"C1","message":"hi {{name}}","reply_to":"7"}`,
			`"message_reference":{"message_id":"7"`,
			`{"channel":"C1","message_id":"9"}`,
		},
		"sms": {
			`{"accountSid":"AC1","authToken":"t","phoneNumber":"+1555"}`,
			`{"to":"{{phone}}","message":"hi"}`,
			"To=%2B15550100",
			`{"message_id":"SM1","to":"+15550100"}`,
		},
		"chatbot_b": {
			`{"accountSid":"AC1","authToken":"t","phoneNumber":"+1555"}`,
			`{"to":"{{phone}}","message":"hi"}`,
			"To=whatsapp%3A%2B15550100",
			`{"message_id":"SM1","to":"+15550100"}`,
		},
	} {
		kind, _, _ := strings.Cut(name, " ")
		var config agent.GatewayConfigChange
		if err := json.Unmarshal([]byte(c.config), &config); err != nil {
			t.Fatal(err)
		}
		config.APIBaseURL = agent.Some(vendor.URL)
		made1, _, err := g.Create(t.Context(), db, kind, agent.GatewayChange{
			Name:   agent.Some(kind),
			Config: agent.Some(config),
		})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := g.Verify(t.Context(), db, made1.ID); err != nil || !v.Success {
			t.Fatal(kind, v, err)
		}
		s := execute(
			t,
			db,
			e,
			createWorkflow(t, db, e, "t trigger\nm "+kind+" "+c.node+"\nt -> m"),
			`{"name":"<Ada>","phone":"+1 555 0100"}`,
		)
		if got := string(s.Execution.Output); got != c.output || !strings.Contains(received, c.hears) {
			t.Errorf("%s: %s, output %s, received %s", name, summarize(s.Results), got, received)
		}
		bad := execute(
			t,
			db,
			e,
			createWorkflow(
				t,
				db,
				e,
				"t trigger\nm "+kind+" "+
					strings.NewReplacer(
						"hi", "{{nothing}}", "<!here>", "", "<b>", "", "</b>", "", "*", "",
					).Replace(c.node)+
					"\nt -> m",
			),
			`{"name":"","phone":" "}`,
		)
		if bad.Execution.Error == nil {
			t.Errorf("%s: an empty message was sent: %s", name, summarize(bad.Results))
		}
	}
}
