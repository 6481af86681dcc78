package gateways

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store"
)

// vector is a post signed with a vendor's own library.
type vector struct {
	Platform, Name string
	Config         agent.GatewayConfig
	URL            string
	Header         map[string]string
	Body           string
}

func (v vector) post() Post {
	h := http.Header{}
	for name, value := range v.Header {
		h.Set(name, value)
	}
	return Post{URL: v.URL, Header: h, Body: []byte(v.Body)}
}

// receivers maps the names in the vectors to platforms.
var receivers = map[string]receiver{
	"slack":    slack{},
	"discord":  discord{},
	"sms":      twilioSMS,
	"whatsapp": twilioWhatsApp,
	"resend":   resend{},
}

// vectors reads testdata/signed.json, which describes how it was generated.
func vectors(tb testing.TB) ([]vector, time.Time) {
	tb.Helper()
	raw, err := os.ReadFile("testdata/signed.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct {
		At    int64
		Posts []vector
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		tb.Fatal(err)
	}
	return file.Posts, time.Unix(file.At, 0)
}

// parsedMessage is the expected result of a post.
type parsedMessage struct {
	event, answer              string
	silent, bad                bool
	id, thread, text, who, has string // of its message; id "" for none
}

var wantParsed = map[string]parsedMessage{
	"slack handshake": {silent: true, answer: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"},
	"slack direct message": {
		event:  "Ev1",
		id:     "D1:1763740800.000100",
		thread: "D1",
		text:   "Grüße <b> 🙂",
		who:    "slack:U1",
	},
	"slack mention": {
		event:  "Ev2",
		id:     "C1:1763740800.000200",
		thread: "C1:1763740800.000200",
		text:   "@UBOT help",
		who:    "slack:U1",
	},
	"slack mention as message": {
		event:  "Ev3",
		id:     "C1:1763740800.000200",
		thread: "C1:1763740800.000200",
		text:   "@UBOT help",
		who:    "slack:U1",
	},
	"slack in a thread": {
		event:  "Ev4",
		id:     "C1:1763740801.000200",
		thread: "C1:1763740800.000200",
		text:   "more",
		who:    "slack:U1",
	},
	"slack file": {
		event:  "Ev5",
		id:     "D1:1763740802.000200",
		thread: "D1",
		who:    "slack:U1",
		has: `"attachments":[{"id":"F1","name":"a.pdf","mime_type":"application/pdf","size":12,` +
			`"url":"https://files.slack.com/F1/a.pdf"}]`,
	},
	"slack bot message":     {silent: true},
	"slack own message":     {silent: true},
	"slack own edit":        {silent: true},
	"slack edit":            {event: "Ev9"},
	"slack reaction":        {event: "Ev10"},
	"slack channel renamed": {event: "Ev11"},
	"slack command":         {event: "?"},

	"discord handshake": {silent: true, answer: `{"type":1}`},
	"discord command": {
		event:  "77",
		id:     "77",
		answer: `{"type":5}`,
		thread: "645:80351110224678912",
		text:   "Where is my order?",
		who:    "discord:80351110224678912",
		has:    `"username":"nelly"`,
	},
	"discord direct command": {
		event:  "78",
		id:     "78",
		answer: `{"type":5}`,
		thread: "646",
		text:   "number: 12\nloud: true",
		who:    "discord:80351110224678912",
	},
	"discord bare command": {
		event:  "79",
		id:     "79",
		answer: `{"type":5}`,
		thread: "646",
		text:   "/help",
		who:    "discord:1",
	},
	"discord button":             {event: "80", answer: `{"type":6}`},
	"discord autocomplete":       {silent: true, answer: `{"type":8,"data":{"choices":[]}}`},
	"discord webhook event ping": {event: "?", silent: true},
	"discord webhook event":      {event: "?"},
	"discord nobody":             {bad: true},

	"sms message": {
		event:  "SM1",
		id:     "SM1",
		answer: "<Response/>",
		thread: "+15551234567",
		text:   "Where is it? ä&=+",
		who:    "+15551234567",
	},
	"sms signed with port": {
		event:  "SM2",
		id:     "SM2",
		answer: "<Response/>",
		thread: "+15551234567",
		text:   "Where is it? ä&=+",
		who:    "+15551234567",
	},
	"sms signed without port": {
		event:  "SM3",
		id:     "SM3",
		answer: "<Response/>",
		thread: "+15551234567",
		text:   "Where is it? ä&=+",
		who:    "+15551234567",
	},
	"sms query": {
		event:  "SM4",
		id:     "SM4",
		answer: "<Response/>",
		thread: "+15551234567",
		text:   "Where is it? ä&=+",
		who:    "+15551234567",
	},
	"sms pictures": {
		event:  "MM5",
		id:     "MM5",
		answer: "<Response/>",
		thread: "+15551234567",
		text:   "[image] [image]",
		who:    "+15551234567",
		has: `"attachments":[{"mime_type":"image/png","url":"https://api.twilio.com/m0"},` +
			`{"mime_type":"image/jpeg","url":"https://api.twilio.com/m1"}]`,
	},
	"sms status":         {event: "SM6:delivered", answer: "<Response/>"},
	"sms repeated names": {event: "SM7", id: "SM7", answer: "<Response/>", thread: "+1", text: "x", who: "+1"},
	"sms of WhatsApp":    {event: "SM8:received", answer: "<Response/>"},
	"sms JSON":           {event: "?", answer: "<Response/>"},
	"whatsapp message": {
		event:  "SM9",
		id:     "SM9",
		answer: "<Response/>",
		thread: "+4915112345678",
		text:   "Where is it? ä&=+",
		who:    "+4915112345678",
	},
	"whatsapp status": {event: "SM10:read", answer: "<Response/>"},
	"whatsapp of SMS": {event: "SM11:received", answer: "<Response/>"},

	"resend email": {
		event:  "msg_email",
		id:     "56761188-7520-42d8-8898-ff6fc54ce618",
		thread: "<first@example.com>",
		text:   "My order",
		who:    "ada@example.com",
		has:    `"attachments":[{"id":"2a0c9ce0","name":"avatar.png","mime_type":"image/png"}]`,
	},
	"resend delivered": {event: "msg_delivered"},
	"resend nobody":    {bad: true},
}

// TestSigned: posts signed with the vendors' libraries are accepted and parsed.
func TestSigned(t *testing.T) {
	posts, at := vectors(t)
	if len(posts) != len(wantParsed) {
		t.Errorf("%d posts, want %d", len(posts), len(wantParsed))
	}
	for _, v := range posts {
		name := v.Platform + " " + v.Name
		want, ok := wantParsed[name]
		if !ok {
			t.Errorf("%s has no expected result", name)
			continue
		}
		got, err := receivers[v.Platform].parsePost(store.OpenGateway{Config: v.Config}, v.post(), at)
		if want.bad {
			if agent.ErrorCode(err) != agent.CodeValidation {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want.event == "?" && got.EventID != "" {
			want.event = got.EventID
		}
		if got.EventID != want.event || got.Ignored != want.silent || string(got.Response.Body) != want.answer {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got.Messages) != 0 != (want.id != "") {
			t.Errorf("%s: messages %+v", name, got.Messages)
			continue
		}
		if want.id != "" {
			checkInbound(t, name, got.Messages[0], want)
		}
	}
}

func checkInbound(t *testing.T, name string, in agent.Inbound, want parsedMessage) {
	t.Helper()
	who := in.From.ExternalID.Value + in.From.Email.Value + in.From.Phone.Value
	if in.ID != want.id || in.Thread != want.thread || in.Text != want.text || who != want.who {
		t.Errorf("%s: %+v", name, in)
	}
	if !json.Valid(in.Metadata) ||
		!strings.Contains(string(described(in)), want.has) ||
		strings.Contains(string(in.Metadata), "TOKEN") {
		t.Errorf("%s: metadata %s", name, in.Metadata)
	}
}

// TestPayloadsWithoutSecrets: an event's payload contains no token with which
// the post could be responded to.
func TestPayloadsWithoutSecrets(t *testing.T) {
	posts, at := vectors(t)
	events := 0
	for _, v := range posts {
		got, err := receivers[v.Platform].parsePost(store.OpenGateway{Config: v.Config}, v.post(), at)
		if err == nil && got.Payload != nil {
			events++
			if !json.Valid(got.Payload) || strings.Contains(string(got.Payload), `"token"`) {
				t.Errorf("%s %s: %s", v.Platform, v.Name, got.Payload)
			}
		}
	}
	form := "command=%2Fask&text=hi&token=t&response_url=https%3A%2F%2Fhooks&trigger_id=1"
	got, err := slackForm(Post{Body: []byte(form)})
	if err != nil || string(got.Payload) != `{"command":"/ask","text":"hi"}` {
		t.Errorf("a command: %s, %v", got.Payload, err)
	}
	got, err = slackForm(Post{
		Body: []byte("payload=%7B%22type%22%3A%22block_actions%22%2C%22response_url%22%3A%22x%22%7D"),
	})
	if err != nil || string(got.Payload) != `{"type":"block_actions"}` || events < 5 {
		t.Errorf("a button: %s, %v; %d events", got.Payload, err, events)
	}
}

// TestForged: no post is accepted whose signature is missing, invalid, expired,
// from another post or verified without a secret.
func TestForged(t *testing.T) {
	posts, at := vectors(t)
	refused := func(v vector, how string, o store.OpenGateway, p Post, at time.Time) {
		t.Helper()
		got, err := receivers[v.Platform].parsePost(o, p, at)
		if agent.ErrorCode(err) != agent.CodeUnauthorized || len(got.Messages) != 0 || got.Response.Body != nil {
			t.Errorf("%s %s, %s: %+v, %v", v.Platform, v.Name, how, got, err)
		}
	}
	for i, v := range posts {
		o := store.OpenGateway{Config: v.Config}
		refused(v, "no secret", store.OpenGateway{}, v.post(), at)
		refused(v, "another secret", store.OpenGateway{WebhookSecret: "whsec_b3RoZXI", Config: agent.GatewayConfig{
			SigningSecret: "x",
			AuthToken:     "x",
			PublicKey:     strings.Repeat("ab", 32),
		}}, v.post(), at)
		// whose signature does not cover a timestamp
		if twilio := v.Platform == "sms" || v.Platform == "whatsapp"; !twilio {
			refused(v, "old", o, v.post(), at.Add(5*time.Minute+time.Second))
			refused(v, "early", o, v.post(), at.Add(-5*time.Minute-time.Second))
		} else {
			p := v.post()
			p.URL = strings.Replace(p.URL, "agents.", "evil.", 1)
			refused(v, "another address", o, p, at)
		}
		p := v.post()
		p.Body = append(p.Body, " "...)
		refused(v, "another body", o, p, at)
		for name, value := range v.Header {
			if name == "Content-Type" {
				continue
			}
			for how, bad := range map[string]string{
				"none":    "",
				"cut":     value[:len(value)-2],
				"more":    value + "00",
				"garbage": "\xff v0=,v1,==",
			} {
				p := v.post()
				p.Header.Set(name, bad)
				refused(v, name+" "+how, o, p, at)
			}
		}
		other := posts[(i+1)%len(posts)]
		if p := v.post(); other.Platform == v.Platform && other.Body != v.Body {
			p.Body = []byte(other.Body)
			refused(v, "the body of "+other.Name, o, p, at)
		}
	}
}

// TestOtherVendors: no platform accepts another's post.
func TestOtherVendors(t *testing.T) {
	posts, at := vectors(t)
	var all agent.GatewayConfig
	for _, v := range posts {
		raw, err := json.Marshal(v.Config)
		if err != nil || json.Unmarshal(raw, &all) != nil {
			t.Fatal(err)
		}
	}
	for _, v := range posts {
		for name, l := range receivers {
			if name == v.Platform || v.Header["X-Twilio-Signature"] != "" && (name == "sms" || name == "whatsapp") {
				continue
			}
			if _, err := l.parsePost(
				store.OpenGateway{Config: all},
				v.post(),
				at,
			); agent.ErrorCode(err) != agent.CodeUnauthorized {
				t.Errorf("%s accepts %s %s: %v", name, v.Platform, v.Name, err)
			}
		}
	}
}

// signer signs bodies like a platform.
type signer func(body []byte, at time.Time) (agent.GatewayConfig, Post)

var discordKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

const hookURL = "https://agents.example.com/hook"

var signers = map[string]signer{
	"slack": func(body []byte, at time.Time) (agent.GatewayConfig, Post) {
		stamp := strconv.FormatInt(at.Unix(), 10)
		mac := hmac.New(sha256.New, []byte("s"))
		mac.Write([]byte("v0:" + stamp + ":" + string(body)))
		return agent.GatewayConfig{SigningSecret: "s"}, Post{
			URL:  hookURL,
			Body: body,
			Header: http.Header{
				"X-Slack-Request-Timestamp": {stamp},
				"X-Slack-Signature":         {"v0=" + hex.EncodeToString(mac.Sum(nil))},
			},
		}
	},
	"discord": func(body []byte, at time.Time) (agent.GatewayConfig, Post) {
		stamp := strconv.FormatInt(at.Unix(), 10)
		sig := ed25519.Sign(discordKey, append([]byte(stamp), body...))
		return agent.GatewayConfig{PublicKey: hex.EncodeToString(discordKey.Public().(ed25519.PublicKey))}, Post{
			URL:    hookURL,
			Body:   body,
			Header: http.Header{"X-Signature-Timestamp": {stamp}, "X-Signature-Ed25519": {hex.EncodeToString(sig)}},
		}
	},
	"sms":      signTwilio,
	"whatsapp": signTwilio,
	"resend": func(body []byte, at time.Time) (agent.GatewayConfig, Post) {
		return agent.GatewayConfig{WebhookSecret: "whsec_c2VjcmV0"}, Post{URL: hookURL, Body: body, Header: http.Header{
			"Svix-Id":        {"msg_1"},
			"Svix-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
			"Svix-Signature": {signature.Sign([]string{"whsec_c2VjcmV0"}, "msg_1", at, body)},
		}}
	},
}

func signTwilio(body []byte, _ time.Time) (agent.GatewayConfig, Post) {
	address := hookURL + "?bodySHA256=" + bodyHash(body)
	mac := hmac.New(sha1.New, []byte("t"))
	mac.Write([]byte(address))
	return agent.GatewayConfig{AuthToken: "t"}, Post{
		URL:    address,
		Body:   body,
		Header: http.Header{"X-Twilio-Signature": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}},
	}
}

// FuzzParsePost: whatever a post contains, signed or not, nothing panics, and
// accepted messages can be stored.
func FuzzParsePost(f *testing.F) {
	posts, at := vectors(f)
	for _, v := range posts {
		f.Add(v.Platform, v.Body, v.Header["X-Twilio-Signature"], v.URL)
	}
	f.Add("slack", `{"type":"event_callback","event":{"type":"message","user":{"id":1},"channel":[]}}`, "", "")
	f.Add(
		"discord",
		`{"type":2,"id":"1","channel_id":"2","user":{"id":"3"},`+
			`"data":{"options":[{"options":[{"options":[{"options":[]}]}]}]}}`,
		"",
		"",
	)
	f.Add(
		"resend",
		`{"type":"email.received","data":{"email_id":"1","from":"\u0000","headers":{"references":[1]}}}`,
		"",
		"::",
	)
	f.Fuzz(func(t *testing.T, platform, body, signature, address string) {
		l, ok := receivers[platform]
		if !ok {
			return
		}
		config, p := signers[platform]([]byte(body), at)
		checkParsed(t, l, config, p, at)
		if platform == "sms" || platform == "whatsapp" { // also as a form, which only the vectors sign
			p := Post{URL: address, Body: []byte(body), Header: http.Header{"X-Twilio-Signature": {signature}}}
			checkParsed(t, l, agent.GatewayConfig{AuthToken: "12345678901234567890123456789012"}, p, at)
			checkParsed(t, fuzzedTwilio{}, config, p, at)
		}
	})
}

// fuzzedTwilio parses forms like twilio, without a signature.
type fuzzedTwilio struct{ twilio }

func (fuzzedTwilio) parsePost(_ store.OpenGateway, p Post, _ time.Time) (Parsed, error) {
	form, _ := url.ParseQuery(string(p.Body))
	return Parsed{Messages: []agent.Inbound{twilioWhatsApp.message("id", form)}}, nil
}

func checkParsed(t *testing.T, l receiver, config agent.GatewayConfig, p Post, at time.Time) {
	t.Helper()
	got, err := l.parsePost(store.OpenGateway{Config: config}, p, at)
	if code := agent.ErrorCode(err); err != nil && code != agent.CodeUnauthorized && code != agent.CodeValidation {
		t.Fatalf("got error %v", err)
	}
	if got.Payload != nil && !json.Valid(got.Payload) {
		t.Fatalf("payload %q", got.Payload)
	}
	for _, in := range got.Messages {
		if in.ID == "" || in.Metadata != nil && !json.Valid(in.Metadata) {
			t.Fatalf("got %+v", in)
		}
	}
}
