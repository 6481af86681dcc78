package gateways

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
)

func telegramConfig(b *botServer) agent.GatewayConfigChange {
	return agent.GatewayConfigChange{BotToken: agent.Some(telegramToken), APIBaseURL: agent.Some(b.URL)}
}

func TestTelegramVerify(t *testing.T) {
	b := newBotServer(t)
	var log bytes.Buffer
	r := newHookFixture(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.wait = func(context.Context, time.Duration) error { return nil }
	g, _ := r.connect(t, "telegram", telegramConfig(b))
	if v, err := r.Verify(t.Context(), r.db, g.ID); err != nil ||
		!v.Success ||
		v.Info != (TelegramInfo{110201543, "shop_bot", "Shop"}) {
		t.Errorf("verified %+v, %v", v, err)
	}
	for _, tc := range []struct{ answer, want string }{
		{`401 {"ok":false,"error_code":401,"description":"Unauthorized"}`, "Telegram refused the bot token (401)"},
		{`404 {"ok":false,"error_code":404,"description":"Not Found"}`, "Telegram refused the bot token (404)"},
		{
			`429 {"ok":false,"error_code":429,"parameters":{"retry_after":600}}`,
			"Telegram is rate limiting requests; try again later",
		},
		{`502 <html>`, "Telegram answered 502"},
		{`200 <html>`, telegramMalformed},
		{`200 {"ok":true,"result":{"id":1,"is_bot":false}}`, telegramMalformed},
		{`200 {"ok":false}`, telegramMalformed},
		{`200 {"ok":true,"result":[]}`, telegramMalformed},
	} {
		b.failNext("getMe", tc.answer, tc.answer, tc.answer)
		if v, err := r.Verify(t.Context(), r.db, g.ID); err != nil || v.Success || v.Error != tc.want {
			t.Errorf("%s: %+v, %v", tc.answer, v, err)
		}
	}
	b.Close()
	if v, _ := r.Verify(t.Context(), r.db, g.ID); v.Success || v.Error != "the connection was refused" {
		t.Errorf("unreachable: %+v", v)
	}
	if strings.Contains(log.String(), "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw") ||
		!strings.Contains(log.String(), "verify gateway") {
		t.Errorf("the log contains the token, or is empty: %s", log.String())
	}
	empty, _ := r.connect(t, "telegram", agent.GatewayConfigChange{})
	if v, _ := r.Verify(t.Context(), r.db, empty.ID); v.Error != "config.botToken missing" {
		t.Errorf("without a token: %+v", v)
	}
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{
		ChatbotAToken: agent.Some("123:of-the-settings"),
	}); err != nil {
		t.Fatal(err)
	}
	if o, err := r.db.OpenGateway(t.Context(), empty.ID); err != nil || o.Config.BotToken != "123:of-the-settings" {
		t.Errorf("the settings' token is not used: %+v, %v", o.Config, err)
	}
}

