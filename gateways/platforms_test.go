package gateways

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/mailbox"
	"satchel/store"
)

// fakePlatform is a platform's API that responds as scripted and records
// requests.
type fakePlatform struct {
	*httptest.Server
	mu       sync.Mutex
	answers  map[string][]string // by method and path: "200 body"; the last one repeats
	requests []recordedRequest
}

type recordedRequest struct {
	call   string // method and path
	header http.Header
	body   string
}

func newFakePlatform(tb testing.TB, answers map[string][]string) *fakePlatform {
	tb.Helper()
	v := &fakePlatform{answers: answers}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		call := r.Method + " " + r.URL.RequestURI()
		v.requests = append(v.requests, recordedRequest{call, r.Header.Clone(), string(body)})
		script := v.answers[call]
		if len(script) > 1 {
			v.answers[call] = script[1:]
		}
		v.mu.Unlock()
		if len(script) == 0 {
			http.Error(w, "<html>no such page</html>", http.StatusNotFound)
			return
		}
		status, answer, _ := strings.Cut(script[0], " ")
		code := 0
		_, _ = fmt.Sscan(status, &code)
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	tb.Cleanup(v.Close)
	return v
}

func (v *fakePlatform) calls() []recordedRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

// account is a test account on a platform.
type account struct {
	kind     string
	config   map[string]any
	answers  map[string]string // responses to verification
	info     string            // what verification returns
	secret   string            // the part of the config that must not appear anywhere
	authCall string            // the call that carries the credential, and its header
	header   string
}

const twilioSID = "AC0123456789abcdef0123456789abcdef"

var accounts = map[string]account{
	"slack": {
		kind:   "slack",
		config: map[string]any{"botToken": "xoxb-secret", "signingSecret": "s"},
		secret: "xoxb-secret",
		answers: map[string]string{
			"POST /auth.test": `{"ok":true,"url":"https://shop.slack.com/","team":"Shop","user":"bot",` +
				`"team_id":"T1","user_id":"U1","bot_id":"B1"}`,
		},
		info: `{"team":"Shop","teamId":"T1","user":"bot","userId":"U1","botId":"B1",` +
			`"url":"https://shop.slack.com/"}`,
		authCall: "POST /auth.test",
		header:   "Bearer xoxb-secret",
	},
	"discord": {
		kind:   "discord",
		config: map[string]any{"botToken": "bot-secret", "applicationId": "9", "publicKey": strings.Repeat("ab", 32)},
		secret: "bot-secret",
		answers: map[string]string{
			"GET /users/@me":        `{"id":"7","username":"bot"}`,
			"GET /applications/@me": `{"id":"9","verify_key":"` + strings.Repeat("AB", 32) + `"}`,
		},
		info:     `{"id":"7","username":"bot"}`,
		authCall: "GET /users/@me",
		header:   "Bot bot-secret",
	},
	"sms": {
		kind: "twilio",
		config: map[string]any{
			"accountSid":  twilioSID,
			"authToken":   "auth-secret",
			"phoneNumber": "+1 (555) 000-1111",
		},
		secret: "auth-secret",
		answers: map[string]string{
			"GET /2010-04-01/Accounts/" + twilioSID + ".json": `{"sid":"` + twilioSID +
				`","friendly_name":"Shop","status":"active","type":"Full","auth_token":"auth-secret"}`,
		},
		info:     `{"accountSid":"` + twilioSID + `","friendlyName":"Shop","status":"active","type":"Full"}`,
		authCall: "GET /2010-04-01/Accounts/" + twilioSID + ".json",
		header:   "Basic QUMwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjphdXRoLXNlY3JldA==",
	},
	"whatsapp": {
		kind:   "whatsapp",
		config: map[string]any{"accountSid": twilioSID, "authToken": "auth-secret", "phoneNumber": "+15550001111"},
		secret: "auth-secret",
		answers: map[string]string{
			"GET /2010-04-01/Accounts/" + twilioSID + ".json": `{"sid":"` + twilioSID +
				`","friendly_name":"Shop","status":"active","type":"Trial"}`,
		},
		info:     `{"accountSid":"` + twilioSID + `","friendlyName":"Shop","status":"active","type":"Trial"}`,
		authCall: "GET /2010-04-01/Accounts/" + twilioSID + ".json",
		header:   "Basic QUMwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjphdXRoLXNlY3JldA==",
	},
}

