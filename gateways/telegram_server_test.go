package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const telegramToken = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

// botServer is a fake Telegram, following the Bot API's documentation: it keeps
// updates until they are confirmed by a higher offset, and holds a response
// while there are none.
type botServer struct {
	*httptest.Server
	mu        sync.Mutex
	updates   []json.RawMessage // not confirmed yet
	last      int64             // number of the newest update
	changed   chan struct{}     // closed when an update arrives
	webhook   string
	secret    string
	calls     []string
	sent      []map[string]any
	newSent   chan struct{}       // closed when a message is sent
	failures  map[string][]string // by method: "429 {…}" for the next calls
	offsets   []int64
	hold      time.Duration      // how long a response is held at most
	onReached func(point string) // called with the point that a call has reached; may be nil
}

func newBotServer(tb testing.TB) *botServer {
	tb.Helper()
	b := &botServer{
		changed:  make(chan struct{}),
		newSent:  make(chan struct{}),
		failures: map[string][]string{},
		last:     9000,
		hold:     20 * time.Millisecond,
	}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	tb.Cleanup(b.Close)
	return b
}

func (b *botServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+telegramToken+"/")
	if !ok {
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
		return
	}
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	b.reached(method + " received")
	b.mu.Lock()
	b.calls = append(b.calls, method)
	if list := b.failures[method]; len(list) > 0 {
		b.failures[method] = list[1:]
		b.mu.Unlock()
		if code, answer, refused := strings.Cut(list[0], " "); refused {
			status := 0
			_, _ = fmt.Sscan(code, &status)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
			return
		}
		b.mu.Lock()
	}
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	result := b.do(r, method, in)
	raw, _ := json.Marshal(map[string]any{"ok": true, "result": result})
	b.reached(method + " done")
	_, _ = w.Write(raw)
	_ = http.NewResponseController(w).Flush()
	if list, ok := result.([]json.RawMessage); !ok || len(list) > 0 {
		b.reached(method + " answered")
	}
}

func (b *botServer) reached(point string) {
	if b.onReached != nil {
		b.onReached(point)
	}
}

func (b *botServer) do(r *http.Request, method string, in map[string]any) any {
	if method == "getUpdates" {
		return b.getUpdates(r, in)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch method {
	case "getMe":
		return map[string]any{"id": 110201543, "is_bot": true, "first_name": "Shop", "username": "shop_bot"}
	case "setWebhook":
		b.webhook, _ = in["url"].(string)
		b.secret, _ = in["secret_token"].(string)
	case "deleteWebhook":
		b.webhook = ""
	case "sendMessage":
		b.sent = append(b.sent, in)
		close(b.newSent)
		b.newSent = make(chan struct{})
		chat, ok := in["chat_id"].(float64)
		if !ok {
			chat = -100777
		}
		return map[string]any{"message_id": 700 + len(b.sent), "chat": map[string]any{"id": chat}}
	}
	return true
}

func (b *botServer) getUpdates(r *http.Request, in map[string]any) any {
	offset, _ := in["offset"].(float64)
	b.mu.Lock()
	b.offsets = append(b.offsets, int64(offset))
	b.mu.Unlock()
	for {
		b.mu.Lock()
		for len(b.updates) > 0 && updateID(b.updates[0]) < int64(offset) {
			b.updates = b.updates[1:]
		}
		list, changed := b.updates[:min(len(b.updates), int(in["limit"].(float64)))], b.changed
		b.mu.Unlock()
		if len(list) > 0 {
			return list
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		case <-time.After(b.hold):
			return []any{}
		}
	}
}

func updateID(raw json.RawMessage) int64 {
	var u update
	_ = json.Unmarshal(raw, &u)
	return u.ID
}

// receive adds a message to the queue.
func (b *botServer) receive(chat int64, text string) {
	b.mu.Lock()
	n := b.last + 1
	b.mu.Unlock()
	quoted, _ := json.Marshal(text)
	b.push(fmt.Sprintf(
		`"message":{"message_id":%d,"from":{"id":%d,"is_bot":false,"first_name":"Ada","username":"ada"},`+
			`"chat":{"id":%d,"type":"private","first_name":"Ada"},"date":1,"text":%s}`,
		n, chat, chat, quoted,
	))
}

// push adds an update to the queue, given without its number.
func (b *botServer) push(rest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.updates = append(b.updates, json.RawMessage(fmt.Sprintf(`{"update_id":%d,%s}`, b.last, rest)))
	close(b.changed)
	b.changed = make(chan struct{})
}

// waitSent waits until n messages were sent or ctx ends, and returns them.
func (b *botServer) waitSent(ctx context.Context, n int) []map[string]any {
	for {
		b.mu.Lock()
		sent, more := append([]map[string]any{}, b.sent...), b.newSent
		b.mu.Unlock()
		if len(sent) >= n {
			return sent
		}
		select {
		case <-more:
		case <-ctx.Done():
			return sent
		}
	}
}

func (b *botServer) state() (calls []string, sent []map[string]any, left int, offsets []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.calls...), append(
		[]map[string]any{},
		b.sent...,
	), len(b.updates), append([]int64{}, b.offsets...)
}

func (b *botServer) failNext(method string, answers ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures[method] = answers
}
