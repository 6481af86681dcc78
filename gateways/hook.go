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
	"satchel/agent/signature"
	"satchel/store"
)

// hook is the platform behind a custom webhook: anything that speaks HTTP.
type hook struct{}

// HookInfo is what verifying returns of a custom webhook's target; of a gateway
// that only receives both are null.
type HookInfo struct {
	URL    *string `json:"url"`
	Status *int    `json:"status"`
}

func (hook) missing(c agent.GatewayConfig) []string { return emptyFields("url", c.URL) }

// receivesOnly reports whether a gateway is meant to be posted to and no more: its
// config has the secret of its senders, and no address to post to. Without
// such a secret of its own a config that lacks the address is not finished.
func (hook) receivesOnly(o store.OpenGateway) bool {
	return o.Config.URL == "" && slices.Contains(o.ConfiguredFields, "secret")
}

// verify posts a signed {"type":"ping"} to the target, which must answer with
// a success.
func (h hook) verify(ctx context.Context, g *Gateways, c agent.GatewayConfig) (any, error) {
	body, err := json.Marshal(map[string]any{"type": "ping", "timestamp": agent.At(g.now())})
	if err != nil {
		return nil, err
	}
	answer, err := h.post(ctx, g, c, agent.NewID("message"), body)
	if err != nil {
		return nil, err
	}
	return HookInfo{URL: &c.URL, Status: &answer.status}, nil
}

// hookMessage is a message as it is posted to the target.
type hookMessage struct {
	Type      string     `json:"type"` // message
	Timestamp agent.Time `json:"timestamp"`
	To        string     `json:"to"`
	Thread    string     `json:"thread_id"`
	Text      string     `json:"text"`
	Format    string     `json:"format,omitempty"`
}

// send posts a message to the target. The same key gives the same webhook-id,
// by which the target knows a repeat.
func (h hook) send(ctx context.Context, g *Gateways, c agent.GatewayConfig, m Message) (Sent, error) {
	id := agent.NewID("message")
	if m.Key != "" {
		sum := sha256.Sum256([]byte(m.Key))
		id = "message-" + hex.EncodeToString(sum[:16])
	}
	body, err := json.Marshal(hookMessage{"message", agent.At(g.now()), m.To, cmp.Or(m.Thread, m.To), m.Text, m.Format})
	if err != nil {
		return Sent{}, err
	}
	answer, err := h.post(ctx, g, c, id, body)
	if err != nil {
		return Sent{}, err
	}
	var reply struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer.body, &reply) == nil && reply.ID != "" && len(reply.ID) <= 500 {
		id = reply.ID
	}
	return Sent{ID: id, Channel: m.To}, nil
}

func (hook) recipient(thread string) (to, within string) { return thread, "" }

// dedupWindow is how long a target is expected to know an id again.
func (hook) dedupWindow(Message) time.Duration { return 24 * time.Hour }

// post sends a signed body to the target, with the gateway's own headers.
func (hook) post(ctx context.Context, g *Gateways, c agent.GatewayConfig, id string, body []byte) (rawAnswer, error) {
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	signature.SetHeaders(header, []string{c.Secret}, id, g.now(), body)
	var answer rawAnswer
	err := g.call(ctx, apiCall{platform: "the target", method: http.MethodPost, url: c.URL, header: header, body: body, idempotent: true}, &answer)
	var status *statusError
	if errors.As(err, &status) {
		err = newClientError(status.Error(), err)
	}
	return answer, err
}

func (hook) register(context.Context, *Gateways, store.OpenGateway, string) (string, error) {
	return "Post messages to this address, signed as the documentation of gateways shows.", nil
}

// hookPost is what is read of a post: a message, when it names its sender and
// its text.
type hookPost struct {
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
}

// looseString is a text that may come as a number; anything else is empty.
type looseString string

// UnmarshalJSON never fails: a value of another kind is none.
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

// parsePost checks the post by one of three kinds of proof: the headers of Standard
// Webhooks, GitHub's X-Hub-Signature-256, or the secret itself. Ids are kept,
// so what was overheard cannot be sent again; where only the body is signed,
// and names no id, it cannot for signature.MaxAge.
func (hook) parsePost(o store.OpenGateway, p Post, now time.Time) (Parsed, error) {
	proof, ok := verifyHook(o.Config.Secret, p, now)
	if !ok {
		return Parsed{}, badSignature()
	}
	if !json.Valid(p.Body) {
		return Parsed{}, agent.Errorf(agent.CodeInvalidJSON, "the body is not JSON")
	}
	if err := agent.CheckNesting("body", p.Body); err != nil {
		return Parsed{}, err
	}
	t := Parsed{EventID: proof.id, Hashed: proof.hashed, Delivery: proof.delivery}
	if in, ok := parseHookMessage(p.Body); ok {
		if in.ID == "" {
			in.ID, in.Hashed = proof.id, proof.hashed
		}
		t.Messages, t.EventID = []agent.Inbound{in}, in.ID
	}
	t.Response = jsonResponse(map[string]any{"success": true, "event_id": t.EventID})
	return t, nil
}

// standardHeader reads a header of Standard Webhooks, or svix's older spelling.
func standardHeader(h http.Header, name string) string {
	return cmp.Or(h.Get("webhook-"+name), h.Get("svix-"+name))
}

// postID is by what a repeat of a post is known: an id that its proof covers,
// which may be a hash of the body, and one that it does not.
type postID struct {
	id       string
	hashed   bool
	delivery string
}

// verifyHook reports whether a post can be trusted, and by what a repeat of it is
// known. Who sends the secret itself may send the same twice.
func verifyHook(secret string, p Post, now time.Time) (postID, bool) {
	if secret == "" {
		return postID{}, false
	}
	id := standardHeader(p.Header, "id")
	if signatures := standardHeader(p.Header, "signature"); signatures != "" {
		return postID{id: id}, signature.Verify(secret, id, standardHeader(p.Header, "timestamp"), signatures, p.Body, now) == nil
	}
	if given := p.Header.Get(agent.DefaultSignatureHeader); strings.HasPrefix(given, "sha256=") {
		return postID{bodyHash(p.Body), true, validText(p.Header.Get("X-GitHub-Delivery"))}, signature.VerifyHMAC(given, secret, p.Body)
	}
	return postID{id: cmp.Or(id, agent.NewID(agent.KindEvent))}, signature.SameSecret(p.Header.Get("X-Webhook-Secret"), secret)
}

// parseHookMessage reads a body as a message.
func parseHookMessage(body []byte) (agent.Inbound, bool) {
	var post hookPost
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(body, &post) != nil {
		return agent.Inbound{}, false
	}
	text := string(cmp.Or(post.Text, post.Message, post.Content))
	from := string(cmp.Or(post.From, post.ExternalID))
	if strings.TrimSpace(from) == "" || strings.TrimSpace(text) == "" {
		return agent.Inbound{}, false
	}
	return agent.Inbound{
		ID: string(post.ID), Thread: string(cmp.Or(post.ThreadID, looseString(from))), Text: text, Metadata: post.Metadata,
		From: agent.ContactChange{ExternalID: agent.Some(from), Name: agent.Some(string(post.Name)), Email: agent.Some(string(post.Email)), Phone: agent.Some(string(post.Phone))},
	}, true
}
