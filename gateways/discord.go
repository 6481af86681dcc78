package gateways

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// discord implements gateways of the type community_chat,
// https://discord.com/developers/docs.
type discord struct{}

const discordBase = agent.DiscordAPI

// discordLimit is the maximum number of characters in a message.
const discordLimit = 2000

// DiscordInfo describes a verified bot.
type DiscordInfo struct {
	ID       string `json:"id"`
	Username string `json:"username"`
}

func (discord) missing(c agent.GatewayConfig) []string {
	return emptyFields("botToken", c.BotToken, "applicationId", c.ApplicationID, "publicKey", c.PublicKey)
}

// call calls the API as the bot.
func (discord) call(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	method, path string,
	repeats bool,
	in, out any,
) error {
	call := apiCall{
		platform:   "Discord",
		method:     method,
		url:        baseURL(config.APIBaseURL, discordBase) + path,
		idempotent: repeats,
		header:     http.Header{"Authorization": {"Bot " + config.BotToken}},
	}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		call.body = body
	}
	return refusal(gateways.call(ctx, call, out), "Discord", "bot token")
}

func (d discord) verify(ctx context.Context, gateways *Gateways, config agent.GatewayConfig) (any, error) {
	var info DiscordInfo
	if err := d.call(ctx, gateways, config, http.MethodGet, "/users/@me", true, nil, &info); err != nil {
		return nil, err
	}
	var app struct {
		ID        string `json:"id"`
		VerifyKey string `json:"verify_key"`
	}
	if err := d.call(ctx, gateways, config, http.MethodGet, "/applications/@me", true, nil, &app); err != nil {
		return nil, err
	}
	switch {
	case info.ID == "" || app.ID == "":
		return nil, newClientError("Discord sent a response that could not be read", nil)
	case app.ID != config.ApplicationID:
		return nil, newClientError("config.applicationId is not the id of the bot's application", nil)
	case app.VerifyKey != "" && !strings.EqualFold(app.VerifyKey, config.PublicKey):
		return nil, newClientError("config.publicKey is not the public key of the bot's application", nil)
	}
	return info, nil
}

// discordMessage is a message to create. It notifies only the users it
// mentions: no roles, not everyone.
type discordMessage struct {
	Content         string            `json:"content"`
	AllowedMentions discordMentions   `json:"allowed_mentions"`
	Nonce           string            `json:"nonce,omitempty"`
	EnforceNonce    bool              `json:"enforce_nonce,omitempty"`
	Reference       *discordReference `json:"message_reference,omitempty"`
}

type discordMentions struct {
	Parse []string `json:"parse"`
}

var onlyUsers = discordMentions{[]string{"users"}}

type discordReference struct {
	MessageID       string `json:"message_id"`
	FailIfNotExists bool   `json:"fail_if_not_exists"`
}

// recipient parses the thread of a conversation: a channel or "channel:user".
func (discord) recipient(thread string) (to, within string) {
	to, _, _ = strings.Cut(thread, ":")
	return to, ""
}

// send responds to the command that m.Token belongs to, or posts to a channel.
func (d discord) send(ctx context.Context, gateways *Gateways, config agent.GatewayConfig, m Message) (Sent, error) {
	first := m.Skip == 0
	parts, _ := formatDiscord.parts(m.Text, discordLimit)
	return sendParts(m, parts, func(text, key string) (Sent, error) {
		defer func() { first = false }()
		if m.Token != "" {
			sent, err := d.respond(ctx, gateways, config, m.Token, text, first)
			status := statusOf(err)
			if !first ||
				status == nil ||
				status.status != http.StatusNotFound && status.status != http.StatusUnauthorized {
				return sent, err
			}
			m.Token = "" // the token has expired: send to the channel instead
		}
		message := discordMessage{
			Content:         text,
			AllowedMentions: onlyUsers,
			Nonce:           nonce(key),
			EnforceNonce:    key != "",
		}
		if m.Thread != "" && first {
			message.Reference = &discordReference{MessageID: m.Thread}
		}
		return d.createMessage(
			ctx, gateways, config, http.MethodPost,
			"/channels/"+url.PathEscape(m.To)+"/messages",
			key != "",
			message,
		)
	})
}

