package gateways

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// slack implements gateways of the type team_chat, https://docs.slack.dev.
type slack struct{}

const slackBase = agent.SlackAPI

// slackLimit is the maximum number of characters in a message.
const slackLimit = 40_000

// SlackInfo describes a verified bot.
type SlackInfo struct {
	Team   string `json:"team"`
	TeamID string `json:"teamId"`
	User   string `json:"user"`
	UserID string `json:"userId"`
	BotID  string `json:"botId"`
	URL    string `json:"url"`
}

func (slack) missing(c agent.GatewayConfig) []string {
	return emptyFields("botToken", c.BotToken, "signingSecret", c.SigningSecret)
}

// call calls a method of Slack's API, which reports failures with status 200.
func (slack) call(
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
	var raw json.RawMessage
	if err := gateways.call(ctx, apiCall{
		platform:   "Slack",
		method:     http.MethodPost,
		url:        baseURL(config.APIBaseURL, slackBase) + "/" + method,
		body:       body,
		idempotent: repeats,
		header: http.Header{
			"Authorization": {"Bearer " + config.BotToken},
			"Content-Type":  {"application/json; charset=utf-8"},
		},
	}, &raw); err != nil {
		return refusal(err, "Slack", "bot token")
	}
	var result struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || !result.OK && result.Error == "" {
		return newClientError("Slack sent a response that could not be read", err)
	}
	if !result.OK {
		return slackRefusal(result.Error)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return newClientError("Slack sent a response that could not be read", err)
	}
	return nil
}

// slackRefusal returns the error for an error code of Slack, see
// https://docs.slack.dev/reference/methods/chat.postMessage#errors.
func slackRefusal(code string) error {
	named := parenthesized(errorCode(code))
	switch code {
	case "not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"not_allowed_token_type", "no_permission":
		return newClientError("Slack refused the bot token"+named, &statusError{
			platform: "Slack",
			status:   http.StatusUnauthorized,
		})
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return newClientError("Slack is rate limiting requests; try again later", &statusError{
			platform: "Slack",
			status:   http.StatusTooManyRequests,
		})
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org":
		return newClientError("Slack failed"+named, &statusError{
			platform: "Slack",
			status:   http.StatusInternalServerError,
		})
	case "not_in_channel", "channel_not_found":
		return newClientError(
			"Slack refused the message"+named+": the channel does not exist or the bot is not in it",
			&statusError{platform: "Slack", status: http.StatusBadRequest},
		)
	}
	return newClientError("Slack refused the call"+named, &statusError{
		platform: "Slack",
		status:   http.StatusBadRequest,
	})
}

func (s slack) verify(ctx context.Context, gateways *Gateways, config agent.GatewayConfig) (any, error) {
	var who struct {
		Team   string `json:"team"`
		TeamID string `json:"team_id"`
		User   string `json:"user"`
		UserID string `json:"user_id"`
		BotID  string `json:"bot_id"`
		URL    string `json:"url"`
	}
	if err := s.call(ctx, gateways, config, "auth.test", true, struct{}{}, &who); err != nil {
		return nil, err
	}
	if who.UserID == "" {
		return nil, newClientError("Slack sent a response that could not be read", nil)
	}
	return SlackInfo(who), nil
}

// slackEscape prevents text from being interpreted as markup: angle brackets
// would make a link, or notify everybody in the channel.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// formatMrkdwn is text in Slack's markup, which is sent unchanged.
const formatMrkdwn = "mrkdwn"

// recipient parses the thread of a conversation: a channel or "channel:ts".
func (slack) recipient(thread string) (to, within string) {
	to, within, _ = strings.Cut(thread, ":")
	return to, within
}

func (s slack) send(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	message Message,
) (Sent, error) {
	escape := message.Format != formatMrkdwn
	limit, format := slackLimit, formatSlack
	if escape { // a part grows by no more than the whole text
		limit, format =
			max(limit-(len(slackEscape.Replace(message.Text))-len(message.Text)), slackLimit/len("&amp;")), nil
	}
	parts, _ := format.parts(message.Text, limit)
	return sendParts(message, parts, func(text, _ string) (Sent, error) {
		if escape {
			text = slackEscape.Replace(text)
		}
		post := struct {
			Channel  string `json:"channel"`
			Text     string `json:"text"`
			ThreadTS string `json:"thread_ts,omitempty"`
		}{message.To, text, message.Thread}
		var posted struct {
			Channel string `json:"channel"`
			TS      string `json:"ts"`
		}
		if err := s.call(ctx, gateways, config, "chat.postMessage", false, post, &posted); err != nil {
			return Sent{}, err
		}
		if posted.TS == "" {
			return Sent{}, newClientError("Slack sent a response that could not be read", nil)
		}
		return Sent{ID: posted.TS, Channel: posted.Channel}, nil
	})
}

// slackPost is a post from Slack, see https://docs.slack.dev/apis/events-api.
type slackPost struct {
	Type           string     `json:"type"`
	Challenge      string     `json:"challenge"`
	TeamID         string     `json:"team_id"`
	EventID        string     `json:"event_id"`
	Event          slackEvent `json:"event"`
	Authorizations []struct {
		UserID string `json:"user_id"`
		IsBot  bool   `json:"is_bot"`
	} `json:"authorizations"`
}

