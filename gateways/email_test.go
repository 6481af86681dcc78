package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// mailFixture is a folder with gateways whose waits return immediately.
type mailFixture struct {
	*Gateways
	db    *store.DB
	waits []time.Duration
}

func newMailFixture(tb testing.TB) *mailFixture {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: tb.TempDir(), Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	o := &mailFixture{
		Gateways: New(Options{Env: store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet}}),
		db:       folder.Default(),
	}
	o.wait = func(_ context.Context, d time.Duration) error {
		o.waits = append(o.waits, d)
		return nil
	}
	tb.Cleanup(func() {
		o.Close()
		_ = folder.Close()
	})
	return o
}

// config returns a config change from JSON fields.
func config(tb testing.TB, fields map[string]any) agent.GatewayConfigChange {
	tb.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	var ch agent.GatewayConfigChange
	if err := json.Unmarshal(raw, &ch); err != nil {
		tb.Fatal(err)
	}
	return ch
}

// gateway creates a gateway and verifies it.
func (o *mailFixture) gateway(tb testing.TB, kind string, fields map[string]any) (agent.Gateway, Verified) {
	tb.Helper()
	made, _, err := o.Create(tb.Context(), o.db, kind, agent.GatewayChange{
		Name:   agent.Some("g"),
		Config: agent.Some(config(tb, fields)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	v, err := o.Verify(tb.Context(), o.db, made.ID)
	if err != nil {
		tb.Fatal(err)
	}
	made, err = o.db.Gateway(tb.Context(), made.ID)
	if err != nil {
		tb.Fatal(err)
	}
	return made, v
}

func smtpConfig(s *mailServer, more map[string]any) map[string]any {
	fields := map[string]any{
		"smtpHost":     s.host,
		"smtpPort":     s.port,
		"fromAddress":  "shop@example.com",
		"fromName":     "Müller & Co",
		"smtpUsername": "shop",
		"smtpPassword": "right",
	}
	for name, value := range more {
		fields[name] = value
	}
	return fields
}

func TestSMTPVerify(t *testing.T) {
	o := newMailFixture(t)
	for name, c := range map[string]struct {
		server func(*mailServer)
		config map[string]any
		tls    string
		error  string
	}{
		"STARTTLS": {nil, nil, "TLS 1.3", ""},
		"TLS": {
			func(s *mailServer) { s.implicit = true },
			map[string]any{"smtpTls": "tls"},
			"TLS 1.3",
			"",
		},
		"no TLS": {
			func(s *mailServer) { s.starttls = false },
			map[string]any{"smtpTls": "none"},
			"none",
			"",
		},
		"only LOGIN": {func(s *mailServer) { s.auth = "LOGIN" }, nil, "TLS 1.3", ""},
		"no login": {
			func(s *mailServer) { s.auth = "" },
			map[string]any{"smtpUsername": nil, "smtpPassword": nil},
			"TLS 1.3",
			"",
		},
		"wrong password":    {nil, map[string]any{"smtpPassword": "wrong-secret"}, "", "refused the login (535)"},
		"unsupported login": {func(s *mailServer) { s.auth = "KERBEROS" }, nil, "", "no supported authentication"},
		"no STARTTLS offered": {
			func(s *mailServer) { s.starttls = false },
			nil,
			"",
			"offers no STARTTLS: set config.smtpTls to tls or none",
		},
		"unknown certificate": {func(s *mailServer) { s.roots = nil }, nil, "", "certificate"},
		"busy": {
			func(s *mailServer) { s.answers = map[string]string{"GREETING": "421 later"} },
			nil,
			"",
			"busy",
		},
		"refuses NOOP": {
			func(s *mailServer) { s.answers = map[string]string{"NOOP": "502 no"} },
			nil,
			"",
			"(502)",
		},
		"endless greeting": {
			func(s *mailServer) { s.answers = map[string]string{"GREETING": "220-" + strings.Repeat("x", 2<<20)} },
			nil,
			"",
			"too much",
		},
		"not SMTP": {
			func(s *mailServer) { s.answers = map[string]string{"GREETING": "HTTP/1.1 400"} },
			nil,
			"",
			"could not be used",
		},
		"private":      {nil, map[string]any{"smtpHost": "10.0.0.1"}, "", "address not allowed"},
		"no such name": {nil, map[string]any{"smtpHost": "mail.invalid"}, "", "name"},
		"no host":      {nil, map[string]any{"smtpHost": nil}, "", "config.smtpHost missing"},
		"no password":  {nil, map[string]any{"smtpPassword": nil}, "", "config.smtpPassword missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMailServer(t, c.server)
			o.roots = s.roots
			g, v := o.gateway(t, "smtp", smtpConfig(s, c.config))
			if c.error != "" {
				if v.Success ||
					v.Info != nil ||
					!strings.Contains(v.Error, c.error) ||
					strings.Contains(v.Error, "wrong-secret") {
					t.Errorf("%+v, want %q", v, c.error)
				}
				if g.Status != agent.GatewayFailed || g.Verified || g.LastError != v.Error || g.LastErrorAt.IsZero() {
					t.Errorf("got %+v", g)
				}
				return
			}
			if info, ok := v.Info.(SMTPInfo); !v.Success ||
				!ok ||
				info.TLS != c.tls ||
				info.Port != s.port ||
				info.Host != s.host {
				t.Errorf("got %+v", v)
			}
			if g.Status != agent.GatewayActive || !g.Verified || g.LastError != "" {
				t.Errorf("got %+v", g)
			}
		})
	}
}

// TestSMTPHangs: a server that does not respond costs no more than the caller's
// timeout.
func TestSMTPHangs(t *testing.T) {
	o := newMailFixture(t)
	s := newMailServer(t, func(s *mailServer) { s.silent = true })
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := smtp{}.open(ctx, o.Gateways, agent.GatewayConfig{SMTPHost: s.host, SMTPPort: s.port, SMTPTLS: "none"})
		failed <- err
	}()
	cancel()
	if err := <-failed; err == nil {
		t.Error("no error")
	}
}

func TestSMTPSend(t *testing.T) {
	o := newMailFixture(t)
	s := newMailServer(t, nil)
	o.roots = s.roots
	g, _ := o.gateway(t, "smtp", smtpConfig(s, nil))
	e := &Email{
		To:             []string{"Ada <ada@example.com>", "bob@example.com"},
		CC:             []string{"cy@example.com"},
		BCC:            []string{"secret@example.com"},
		ReplyTo:        "help@example.com",
		Subject:        "Grüße",
		Text:           "Hello Ada\n.\nbye",
		HTML:           "<p>Hello</p>",
		IdempotencyKey: "execution-1:mail:0",
	}
	id, accepted, err := o.SendEmail(t.Context(), o.db, "", e)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(accepted, []string{"ada@example.com", "bob@example.com", "cy@example.com", "secret@example.com"}) {
		t.Errorf("accepted %v", accepted)
	}
	again, _, err := o.SendEmail(t.Context(), o.db, g.ID, e)
	if err != nil || again != id || !strings.HasSuffix(id, "@example.com>") {
		t.Errorf("ids %s and %s, %v", id, again, err)
	}
	e.IdempotencyKey = "execution-1:mail:1"
	if other, _, err := o.SendEmail(t.Context(), o.db, g.ID, e); err != nil || other == id {
		t.Errorf("another message has the id %s, %v", other, err)
	}
	mails := s.messages()
	if len(mails) != 3 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	if len(m.to) != 4 || !m.tls || !strings.Contains(m.from, "shop@example.com") {
		t.Errorf("envelope %+v", m)
	}
	for _, want := range []string{
		"Message-ID: " + id,
		"Reply-To: <help@example.com>",
		"Cc: <cy@example.com>", "multipart/alternative", "Hello Ada", "<p>Hello</p>",
	} {
		if !strings.Contains(m.data, want) {
			t.Errorf("%q is not in\n%s", want, m.data)
		}
	}
	if strings.Contains(m.data, "secret@example.com") {
		t.Error("the mail contains the Bcc recipient")
	}
}

func TestSMTPRefusals(t *testing.T) {
	o := newMailFixture(t)
	for name, c := range map[string]struct{ verb, answer, error string }{
		"recipient": {"RCPT", "550 no such ada@example.com", "refused an address (550)"},
		"sender":    {"MAIL", "553 not you", "refused an address (553)"},
		"message":   {"TAKEN", "554 spam", "refused the message (554)"},
		"later":     {"MAIL", "451 later", "busy"},
	} {
		s := newMailServer(t, func(s *mailServer) { s.answers = map[string]string{c.verb: c.answer} })
		o.roots = s.roots
		g, _ := o.gateway(t, "smtp", smtpConfig(s, nil))
		_, _, err := o.SendEmail(t.Context(), o.db, g.ID, &Email{
			To:      []string{"ada@example.com"},
			Subject: "s",
			Text:    "t",
		})
		var e *agent.Error
		if !errors.As(err, &e) ||
			e.Code != agent.CodeUpstream ||
			!strings.Contains(e.Message, c.error) ||
			strings.Contains(e.Message, "ada@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadEmails(t *testing.T) {
	good := func() *Email { return &Email{To: []string{"a@example.com"}, Subject: "s", Text: "t"} }
	for name, c := range map[string]struct {
		spoil func(*Email)
		field string
	}{
		"no recipient":        {func(e *Email) { e.To = nil }, "to"},
		"no address":          {func(e *Email) { e.To = []string{"ada"} }, "to"},
		"two in one":          {func(e *Email) { e.To = []string{"a@example.com, b@example.com"} }, "to"},
		"header in address":   {func(e *Email) { e.To = []string{"a@example.com\r\nBcc: b@example.com"} }, "to"},
		"header in cc":        {func(e *Email) { e.CC = []string{"a@example.com\nX: y"} }, "cc"},
		"header in bcc":       {func(e *Email) { e.BCC = []string{"\"x\r\ny\" <a@example.com>"} }, "bcc"},
		"header in reply_to":  {func(e *Email) { e.ReplyTo = "a@example.com\r\nX: y" }, "reply_to"},
		"header in subject":   {func(e *Email) { e.Subject = "s\r\nBcc: b@example.com" }, "subject"},
		"long subject":        {func(e *Email) { e.Subject = strings.Repeat("x", 999) }, "subject"},
		"no body":             {func(e *Email) { e.Text = "" }, "body"},
		"huge body":           {func(e *Email) { e.HTML = strings.Repeat("x", maxEmailBytes+1) }, "body"},
		"too many":            {func(e *Email) { e.BCC = slices.Repeat([]string{"a@example.com"}, 50) }, "to"},
		"header in the key":   {func(e *Email) { e.IdempotencyKey = "a\r\nb" }, "idempotency_key"},
		"NUL in the body":     {func(e *Email) { e.Text = "a\x00b" }, "body"},
		"odd encoding inside": {func(e *Email) { e.To = []string{"=?utf-8?q?x=0D=0ABcc:_b?= <a@example.com>"} }, "to"},
	} {
		e := good()
		c.spoil(e)
		var known *agent.Error
		if err := e.Validate(); !errors.As(err, &known) || known.Details["field"] != c.field {
			t.Errorf("%s: %v, want an error about %s", name, err, c.field)
		}
	}
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
}

// fakeResend is the part of Resend's API that is used.
type fakeResend struct {
	*httptest.Server
	mu     sync.Mutex
	script []int // statuses to return before it works
	keys   []string
	mails  []map[string]any
}

func newResend(tb testing.TB) *fakeResend {
	tb.Helper()
	f := &fakeResend{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer re_right" {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"statusCode":401,"message":"API key re_wrong is invalid","name":"validation_error"}`)
			return
		}
		if len(f.script) > 0 {
			status := f.script[0]
			f.script = f.script[1:]
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(status)
			return
		}
		if r.URL.Path == "/domains" {
			fmt.Fprint(
				w,
				`{"object":"list","data":[{"id":"1","name":"example.com","status":"verified"},{"id":"2",`+
					`"name":"other.org","status":"pending"}]}`,
			)
			return
		}
		raw, _ := io.ReadAll(r.Body)
		mail := map[string]any{}
		_ = json.Unmarshal(raw, &mail)
		f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
		f.mails = append(f.mails, mail)
		fmt.Fprint(w, `{"id":"49a3999c"}`)
	}))
	tb.Cleanup(f.Close)
	return f
}

