package gateways

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store"
)

// hookFixture is a folder with gateways and one agent.
type hookFixture struct {
	*Gateways
	db    *store.DB
	clock *fakeClock
}

func newHookFixture(tb testing.TB, change func(*Options)) *hookFixture {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: tb.TempDir(), Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = folder.Close() })
	o := Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet},
		Address: "https://satchel.example",
		Public:  true,
	}
	if change != nil {
		change(&o)
	}
	r := &hookFixture{New(o), folder.Default(), newClock()}
	r.now = r.clock.now
	tb.Cleanup(r.Close)
	return r
}

// connect creates a gateway and activates it.
func (r *hookFixture) connect(tb testing.TB, kind string, config agent.GatewayConfigChange) (agent.Gateway, string) {
	tb.Helper()
	made, secret, err := r.Create(tb.Context(), r.db, kind, agent.GatewayChange{
		Name:   agent.Some("One"),
		Config: agent.Some(config),
	})
	if err == nil {
		err = r.db.EndVerify(tb.Context(), made, "")
	}
	if err != nil {
		tb.Fatal(err)
	}
	made.Status = agent.GatewayActive
	return made, secret
}

func (r *hookFixture) gateway(tb testing.TB, id string) agent.Gateway {
	tb.Helper()
	g, err := r.db.Gateway(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// messages returns the messages of all conversations of the agent, oldest
// first.
func (r *hookFixture) messages(tb testing.TB) []agent.Message {
	tb.Helper()
	list, _, err := r.db.Conversations(tb.Context(), store.ConversationFilter{}, store.Page{Limit: 200})
	if err != nil {
		tb.Fatal(err)
	}
	var found []agent.Message
	for i := len(list) - 1; i >= 0; i-- {
		_, messages, err := r.db.Conversation(tb.Context(), list[i].ID, 200)
		if err != nil {
			tb.Fatal(err)
		}
		found = append(found, messages...)
	}
	return found
}

func (r *hookFixture) post(tb testing.TB, id string, header http.Header, body string) (Response, error) {
	tb.Helper()
	if header == nil {
		header = http.Header{}
	}
	receiver, err := r.Receiver(tb.Context(), r.db, id)
	if err != nil {
		return Response{}, err
	}
	return receiver.Receive(tb.Context(), Post{
		URL:    agent.WebhookPath("default", id),
		Header: header,
		Body:   []byte(body),
	})
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func standardHeaders(prefix, secret, id string, at time.Time, body string) http.Header {
	return headers(
		prefix+"-id",
		id,
		prefix+"-timestamp",
		strconv.FormatInt(at.Unix(), 10),
		prefix+"-signature",
		signature.Sign([]string{secret}, id, at, []byte(body)),
	)
}

func hub(secret, body string) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// TestHookProofs tries valid and invalid authentication on a custom webhook.
func TestHookProofs(t *testing.T) {
	const body = `{"from":"ada","text":"Hello"}`
	r := newHookFixture(t, nil)
	g, secret := r.connect(t, "webhook", agent.GatewayConfigChange{})
	now := r.clock.now()
	key := []byte(secret)
	noPrefix := strings.TrimPrefix(secret, "whsec_")
	rawMAC := func(data string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(data))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	for _, tc := range []struct {
		name   string
		header http.Header
		ok     bool
	}{
		{"standard", standardHeaders("webhook", secret, "s1", now, body), true},
		{"svix", standardHeaders("svix", secret, "s2", now, body), true},
		{"one of several signatures", func() http.Header {
			h := standardHeaders("webhook", secret, "s3", now, body)
			h.Set("webhook-signature", "v2,abc v1,AAAA "+h.Get("webhook-signature"))
			return h
		}(), true},
		{"four minutes old", standardHeaders("webhook", secret, "s4", now.Add(-4*time.Minute), body), true},
		{"hub", hub(secret, body), true},
		{"plain secret", headers("X-Webhook-Secret", secret), true},

		{"no header", nil, false},
		{"another secret", standardHeaders("webhook", signature.NewSecret(), "b1", now, body), false},
		{"another body", standardHeaders("webhook", secret, "b2", now, body+" "), false},
		{"six minutes old", standardHeaders("webhook", secret, "b3", now.Add(-6*time.Minute), body), false},
		{"six minutes ahead", standardHeaders("webhook", secret, "b4", now.Add(6*time.Minute), body), false},
		{"id changed", func() http.Header {
			h := standardHeaders("webhook", secret, "b5", now, body)
			h.Set("webhook-id", "b6")
			return h
		}(), false},
		{"timestamp changed", func() http.Header {
			h := standardHeaders("webhook", secret, "b7", now, body)
			h.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))
			return h
		}(), false},
		{"timestamp not a number", func() http.Header {
			h := standardHeaders("webhook", secret, "b8", now, body)
			h.Set("webhook-timestamp", "now")
			return h
		}(), false},
		{"no id", func() http.Header {
			h := standardHeaders("webhook", secret, "", now, body)
			h.Del("webhook-id")
			return h
		}(), false},
		{"no version", func() http.Header {
			h := standardHeaders("webhook", secret, "b9", now, body)
			h.Set("webhook-signature", strings.TrimPrefix(h.Get("webhook-signature"), "v1,"))
			return h
		}(), false},
		{"wrong signature with the right secret", func() http.Header {
			h := standardHeaders("webhook", signature.NewSecret(), "b10", now, body)
			h.Set("X-Webhook-Secret", secret)
			return h
		}(), false},
		{"hub of another body", hub(secret, body+"x"), false},
		{"hub of another secret", hub("x", body), false},
		{
			"hub without prefix",
			headers("X-Hub-Signature-256", strings.TrimPrefix(hub(secret, body).Get("X-Hub-Signature-256"), "sha256=")),
			false,
		},
		{"hub signature not hex", headers("X-Hub-Signature-256", "sha256=zz"), false},
		{"hub with SHA-1", headers("X-Hub-Signature", "sha1=0011"), false},
		{"empty secret", headers("X-Webhook-Secret", ""), false},
		{"prefix of the secret", headers("X-Webhook-Secret", secret[:len(secret)-1]), false},
		{"secret without its prefix", headers("X-Webhook-Secret", noPrefix), false},
		{
			"slack's",
			headers("X-Slack-Request-Timestamp", strconv.FormatInt(now.Unix(), 10), "X-Slack-Signature", "v0=00"),
			false,
		},
		{
			"twilio's",
			headers("X-Twilio-Signature", rawMAC("https://satchel.example"+agent.WebhookPath("default", g.ID))),
			false,
		},
		{"telegram's", headers("X-Telegram-Bot-Api-Secret-Token", secret), false},
	} {
		before := len(r.messages(t))
		answer, err := r.post(t, g.ID, tc.header, body)
		if tc.ok != (err == nil) || !tc.ok && agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("%s: %v", tc.name, err)
		}
		if stored := len(r.messages(t)) - before; tc.ok != (stored == 1) {
			t.Errorf("%s: %d messages stored", tc.name, stored)
		}
		var result struct {
			Success bool
			EventID string `json:"event_id"`
		}
		if tc.ok && (json.Unmarshal(answer.Body, &result) != nil || !result.Success || result.EventID == "") {
			t.Errorf("%s: response %s", tc.name, answer.Body)
		}
	}
	after := r.gateway(t, g.ID)
	if after.EventCount != 6 ||
		!strings.Contains(after.LastError, "signature") ||
		after.LastErrorAt.IsZero() ||
		after.Status != agent.GatewayActive {
		t.Errorf("after all: %+v", after)
	}
}