type slackEvent struct {
	Type            string      `json:"type"`
	Subtype         string      `json:"subtype"`
	Channel         slackName   `json:"channel"`
	ChannelType     string      `json:"channel_type"`
	User            slackName   `json:"user"`
	BotID           string      `json:"bot_id"`
	TS              string      `json:"ts"`
	ThreadTS        string      `json:"thread_ts"`
	Message         *slackEvent `json:"message"`          // of message_changed
	PreviousMessage *slackEvent `json:"previous_message"` // of message_changed and message_deleted
	slackContent
}

// slackName is an id, which some events wrap in an object.
type slackName string

// UnmarshalJSON decodes an id, or the id of an object.
func (n *slackName) UnmarshalJSON(raw []byte) error {
	var object struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, (*string)(n)) == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	*n = slackName(object.ID)
	return nil
}

func (s slack) parsePost(gateway store.OpenGateway, p Post, now time.Time) (Parsed, error) {
	if !slackSigned(gateway.Config.SigningSecret, p, now) {
		return Parsed{}, badSignature()
	}
	if strings.HasPrefix(p.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return slackForm(p)
	}
	var post slackPost
	payload := withoutKeys(p.Body, slackSecrets...)
	if err := json.Unmarshal(p.Body, &post); err != nil || payload == nil {
		return Parsed{}, malformed("Slack", err)
	}
	switch {
	case post.Type == "url_verification":
		return Parsed{
			Ignored:  true,
			Response: Response{ContentType: "text/plain; charset=utf-8", Body: []byte(post.Challenge)},
		}, nil
	case post.Type == "event_callback" && post.isFromBot():
		return Parsed{Ignored: true}, nil
	case post.Type == "event_callback" && post.Event.isMessage():
		if in := post.message(); in.Text != "" || len(in.Attachments) > 0 {
			return Parsed{EventID: post.EventID, Messages: []agent.Inbound{in}}, nil
		}
	}
	return Parsed{EventID: post.EventID, Payload: payload}, nil
}

// slackSecrets are keys of posts that would allow responding in Slack's name.
var slackSecrets = []string{"token", "response_url", "response_urls", "trigger_id"}

// slackForm parses a command, or the use of a button or a form. Each becomes an
// event.
func slackForm(post Post) (Parsed, error) {
	form, err := url.ParseQuery(string(post.Body))
	if err != nil {
		return Parsed{}, malformed("Slack", err)
	}
	raw := []byte(form.Get("payload"))
	if len(raw) == 0 {
		fields := map[string]string{}
		for name := range form {
			fields[name] = form.Get(name)
		}
		if raw, err = json.Marshal(fields); err != nil {
			return Parsed{}, malformed("Slack", err)
		}
	}
	payload := withoutKeys(raw, slackSecrets...)
	if payload == nil {
		return Parsed{}, malformed("Slack", nil)
	}
	return Parsed{EventID: bodyHash(post.Body), Payload: payload}, nil
}

// slackbot is the user who sends Slack's own reminders and automatic responses.
const slackbot = "USLACKBOT"

// isFromBot reports whether an event was caused by a bot, this one or another.
// Answering it could start an endless exchange.
func (p *slackPost) isFromBot() bool {
	for _, e := range []*slackEvent{&p.Event, p.Event.Message, p.Event.PreviousMessage} {
		if e == nil {
			continue
		}
		for _, a := range p.Authorizations {
			if a.IsBot && e.User != "" && a.UserID == string(e.User) {
				return true
			}
		}
		if e.BotID != "" || e.Subtype == "bot_message" || e.User == slackbot {
			return true
		}
	}
	return false
}

// isMessage reports whether an event is a message by a person, rather than an
// edit or a channel notice.
func (e *slackEvent) isMessage() bool {
	return e.User != "" && e.Channel != "" && e.TS != "" &&
		(e.Type == "app_mention" ||
			e.Type == "message" &&
				slices.Contains([]string{"", "file_share", "thread_broadcast", "me_message"}, e.Subtype))
}

// message converts an event to a message. A mention of the bot is posted twice,
// with the same id. Outside direct messages each thread is a conversation.
func (p *slackPost) message() agent.Inbound {
	event := &p.Event
	thread, channel := string(event.Channel), string(event.Channel)
	if direct := event.ChannelType == "im" || strings.HasPrefix(channel, "D"); event.ThreadTS != "" || !direct {
		thread += ":" + cmp.Or(event.ThreadTS, event.TS)
	}
	return agent.Inbound{
		ID:     channel + ":" + event.TS,
		Thread: thread,
		Text:   event.plain(),
		From:   agent.ContactChange{ExternalID: agent.Some(agent.SlackContact + string(event.User))},
		Metadata: metadata(map[string]string{
			"platform":     "slack",
			"team":         p.TeamID,
			"channel":      channel,
			"channel_type": event.ChannelType,
			"user":         string(event.User),
			"ts":           event.TS,
			"thread_ts":    event.ThreadTS,
		}),
		Attachments: event.files(),
	}
}

func (slack) register(_ context.Context, _ *Gateways, _ store.OpenGateway, webhookURL string) (string, error) {
	return "Open your app on https://api.slack.com/apps, choose Event Subscriptions, switch them on " +
		"and set the Request URL to " + webhookURL +
		". Under \"Subscribe to bot events\" add message.im for direct messages, app_mention for mentions and " +
		"message.channels for channels. Then reinstall the app and invite the bot to its channels.", nil
}