// respond edits the deferred response to a command, or sends a follow-up.
func (d discord) respond(
	ctx context.Context,
	g *Gateways,
	c agent.GatewayConfig,
	token, text string,
	first bool,
) (Sent, error) {
	message := discordMessage{Content: text, AllowedMentions: onlyUsers}
	if first {
		return d.createMessage(
			ctx, g, c, http.MethodPatch,
			discordFollowUp(c, token)+"/messages/@original",
			true,
			message,
		)
	}
	return d.createMessage(ctx, g, c, http.MethodPost, discordFollowUp(c, token)+"?wait=true", false, message)
}

func (d discord) createMessage(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	method, path string,
	repeats bool,
	message discordMessage,
) (Sent, error) {
	var posted struct {
		ID        string `json:"id"`
		ChannelID string `json:"channel_id"`
	}
	if err := d.call(ctx, gateways, config, method, path, repeats, message, &posted); err != nil {
		return Sent{}, err
	}
	if posted.ID == "" {
		return Sent{}, newClientError("Discord sent a response that could not be read", nil)
	}
	return Sent{ID: posted.ID, Channel: posted.ChannelID}, nil
}

// discordFollowUp returns the path for responding to a command, see
// https://discord.com/developers/docs/interactions/receiving-and-responding#followup-messages.
func discordFollowUp(c agent.GatewayConfig, token string) string {
	return "/webhooks/" + url.PathEscape(c.ApplicationID) + "/" + url.PathEscape(token)
}