// open creates a verified gateway of an account at a fake platform.
func (a account) open(
	tb testing.TB,
	o *mailFixture,
	more map[string][]string,
) (*fakePlatform, agent.Gateway, Verified) {
	tb.Helper()
	answers := map[string][]string{}
	for call, body := range a.answers {
		answers[call] = []string{"200 " + body}
	}
	maps.Copy(answers, more)
	v := newFakePlatform(tb, answers)
	fields := maps.Clone(a.config)
	fields["apiBaseUrl"] = v.URL
	g, verified := o.gateway(tb, a.kind, fields)
	return v, g, verified
}

// TestPlatformsVerify covers all platforms: the calls, results and errors of
// verification.
func TestPlatformsVerify(t *testing.T) {
	for name, a := range accounts {
		t.Run(name, func(t *testing.T) {
			o := newMailFixture(t)
			v, g, verified := a.open(t, o, nil)
			info, err := json.Marshal(verified.Info)
			if err != nil || string(info) != a.info || !verified.Success || g.Status != agent.GatewayActive {
				t.Errorf("got %s, %+v, %v", info, verified, err)
			}
			if got := v.calls()[0]; got.call != a.authCall || got.header.Get("Authorization") != a.header {
				t.Errorf("requested %+v", got)
			}
			for call := range a.answers {
				for answer, want := range map[string]string{
					`401 {"message":"` + a.secret + `"}`: "refused the",
					`403 {}`:                             "refused the",
					`429 {"retry_after":0.5}`:            "rate limiting",
					`500 boom ` + a.secret:               "answered 500",
					`302 x`:                              "answered 302",
					`200 <html>`:                         "could not be read",
					`200 {}`:                             "could not be read",
					`200 []`:                             "could not be read",
					`200 {"ok":true,"id":5,"sid":[]}`:    "could not be read",
				} {
					_, g, verified := a.open(t, o, map[string][]string{call: {answer}})
					if verified.Success ||
						!strings.Contains(verified.Error, want) ||
						strings.Contains(verified.Error, a.secret) {
						t.Errorf("%s answers %s: %+v", call, answer, verified)
					}
					if g.Status != agent.GatewayFailed || g.LastError != verified.Error {
						t.Errorf("%s answers %s: %+v", call, answer, g)
					}
				}
			}
			for field := range a.config {
				incomplete := a
				incomplete.config = maps.Clone(a.config)
				delete(incomplete.config, field)
				v, _, verified := incomplete.open(t, o, nil)
				if verified.Success || verified.Error != "config."+field+" missing" || len(v.calls()) != 0 {
					t.Errorf("without %s: %+v, %d calls", field, verified, len(v.calls()))
				}
			}
		})
	}
}

func TestVerifyNamesTheWrongField(t *testing.T) {
	o := newMailFixture(t)
	for _, c := range []struct{ account, call, answer, want string }{
		{
			"slack",
			"POST /auth.test",
			`200 {"ok":false,"error":"invalid_auth"}`,
			"Slack refused the bot token (invalid_auth)",
		},
		{"slack", "POST /auth.test", `200 {"ok":false,"error":"<b>xoxb</b>"}`, "Slack refused the call"},
		{"slack", "POST /auth.test", `200 {"ok":false,"error":"ratelimited"}`, "rate limiting"},
		{"slack", "POST /auth.test", `200 {"ok":false,"error":"fatal_error"}`, "failed (fatal_error)"},
		{"discord", "GET /applications/@me", `200 {"id":"10"}`, "config.applicationId is not"},
		{"discord", "GET /applications/@me", `200 {"id":"9","verify_key":"00"}`, "config.publicKey is not"},
		{
			"sms",
			"GET /2010-04-01/Accounts/" + twilioSID + ".json",
			`200 {"sid":"x","status":"suspended"}`,
			"not active (suspended)",
		},
		{"sms", "GET /2010-04-01/Accounts/" + twilioSID + ".json", `404 {"code":20404,"message":"x"}`, "error 20404"},
	} {
		if _, _, v := accounts[c.account].open(t, o, map[string][]string{c.call: {c.answer}}); v.Success ||
			!strings.Contains(v.Error, c.want) {
			t.Errorf("%s answers %s: %+v", c.account, c.answer, v)
		}
	}
}