func resendConfig(f *fakeResend, key string) map[string]any {
	return map[string]any{
		"apiKey":      key,
		"fromAddress": "shop@mail.example.com",
		"fromName":    "Shop",
		"apiBaseUrl":  f.URL + "/",
	}
}

func TestResend(t *testing.T) {
	o := newMailFixture(t)
	f := newResend(t)
	if _, v := o.gateway(t, "resend", resendConfig(f, "re_wrong")); v.Success ||
		!strings.Contains(v.Error, "refused the API key (401)") ||
		strings.Contains(v.Error, "re_wrong") {
		t.Errorf("got %+v", v)
	}
	g, v := o.gateway(t, "email", map[string]any{
		"provider":    "email_provider_a",
		"apiKey":      "re_right",
		"fromAddress": "shop@mail.example.com",
		"apiBaseUrl":  f.URL,
	})
	if info, ok := v.Info.(ResendInfo); !ok ||
		!info.FromDomainVerified ||
		!slices.Equal(info.Domains, []string{"example.com", "other.org"}) {
		t.Errorf("got %+v", v)
	}
	e := &Email{
		To:             []string{"ada@example.com"},
		BCC:            []string{"b@example.com"},
		Subject:        "s",
		Text:           "t",
		IdempotencyKey: "execution-1:mail:0",
	}
	f.script = []int{429, 500}
	id, accepted, err := o.SendEmail(t.Context(), o.db, g.ID, e)
	if err != nil || id != "49a3999c" || len(accepted) != 2 {
		t.Fatal(id, accepted, err)
	}
	if !slices.Equal(o.waits, []time.Duration{2 * time.Second, 2 * time.Second}) ||
		!slices.Equal(f.keys, []string{"execution-1:mail:0"}) {
		t.Errorf("waits %v, keys %v", o.waits, f.keys)
	}
	if m := f.mails[0]; m["from"] != "<shop@mail.example.com>" ||
		m["subject"] != "s" ||
		m["html"] != nil ||
		m["cc"] != nil {
		t.Errorf("mail %v", m)
	}
}

