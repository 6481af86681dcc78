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
	"satchel/agent/mailbox"
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

func (r resend) parsePost(gateway store.OpenGateway, p Post, now time.Time) (Parsed, error) {
	id := p.Header.Get("Svix-Id")
	secret := cmp.Or(gateway.Config.WebhookSecret, gateway.WebhookSecret)
	if signature.Verify(
		secret,
		id,
		p.Header.Get("Svix-Timestamp"),
		p.Header.Get("Svix-Signature"),
		p.Body,
		now,
	) != nil {
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
	if err := json.Unmarshal(p.Body, &post); err != nil ||
		post.Data.EmailID == "" ||
		post.Data.From == "" {
		return Parsed{}, malformed("Resend", err)
	}
	in := agent.Inbound{ID: post.Data.EmailID}
	post.Data.fill(&in)
	return Parsed{EventID: id, Messages: []agent.Inbound{in}}, nil
}

// fetch reads the text of an email, which Resend's posts omit.
func (r resend) fetch(ctx context.Context, g *Gateways, c agent.GatewayConfig, in *agent.Inbound) error {
	var e resendEmail
	if err := g.call(
		ctx,
		r.call(c, http.MethodGet, "/emails/receiving/"+url.PathEscape(in.ID), nil),
		&e,
	); err != nil {
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
	in.From = mailSender(e.From)
	before := mailbox.IDs(strings.Join(e.headers("References"), " "))
	if len(before) == 0 {
		before = mailbox.IDs(strings.Join(e.headers("In-Reply-To"), " "))
	}
	subject, id := mailbox.Decode(e.Subject), bracketed(e.MessageID)
	in.Thread = cmp.Or(append(before, id, in.ID)[0], in.ID)
	in.Text = cmp.Or(strings.TrimSpace(e.Text), htmlText(e.HTML), subject)
	in.Attachments = make([]agent.Attachment, 0, len(e.Attachments))
	for _, a := range e.Attachments {
		in.Attachments = append(in.Attachments, agent.Attachment{
			ID:       a.ID,
			Name:     mailbox.Decode(a.Filename),
			MimeType: a.ContentType,
			Size:     a.Size,
		})
	}
	in.Metadata = metadata(map[string]string{
		"platform":       "resend",
		"subject":        subject,
		"message_id":     id,
		"from":           e.From,
		"to":             strings.Join(e.To, ", "),
		"reply_to":       firstSendable(e.ReplyTo),
		"references":     references(before),
		"auto_submitted": e.automatic(),
	})
}

// mailSender returns the contact that a header From names.
func mailSender(from string) agent.ContactChange {
	sender, found := mailbox.Parse(from)
	if !found {
		sender.Name = mailbox.Decode(from)
	}
	change := agent.ContactChange{Email: agent.Some(sender.Address)}
	if sender.Name != "" {
		change.Name = agent.Some(sender.Name)
	}
	return change
}

// bracketed returns the id of an email with its brackets.
func bracketed(id string) string {
	if id = strings.TrimSpace(id); id != "" && !strings.ContainsAny(id, "<> \t\r\n") {
		return "<" + id + ">"
	}
	return id
}

// firstSendable returns the first address of a header to which an email can be
// sent, or "".
func firstSendable(header []string) string {
	for _, text := range mailbox.Split(strings.Join(header, ", ")) {
		if address, ok := mailbox.Header(text); ok {
			return address
		}
	}
	return ""
}

// headers returns the values of all headers with a name.
func (e *resendEmail) headers(name string) (values []string) {
	for key, value := range e.Headers {
		if !strings.EqualFold(key, name) {
			continue
		}
		switch v := value.(type) {
		case string:
			values = append(values, v)
		case []any:
			for _, item := range v {
				if text, ok := item.(string); ok {
					values = append(values, text)
				}
			}
		}
	}
	return values
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
		" and the event email.received (and others that you want), copy its signing secret and set it as " +
		"config.webhookSecret of this gateway. Mail arrives at the receiving domain of your Resend account.", nil
}