// An intercepted post cannot be replayed; a sender that has the secret may
// repeat itself.
func TestHookReplays(t *testing.T) {
	const body = `{"from":"ada","text":"yes"}`
	r := newHookFixture(t, nil)
	g, secret := r.connect(t, "webhook", agent.GatewayConfigChange{Secret: agent.Some("a secret of my own")})
	if _, err := r.post(
		t,
		g.ID,
		headers("X-Webhook-Secret", secret),
		body,
	); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("webhook_secret is accepted although config.secret is set: %v", err)
	}
	const own = "a secret of my own"
	for _, tc := range []struct {
		name   string
		header http.Header
		body   string
		want   int
	}{
		{"standard", standardHeaders("webhook", own, "r1", r.clock.now(), body), body, 1},
		{"hub", hub(own, body), body, 1},
		{"hub replayed with a new id", func() http.Header {
			h := hub(own, body)
			h.Set("webhook-id", "fresh")
			return h
		}(), body, 0},
		{"GitHub", func() http.Header {
			h := hub(own, `{"ref":"main"}`)
			h.Set("X-GitHub-Delivery", "g1")
			return h
		}(), `{"ref":"main"}`, 1},
		{"GitHub replayed with a new id", func() http.Header {
			h := hub(own, `{"ref":"main"}`)
			h.Set("X-GitHub-Delivery", "g2")
			return h
		}(), `{"ref":"main"}`, 0},
		{"secret", headers("X-Webhook-Secret", own), body, 3},
		{"secret and webhook-id", headers("X-Webhook-Secret", own, "webhook-id", "r2"), body, 1},
		{"secret and the message's id", headers("X-Webhook-Secret", own), `{"id":"m1","from":"ada","text":"yes"}`, 1},
		{
			"the same id with another kind of signature",
			standardHeaders("webhook", own, "r3", r.clock.now(), `{"id":"m1","from":"ada","text":"yes"}`),
			`{"id":"m1","from":"ada","text":"yes"}`,
			0,
		},
	} {
		before, counted := len(r.messages(t)), r.gateway(t, g.ID).EventCount
		var first Response
		for n := range 3 {
			answer, err := r.post(t, g.ID, tc.header, tc.body)
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			if n == 0 {
				first = answer
			} else if tc.want < 3 && string(answer.Body) != string(first.Body) {
				t.Errorf("%s: the repeat got %s, the first post %s", tc.name, answer.Body, first.Body)
			}
		}
		if stored := len(r.messages(t)) - before; strings.Contains(tc.body, "from") && stored != tc.want ||
			r.gateway(t, g.ID).EventCount-counted != tc.want {
			t.Errorf("%s: %d stored, want %d", tc.name, stored, tc.want)
		}
	}
}