// TestResendSendsOnce: without a key Resend cannot recognize a repeat, so a
// failure that may have happened after sending is reported and not retried.
func TestResendSendsOnce(t *testing.T) {
	o := newMailFixture(t)
	f := newResend(t)
	g, _ := o.gateway(t, "resend", resendConfig(f, "re_right"))
	for name, c := range map[string]struct {
		script []int
		key    string
		tries  int
		status any
	}{
		"no key, 500":      {[]int{500, 500}, "", 1, 500},
		"no key, 429":      {[]int{429}, "", 2, nil},
		"key, 500 for all": {[]int{500, 502, 503, 500}, "k", 3, 503},
		"key, refused":     {[]int{422, 422}, "k", 1, 422},
	} {
		f.script = c.script
		_, _, err := o.SendEmail(t.Context(), o.db, g.ID, &Email{
			To:             []string{"a@example.com"},
			Subject:        "s",
			Text:           "t",
			IdempotencyKey: c.key,
		})
		var e *agent.Error
		if c.status == nil && err != nil ||
			c.status != nil &&
				(!errors.As(err, &e) || e.Code != agent.CodeUpstream || e.Details["status"] != c.status) {
			t.Errorf("%s: %v", name, err)
		}
		if tried := len(c.script) - len(f.script) + map[bool]int{true: 1}[err == nil]; tried != c.tries {
			t.Errorf("%s: %d tries, want %d", name, tried, c.tries)
		}
	}
}

