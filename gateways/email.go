package gateways

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/store"
)

// Email is an email to send. Its body is Text, HTML or both.
type Email struct {
	To, CC, BCC []string // addresses, with or without names
	ReplyTo     string
	InReplyTo   string   // the id, with brackets, of the email that it answers
	References  []string // the ids of earlier emails, oldest first
	Subject     string
	Text, HTML  string
	// IdempotencyKey identifies the email: a platform that supports keys
	// (Resend) sends two emails with the same key once, and with other
	// platforms (SMTP) they have the same Message-ID. Empty: a new email.
	IdempotencyKey string
	Origin         agent.MessageOrigin // see SendRequest
	KeepReferences bool                // see SendRequest
}

// Limits of an email.
const (
	maxRecipients   = 50
	maxSubjectBytes = 998
	maxEmailBytes   = 5 << 20 // of text and of HTML
)

// Validate checks an email. Fields are named as in a workflow's node.
func (e *Email) Validate() error {
	var is agent.Issues
	is.Check(len(e.To) > 0, "to", "is required")
	is.Check(len(e.To)+len(e.CC)+len(e.BCC) <= maxRecipients, "to", fmt.Sprintf("and cc and bcc must have at most %d addresses", maxRecipients))
	for _, list := range []struct {
		field     string
		addresses []string
	}{{"to", e.To}, {"cc", e.CC}, {"bcc", e.BCC}} {
		for _, address := range list.addresses {
			is.Check(isAddress(address), list.field, "must be email addresses")
		}
	}
	is.Check(e.ReplyTo == "" || isAddress(e.ReplyTo), "reply_to", "must be an email address")
	is.Check(!strings.ContainsAny(e.Subject, "\r\n\x00"), "subject", "must be a single line")
	is.Check(len(e.Subject) <= maxSubjectBytes && utf8.ValidString(e.Subject), "subject", fmt.Sprintf("must have at most %d bytes", maxSubjectBytes))
	is.Check(e.Text != "" || e.HTML != "", "body", "is required")
	is.Check(len(e.Text) <= maxEmailBytes && len(e.HTML) <= maxEmailBytes, "body", fmt.Sprintf("must have at most %d MB", maxEmailBytes>>20))
	is.Check(!strings.ContainsRune(e.Text+e.HTML, 0), "body", "must not contain NUL characters")
	is.Check(len(e.IdempotencyKey) <= 256 && !strings.ContainsAny(e.IdempotencyKey, "\r\n\x00"), "idempotency_key", "must be a line of at most 256 bytes")
	return is.Err()
}

// isAddress reports whether a text is a single address that is valid in a
// header.
func isAddress(text string) bool {
	if len(text) > 1000 || strings.ContainsAny(text, "\r\n\x00") {
		return false
	}
	parsed, err := mail.ParseAddress(text)
	return err == nil && len(parsed.Address) <= 254 && !strings.ContainsAny(parsed.Address+parsed.Name, "\r\n\x00")
}

// bareAddresses returns the addresses without names, in order.
func bareAddresses(lists ...[]string) []string {
	addresses := []string{}
	for _, list := range lists {
		for _, text := range list {
			if parsed, err := mail.ParseAddress(text); err == nil {
				addresses = append(addresses, parsed.Address)
			}
		}
	}
	return addresses
}

// mailer is a platform that sends email.
type mailer interface {
	platform
	send(ctx context.Context, g *Gateways, config agent.GatewayConfig, messageID string, e *Email) (id string, err error)
}

// SendEmail sends an email through the given gateway, or else the agent's
// default gateway of the type email. It returns the message's id and the
// addresses that the platform accepted. It is stored in conversations as Send does. A platform's failure is an
// UPSTREAM_ERROR.
func (g *Gateways) SendEmail(ctx context.Context, db *store.DB, gatewayID string, e *Email) (messageID string, accepted []string, err error) {
	if err := e.Validate(); err != nil {
		return "", nil, err
	}
	o, err := db.SendingGateway(ctx, agent.GatewayEmail, gatewayID)
	if err != nil {
		return "", nil, err
	}
	m, ok := platformOf(o.Type, o.Config).(mailer)
	if !ok {
		return "", nil, fmt.Errorf("gateway %s sends no email", o.ID)
	}
	if missing := m.missing(o.Config); len(missing) > 0 {
		return "", nil, agent.Invalid("gateway_id", "refers to a gateway with an incomplete config: "+missingFields(missing))
	}
	s, err := db.BeginImmediate(ctx, e.immediate(o))
	if err != nil {
		return "", nil, err
	}
	if s.Sent || s.Simulated {
		return notSent(s, "").ID, bareAddresses(e.To, e.CC, e.BCC), nil
	}
	defer func() { g.endImmediate(ctx, db, s, Sent{ID: messageID}, err) }()
	if e, err = e.withLinks(ctx, db); err != nil {
		return "", nil, err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	messageID, err = m.send(call, g, o.Config, messageIDOf(db.ID(), o.Config.FromAddress, e), e)
	if err != nil {
		return "", nil, upstreamError(err)
	}
	return messageID, bareAddresses(e.To, e.CC, e.BCC), nil
}

// withLinks returns an email with links in place of references to takeovers.
func (e *Email) withLinks(ctx context.Context, db *store.DB) (*Email, error) {
	filled := *e
	if e.KeepReferences {
		return e, nil
	}
	for _, text := range []*string{&filled.Subject, &filled.Text, &filled.HTML} {
		var err error
		if *text, err = db.FillLinks(ctx, *text); err != nil {
			return nil, err
		}
	}
	return &filled, nil
}

// upstreamError converts a failed send to an error for the caller.
func upstreamError(err error) error {
	e := agent.Errorf(agent.CodeUpstream, "the message was not sent: %s", clientMessage(err)).Because(err)
	var status *statusError
	if errors.As(err, &status) {
		e.With("status", status.status)
	}
	return e
}

// messageIDOf returns the Message-ID of an email, without brackets. It is the
// same for the same key of an agent.
func messageIDOf(agentID, from string, e *Email) string {
	name := agent.NewID("message")
	if e.IdempotencyKey != "" {
		sum := sha256.Sum256([]byte(agentID + "\x00" + e.IdempotencyKey))
		name = hex.EncodeToString(sum[:16])
	}
	_, domain, _ := strings.Cut(from, "@")
	return name + "@" + domain
}
