package gateways

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store"
)

// telegram implements gateways of the type chatbot_a,
// https://core.telegram.org/bots/api.
type telegram struct{}

const telegramBase = agent.TelegramAPI

// telegramLimit is the maximum number of characters in a message.
const telegramLimit = 4096

// TelegramInfo describes a verified bot.
type TelegramInfo struct {
	ID        int64  `json:"id"`
	Username  string `json:"username"`
	FirstName string `json:"firstName"`
}

func (telegram) missing(c agent.GatewayConfig) []string {
	return emptyFields("botToken", c.BotToken)
}

// telegramAnswer is the form of every response, see
// https://core.telegram.org/bots/api#making-requests.
type telegramAnswer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigratedTo int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// telegramRetryAfter reads how long Telegram asks to wait, which is in the
// body.
func telegramRetryAfter(body []byte) time.Duration {
	var answer telegramAnswer
	_ = json.Unmarshal(body, &answer)
	return time.Duration(min(max(answer.Parameters.RetryAfter, 0), 24*60*60)) * time.Second
}

// call calls a method of the Bot API. The token is part of the URL.
func (telegram) call(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	method string,
	repeats bool,
	in, out any,
) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var answer telegramAnswer
	address := baseURL(config.APIBaseURL, telegramBase) + "/bot" + url.PathEscape(config.BotToken) + "/" + method
	if err := gateways.call(
		ctx,
		apiCall{
			platform:   "Telegram",
			method:     http.MethodPost,
			url:        address,
			body:       body,
			idempotent: repeats,
			retryAfter: telegramRetryAfter,
		},
		&answer,
	); err != nil {
		return telegramRefusal(err)
	}
	if !answer.OK || out != nil && json.Unmarshal(answer.Result, out) != nil {
		return newClientError(telegramMalformed, nil)
	}
	return nil
}

const telegramMalformed = "Telegram sent a response that could not be read"

// telegramRefusal returns an error for clients. Telegram's own descriptions are
// for programmers, and may change.
func telegramRefusal(err error) error {
	var status *statusError
	if !errors.As(err, &status) {
		return err
	}
	switch {
	case status.status == http.StatusUnauthorized, status.status == http.StatusNotFound:
		return newClientError("Telegram refused the bot token ("+strconv.Itoa(status.status)+")", err)
	case status.status == http.StatusForbidden:
		return newClientError(
			"Telegram does not let the bot write there: it was blocked, or is not a member of the chat (403)",
			err,
		)
	case status.status == http.StatusConflict:
		return newClientError("another program fetches this bot's messages, or a webhook is set (409)", err)
	case telegramSays(err, "chat not found"):
		return newClientError("Telegram has no such chat, or its members have not written to the bot yet (400)", err)
	case telegramSays(err, "can't parse entities"):
		return newClientError("Telegram cannot parse the message's markup with this parse_mode (400)", err)
	case telegramSays(err, "webhook"):
		return newClientError(
			"Telegram does not accept the webhook's URL: it must be https, with a certificate that it trusts, "+
				"on port 443, 80, 88 or 8443 (400)",
			err,
		)
	}
	return refusal(err, "Telegram", "bot token")
}

// telegramSays reports whether Telegram's description of an error contains some words,
// in lower case.
func telegramSays(err error, words string) bool {
	status, answer := statusOf(err), telegramAnswer{}
	if status == nil {
		return false
	}
	_ = json.Unmarshal(status.body, &answer)
	return strings.Contains(strings.ToLower(answer.Description), words)
}

func (tg telegram) verify(ctx context.Context, g *Gateways, c agent.GatewayConfig) (any, error) {
	var who struct {
		ID        int64  `json:"id"`
		IsBot     bool   `json:"is_bot"`
		Username  string `json:"username"`
		FirstName string `json:"first_name"`
	}
	if err := tg.call(ctx, g, c, "getMe", true, struct{}{}, &who); err != nil {
		return nil, err
	}
	if who.ID == 0 || !who.IsBot {
		return nil, newClientError(telegramMalformed, nil)
	}
	return TelegramInfo{who.ID, who.Username, who.FirstName}, nil
}

// recipient parses the thread of a conversation: a chat, or "chat:topic".
func (telegram) recipient(thread string) (to, within string) {
	to, within, _ = strings.Cut(thread, ":")
	return to, within
}

// parseModes are Telegram's markups by their names in lower case.
var parseModes = map[string]struct {
	name   string
	format *formatting
}{
	"html":       {"HTML", formatHTML},
	"markdown":   {"Markdown", formatMarkdown},
	"markdownv2": {"MarkdownV2", formatMarkdownV2},
}

// telegramOut is a message to send.
type telegramOut struct {
	ChatID    any            `json:"chat_id"` // a number, or "@channel"
	Text      string         `json:"text"`
	ParseMode string         `json:"parse_mode,omitempty"`
	Topic     int64          `json:"message_thread_id,omitempty"`
	Reply     *telegramReply `json:"reply_parameters,omitempty"`
}

type telegramReply struct {
	MessageID    int64 `json:"message_id"`
	WithoutFound bool  `json:"allow_sending_without_reply"`
}

