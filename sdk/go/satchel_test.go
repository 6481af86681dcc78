package satchel

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"
)

// client returns the client of a fake server, and the times that it waits.
func client(t *testing.T, server http.HandlerFunc) (*Client, *[]time.Duration) {
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	c, waits := New(s.URL, "key"), &[]time.Duration{}
	c.sleep = func(_ context.Context, d time.Duration) error { *waits = append(*waits, d); return nil }
	return c, waits
}

func TestUploadHeedsRetryAfter(t *testing.T) {
	posts, got := 0, ""
	c, waits := client(t, func(w http.ResponseWriter, r *http.Request) {
		if posts++; posts == 1 {
			w.Header().Set("Retry-After", "17")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		file, _, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		raw, _ := io.ReadAll(file)
		got = string(raw)
		_, _ = io.WriteString(w, `{"id":"source-1","status":"ready"}`)
	})
	source, err := c.Agent("a").Upload(t.Context(), "a.txt", []byte("all of it"), time.Minute)
	if err != nil || source.ID != "source-1" || got != "all of it" || !slices.Equal(*waits, []time.Duration{17 * time.Second}) {
		t.Errorf("%v, %+v, got %q after %v", err, source, got, *waits)
	}
}

func TestOnlyReadsAreRepeated(t *testing.T) {
	for method, want := range map[string]int{"GET": tries, "POST": 1} {
		n := 0
		c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) { n++; w.WriteHeader(http.StatusServiceUnavailable) })
		if err := c.Call(t.Context(), method, "/agents", nil, nil, nil); !IsCode(err, "HTTP") || n != want {
			t.Errorf("%s: %d tries, want %d; %v", method, n, want, err)
		}
	}
}

func TestStreamsThatEndEarly(t *testing.T) {
	c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ": hi\n\nevent: delta\ndata: {\"text\":\"On\"}\n\n")
	})
	if _, err := c.Agent("a").Ask(t.Context(), "When?", AskOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func TestVerifyWebhook(t *testing.T) {
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"id":"event-1","type":"contact.created","data":{}}`
	now := time.Unix(1795273448, 0)
	key, _ := base64.StdEncoding.DecodeString(secret[6:])
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("event-1." + strconv.FormatInt(now.Unix(), 10) + "." + body))
	header := http.Header{}
	header.Set("webhook-id", "event-1")
	header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	header.Set("webhook-signature", "v1,AAAA v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	if event, err := VerifyWebhook(secret, header, []byte(body), now); err != nil || event.Type != "contact.created" {
		t.Errorf("%+v, %v", event, err)
	}
	if _, err := VerifyWebhook(secret, header, []byte(body+" "), now); !errors.Is(err, ErrNotGenuine) {
		t.Errorf("another body: %v", err)
	}
	if _, err := VerifyWebhook(secret, header, []byte(body), now.Add(time.Hour)); !errors.Is(err, ErrNotGenuine) {
		t.Errorf("an old delivery: %v", err)
	}
}