const (
	twilioMessages = "POST /2010-04-01/Accounts/" + twilioSID + "/Messages.json"
	slackMessages  = "POST /chat.postMessage"
)

// sendCase is a message and what the platform must receive.
type sendCase struct {
	account  string
	request  SendRequest
	call     string
	answer   string
	contains []string // parts of the body, decoded if it is a form
	sent     Sent
}

var sendCases = map[string]sendCase{
	"slack": {
		"slack",
		SendRequest{To: "C1", Text: "<!channel> a & b", Thread: "1.2"},
		slackMessages,
		`{"ok":true,"channel":"C9","ts":"1.5"}`,
		[]string{`"channel":"C1"`, `\u0026lt;!channel\u0026gt; a \u0026amp; b`, `"thread_ts":"1.2"`},
		Sent{ID: "1.5", Channel: "C9", Parts: 1},
	},
	"slack markup": {
		"slack",
		SendRequest{To: "C1:1.3", Text: "<@U1> *hi*", Format: "mrkdwn"},
		slackMessages,
		`{"ok":true,"channel":"C9","ts":"1.5"}`,
		[]string{`\u003c@U1\u003e *hi*`, `"thread_ts":"1.3"`},
		Sent{ID: "1.5", Channel: "C9", Parts: 1},
	},
	"discord": {
		"discord",
		SendRequest{To: "645:803", Text: "@everyone hi", Thread: "55", Key: "k"},
		"POST /channels/645/messages",
		`{"id":"99","channel_id":"645"}`,
		[]string{
			`"content":"@everyone hi"`,
			`"parse":["users"]`,
			`"message_id":"55"`,
			`"enforce_nonce":true`,
			`"nonce":"` + nonce("k") + `"`,
		},
		Sent{ID: "99", Channel: "645", Parts: 1},
	},
	"sms": {
		"sms",
		SendRequest{To: "+1 (555) 123-4567", Text: "hi & bye"},
		twilioMessages,
		`{"sid":"SM1","to":"+15551234567"}`,
		[]string{"To=+15551234567", "From=+15550001111", "Body=hi & bye"},
		Sent{ID: "SM1", Channel: "+15551234567", Parts: 1},
	},
	"whatsapp": {
		"whatsapp",
		SendRequest{To: "+15551234567", Text: "hi"},
		twilioMessages,
		`{"sid":"SM1","to":"whatsapp:+15551234567"}`,
		[]string{"To=whatsapp:+15551234567", "From=whatsapp:+15550001111", "Body=hi"},
		Sent{ID: "SM1", Channel: "+15551234567", Parts: 1},
	},
}

// received returns the received body, with a form decoded.
func (a recordedRequest) received(tb testing.TB) string {
	tb.Helper()
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return a.body
	}
	form, err := url.ParseQuery(a.body)
	if err != nil {
		tb.Fatal(err)
	}
	text := ""
	for name := range form {
		text += name + "=" + form.Get(name) + "\n"
	}
	return text
}