// nonce converts a key to a nonce of at most 25 characters, by which Discord
// recognizes a repeat.
func nonce(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// dedupWindow is what Discord calls "the past few minutes". Follow-ups to a
// command's response have no nonce.
func (discord) dedupWindow(m Message) time.Duration {
	if parts, _ := formatDiscord.parts(m.Text, discordLimit); m.Token != "" && len(parts) > 1 {
		return 0
	}
	return 2 * time.Minute
}

// Types of interactions and of responses.
const (
	discordPing         = 1
	discordCommand      = 2
	discordComponent    = 3
	discordAutocomplete = 4
	discordModal        = 5

	discordPong           = `{"type":1}`
	discordDeferred       = `{"type":5}` // the response follows later
	discordDeferredUpdate = `{"type":6}` // nothing changes yet
	discordChoices        = `{"type":8,"data":{"choices":[]}}`
)

// discordTokenLifetime is how long a command can be responded to, slightly less
// than the 15 minutes that Discord allows.
const discordTokenLifetime = 14*time.Minute + 30*time.Second

// discordPost is an interaction.
type discordPost struct {
	ID        string          `json:"id"`
	Type      int             `json:"type"`
	Token     string          `json:"token"`
	Version   int             `json:"version"`
	Event     json.RawMessage `json:"event"` // of a webhook event, which is not an interaction
	ChannelID string          `json:"channel_id"`
	GuildID   string          `json:"guild_id"`
	User      *discordUser    `json:"user"` // in direct messages
	Member    struct {
		User *discordUser `json:"user"`
	} `json:"member"`
	Data struct {
		Name    string          `json:"name"`
		Options []discordOption `json:"options"`
		// TargetID is the message or the user that a command of their menu was used on.
		TargetID string          `json:"target_id"`
		Resolved discordResolved `json:"resolved"`
	} `json:"data"`
}

// discordAttachment is the type of options whose value is the id of a file.
const discordAttachment = 11

type discordOption struct {
	Name    string          `json:"name"`
	Type    int             `json:"type"`
	Value   any             `json:"value"`
	Options []discordOption `json:"options"` // of a subcommand
}

func (d discord) parsePost(gateway store.OpenGateway, p Post, now time.Time) (Parsed, error) {
	if !discordSigned(gateway.Config.PublicKey, p, now) {
		return Parsed{}, badSignature()
	}
	var post discordPost
	payload := withoutKeys(p.Body, "token")
	if err := json.Unmarshal(p.Body, &post); err != nil || payload == nil {
		return Parsed{}, malformed("Discord", err)
	}
	if post.Event != nil || post.Type == 0 {
		return Parsed{
			Ignored:  post.Event == nil,
			Response: Response{Status: http.StatusNoContent},
			EventID:  bodyHash(p.Body),
		}, nil
	}
	switch post.Type {
	case discordPing:
		return Parsed{Ignored: true, Response: discordResponse(discordPong)}, nil
	case discordAutocomplete:
		return Parsed{Ignored: true, Response: discordResponse(discordChoices)}, nil
	case discordComponent, discordModal:
		return Parsed{
			EventID:  post.ID,
			Response: discordResponse(discordDeferredUpdate),
			Payload:  payload,
		}, nil
	case discordCommand:
		in, ok := post.message(now)
		if !ok {
			return Parsed{}, malformed("Discord", nil)
		}
		return Parsed{
			EventID:  post.ID,
			Response: discordResponse(discordDeferred),
			Messages: []agent.Inbound{in},
		}, nil
	}
	return Parsed{EventID: post.ID, Payload: payload}, nil
}

func discordResponse(body string) Response {
	return Response{ContentType: "application/json", Body: []byte(body)}
}

// message converts a command to a message. The messages of a person in a
// channel form one conversation.
func (p *discordPost) message(now time.Time) (agent.Inbound, bool) {
	user, thread := p.User, p.ChannelID
	if user == nil {
		user = p.Member.User
	}
	if user == nil ||
		user.ID == "" ||
		p.ID == "" ||
		p.ChannelID == "" {
		return agent.Inbound{}, false
	}
	if p.GuildID != "" {
		thread += ":" + user.ID
	}
	files, names := p.files(p.Data.Options, 1), p.Data.Resolved.names()
	text := names.replace(commandText(p.Data.Name, p.Data.Options))
	target, onMessage := p.Data.Resolved.Messages[p.Data.TargetID]
	if onMessage {
		text, files = cmp.Or(target.text(names), text), target.files()
	} else if name := names["@"+p.Data.TargetID]; name != "" {
		text += " " + name
	}
	in := agent.Inbound{
		ID:     p.ID,
		Thread: thread,
		Text:   text,
		From:   agent.ContactChange{ExternalID: agent.Some(agent.DiscordContact + user.ID)},
		Metadata: metadata(map[string]string{
			"platform":   "discord",
			"channel":    p.ChannelID,
			"guild":      p.GuildID,
			"user":       user.ID,
			"username":   user.Username,
			"command":    p.Data.Name,
			"message_id": target.ID,
			"author":     target.Author.name(),
		}),
		Attachments: files,
	}
	if name := user.GlobalName; name != "" {
		in.From.Name = agent.Some(name)
	}
	if user.Username != "" {
		in.From.SocialHandle = agent.Some("@" + user.Username)
	}
	if p.Token != "" {
		in.ReplyToken, in.ReplyUntil = p.Token, agent.At(now.Add(discordTokenLifetime))
	}
	return in, true
}

// files returns the files that a command's options name, and replaces the ids by
// the names of the files.
func (p *discordPost) files(options []discordOption, depth int) (files []agent.Attachment) {
	for i := range options {
		o := &options[i]
		id, _ := o.Value.(string)
		if f, ok := p.Data.Resolved.Attachments[id]; ok && o.Type == discordAttachment {
			files = append(files, f.attachment())
			o.Value = "[file: " + agent.Clip(f.Name, 200) + "]"
		}
		if kind := discordMentionable[o.Type]; kind != "" && id != "" {
			o.Value = "<" + kind + id + ">"
		}
		if depth < 3 {
			files = append(files, p.files(o.Options, depth+1)...)
		}
	}
	return files
}

// commandText returns the text of a command: the value of its only option, or
// each option by name, or the command itself.
func commandText(name string, options []discordOption) string {
	var lines, values []string
	var read func([]discordOption, int)
	read = func(options []discordOption, depth int) {
		for _, o := range options {
			if depth < 3 && o.Options != nil {
				name += " " + o.Name
				read(o.Options, depth+1)
				continue
			}
			value, ok := o.Value.(string)
			if !ok {
				raw, err := json.Marshal(o.Value)
				if err != nil {
					continue
				}
				value = string(raw)
			}
			values, lines = append(values, value), append(lines, o.Name+": "+value)
		}
	}
	read(options, 1)
	switch len(values) {
	case 0:
		return "/" + name
	case 1:
		return values[0]
	}
	return strings.Join(lines, "\n")
}

// register sets the endpoint URL at Discord, which immediately tests it with a
// ping.
func (d discord) register(ctx context.Context, g *Gateways, o store.OpenGateway, webhookURL string) (string, error) {
	if err := g.reachable(o); err != nil {
		return "", err
	}
	return "", d.call(
		ctx, g, o.Config, http.MethodPatch, "/applications/@me", true,
		map[string]string{"interactions_endpoint_url": webhookURL},
		nil,
	)
}