// send sends a message to a chat. Thread is a topic of the chat or, with a # in
// front, a message to reply to.
func (tg telegram) send(ctx context.Context, gateways *Gateways, config agent.GatewayConfig, m Message) (Sent, error) {
	out := telegramOut{ChatID: chatID(m.To)}
	mode, known := parseModes[strings.ToLower(m.Format)]
	if m.Format != "" && !known {
		return Sent{}, agent.Invalid("parse_mode", "must be HTML, MarkdownV2 or Markdown")
	}
	if message, ok := strings.CutPrefix(m.Thread, "#"); ok {
		id, err := strconv.ParseInt(message, 10, 64)
		if err != nil {
			return Sent{}, agent.Invalid("thread", "must be the number of a topic, or # and the number of a message")
		}
		out.Reply = &telegramReply{id, true}
	} else if m.Thread != "" {
		id, err := strconv.ParseInt(m.Thread, 10, 64)
		if err != nil {
			return Sent{}, agent.Invalid("thread", "must be the number of a topic, or # and the number of a message")
		}
		out.Topic = id
	}
	parts, marked := mode.format.parts(m.Text, telegramLimit)
	return sendParts(m, parts, func(text, _ string) (Sent, error) {
		if out.Text, out.ParseMode = text, ""; marked {
			out.ParseMode = mode.name
		}
		sent, err := tg.sendOne(ctx, gateways, config, &out)
		if out.ParseMode != "" && telegramSays(err, "can't parse entities") {
			out.Text, out.ParseMode = mode.format.plain(text), ""
			sent, err = tg.sendOne(ctx, gateways, config, &out)
		}
		return sent, err
	})
}

// sendOne sends one part. If a group was migrated to another chat, it sends
// there.
func (tg telegram) sendOne(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	out *telegramOut,
) (Sent, error) {
	var sent struct {
		MessageID int64 `json:"message_id"`
		Chat      struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	}
	err := tg.call(ctx, gateways, config, "sendMessage", false, out, &sent)
	if to := migratedTo(err); to != 0 && out.ChatID != any(to) {
		out.ChatID = to
		err = tg.call(ctx, gateways, config, "sendMessage", false, out, &sent)
	}
	if err != nil {
		return Sent{}, err
	}
	if sent.MessageID == 0 {
		return Sent{}, newClientError(telegramMalformed, nil)
	}
	return Sent{ID: strconv.FormatInt(sent.MessageID, 10), Channel: strconv.FormatInt(sent.Chat.ID, 10)}, nil
}

// noteMoved keeps the conversation of a group that Telegram moved to another chat, as a
// message to it showed.
func (g *Gateways) noteMoved(
	ctx context.Context,
	db *store.DB,
	gateway *store.OpenGateway,
	to string,
	sent Sent,
) {
	if _, err := strconv.ParseInt(to, 10, 64); err != nil ||
		gateway.Type != agent.GatewayTelegram ||
		sent.Channel == "" ||
		sent.Channel == to {
		return
	}
	if err := db.MoveThread(context.WithoutCancel(ctx), gateway.ID, store.MovedThread{
		From: to,
		To:   sent.Channel,
	}); err != nil {
		g.log.Warn("move conversation of a migrated group", "agent", db.ID(), "gateway", gateway.ID, "error", err)
	}
}

func migratedTo(err error) int64 {
	var status *statusError
	var answer telegramAnswer
	if !errors.As(err, &status) || json.Unmarshal(status.body, &answer) != nil {
		return 0
	}
	return answer.Parameters.MigratedTo
}

// chatID returns a chat as Telegram expects it: a number, or "@name".
func chatID(to string) any {
	if id, err := strconv.ParseInt(to, 10, 64); err == nil {
		return id
	}
	return to
}

// register sets the webhook at Telegram. If Telegram cannot reach the server,
// messages are polled and there is nothing to set.
func (tg telegram) register(
	ctx context.Context,
	gateways *Gateways,
	gateway store.OpenGateway,
	webhookURL string,
) (string, error) {
	if gateways.reachable(gateway) != nil {
		return "There is nothing to register: SATCHEL_PUBLIC_URL is not set, so messages are fetched from " +
			"Telegram by long polling.", nil
	}
	if strings.Trim(gateway.Config.WebhookSecret, secretTokenLetters) != "" || len(gateway.Config.WebhookSecret) > 256 {
		return "", newClientError(
			"config.webhookSecret must be at most 256 letters, digits, _ and -, as Telegram requires",
			nil,
		)
	}
	return "", tg.call(ctx, gateways, gateway.Config, "setWebhook", true, map[string]any{
		"url":             webhookURL,
		"secret_token":    gateway.Config.WebhookSecret,
		"allowed_updates": []string{},
	}, nil)
}

const secretTokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// parsePost verifies the secret that Telegram sends with each post, and parses
// the update.
func (telegram) parsePost(o store.OpenGateway, p Post, _ time.Time) (Parsed, error) {
	if !signature.SameSecret(p.Header.Get("X-Telegram-Bot-Api-Secret-Token"), o.Config.WebhookSecret) {
		return Parsed{}, badSignature()
	}
	id, t := readUpdate(botID(o.Config), p.Body)
	if id == 0 {
		return Parsed{}, malformed("Telegram", nil)
	}
	return t, nil
}

// botID returns the id of a bot, with which its token starts.
func botID(c agent.GatewayConfig) string {
	bot, _, _ := strings.Cut(c.BotToken, ":")
	return cmp.Or(bot, "0")
}
