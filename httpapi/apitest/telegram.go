package apitest

import (
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

// TelegramBot is a fake Telegram with one bot and one user.
type TelegramBot struct {
	*httptest.Server
	heard chan string // what the bot sends

	mu      sync.Mutex
	updates []string
	last    int
	changed chan struct{}
}

// NewTelegramBot starts the fake.
func NewTelegramBot(t *testing.T) *TelegramBot {
	bot := &TelegramBot{heard: make(chan string, 100), changed: make(chan struct{})}
	bot.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var in struct {
			Offset int    `json:"offset"`
			Text   string `json:"text"`
			ChatID int    `json:"chat_id"`
		}
		_ = json.NewDecoder(request.Body).Decode(&in)
		result := "true"
		switch strings.TrimPrefix(request.URL.Path, "/bot77:secret-of-the-bot/") {
		case "getMe":
			result = `{"id":77,"is_bot":true,"first_name":"Shop","username":"shop_bot"}`
		case "getUpdates":
			result = bot.updatesFrom(request, in.Offset)
		case "sendMessage":
			result = fmt.Sprintf(`{"message_id":500,"chat":{"id":%d}}`, in.ChatID)
			bot.heard <- in.Text
		case "deleteWebhook":
		default:
			response.WriteHeader(http.StatusUnauthorized)
			result = "false"
		}
		_, _ = io.WriteString(response, `{"ok":true,"result":`+result+`}`)
	}))
	t.Cleanup(bot.Close)
	return bot
}

// updatesFrom lists the updates from an offset on, and waits briefly for the first.
func (b *TelegramBot) updatesFrom(request *http.Request, offset int) string {
	for {
		b.mu.Lock()
		for b.last-len(b.updates)+1 < offset && len(b.updates) > 0 {
			b.updates = b.updates[1:]
		}
		list, came := strings.Join(b.updates, ","), b.changed
		b.mu.Unlock()
		if list != "" {
			return "[" + list + "]"
		}
		select {
		case <-came:
		case <-request.Context().Done():
			return "[]"
		case <-time.After(50 * time.Millisecond):
			return "[]"
		}
	}
}

// Receive sends the bot a message from the user.
func (b *TelegramBot) Receive(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	quoted, _ := json.Marshal(text)
	b.updates = append(
		b.updates,
		fmt.Sprintf(
			`{"update_id":%d,"message":{"message_id":%d,"date":1,"chat":{"id":42,"type":"private"},"from":{"id":42,`+
				`"is_bot":false,"first_name":"Ada","username":"ada"},"text":%s}}`,
			b.last,
			b.last,
			quoted,
		),
	)
	close(b.changed)
	b.changed = make(chan struct{})
}

// Answer waits for the bot's next message.
func (b *TelegramBot) Answer(t *testing.T) string {
	t.Helper()
	select {
	case text := <-b.heard:
		return text
	case <-time.After(30 * time.Second):
		t.Fatal("the bot sent nothing")
		return ""
	}
}