// TestPlatformsSend covers all platforms: what is sent, and how rejections are
// handled.
func TestPlatformsSend(t *testing.T) {
	for name, s := range sendCases {
		t.Run(name, func(t *testing.T) {
			o := newMailFixture(t)
			v, g, _ := accounts[s.account].open(t, o, map[string][]string{s.call: {"429 {}", "200 " + s.answer}})
			before := len(v.calls())
			r := s.request
			r.Type, r.GatewayID = g.Type, g.ID
			sent, err := o.Send(t.Context(), o.db, r)
			if err != nil || sent != s.sent {
				t.Fatalf("got %+v, %v", sent, err)
			}
			calls := v.calls()[before:]
			if len(calls) != 2 || len(o.waits) != 1 || o.waits[0] != time.Second {
				t.Fatalf("%d calls, waits %v", len(calls), o.waits)
			}
			for _, want := range s.contains {
				if got := calls[1].received(t); !strings.Contains(got, want) {
					t.Errorf("%s is not in %s", want, got)
				}
			}
			for answer, want := range map[string]string{
				"401 {}":          "refused the",
				"400 {}":          "answered 400",
				"500 {}":          "answered 500",
				"200 <html>":      "could not be read",
				`200 {"ok":true}`: "could not be read",
			} {
				v.mu.Lock()
				v.answers[s.call] = []string{answer}
				v.mu.Unlock()
				before := len(v.calls())
				_, err := o.Send(t.Context(), o.db, r)
				if agent.ErrorCode(err) != agent.CodeUpstream || !strings.Contains(agent.Explain(err), want) {
					t.Errorf("answered %s: %v", answer, err)
				}
				if n := len(v.calls()) - before; n != 1 && !(s.account == "discord" && n == callTries) {
					t.Errorf("answered %s: %d calls", answer, n) // only Discord recognizes repeats
				}
			}
		})
	}
}

// TestLongMessages: a text longer than a platform allows is sent as several
// messages, in order.
func TestLongMessages(t *testing.T) {
	for name, limit := range map[string]int{
		"slack":    slackLimit,
		"discord":  discordLimit,
		"sms":      twilioLimit,
		"whatsapp": twilioLimit,
	} {
		o := newMailFixture(t)
		s := sendCases[name]
		v, g, _ := accounts[s.account].open(t, o, map[string][]string{
			s.call: {"200 " + s.answer, "200 " + s.answer, "403 {}"},
		})
		r := s.request
		r.Type, r.GatewayID, r.Text = g.Type, g.ID, strings.Repeat("x", limit+limit/2)
		before := len(v.calls())
		sent, err := o.Send(t.Context(), o.db, r)
		if err != nil || sent.Parts != 2 || sent.ID != s.sent.ID || len(v.calls())-before != 2 {
			t.Errorf("%s: %+v, %v", name, sent, err)
		}
		if r.Text = strings.Repeat("&", limit); name == "slack" {
			v.mu.Lock()
			v.answers[s.call] = []string{"200 " + s.answer}
			v.mu.Unlock()
			if sent, err = o.Send(t.Context(), o.db, r); err != nil || sent.Parts != 5 {
				t.Errorf("escaped: %+v, %v", sent, err)
			}
		} else {
			r.Text = strings.Repeat("y", 2*limit)
			sent, err = o.Send(t.Context(), o.db, r)
			if agent.ErrorCode(err) != agent.CodeUpstream || sent.Parts != 0 {
				t.Errorf("%s refused: %+v, %v", name, sent, err)
			}
		}
		if r.Text = strings.Repeat("z", limit*(maxParts+1)); len(r.Text) < 4*agent.MaxMessageLength {
			if _, err := o.Send(t.Context(), o.db, r); agent.ErrorCode(err) != agent.CodeValidation {
				t.Errorf("%s, too long: %v", name, err)
			}
		}
	}
}

// TestDiscordFollowUp: the answer to a command replaces the deferred response,
// and the rest follows it.
func TestDiscordFollowUp(t *testing.T) {
	o := newMailFixture(t)
	v := newFakePlatform(t, map[string][]string{
		"PATCH /webhooks/9/TOK/messages/@original": {`200 {"id":"1","channel_id":"645"}`},
		"POST /webhooks/9/TOK?wait=true":           {`200 {"id":"2","channel_id":"645"}`},
	})
	c := agent.GatewayConfig{APIBaseURL: v.URL, ApplicationID: "9", BotToken: "b"}
	sent, err := discord{}.send(t.Context(), o.Gateways, c, Message{
		To:    "645",
		Token: "TOK",
		Key:   "k",
		Text:  strings.Repeat("x", discordLimit+1),
	})
	if err != nil || sent != (Sent{ID: "1", Channel: "645", Parts: 2}) {
		t.Errorf("got %+v, %v", sent, err)
	}
	calls := v.calls()
	if len(calls) != 2 ||
		strings.Contains(calls[0].body, "nonce") ||
		calls[1].call != "POST /webhooks/9/TOK?wait=true" {
		t.Errorf("got %+v", calls)
	}
	// the command's token has expired
	v = newFakePlatform(t, map[string][]string{"POST /channels/645/messages": {`200 {"id":"3","channel_id":"645"}`}})
	c.APIBaseURL = v.URL
	sent, err = discord{}.send(t.Context(), o.Gateways, c, Message{To: "645", Token: "OLD", Text: "late"})
	if err != nil || sent.ID != "3" || len(v.calls()) != 2 {
		t.Errorf("an old token: %+v, %v, %+v", sent, err, v.calls())
	}
}

