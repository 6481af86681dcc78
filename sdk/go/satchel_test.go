package satchel

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client returns the client of a fake server, and the times that it waited.
func client(t *testing.T, server http.HandlerFunc) (*Client, *[]time.Duration) {
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	c, waits := New(s.URL, "key"), &[]time.Duration{}
	c.sleep = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return c, waits
}

func TestUploadObeysRetryAfter(t *testing.T) {
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
	if err != nil ||
		source.ID != "source-1" ||
		got != "all of it" ||
		!slices.Equal(*waits, []time.Duration{17 * time.Second}) {
		t.Errorf("%v, %+v, got %q after %v", err, source, got, *waits)
	}
}

func TestOnlyReadsAreRepeated(t *testing.T) {
	for method, want := range map[string]int{"GET": 3, "POST": 1} {
		n := 0
		c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
			n++
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		c.Tries = 3
		if err := c.Call(t.Context(), method, "/agents", nil, nil, nil); !IsCode(err, "HTTP") || n != want {
			t.Errorf("%s: %d attempts, want %d; %v", method, n, want, err)
		}
	}
}

func TestRetryAfterADate(t *testing.T) {
	posts := 0
	c, waits := client(t, func(w http.ResponseWriter, _ *http.Request) {
		if posts++; posts == 1 {
			w.Header().Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	err := c.Call(t.Context(), "POST", "/agents", nil, map[string]any{}, nil)
	if err != nil || len(*waits) != 1 || (*waits)[0] <= 8*time.Second || (*waits)[0] > time.Minute {
		t.Errorf("%v after %v", err, *waits)
	}
}

func TestErrorsNameTheRequest(t *testing.T) {
	c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "request-1")
		w.WriteHeader(http.StatusInternalServerError)
	})
	var failed *Error
	if err := c.Call(t.Context(), "POST", "/agents", nil, nil, nil); !errors.As(err, &failed) ||
		failed.RequestID != "request-1" {
		t.Errorf("%+v", err)
	}
}

func TestListFollowsCursors(t *testing.T) {
	var asked []string
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		switch r.URL.Query().Get("cursor") {
		case "":
			_, _ = io.WriteString(w, `{"contacts":[{"name":"Ada"},{"name":"Bob"}],"meta":{"total":3,"cursor":"c+2"}}`)
		case "c+2":
			_, _ = io.WriteString(w, `{"contacts":[{"name":"Cid"}],"meta":{"total":3}}`)
		}
	})
	names, query := "", url.Values{"tag": {"vip"}, "offset": {"0"}}
	for contact, err := range List[struct{ Name string }](t.Context(), c.Agent("a"), "/contacts", query) {
		if err != nil {
			t.Fatal(err)
		}
		names += contact.Name
	}
	want := []string{"/api/agents/a/contacts?offset=0&tag=vip", "/api/agents/a/contacts?cursor=c%2B2&tag=vip"}
	if names != "AdaBobCid" || !slices.Equal(asked, want) || query.Has("cursor") {
		t.Errorf("%s by %q", names, asked)
	}
	for _, err := range List[any](t.Context(), c.Agent("a"), "/contacts", url.Values{"cursor": {"none"}}) {
		if err == nil {
			t.Error("an empty answer is a list")
		}
	}
}

// TestWaitOutlivesARestart cuts the events of an execution in their middle.
func TestWaitOutlivesARestart(t *testing.T) {
	streams := 0
	c, waits := client(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/agents/a/workflows/executions/x" && streams == 1:
			_, _ = io.WriteString(w, `{"id":"x","status":"running"}`)
		case r.URL.Path == "/api/agents/a/workflows/executions/x":
			_, _ = io.WriteString(w, `{"id":"x","status":"complete"}`)
		default:
			if streams++; streams > 1 {
				_, _ = io.WriteString(w, "event: execution.complete\ndata: {}\n\n")
				return
			}
			_, _ = io.WriteString(w, "event: node.started\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	x, err := c.Agent("a").Wait(t.Context(), "x")
	if err != nil || x.Status != "complete" || streams != 2 || len(*waits) != 1 {
		t.Errorf("%+v, %v, after %d streams and %v", x, err, streams, *waits)
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

// TestReadme builds the example of README.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	here, err := filepath.Abs(".")
	if !found || err != nil {
		t.Fatalf("no example, %v", err)
	}
	dir := t.TempDir()
	mod := fmt.Sprintf(
		"module example\n\ngo 1.24\n\nrequire satchel/sdk/go v0.0.0\n\nreplace satchel/sdk/go => %q\n",
		here,
	)
	for name, text := range map[string]string{"main.go": code, "go.mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "vet", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
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
