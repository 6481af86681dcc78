package gateways

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/charset"
	"satchel/agent/signature"
	"satchel/store"
)

// webhook implements custom webhooks: any service that speaks HTTP.
type webhook struct{}

// WebhookInfo describes the target of a verified custom webhook. Both fields are
// null for a gateway that only receives.
type WebhookInfo struct {
	URL    *string `json:"url"`
	Status *int    `json:"status"`
}

func (webhook) missing(c agent.GatewayConfig) []string {
	return emptyFields("url", c.URL)
}

// verifyReceiver checks a gateway without a URL: with its own secret for
// senders it only receives posts, without one its config is incomplete.
func (webhook) verifyReceiver(o store.OpenGateway) (any, error) {
	if !slices.Contains(o.ConfiguredFields, "secret") {
		return nil, newClientError(
			"config.url and config.secret missing: give a URL to send to, or a secret to only receive",
			nil,
		)
	}
	return WebhookInfo{}, nil
}

// verify posts a signed {"type":"ping"} to the target, which must respond with
// success.
func (h webhook) verify(ctx context.Context, g *Gateways, c agent.GatewayConfig) (any, error) {
	body, err := json.Marshal(map[string]any{"type": "ping", "timestamp": agent.At(g.now())})
	if err != nil {
		return nil, err
	}
	answer, err := h.post(ctx, g, c, agent.NewID("message"), body)
	if err != nil {
		return nil, err
	}
	return WebhookInfo{URL: &c.URL, Status: &answer.status}, nil
}

// webhookMessage is a message as posted to the target.
type webhookMessage struct {
	Type      string     `json:"type"` // message
	Timestamp agent.Time `json:"timestamp"`
	To        string     `json:"to"`
	Thread    string     `json:"thread_id"`
	Text      string     `json:"text"`
	Format    string     `json:"format,omitempty"`
}

// send posts a message to the target. The same key yields the same webhook-id,
// by which the target recognizes a repeat.
func (h webhook) send(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	message Message,
) (Sent, error) {
	id := agent.NewID("message")
	if message.Key != "" {
		sum := sha256.Sum256([]byte(message.Key))
		id = "message-" + hex.EncodeToString(sum[:16])
	}
	body, err := json.Marshal(webhookMessage{
		Type:      "message",
		Timestamp: agent.At(gateways.now()),
		To:        message.To,
		Thread:    cmp.Or(message.Thread, message.To),
		Text:      message.Text,
		Format:    message.Format,
	})
	if err != nil {
		return Sent{}, err
	}
	answer, err := h.post(ctx, gateways, config, id, body)
	if err != nil {
		return Sent{}, err
	}
	var reply struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer.body, &reply) == nil && reply.ID != "" && len(reply.ID) <= 500 {
		id = reply.ID
	}
	return Sent{ID: id, Channel: message.To}, nil
}

func (webhook) recipient(thread string) (to, within string) { return thread, "" }

// dedupWindow is how long a target is expected to remember an id.
func (webhook) dedupWindow(Message) time.Duration { return 24 * time.Hour }

// post sends a signed body to the target, with the gateway's own headers.
func (webhook) post(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	id string,
	body []byte,
) (rawAnswer, error) {
	header := http.Header{}
	for name, value := range config.Headers {
		header.Set(name, value)
	}
	signature.SetHeaders(header, []string{config.Secret}, id, gateways.now(), body)
	var answer rawAnswer
	err := gateways.call(
		ctx,
		apiCall{
			platform:   "the target",
			method:     http.MethodPost,
			url:        config.URL,
			header:     header,
			body:       body,
			idempotent: true,
		},
		&answer,
	)
	var status *statusError
	if errors.As(err, &status) {
		err = newClientError(status.Error(), err)
	}
	return answer, err
}

func (webhook) register(context.Context, *Gateways, store.OpenGateway, string) (string, error) {
	return "Post messages to this URL, signed as described in the gateway documentation.", nil
}

// webhookPost is a parsed post. It is a message if it has a sender and a text.
type webhookPost struct {
	ID         looseString     `json:"id"`
	From       looseString     `json:"from"`
	ExternalID looseString     `json:"external_id"`
	Text       looseString     `json:"text"`
	Message    looseString     `json:"message"`
	Content    looseString     `json:"content"`
	ThreadID   looseString     `json:"thread_id"`
	Name       looseString     `json:"name"`
	Email      looseString     `json:"email"`
	Phone      looseString     `json:"phone"`
	Metadata   json.RawMessage `json:"metadata"`

	Attachments json.RawMessage `json:"attachments"`
}

// looseString is a string that may also be sent as a number. Anything else is
// empty.
type looseString string