// TestHookBodies parses bodies of all kinds.
func TestHookBodies(t *testing.T) {
	r := newHookFixture(t, nil)
	g, secret := r.connect(t, "webhook", agent.GatewayConfigChange{})
	for _, tc := range []struct {
		name, body string
		code       agent.Code
		text       string // of the message; "" for gateway.event
		thread     string
	}{
		{"text", `{"from":"ada","text":"one"}`, "", "one", "ada"},
		{"message", `{"external_id":"ada","message":"two"}`, "", "two", "ada"},
		{"content in a thread", `{"from":"ada","content":"three","thread_id":"t-9"}`, "", "three", "t-9"},
		{"numbers for ids", `{"id":12345678901234567890,"from":42,"text":"four","thread_id":7}`, "", "four", "7"},
		{
			"all fields",
			`{"id":"x","from":"bob","text":"five","name":"Bob","email":"bob@example.com","phone":"+1 555 ` +
				`0100","metadata":{"order":7}}`,
			"",
			"five",
			"bob",
		},
		{"odd types", `{"from":"ada","text":"six","name":7,"email":[],"phone":{},"metadata":"x"}`, "", "six", "ada"},
		{"message as an object", `{"from":"ada","message":{"text":"no"}}`, "", "", ""},
		{"no sender", `{"text":"hello"}`, "", "", ""},
		{"blank text", `{"from":"ada","text":"  "}`, "", "", ""},
		{"a list", `[{"from":"ada","text":"x"}]`, "", "", ""},
		{"a text", `"hello"`, "", "", ""},
		{"null", `null`, "", "", ""},
		{"stripe's", `{"id":"evt_1","object":"event","type":"charge.succeeded","data":{"object":{}}}`, "", "", ""},
		{"slack's", `{"token":"t","challenge":"c","type":"url_verification"}`, "", "", ""},
		{"empty", ``, agent.CodeInvalidJSON, "", ""},
		{"a form", `from=ada&text=hello`, agent.CodeInvalidJSON, "", ""},
		{"truncated", `{"from":"ada","text":"hel`, agent.CodeInvalidJSON, "", ""},
		{"two values", `{"from":"ada","text":"x"}{}`, agent.CodeInvalidJSON, "", ""},
		{"not UTF-8", "{\"from\":\"ada\",\"text\":\"\xff\"}", "", "ÿ", "ada"},
		{"deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), agent.CodeValidation, "", ""},
		{"XML", `<xml/>`, agent.CodeInvalidJSON, "", ""},
	} {
		before, counted := len(r.messages(t)), r.gateway(t, g.ID).EventCount
		_, err := r.post(t, g.ID, headers("X-Webhook-Secret", secret), tc.body)
		if agent.ErrorCode(err) != tc.code {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		after := r.messages(t)
		if tc.text == "" != (len(after) == before) {
			t.Errorf("%s: %d messages stored", tc.name, len(after)-before)
		}
		if got := r.gateway(t, g.ID).EventCount - counted; (got == 1) != (tc.code == "") {
			t.Errorf("%s: counted %d", tc.name, got)
		}
		if tc.text == "" {
			continue
		}
		found := false
		for _, m := range after {
			c, _, err := r.db.Conversation(t.Context(), m.ConversationID, 1)
			found = found || err == nil && m.Content == tc.text && c.ExternalThreadID == tc.thread
		}
		if !found {
			t.Errorf("%s: no message %q in %q: %+v", tc.name, tc.text, tc.thread, after)
		}
	}
	bob, err := r.db.ResolveContact(t.Context(), "email", "bob@example.com")
	if err != nil || bob.Name != "Bob" || bob.Phone != "+1 555 0100" || bob.ExternalID != "bob" {
		t.Errorf("bob is %+v, %v", bob, err)
	}
}

func infoOf(tb testing.TB, v Verified) string {
	tb.Helper()
	raw, err := json.Marshal(v.Info)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

const noTarget = "config.url and config.secret missing: give a URL to send to, or a secret to only receive"

// A gateway with its own secret and no URL only receives: there is nothing to
// verify, it accepts posts, and nothing is sent through it. A gateway with
// neither is incomplete.
func TestHookOnlyReceives(t *testing.T) {
	r := newHookFixture(t, nil)
	empty, _, err := r.Create(t.Context(), r.db, "webhook", agent.GatewayChange{Name: agent.Some("Empty")})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(t.Context(), r.db, empty.ID); err != nil ||
		v.Success ||
		v.Error != noTarget ||
		r.gateway(t, empty.ID).Status != agent.GatewayFailed {
		t.Errorf("an empty config: %+v, %v", v, err)
	}
	const own = "a secret of my own"
	if _, err := r.Update(t.Context(), r.db, empty.ID, agent.GatewayChange{
		Config: agent.Some(agent.GatewayConfigChange{Secret: agent.Some(own)}),
	}); err != nil {
		t.Fatal(err)
	}
	v, err := r.Verify(t.Context(), r.db, empty.ID)
	if g := r.gateway(t, empty.ID); err != nil ||
		!v.Success ||
		infoOf(t, v) != `{"url":null,"status":null}` ||
		g.Status != agent.GatewayActive ||
		!g.Verified {
		t.Fatalf("with a secret: %+v, %v, %+v", v, err, g)
	}
	if got, err := r.Register(t.Context(), r.db, empty.ID, ""); err != nil ||
		!got.Success ||
		!strings.HasSuffix(got.WebhookURL, "/"+empty.ID+"/webhook") {
		t.Errorf("registered %+v, %v", got, err)
	}
	if _, err := r.post(
		t,
		empty.ID,
		hub(own, `{"from":"ada","text":"Hello"}`),
		`{"from":"ada","text":"Hello"}`,
	); err != nil || len(r.messages(t)) != 1 {
		t.Errorf("%d messages, %v", len(r.messages(t)), err)
	}
	_, err = r.Send(t.Context(), r.db, SendRequest{
		Type:      agent.GatewayWebhook,
		GatewayID: empty.ID,
		To:        "ada",
		Text:      "Hi",
	})
	if agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), "config.url missing") {
		t.Errorf("sent: %v", err)
	}
	target := newTarget(t, nil) // a URL is pinged again
	if _, err := r.Update(t.Context(), r.db, empty.ID, agent.GatewayChange{
		Config: agent.Some(agent.GatewayConfigChange{URL: agent.Some(target.URL)}),
	}); err != nil {
		t.Fatal(err)
	}
	if v, err = r.Verify(t.Context(), r.db, empty.ID); err != nil ||
		infoOf(t, v) != `{"url":"`+target.URL+`","status":200}` {
		t.Errorf("with an address: %+v, %v", v, err)
	}
}

func TestHookSends(t *testing.T) {
	r := newHookFixture(t, nil)
	target := newTarget(t, nil)
	g, secret := r.connect(t, "webhook", agent.GatewayConfigChange{
		URL:     agent.Some(target.URL),
		Headers: agent.Some(map[string]string{"Authorization": "Bearer mine", "webhook-id": "forged"}),
	})
	v, err := r.Verify(t.Context(), r.db, g.ID)
	if err != nil || !v.Success || infoOf(t, v) != `{"url":"`+target.URL+`","status":200}` {
		t.Fatalf("verified %+v, %v", v, err)
	}
	ping := target.next(t)
	verify(t, secret, ping)
	if !strings.Contains(string(ping.body), `"type":"ping"`) || ping.header.Get("Authorization") != "Bearer mine" {
		t.Errorf("pinged %s with %v", ping.body, ping.header)
	}
	o, err := r.db.SendingGateway(t.Context(), agent.GatewayWebhook, g.ID)
	if err != nil {
		t.Fatal(err)
	}
	target.script(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			w.WriteHeader(503)
			return
		}
		_, _ = w.Write([]byte(`{"id":"theirs"}`))
	})
	r.wait = func(context.Context, time.Duration) error { return nil }
	sent, err := webhook{}.send(t.Context(), r.Gateways, o.Config, Message{To: "ada", Text: "Hi <there>", Key: "k"})
	if err != nil || sent.ID != "theirs" || sent.Channel != "ada" {
		t.Errorf("sent %+v, %v", sent, err)
	}
	first, second := target.next(t), target.next(t)
	verify(t, secret, second)
	if first.header.Get("webhook-id") != second.header.Get("webhook-id") || first.header.Get("webhook-id") == "forged" {
		t.Error("the retry has another id")
	}
	var body map[string]any
	if json.Unmarshal(second.body, &body) != nil ||
		body["text"] != "Hi <there>" ||
		body["to"] != "ada" ||
		body["thread_id"] != "ada" ||
		body["type"] != "message" {
		t.Errorf("sent %s", second.body)
	}
	target.script(status(404))
	if v, _ := r.Verify(t.Context(), r.db, g.ID); v.Success || v.Error != "the target answered 404" {
		t.Errorf("verified %+v", v)
	}
	empty, _ := r.connect(t, "webhook", agent.GatewayConfigChange{})
	if v, _ := r.Verify(t.Context(), r.db, empty.ID); v.Success || v.Error != noTarget {
		t.Errorf("verified %+v", v)
	}
}