// TestTelegramUpdates parses updates of all kinds.
func TestTelegramUpdates(t *testing.T) {
	const private = `"chat":{"id":42,"type":"private","first_name":"Ada"},"from":{"id":42,"is_bot":false,` +
		`"first_name":"Ada","last_name":"Lovelace","username":"ada"}`
	const group = `"chat":{"id":-100123,"type":"supergroup","title":"Shop"},"from":{"id":42,` +
		`"is_bot":false,"first_name":"Ada"}`
	file := func(extra string) string {
		return `{"file_id":"F1","file_unique_id":"u","file_size":1234` + extra + `}`
	}
	for _, tc := range []struct {
		name, update string
		text, thread string // "" for no message
		id           string
		from         string // external_id, handle, name
		metadata     string
	}{
		{
			"text",
			`"message":{"message_id":7,` + private + `,"text":"Hello"}`,
			"Hello",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"edited",
			`"edited_message":{"message_id":7,"edit_date":99,` + private + `,"text":"Hullo"}`,
			"Hullo",
			"42",
			"1/42/7/99",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","edited":"true","message_id":"7"}`,
		},
		{
			"in a group",
			`"message":{"message_id":8,` + group + `,"text":"Hi"}`,
			"Hi", "-100123", "1/-100123/8", "telegram:42  Ada",
			`{"chat_id":"-100123","chat_type":"supergroup","chat_title":"Shop","message_id":"8"}`,
		},
		{
			"in a topic",
			`"message":{"message_id":9,"message_thread_id":5,"is_topic_message":true,` + group + `,"text":"Hi"}`,
			"Hi", "-100123:5", "1/-100123/9", "telegram:42  Ada",
			`{"chat_id":"-100123","chat_type":"supergroup","chat_title":"Shop","message_id":"9","topic_id":"5"}`,
		},
		{
			"an answer in a group without topics",
			`"message":{"message_id":9,"message_thread_id":5,"reply_to_message":{"message_id":5},` +
				group + `,"text":"Hi"}`,
			"Hi", "-100123", "1/-100123/9", "telegram:42  Ada",
			`{"chat_id":"-100123","chat_type":"supergroup","chat_title":"Shop","message_id":"9","reply_to":"5"}`,
		},
		{
			"forwarded",
			`"message":{"message_id":7,` + private + `,"forward_origin":{"type":"user"},"text":"Look"}`,
			"Look",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","forwarded":"true","message_id":"7"}`,
		},
		{
			"links",
			`"message":{"message_id":7,` + private + `,"text":"🙂 Here, there","entities":[{"type":"text_link",` +
				`"offset":3,"length":4,"url":"https://a.example/1"},{"type":"bold","offset":3,"length":4},` +
				`{"type":"text_link","offset":9,"length":5,"url":"https://b.example"},{"type":"text_link",` +
				`"offset":9,"length":99,"url":"x"}]}`,
			"🙂 Here (https://a.example/1), there (https://b.example)",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"a link in a caption",
			`"message":{"message_id":7,` + private + `,"photo":[` + file("") +
				`],"caption":"Here","caption_entities":[{"type":"text_link","offset":0,"length":4,` +
				`"url":"https://a.example"}]}`,
			"Here (https://a.example)",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"photo","id":"F1","size":1234}],"chat_id":"42",` +
				`"chat_type":"private","message_id":"7"}`,
		},
		{
			"a channel's post in its group",
			`"message":{"message_id":8,"is_automatic_forward":true,"sender_chat":{"id":-100777,"title":"News"},` +
				`"chat":{"id":-100123,"type":"supergroup"},"from":{"id":777000},"text":"Out now"}`,
			"Out now", "-100123", "1/-100123/8", "telegram:-100777  News",
			`{"auto_submitted":"automatic","chat_id":"-100123","chat_type":"supergroup","message_id":"8"}`,
		},
		{
			"channel post",
			`"channel_post":{"message_id":3,"chat":{"id":-100777,"type":"channel","title":"News",` +
				`"username":"news"},"text":"Out now"}`,
			"Out now",
			"-100777",
			"1/-100777/3",
			"telegram:-100777 @news News",
			`{"chat_id":"-100777","chat_type":"channel","chat_title":"News","message_id":"3"}`,
		},
		{
			"edited channel post",
			`"edited_channel_post":{"message_id":3,"edit_date":5,"sender_chat":{"id":-100777,"title":"News"},` +
				`"chat":{"id":-100777,"type":"channel","title":"News"},"text":"Out"}`,
			"Out", "-100777", "1/-100777/3/5", "telegram:-100777  News",
			`{"chat_id":"-100777","chat_type":"channel","chat_title":"News","edited":"true","message_id":"3"}`,
		},
		{
			"anonymous admin",
			`"message":{"message_id":4,"chat":{"id":-100123,"type":"supergroup","title":"Shop"},` +
				`"from":{"id":1087968824,"is_bot":true,"first_name":"Group"},"sender_chat":{"id":-100123,` +
				`"title":"Shop"},"text":"Rules"}`,
			"Rules", "-100123", "1/-100123/4", "telegram:-100123  Shop",
			`{"chat_id":"-100123","chat_type":"supergroup","chat_title":"Shop","message_id":"4"}`,
		},
		{
			"photo",
			`"message":{"message_id":7,` + private + `,"photo":[{"file_id":"small","file_size":10},` + file("") + `]}`,
			"[photo]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"photo","id":"F1","size":1234}],"chat_id":"42",` +
				`"chat_type":"private","message_id":"7"}`,
		},
		{
			"album with a caption",
			`"message":{"message_id":7,"media_group_id":"M",` + private + `,"photo":[` + file("") +
				`],"caption":"My cat"}`,
			"My cat",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"photo","id":"F1","size":1234}],"chat_id":"42","chat_type":"private",` +
				`"media_group_id":"M","message_id":"7"}`,
		},
		{
			"document",
			`"message":{"message_id":7,` + private + `,"document":` +
				file(`,"file_name":"bill.pdf","mime_type":"application/pdf"`) + `}`,
			"[document: bill.pdf]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"document","id":"F1","name":"bill.pdf","mime_type":"application/pdf",` +
				`"size":1234}],"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"animation with its document",
			`"message":{"message_id":7,` + private + `,"animation":` + file("") + `,"document":` + file("") + `}`,
			"[animation]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"animation","id":"F1","size":1234}],"chat_id":"42",` +
				`"chat_type":"private","message_id":"7"}`,
		},
		{
			"voice",
			`"message":{"message_id":7,` + private + `,"voice":` + file("") + `}`,
			"[voice]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"voice","id":"F1","size":1234}],"chat_id":"42",` +
				`"chat_type":"private","message_id":"7"}`,
		},
		{
			"sticker",
			`"message":{"message_id":7,` + private + `,"sticker":` + file(`,"emoji":"👍"`) + `}`,
			"[sticker: 👍]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"attachments":[{"type":"sticker","id":"F1","size":1234}],"chat_id":"42",` +
				`"chat_type":"private","message_id":"7"}`,
		},
		{
			"location",
			`"message":{"message_id":7,` + private + `,"location":{"latitude":52.5,"longitude":13.4}}`,
			"[location: 52.5, 13.4]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"venue",
			`"message":{"message_id":7,` + private +
				`,"location":{"latitude":52.5,"longitude":13.4},"venue":{"title":"Bakery","address":"Main St 1"}}`,
			"[location: Bakery, Main St 1: 52.5, 13.4]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"poll",
			`"message":{"message_id":7,` + private +
				`,"poll":{"question":"When?","options":[{"text":"Mon"},{"text":"Tue"}]}}`,
			"[poll: When? (Mon / Tue)]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"dice",
			`"message":{"message_id":7,` + private + `,"dice":{"emoji":"🎲","value":4}}`,
			"[dice: 🎲 4]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"story",
			`"message":{"message_id":7,` + private + `,"story":{"id":1}}`,
			"[story]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},
		{
			"contact",
			`"message":{"message_id":7,` + private + `,"contact":{"phone_number":"+1555","first_name":"Bob"}}`,
			"[contact: Bob +1555]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},

		{
			"live location",
			`"message":{"message_id":7,` + private +
				`,"location":{"latitude":52.5,"longitude":13.4,"live_period":900}}`,
			"[location: 52.5, 13.4]",
			"42",
			"1/42/7",
			"telegram:42 @ada Ada Lovelace",
			`{"chat_id":"42","chat_type":"private","message_id":"7"}`,
		},

		{
			"live location moves",
			`"edited_message":{"message_id":7,"edit_date":9,` + private +
				`,"location":{"latitude":52.6,"longitude":13.4,"live_period":900}}`,
			"", "", "", "", "",
		},
		{
			"live location ends",
			`"edited_message":{"message_id":7,"edit_date":10,` + private +
				`,"location":{"latitude":52.6,"longitude":13.4}}`,
			"", "", "", "", "",
		},
		{
			"task checked",
			`"edited_message":{"message_id":7,"edit_date":10,` + private +
				`,"checklist":{"title":"Buy","tasks":[{"text":"Tea"}]}}`,
			"", "", "", "", "",
		},
		{
			"another bot's",
			`"message":{"message_id":7,"chat":{"id":1,"type":"group"},"from":{"id":9,"is_bot":true},"text":"beep"}`,
			"", "", "", "", "",
		},
		{"member joined", `"message":{"message_id":7,` + group + `,"new_chat_members":[{"id":1}]}`, "", "", "", "", ""},
		{"callback", `"callback_query":{"id":"1","from":{"id":42},"data":"x"}`, "", "", "", "", ""},
		{"reaction", `"message_reaction":{"chat":{"id":1},"message_id":2}`, "", "", "", "", ""},
		{"business message", `"business_message":{"message_id":7,` + private + `,"text":"Hi"}`, "", "", "", "", ""},
		{"unknown shape", `"message":{"message_id":"seven","text":{"new":true}}`, "", "", "", "", ""},
		{"empty message", `"message":{}`, "", "", "", "", ""},
	} {
		raw := `{"update_id":11,` + tc.update + `}`
		id, parsed := readUpdate("1", []byte(raw))
		if id != 11 ||
			parsed.EventID != "1/11" ||
			(len(parsed.Messages) == 1) != (tc.text != "") ||
			(parsed.Payload == nil) != (tc.text != "") {
			t.Errorf("%s: %d %+v", tc.name, id, parsed)
			continue
		}
		if tc.text == "" {
			continue
		}
		in := parsed.Messages[0]
		from := in.From.ExternalID.Value + " " + in.From.Telegram.Value + " " + in.From.Name.Value
		var got, want any
		_ = json.Unmarshal(described(in), &got)
		_ = json.Unmarshal([]byte(tc.metadata), &want)
		if in.Text != tc.text ||
			in.Thread != tc.thread ||
			in.ID != tc.id ||
			from != tc.from ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nfrom %s\nmetadata %s", tc.name, in, from, in.Metadata)
		}
	}
	for _, raw := range []string{
		``, `{}`, `[]`, `null`, `7`, `{"update_id":0}`, `{"update_id":-1}`, `{"update_id":"1"}`, `{"update_id":1.5}`,
		`{"update_id":1`, `{"type":"event_callback"}`,
	} {
		if id, parsed := readUpdate("1", []byte(raw)); id != 0 || len(parsed.Messages) != 0 {
			t.Errorf("%s has the update id %d", raw, id)
		}
	}
}