// UnmarshalJSON never fails: a value of another type is empty.
func (f *looseString) UnmarshalJSON(raw []byte) error {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*f = looseString(text)
	case json.Unmarshal(raw, &number) == nil:
		*f = looseString(number)
	}
	return nil
}

// parsePost authenticates the post in one of three ways: Standard Webhooks
// headers, GitHub's X-Hub-Signature-256, or the secret itself. Ids are stored,
// so an intercepted post cannot be replayed. If only the body is signed, and
// contains no id, it cannot be replayed within signature.MaxAge.
func (webhook) parsePost(gateway store.OpenGateway, post Post, now time.Time) (Parsed, error) {
	proof, ok := verifyWebhook(gateway.Config.Secret, post, now)
	if !ok {
		return Parsed{}, badSignature()
	}
	post.Body = charset.Decode(post.Body, post.Header.Get("Content-Type")) // it was signed as it came
	if !json.Valid(post.Body) {
		return Parsed{}, agent.Errorf(agent.CodeInvalidJSON, "the body is not JSON")
	}
	if err := agent.CheckNesting("body", post.Body); err != nil {
		return Parsed{}, err
	}
	t := Parsed{
		EventID:  proof.id,
		Hashed:   proof.hashed,
		Delivery: proof.delivery,
	}
	if in, ok := parseWebhookMessage(post.Body); ok {
		if in.ID == "" {
			in.ID, in.Hashed = proof.id, proof.hashed
		}
		t.Messages, t.EventID = []agent.Inbound{in}, in.ID
	}
	t.Response = jsonResponse(map[string]any{"success": true, "event_id": t.EventID})
	return t, nil
}

// standardHeader returns a Standard Webhooks header, or the older one with the
// prefix svix.
func standardHeader(h http.Header, name string) string {
	return cmp.Or(h.Get("webhook-"+name), h.Get("svix-"+name))
}

// postID identifies a repeat of a post: an id covered by the signature, which
// may be a hash of the body, and one that is not.
type postID struct {
	id       string
	hashed   bool
	delivery string
}

// verifyWebhook reports whether a post is authentic, and how to recognize a repeat
// of it. A sender that sends the secret itself may send the same content twice.
func verifyWebhook(secret string, post Post, now time.Time) (postID, bool) {
	if secret == "" {
		return postID{}, false
	}
	id := standardHeader(post.Header, "id")
	if signatures := standardHeader(post.Header, "signature"); signatures != "" {
		return postID{id: id}, signature.Verify(
			secret,
			id,
			standardHeader(post.Header, "timestamp"),
			signatures,
			post.Body,
			now,
		) == nil
	}
	if given := post.Header.Get(agent.DefaultSignatureHeader); strings.HasPrefix(given, "sha256=") {
		return postID{
			bodyHash(post.Body),
			true,
			validText(post.Header.Get("X-GitHub-Delivery")),
		}, signature.VerifyHMAC(given, secret, post.Body)
	}
	return postID{
		id: cmp.Or(id, agent.NewID(agent.KindEvent)),
	}, signature.SameSecret(post.Header.Get("X-Webhook-Secret"), secret)
}

// parseWebhookMessage parses a body as a message.
func parseWebhookMessage(body []byte) (agent.Inbound, bool) {
	var post webhookPost
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 ||
		trimmed[0] != '{' ||
		json.Unmarshal(body, &post) != nil {
		return agent.Inbound{}, false
	}
	text := string(cmp.Or(post.Text, post.Message, post.Content))
	from := string(cmp.Or(post.From, post.ExternalID))
	files := webhookFiles(post.Attachments)
	if strings.TrimSpace(from) == "" || strings.TrimSpace(text) == "" && len(files) == 0 {
		return agent.Inbound{}, false
	}
	return agent.Inbound{
		Attachments: files,
		ID:          string(post.ID),
		Thread:      string(cmp.Or(post.ThreadID, looseString(from))),
		Text:        text,
		Metadata:    post.Metadata,
		From: agent.ContactChange{
			ExternalID: agent.Some(from),
			Name:       agent.Some(string(post.Name)),
			Email:      agent.Some(string(post.Email)),
			Phone:      agent.Some(string(post.Phone)),
		},
	}, true
}

// webhookFiles returns the files whose URLs a post contains.
func webhookFiles(raw json.RawMessage) (files []agent.Attachment) {
	var named []struct {
		URL      string `json:"url"`
		Name     string `json:"name"`
		MimeType string `json:"mime_type"`
	}
	_ = json.Unmarshal(raw, &named) // senders may have a field of this name for something else
	for _, f := range named {
		if f.URL != "" {
			files = append(files, agent.Attachment{
				URL:      f.URL,
				Name:     f.Name,
				MimeType: f.MimeType,
			})
		}
	}
	return files
}