func TestRegisterAddress(t *testing.T) {
	r := newHookFixture(t, nil)
	g, _ := r.connect(t, "webhook", agent.GatewayConfigChange{URL: agent.Some("https://example.com/in")})
	path := agent.WebhookPath("default", g.ID)
	for base, want := range map[string]string{
		"":                                "https://satchel.example" + path,
		"https://other.example/satchel//": "https://other.example/satchel" + path,
	} {
		got, err := r.Register(t.Context(), r.db, g.ID, base)
		if err != nil || !got.Success || got.WebhookURL != want || got.Instructions == "" {
			t.Errorf("%q: %+v, %v", base, got, err)
		}
		o, err := r.db.OpenGateway(t.Context(), g.ID)
		if err != nil || r.publicBase(o)+path != want {
			t.Errorf("%q: the gateway's address is %q, %v", base, r.publicBase(o), err)
		}
	}
	for _, base := range []string{
		"example.com", "ftp://example.com", "https://a:b@example.com", "https://example.com?x", "https://example.com#x",
		"https://", "//example.com", "javascript:alert(1)", "https://exa mple.com",
		"https://" + strings.Repeat("a", 1000),
	} {
		if _, err := r.Register(t.Context(), r.db, g.ID, base); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%q: %v", base, err)
		}
	}
	smtp, _ := r.connect(t, "smtp", agent.GatewayConfigChange{})
	if _, err := r.Register(t.Context(), r.db, smtp.ID, ""); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("SMTP: %v", err)
	}
	if _, err := r.post(t, smtp.ID, nil, `{}`); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a post to SMTP: %v", err)
	}
	if _, err := r.Register(t.Context(), r.db, "gateway-none", ""); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("no gateway: %v", err)
	}
}

