package schedule

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/signature"
	"satchel/store"
)

// caller creates a Scheduler that is not started, and a schedule that calls url.
func caller(t *testing.T, url string) (*webhook, *store.DB, Callback, string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	s := New(Options{
		Env: store.Env{Folder: folder, Log: quiet, Version: "1.2", Allow: agent.MustAddressRanges("127.0.0.0/8")},
	})
	s.webhook.waits = []time.Duration{0, 0}
	made, secret, err := s.Create(t.Context(), folder.Default(), change(
		t,
		`{"name":"s","type":"cron","cron_expression":"0 0 1 1 *","callback_type":"webhook","callback_id":"`+
			url+`","payload":{"a":1}}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	return s.webhook, folder.Default(), Callback{RunID: "run-1", Schedule: made, ScheduledFor: agent.Now()}, secret
}

func TestWebhookIsSigned(t *testing.T) {
	var problem atomic.Value
	var secret atomic.Value
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Load().(string), "whsec_"))
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"))
		mac.Write(body)
		var m struct {
			Type      string
			Timestamp time.Time
			Data      struct {
				Schedule agent.Schedule
				Payload  map[string]int
			}
		}
		bad := json.Unmarshal(body, &m)
		switch {
		case err != nil || len(key) != 24:
			problem.Store("the secret is not base64 of 24 bytes")
		case r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)):
			problem.Store("the signature is wrong")
		case r.Header.Get("Webhook-Id") != "run-1" ||
			r.Header.Get("User-Agent") != "Satchel/1.2" ||
			r.Header.Get("Content-Type") != "application/json":
			problem.Store(fmt.Sprint("headers: ", r.Header))
		case bad != nil ||
			m.Type != "schedule.executed" ||
			m.Timestamp.IsZero() ||
			m.Data.Payload["a"] != 1 ||
			m.Data.Schedule.Name != "s":
			problem.Store("body: " + string(body))
		}
	}))
	t.Cleanup(receiver.Close)
	w, db, c, made := caller(t, receiver.URL)
	secret.Store(made)
	if _, err := w.run(t.Context(), db, c); err != nil || problem.Load() != nil {
		t.Errorf("got %v, %v", err, problem.Load())
	}
}

func TestWebhookAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers []int // the last one repeats
		calls   int32
		fails   string
	}{
		{"accepted", []int{204}, 1, ""},
		{"temporarily down", []int{503, 429, 200}, 3, ""},
		{"down", []int{500}, 3, "the receiver answered 500 Internal Server Error"},
		{"not found", []int{404}, 1, "the receiver answered 404 Not Found"},
		{"redirect", []int{302}, 1, "the receiver answered with a redirect, which is not followed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(calls.Add(1))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.answers[min(n, len(tc.answers))-1])
			}))
			t.Cleanup(receiver.Close)
			w, db, c, _ := caller(t, receiver.URL)
			_, err := w.run(t.Context(), db, c)
			if got := calls.Load(); got != tc.calls ||
				(err == nil) != (tc.fails == "") ||
				err != nil && agent.Explain(err) != tc.fails {
				t.Errorf("%d calls, %v; want %d, %q", got, err, tc.calls, tc.fails)
			}
		})
	}
}

func TestWebhookUnreachable(t *testing.T) {
	notFound := httptest.NewServer(http.NotFoundHandler())
	notFound.Close()
	w, db, c, secret := caller(t, notFound.URL)
	_, err := w.run(t.Context(), db, c)
	if agent.Explain(err) != "the connection was refused" {
		t.Errorf("got error %v", err)
	}
	c.Schedule.CallbackID = "http://10.0.0.1/"
	_, err = w.run(t.Context(), db, c)
	if got := agent.Explain(err); !strings.Contains(got, "address not allowed") ||
		strings.Contains(fmt.Sprint(err), secret) {
		t.Errorf("got error %v", err)
	}
}

// TestWebhookCertificate: a call to a receiver with an invalid certificate is retried,
// since the certificate may be renewed.
func TestWebhookCertificate(t *testing.T) {
	var tries atomic.Int32
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		tries.Add(1)
		return nil, nil
	}}
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	w, db, c, _ := caller(t, untrusted.URL)
	_, err := w.run(t.Context(), db, c)
	if agent.Explain(err) != "the server's certificate is not valid" || tries.Load() != 3 {
		t.Errorf("%d attempts, %v", tries.Load(), err)
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"":       0,
		"7":      7 * time.Second,
		"999999": time.Minute,
		"-1":     0,
		"soon":   0,
	} {
		receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", header)
			rw.WriteHeader(http.StatusServiceUnavailable)
		}))
		c := Callback{RunID: "run-1"}
		c.Schedule.CallbackID = receiver.URL
		w := &webhook{client: egress.New(egress.Policy{AllowPrivate: true})}
		got, err := w.post(t.Context(), c, signature.NewSecret(), []byte("{}"))
		receiver.Close()
		if got != want || err == nil {
			t.Errorf("%q: %v, %v; want %v", header, got, err, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	for range 100 {
		if s := signature.NewSecret(); signature.CheckSecret("secret", s) != nil ||
			len(s) != 38 ||
			strings.ContainsAny(s[6:], "+/=") {
			t.Fatal(s)
		}
	}
	for _, bad := range []string{
		"",
		"whsec_",
		"whsec_!!!",
		signature.NewSecret()[6:],
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)),
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)),
	} {
		if signature.CheckSecret("secret", bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