func TestRegister(t *testing.T) {
	o := newMailFixture(t)
	numbers := "GET /2010-04-01/Accounts/" + twilioSID + "/IncomingPhoneNumbers.json?PhoneNumber=%2B15550001111"
	number := "POST /2010-04-01/Accounts/" + twilioSID + "/IncomingPhoneNumbers/PN1.json"
	v := newFakePlatform(t, map[string][]string{
		"PATCH /applications/@me": {`200 {}`},
		numbers: {
			`200 {"incoming_phone_numbers":[{"sid":"PN1"}]}`,
			`200 {"incoming_phone_numbers":[]}`,
		},
		number: {"200 {}"},
	})
	account := func(name, phone string) store.OpenGateway {
		return store.OpenGateway{
			WebhookBase: "https://satchel.example",
			Config: agent.GatewayConfig{
				APIBaseURL:  v.URL,
				BotToken:    "b",
				AccountSID:  twilioSID,
				AuthToken:   "t",
				PhoneNumber: phone,
			},
		}
	}
	for _, c := range []struct {
		p              registrar
		phone          string
		byHand         bool
		calls          int
		contains, fail string
	}{
		{slack{}, "", true, 0, "", ""},
		{resend{}, "", true, 0, "", ""},
		{twilioWhatsApp, "+1", true, 0, "", ""},
		{twilioSMS, "MG1", true, 0, "", ""},
		{discord{}, "", false, 1, `{"interactions_endpoint_url":"` + hookURL + `"}`, ""},
		{twilioSMS, "+1 555 000-1111", false, 2, "SmsUrl=" + hookURL, ""},
		{twilioSMS, "+15550001111", false, 1, "", "no number like config.phoneNumber"},
	} {
		before := len(v.calls())
		how, err := c.p.register(t.Context(), o.Gateways, account("", c.phone), hookURL)
		calls := v.calls()[before:]
		if len(calls) != c.calls || strings.Contains(how, hookURL) != c.byHand {
			t.Errorf("%T: %q, %v, %d calls", c.p, how, err, len(calls))
		}
		if c.fail != "" != (err != nil) || err != nil && !strings.Contains(clientMessage(err), c.fail) {
			t.Errorf("%T: %v", c.p, err)
		}
		if c.contains != "" && !strings.Contains(calls[len(calls)-1].received(t), c.contains) {
			t.Errorf("%T: %s", c.p, calls[len(calls)-1].body)
		}
	}
}