func FuzzHook(f *testing.F) {
	for _, seed := range []string{
		`{"from":"ada","text":"hi"}`,
		`{"id":1,"from":2,"message":"x","metadata":{}}`,
		`[]`,
		``,
		`{"from":"\ud800"}`,
		`{"FROM":"a","Text":"b","text":null}`,
	} {
		f.Add([]byte(seed), "v1,AAAA", "1700000000")
	}
	now := time.Unix(1_700_000_000, 0)
	o := store.OpenGateway{Config: agent.GatewayConfig{Secret: "s"}}
	f.Fuzz(func(t *testing.T, body []byte, given, timestamp string) {
		if _, err := (webhook{}).parsePost(
			o,
			Post{
				Header: headers("webhook-id", "x", "webhook-timestamp", timestamp, "webhook-signature", given),
				Body:   body,
			},
			now,
		); err == nil {
			at, _ := strconv.ParseInt(timestamp, 10, 64)
			if !strings.Contains(given, signature.Sign([]string{"s"}, "x", time.Unix(at, 0), body)) && len(given) > 0 {
				t.Fatalf("%q passes as the signature of %q", given, body)
			}
		}
		parsed, err := (webhook{}).parsePost(o, Post{Header: headers("X-Webhook-Secret", "s"), Body: body}, now)
		if err != nil {
			return
		}
		for i := range parsed.Messages {
			m, c := parsed.Messages[i].Message(), parsed.Messages[i].Sender()
			if err := m.Validate(); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			if err := c.Validate(); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
		}
		if parsed.EventID == "" || !json.Valid(payload(Post{Body: body})) {
			t.Fatalf("%q: event %q", body, parsed.EventID)
		}
	})
}
