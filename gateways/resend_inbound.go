package gateways

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store"
)

// resendPost is a post from Resend, see https://resend.com/docs/webhooks.
type resendPost struct {
	Type string      `json:"type"`
	Data resendEmail `json:"data"`
}

// resendEmail is a received email, as in a post (without the body) or from the
// API, see
// https://resend.com/docs/api-reference/emails/retrieve-received-email.
type resendEmail struct {
	EmailID     string         `json:"email_id"` // in a post
	From        string         `json:"from"`
	To          []string       `json:"to"`
	ReplyTo     []string       `json:"reply_to"`
	MessageID   string         `json:"message_id"`
	Subject     string         `json:"subject"`
	Text        string         `json:"text"`
	HTML        string         `json:"html"`
	Headers     map[string]any `json:"headers"`
	Attachments []struct {
		ID          string `json:"id"`
		Filename    string `json:"filename"`
		ContentType string `json:"content_type"`
		Size        int64  `json:"size"`
	} `json:"attachments"`
}

func (r resend) parsePost(o store.OpenGateway, p Post, now time.Time) (Parsed, error) {
	id := p.Header.Get("Svix-Id")
	secret := cmp.Or(o.Config.WebhookSecret, o.WebhookSecret)
	if signature.Verify(secret, id, p.Header.Get("Svix-Timestamp"), p.Header.Get("Svix-Signature"), p.Body, now) != nil {
		return Parsed{}, badSignature()
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(p.Body, &kind); err != nil {
		return Parsed{}, malformed("Resend", err)
	}
	if kind.Type != "email.received" {
		return Parsed{EventID: id}, nil
	}
	var post resendPost
	if err := json.Unmarshal(p.Body, &post); err != nil || post.Data.EmailID == "" || post.Data.From == "" {
		return Parsed{}, malformed("Resend", err)
	}
	in := agent.Inbound{ID: post.Data.EmailID}
	post.Data.fill(&in)
	return Parsed{EventID: id, Messages: []agent.Inbound{in}}, nil
}

// fetch reads the text of an email, which Resend's posts omit.
func (r resend) fetch(ctx context.Context, g *Gateways, c agent.GatewayConfig, in *agent.Inbound) error {
	var e resendEmail
	if err := g.call(ctx, r.call(c, http.MethodGet, "/emails/receiving/"+url.PathEscape(in.ID), nil), &e); err != nil {
		return refusal(err, "Resend", "API key")
	}
	if e.From == "" {
		return newClientError("Resend sent a response that could not be read", nil)
	}
	e.fill(in)
	return nil
}

// fill fills in a message from an email. A conversation is identified by its
// first email.
func (e *resendEmail) fill(in *agent.Inbound) {
	sender := &mail.Address{Address: e.From}
	if parsed, err := mail.ParseAddress(e.From); err == nil {
		sender = parsed
	}
	in.From = agent.ContactChange{Email: agent.Some(sender.Address)}
	if sender.Name != "" {
		in.From.Name = agent.Some(sender.Name)
	}
	before := messageIDs(cmp.Or(e.header("References"), e.header("In-Reply-To")))
	in.Thread = cmp.Or(append(before, e.MessageID, in.ID)[0], in.ID)
	in.Text = cmp.Or(strings.TrimSpace(e.Text), htmlText(e.HTML), e.Subject)
	in.Attachments = make([]agent.Attachment, 0, len(e.Attachments))
	for _, a := range e.Attachments {
		in.Attachments = append(in.Attachments, agent.Attachment{ID: a.ID, Name: a.Filename, MimeType: a.ContentType, Size: a.Size})
	}
	replyTo := ""
	if len(e.ReplyTo) > 0 && isAddress(e.ReplyTo[0]) {
		replyTo = e.ReplyTo[0]
	}
	in.Metadata = metadata(map[string]string{"platform": "resend", "subject": e.Subject, "message_id": e.MessageID, "from": e.From,
		"to": strings.Join(e.To, ", "), "reply_to": replyTo, "references": references(before), "auto_submitted": e.automatic()})
}

// header returns a header of an email, or "".
func (e *resendEmail) header(name string) string {
	for key, value := range e.Headers {
		if !strings.EqualFold(key, name) {
			continue
		}
		switch v := value.(type) {
		case string:
			return v
		case []any:
			if len(v) > 0 {
				text, _ := v[0].(string)
				return text
			}
		}
	}
	return ""
}

// automatic returns the type of an automatically sent email (RFC 3834), so that
// two machines do not answer each other endlessly, or "" if a person sent it.
func (e *resendEmail) automatic() string {
	if v := strings.ToLower(strings.TrimSpace(e.header("Auto-Submitted"))); v != "" && v != "no" {
		return v
	}
	if v := strings.ToLower(strings.TrimSpace(e.header("Precedence"))); slices.Contains([]string{"bulk", "junk", "list", "auto_reply"}, v) {
		return v
	}
	return ""
}

// messageIDs returns the ids, with their brackets, in a header such as
// References.
func messageIDs(header string) []string {
	var ids []string
	for field := range strings.FieldsSeq(header) {
		if strings.HasPrefix(field, "<") && strings.HasSuffix(field, ">") && len(field) > 2 && len(field) < 500 {
			ids = append(ids, field)
		}
	}
	return ids
}

// maxReferences limits the emails that one refers to: the first and the newest.
const maxReferences = 10

func references(ids []string) string {
	if len(ids) > maxReferences {
		ids = slices.Concat(ids[:1], ids[len(ids)-maxReferences+1:])
	}
	text := strings.Join(ids, " ")
	if len(text) > 1800 {
		text = ids[len(ids)-1]
	}
	return text
}

func (resend) register(_ context.Context, _ *Gateways, _ store.OpenGateway, webhookURL string) (string, error) {
	return "Open https://resend.com/webhooks, add a webhook with the address " + webhookURL +
		" and the event email.received (and others that you want), copy its signing secret and set it as config.webhookSecret of this gateway. Mail arrives at the receiving domain of your Resend account.", nil
}