func TestResendFetch(t *testing.T) {
	o := newMailFixture(t)
	v := newFakePlatform(t, map[string][]string{"GET /emails/receiving/e1": {
		`200 {"id":"e1","from":"Ada <ada@example.com>","to":["shop@example.net"],"reply_to":["help@example.com"],"message_id":"<3@x>","subject":"Re: Order","text":null,
			"html":"<html><head><title>T</title><style>p{}</style></head><body><p>Where\nis <b>it</b>?</p><script>x</script>&lt;3<br>Ada</body></html>",
			"headers":{"REFERENCES":"<1@x> <2@x>","in-reply-to":"<2@x>","auto-submitted":"auto-replied"},"attachments":[{"id":"a","filename":"f.txt","content_type":"text/plain","size":3}]}`,
		`200 {"id":"e1","from":"ada@example.com","message_id":"<3@x>","subject":"S","text":" hello ",` +
			`"headers":{"in-reply-to":"<2@x>"}}`,
		`401 {}`, `200 {}`, "200 <html>"}})
	c := agent.GatewayConfig{APIBaseURL: v.URL, APIKey: "re_secret"}
	in := agent.Inbound{ID: "e1"}
	if err := (resend{}).fetch(t.Context(), o.Gateways, c, &in); err != nil {
		t.Fatal(err)
	}
	if in.Text != "Where is it?\n<3\nAda" ||
		in.Thread != "<1@x>" ||
		in.From.Email.Value != "ada@example.com" ||
		in.From.Name.Value != "Ada" {
		t.Errorf("got %+v", in)
	}
	for _, want := range []string{
		`"references":"\u003c1@x\u003e \u003c2@x\u003e"`,
		`"auto_submitted":"auto-replied"`,
		`"reply_to":"help@example.com"`,
		`"size":3`,
	} {
		if !strings.Contains(string(described(in)), want) {
			t.Errorf("%s is not in %s", want, in.Metadata)
		}
	}
	if err := (resend{}).fetch(t.Context(), o.Gateways, c, &in); err != nil ||
		in.Text != "hello" ||
		in.Thread != "<2@x>" {
		t.Errorf("got %+v, %v", in, err)
	}
	for _, want := range []string{"refused the API key", "could not be read", "could not be read"} {
		if err := (resend{}).fetch(t.Context(), o.Gateways, c, &in); err == nil ||
			!strings.Contains(clientMessage(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got := v.calls()[0].header.Get("Authorization"); got != "Bearer re_secret" {
		t.Error(got)
	}
}

func TestReferences(t *testing.T) {
	ids := mailbox.IDs("<a> junk <b>\r\n\t<c> <>")
	if !slices.Equal(ids, []string{"<a>", "<b>", "<c>"}) || references(ids) != "<a> <b> <c>" || references(nil) != "" {
		t.Errorf("got %q", ids)
	}
	long := "<" + strings.Repeat("x", 400) + ">"
	if got := references([]string{long, long, long, long, long, "<z>"}); got != "<z>" {
		t.Errorf("got %q", got)
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("<%d>", i))
	}
	if got := strings.Fields(references(many)); len(got) != maxReferences ||
		got[0] != "<0>" ||
		got[len(got)-1] != "<29>" {
		t.Errorf("got %q", got)
	}
}

// TestHiddenText: what the reader of an email does not see is not its text.
func TestHiddenText(t *testing.T) {
	for page, want := range map[string]string{
		`<div style="display:none">Preview</div><p>Hello</p>`:                                  "Hello",
		`<span style="DISPLAY : None !important; color:#fff">Pre<b>view</b></span>Hello`:       "Hello",
		`<div style="display:none;max-height:0"><div>Pre<img src=x><br>view</div>more</div>Hi`: "Hi",
		`<p style="visibility:hidden">Preview<p>Hello`:                                         "Hello",
		`<div style="max-height:0px; overflow:hidden">Preview</div>Hello`:                      "Hello",
		`<div style="opacity:0.0">Preview</div>Hello`:                                          "Hello",
		`<div hidden>Preview</div>Hello`:                                                       "Hello",
		`<img style="display:none">Hello`:                                                      "Hello",
		`<div style="font-size:0"><span style="font-size:14px">Hello</span></div>`:             "Hello",
		`<div style="opacity:0.9">Hello</div>`:                                                 "Hello",
		`<table style="height:0"><tr><td>Hello</td></tr></table>`:                              "Hello",
		`<div style="display:none">Never closed, Hello`:                                        "Never closed, Hello",
		`<div style="display:none">a<div>b</div>c</div>Hello<div>there</div>`:                  "Hello\nthere",
	} {
		if got := htmlText(page); got != want {
			t.Errorf("%s: %q, want %q", page, got, want)
		}
	}
}

func FuzzHTMLText(f *testing.F) {
	f.Add("<p>a<br>b<script>c</p>")
	f.Add("<style><title>\x00&#0;&lt;")
	f.Fuzz(func(t *testing.T, source string) {
		text := htmlText(source)
		if strings.Contains(text, "\n\n\n") || len(text) > 3*len(source)+10 {
			t.Fatalf("got %q", text)
		}
	})
}