func TestSendingGateway(t *testing.T) {
	o := newMailFixture(t)
	f := newResend(t)
	mail := &Email{To: []string{"a@example.com"}, Subject: "s", Text: "t"}
	wantError := func(gateway, text string) {
		t.Helper()
		_, _, err := o.SendEmail(t.Context(), o.db, gateway, mail)
		if agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %q", gateway, err, text)
		}
	}
	wantError("", "no e-mail channel")
	wantError("gateway-x", "does not exist")
	hook, _ := o.gateway(t, "webhook", map[string]any{"url": f.URL})
	wantError(hook.ID, "a webhook channel")
	bad, _ := o.gateway(t, "resend", resendConfig(f, "re_wrong"))
	wantError(bad.ID, "not active")
	good, _ := o.gateway(t, "resend", resendConfig(f, "re_right"))
	if _, _, err := o.SendEmail(t.Context(), o.db, "", mail); err != nil {
		t.Error("the only active gateway is not found:", err)
	}
	if _, err := o.Update(t.Context(), o.db, bad.ID, agent.GatewayChange{IsDefault: agent.Some(true)}); err != nil {
		t.Fatal(err)
	}
	wantError("", "not active")
	if _, err := o.Update(t.Context(), o.db, good.ID, agent.GatewayChange{
		Config: agent.Some(config(t, map[string]any{"fromName": "New"})),
	}); err != nil {
		t.Fatal(err)
	}
	wantError(good.ID, "not active") // a new config must be verified again
}

func FuzzEmailAddress(f *testing.F) {
	for _, s := range []string{
		"a@example.com",
		"Ada <a@b.c>",
		"=?utf-8?q?=0A?= <a@b.c>",
		"\"a\\\r\nb\" <a@b.c>",
		"a@b\x00",
		"<@a,@b:c@d>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		e := &Email{To: []string{address}, Subject: "s", Text: "t"}
		if e.Validate() != nil {
			return
		}
		m, err := compose(agent.GatewayConfig{FromAddress: "a@example.com"}, "x@example.com", e)
		if err != nil {
			return
		}
		var out strings.Builder
		if _, err := m.WriteTo(&out); err != nil {
			return
		}
		head, _, _ := strings.Cut(out.String(), "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			name, _, _ := strings.Cut(line, ":")
			known := []string{
				"Date", "MIME-Version", "Message-ID", "Subject", "From", "To", "Content-Type",
				"Content-Transfer-Encoding",
			}
			if !strings.HasPrefix(line, " ") && !slices.Contains(known, name) {
				t.Errorf("%q injects the header %q", address, line)
			}
		}
	})
}