func TestTelegramWebhook(t *testing.T) {
	b := newBotServer(t)
	r := newHookFixture(t, nil)
	g, secret := r.connect(t, "telegram", telegramConfig(b))
	got, err := r.Register(t.Context(), r.db, g.ID, "")
	if err != nil ||
		!got.Success ||
		got.WebhookURL != "https://satchel.example"+agent.WebhookPath("default", g.ID) ||
		b.webhook != got.WebhookURL ||
		b.secret != secret {
		t.Fatalf("registered %+v, %v; Telegram knows %q", got, err, b.webhook)
	}
	const message = `{"update_id":5,"message":{"message_id":7,"chat":{"id":42,"type":"private"},"from":{"id":42,` +
		`"first_name":"Ada"},"text":"Hello"}}`
	right := headers("X-Telegram-Bot-Api-Secret-Token", secret)
	for _, tc := range []struct {
		name, body string
		header     map[string]string
		code       agent.Code
	}{
		{"no secret", message, nil, agent.CodeUnauthorized},
		{"empty secret", message, map[string]string{"X-Telegram-Bot-Api-Secret-Token": ""}, agent.CodeUnauthorized},
		{
			"wrong secret",
			message,
			map[string]string{"X-Telegram-Bot-Api-Secret-Token": secret + "x"},
			agent.CodeUnauthorized,
		},
		{
			"the token as secret",
			message,
			map[string]string{"X-Telegram-Bot-Api-Secret-Token": telegramToken},
			agent.CodeUnauthorized,
		},
		{"a custom webhook's proof", message, map[string]string{"X-Webhook-Secret": secret}, agent.CodeUnauthorized},
		{
			"slack's body",
			`{"type":"event_callback","event":{}}`,
			map[string]string{"X-Telegram-Bot-Api-Secret-Token": secret},
			agent.CodeValidation,
		},
		{"garbage", "\x00\xff{", map[string]string{"X-Telegram-Bot-Api-Secret-Token": secret}, agent.CodeValidation},
		{"empty body", "", map[string]string{"X-Telegram-Bot-Api-Secret-Token": secret}, agent.CodeValidation},
	} {
		h := headers()
		for name, value := range tc.header {
			h.Set(name, value)
		}
		if _, err := r.post(t, g.ID, h, tc.body); agent.ErrorCode(err) != tc.code {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if n := len(r.messages(t)); n != 0 {
		t.Fatalf("%d messages stored from rejected posts", n)
	}
	for range 2 {
		if a, err := r.post(t, g.ID, right, message); err != nil || a.Status != 0 || len(a.Body) != 0 {
			t.Errorf("answered %+v, %v", a, err)
		}
		if _, err := r.post(t, g.ID, right, `{"update_id":6,"callback_query":{"id":"1"}}`); err != nil {
			t.Error(err)
		}
	}
	if n := len(r.messages(t)); n != 1 || r.gateway(t, g.ID).EventCount != 2 {
		t.Errorf("%d messages, %d events", n, r.gateway(t, g.ID).EventCount)
	}
	if _, err := r.Update(t.Context(), r.db, g.ID, agent.GatewayChange{
		Config: agent.Some(agent.GatewayConfigChange{WebhookSecret: agent.Some("of_my-own")}),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.post(t, g.ID, right, message); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("webhook_secret is accepted although config.webhookSecret is set: %v", err)
	}
	if _, err := r.post(t, g.ID, headers("X-Telegram-Bot-Api-Secret-Token", "of_my-own"), message); err != nil {
		t.Errorf("config.webhookSecret: %v", err)
	}
	for answer, want := range map[string]string{
		`400 {"ok":false,"description":"Bad Request: bad webhook: HTTPS url must be provided"}`: "https",
		`401 {"ok":false}`: "refused the bot token",
	} {
		b.failNext("setWebhook", answer)
		if got, err := r.Register(t.Context(), r.db, g.ID, ""); err != nil ||
			got.Success ||
			!strings.Contains(got.Error, want) ||
			!strings.Contains(r.gateway(t, g.ID).LastError, want) {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
	if _, err := r.Update(t.Context(), r.db, g.ID, agent.GatewayChange{
		Config: agent.Some(agent.GatewayConfigChange{WebhookSecret: agent.Some("with spaces")}),
	}); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Register(t.Context(), r.db, g.ID, ""); got.Success ||
		!strings.Contains(got.Error, "config.webhookSecret") {
		t.Errorf("a secret that Telegram rejects: %+v", got)
	}
}

func TestTelegramSends(t *testing.T) {
	b := newBotServer(t)
	r := newHookFixture(t, nil)
	var waits []time.Duration
	r.wait = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	g, _ := r.connect(t, "telegram", telegramConfig(b))
	send := func(to, text, format string, more ...string) (Sent, error) {
		q := SendRequest{Type: agent.GatewayTelegram, GatewayID: g.ID, To: to, Text: text, Format: format}
		if len(more) > 0 {
			q.Thread = more[0]
		}
		return r.Send(t.Context(), r.db, q)
	}
	last := func() map[string]any {
		_, sent, _, _ := b.state()
		return sent[len(sent)-1]
	}
	if s, err := send("42", "Hello", ""); err != nil || s.ID != "701" || s.Channel != "42" {
		t.Fatalf("sent %+v, %v", s, err)
	}
	if !reflect.DeepEqual(last(), map[string]any{"chat_id": 42.0, "text": "Hello"}) {
		t.Errorf("sent %v", last())
	}
	for _, tc := range []struct {
		to, format, thread string
		want               map[string]any
	}{
		{"-100123:5", "", "", map[string]any{"chat_id": -100123.0, "text": "x", "message_thread_id": 5.0}},
		{"@news", "html", "", map[string]any{"chat_id": "@news", "text": "x", "parse_mode": "HTML"}},
		{
			"42",
			"MarkdownV2",
			"#17",
			map[string]any{
				"chat_id":          42.0,
				"text":             "x",
				"parse_mode":       "MarkdownV2",
				"reply_parameters": map[string]any{"message_id": 17.0, "allow_sending_without_reply": true},
			},
		},
	} {
		if _, err := send(tc.to, "x", tc.format, tc.thread); err != nil || !reflect.DeepEqual(last(), tc.want) {
			t.Errorf("%+v: sent %v, %v", tc, last(), err)
		}
	}
	for _, bad := range [][3]string{{"42", "rtf", ""}, {"42", "", "#x"}, {"42", "", "x"}} {
		if _, err := send(bad[0], "x", bad[1], bad[2]); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%v: %v", bad, err)
		}
	}
	_, before, _, _ := b.state()
	long := strings.Repeat("word and 😀 ", 1000)
	if s, err := send("42", long, ""); err != nil || s.Parts < 3 {
		t.Errorf("a long text: %+v, %v", s, err)
	}
	_, after, _, _ := b.state()
	joined := ""
	for _, part := range after[len(before):] {
		text := part["text"].(string)
		if n := prefixLength(text, telegramLimit); n != len(text) {
			t.Errorf("a part of %d bytes is too long", len(text))
		}
		joined += text + " "
	}
	if strings.Join(strings.Fields(joined), " ") != strings.Join(strings.Fields(long), " ") {
		t.Error("the parts are not the whole")
	}
	b.failNext("sendMessage", `429 {"ok":false,"error_code":429,"parameters":{"retry_after":7}}`)
	if _, err := send("42", "after a while", ""); err != nil || !slices.Equal(waits, []time.Duration{7 * time.Second}) {
		t.Errorf("busy: waited %v, %v", waits, err)
	}
	b.failNext(
		"sendMessage",
		`400 {"ok":false,"description":"Bad Request: group chat was upgraded to a supergroup chat",`+
			`"parameters":{"migrate_to_chat_id":-100999}}`,
	)
	if s, err := send("-7", "moved", ""); err != nil || s.Channel != "-100999" && last()["chat_id"] != -100999.0 {
		t.Errorf("a migrated group: %+v, %v, %v", s, last(), err)
	}
	for answer, want := range map[string]string{
		`403 {"ok":false,"description":"Forbidden: bot was blocked by the user"}`:    "blocked",
		`400 {"ok":false,"description":"Bad Request: chat not found"}`:               "no such chat",
		`400 {"ok":false,"description":"Bad Request: can't parse entities: secret"}`: "parse_mode",
		`400 {"ok":false,"description":"Bad Request: something about <secret>"}`:     "answered 400",
		`200 {"ok":true,"result":true}`:                                              "could not be read",
		`429 {"ok":false,"error_code":429,"parameters":{"retry_after":100000}}`:      "rate limiting",
		`400 {"ok":false,"parameters":{"migrate_to_chat_id":42}}`:                    "answered 400",
		`400 {"ok":false,"description":7,"parameters":[]}`:                           "answered 400",
		`500 {"ok":false}`: "answered 500",
	} {
		b.failNext("sendMessage", answer)
		_, err := send("42", "x", "")
		var e *agent.Error
		if !errors.As(err, &e) ||
			e.Code != agent.CodeUpstream ||
			!strings.Contains(e.Message, want) ||
			strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestTelegramGroupMoves: a group that became a supergroup keeps its conversation,
// whichever of the two messages or a refused answer shows it.
func TestTelegramGroupMoves(t *testing.T) {
	b := newBotServer(t)
	r := newHookFixture(t, nil)
	g, secret := r.connect(t, "telegram", telegramConfig(b))
	number := 0
	post := func(chat int, content string) {
		t.Helper()
		number++
		body := fmt.Sprintf(
			`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":%d,"type":"group"},`+
				`"from":{"id":42,"first_name":"Ada"},%s}}`,
			number, number, chat, content,
		)
		if _, err := r.post(t, g.ID, headers("X-Telegram-Bot-Api-Secret-Token", secret), body); err != nil {
			t.Fatal(err)
		}
	}
	for i, move := range []func(from, to int){
		func(from, to int) { post(from, fmt.Sprintf(`"migrate_to_chat_id":%d`, to)) },
		func(from, to int) { post(to, fmt.Sprintf(`"migrate_from_chat_id":%d`, from)) },
		func(from, to int) {
			b.failNext(
				"sendMessage",
				fmt.Sprintf(
					`400 {"ok":false,"description":"Bad Request: group chat was upgraded to a supergroup chat",`+
						`"parameters":{"migrate_to_chat_id":%d}}`,
					to,
				),
			)
			if _, err := r.Send(t.Context(), r.db, SendRequest{
				Type:      agent.GatewayTelegram,
				GatewayID: g.ID,
				To:        fmt.Sprint(from),
				Text:      "x",
			}); err != nil {
				t.Error(err)
			}
		},
	} {
		from, to := -10-i, -1000-i
		post(from, `"text":"before"`)
		move(from, to)
		post(to, `"text":"after"`)
		var threads []string
		for _, m := range r.messages(t)[2*i:] {
			if m.Role != agent.MessageUser { // what was sent
				continue
			}
			c, _, err := r.db.Conversation(t.Context(), m.ConversationID, 1)
			if err != nil {
				t.Fatal(err)
			}
			threads = append(threads, c.ID, c.ExternalThreadID)
		}
		if len(threads) != 4 || threads[0] != threads[2] || threads[3] != fmt.Sprint(to) {
			t.Errorf("move %d: conversations and threads %v", i, threads)
		}
	}
}

func FuzzTelegramUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"update_id":1,"message":{"message_id":7,"chat":{"id":42,"type":"private"},"from":{"id":42,` +
			`"first_name":"Ada"},"text":"Hello"}}`,
		`{"update_id":9223372036854775807,"channel_post":{"message_id":1,"chat":{"id":-1,"type":"channel"},` +
			`"photo":[{"file_id":"x"}]}}`,
		`{"update_id":2,"message":{"sender_chat":{},"location":{"latitude":1e308}}}`,
		`{"update_id":3,"message":null}`,
		`[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, parsed := readUpdate("1", raw)
		if id == 0 && (len(parsed.Messages) > 0 || parsed.EventID != "") || id < 0 {
			t.Fatalf("%q: %d %+v", raw, id, parsed)
		}
		for i := range parsed.Messages {
			m, c := parsed.Messages[i].Message(), parsed.Messages[i].Sender()
			if err := errors.Join(m.Validate(), c.Validate()); err != nil {
				t.Fatalf("%q: %v", raw, err)
			}
			if to, _ := (telegram{}).recipient(parsed.Messages[i].Thread); to == "" || parsed.Messages[i].ID == "" {
				t.Fatalf("%q: no thread to answer in", raw)
			}
		}
	})
}

// BenchmarkReceive receives messages of many senders one after another. For
// comparison, "insert" writes one row per commit.
func BenchmarkReceive(b *testing.B) {
	r := newHookFixture(b, nil)
	g, secret := r.connect(b, "telegram", agent.GatewayConfigChange{BotToken: agent.Some(telegramToken)})
	right := headers("X-Telegram-Bot-Api-Secret-Token", secret)
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d/message", writers), func(b *testing.B) {
			parallel(b, writers, func(n int) error {
				_, err := r.post(
					b,
					g.ID,
					right,
					fmt.Sprintf(
						`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":%d,"type":"private"},`+
							`"from":{"id":%d,"first_name":"Ada"},"text":"Hello there"}}`,
						n+1, n+1, n%50+1, n%50+1,
					),
				)
				return err
			})
		})
		b.Run(fmt.Sprintf("writers=%d/insert", writers), func(b *testing.B) {
			parallel(b, writers, func(int) error {
				return r.db.Log(b.Context(), agent.LevelInfo, "bench", "one row", nil)
			})
		})
	}
}

// parallel runs one b.N times in a number of writers, and reports the
// throughput.
func parallel(b *testing.B, writers int, one func(n int) error) {
	b.Helper()
	numbers := make(chan int)
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for n := range numbers {
				if err := one(n); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		numbers <- int(serial.Add(1))
	}
	close(numbers)
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "a_second")
}

// serial numbers the messages of benchmarks, over all their rounds.
var serial atomic.Int64
