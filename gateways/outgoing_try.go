package gateways

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/mailbox"
	"satchel/store"
)

// sendPauses are the delays before each retry of a message that its platform
// has not received. With the first attempt, there are seven within some 32
// minutes: a much later answer would be useless.
var sendPauses = []time.Duration{
	2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
}

// maxRetryAfter limits the delay that a platform can request.
const maxRetryAfter = time.Hour

// outcomeUnknown is appended to the error of a message that may have arrived.
const outcomeUnknown = "; it is unknown whether the message arrived, so it is not sent again"

// errInactive means that a gateway sends nothing until it is verified.
var errInactive = newClientError("the gateway is not active: verify it", nil)

// permanentError returns the error of a message that can never be sent.
func permanentError(why string) error {
	return agent.Errorf(agent.CodeConflict, "%s", why)
}

// deliver sends a message to its platform.
func (g *Gateways) deliver(ctx context.Context, db *store.DB, sending *store.Sending) (Sent, error) {
	gateway, agentID := sending.Gateway, db.ID()
	platform := platformOf(gateway.Type, gateway.Config)
	switch {
	case gateway.ID == "":
		return Sent{}, permanentError("the gateway was deleted")
	case gateway.Locked:
		return Sent{}, permanentError(lockedConfig)
	case gateway.Status != agent.GatewayActive:
		return Sent{}, errInactive
	case platform == nil:
		return Sent{}, permanentError("gateways of this type cannot send")
	}
	if missing := platform.missing(gateway.Config); len(missing) > 0 {
		return Sent{}, permanentError("the gateway's config is incomplete: " + missingFields(missing))
	}
	to := sending.Conversation.Recipient(gateway.Type, &sending.Contact)
	if to == "" {
		return Sent{}, permanentError("the contact has no address on this platform")
	}
	var err error
	if sending.Text, err = db.TextToSend(ctx, sending.Text, sending.Metadata); err != nil {
		return Sent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch typed := platform.(type) {
	case messenger:
		m := Message{
			Text:   sending.Text,
			Format: formatOf(sending.Metadata),
			Key:    sending.Key(agentID),
			Skip:   sending.Parts,
			Token:  sending.Token,
		}
		m.To, m.Thread = typed.recipient(to)
		sent, err := typed.send(ctx, g, gateway.Config, m)
		g.noteMoved(ctx, db, &gateway, m.To, sent)
		return sent, err
	case mailer:
		e := emailReply(sending, to, agentID)
		e.normalize()
		if err := e.Validate(); err != nil {
			return Sent{}, err
		}
		id, err := typed.send(
			ctx,
			g,
			gateway.Config,
			messageIDOf(agentID, gateway.Config.FromAddress, e),
			e,
		)
		return Sent{ID: id, Channel: to, Parts: 1}, err
	}
	return Sent{}, permanentError("gateways of this type cannot send text messages")
}

// formatOf returns the markup of a message that was first sent immediately.
func formatOf(metadata json.RawMessage) string {
	var about struct {
		Format string `json:"send_format"`
	}
	_ = json.Unmarshal(metadata, &about) // metadata changed by SQL may be invalid
	return about.Format
}

// emailReply returns an email with a message. It answers the contact's newest
// email, if there is one.
func emailReply(sending *store.Sending, to, agentID string) *Email {
	var answers struct {
		Subject string `json:"subject"`
		ReplyTo string `json:"reply_to"`
	}
	_ = json.Unmarshal(sending.Answers, &answers) // if it was not an email, all fields are empty
	var own struct {
		Subject string `json:"subject"`
	}
	_ = json.Unmarshal(sending.Conversation.Metadata, &own)
	subject := cmp.Or(
		strings.Join(strings.Fields(answers.Subject), " "),
		own.Subject,
		"Message from "+cmp.Or(sending.Gateway.Config.FromName, sending.Gateway.Config.FromAddress),
	)
	if answers.Subject != "" && !strings.HasPrefix(strings.ToLower(subject), "re:") {
		subject = "Re: " + subject
	}
	e := &Email{
		To:             []string{to},
		Subject:        agent.Clip(subject, maxSubjectBytes/4),
		Text:           sending.Text,
		IdempotencyKey: sending.Key(agentID),
	}
	if writtenBy(sending.Metadata) != "human" {
		e.AutoSubmitted = autoReplied
	}
	if isAddress(answers.ReplyTo) {
		e.To[0] = answers.ReplyTo
	}
	e.thread(sending.Answers)
	return e
}

// writtenBy returns the author in the metadata of a message, "" for the agent.
func writtenBy(metadata json.RawMessage) string {
	var about struct {
		Author string `json:"author"`
	}
	_ = json.Unmarshal(metadata, &about) // written by the agent itself
	return about.Author
}

// thread makes an email refer to the one that it answers, given the metadata of its
// message.
func (e *Email) thread(metadata json.RawMessage) {
	var answers struct {
		MessageID  string `json:"message_id"`
		References string `json:"references"`
	}
	_ = json.Unmarshal(metadata, &answers) // if it was not an email, all fields are empty
	if ids := mailbox.IDs(answers.MessageID); len(ids) == 1 {
		e.InReplyTo, e.References = ids[0], mailbox.IDs(answers.References)
	}
}

// classify returns a text for people about a failed attempt, and the time of
// the next one, or zero.
func (g *Gateways) classify(err error, sending *store.Sending, now time.Time) (problem string, next agent.Time) {
	var invalid *agent.Error
	if problem = clientMessage(err); errors.As(err, &invalid) {
		return agent.Clip(invalid.Message, 500), agent.Time{}
	}
	repeatable := isUnsent(err)
	if !repeatable && !g.deduplicates(sending, now) {
		return problem + outcomeUnknown, agent.Time{}
	}
	if repeatable && !isTemporary(err) || sending.Attempt > len(sendPauses) {
		return problem, agent.Time{}
	}
	pause := sendPauses[sending.Attempt-1]
	pause += time.Duration(rand.Float64() * float64(pause) / 10)
	if status := statusOf(err); status != nil {
		pause = max(pause, min(status.retryAfter, maxRetryAfter))
	}
	return problem, agent.At(now.Add(pause))
}

// isUnsent reports whether the platform has certainly not received the message
// that an error is about.
func isUnsent(err error) bool {
	var invalid *agent.Error
	if status := statusOf(err); status != nil {
		return status.status < 500 || status.status == http.StatusServiceUnavailable
	}
	return errors.Is(err, errInactive) ||
		errors.As(err, &invalid) ||
		egress.IsUnsent(err) ||
		smtpStatus(err) != 0
}

// isTemporary reports whether sending may succeed later.
func isTemporary(err error) bool {
	switch status := statusOf(err); {
	case status != nil:
		return status.status == http.StatusTooManyRequests || status.status == http.StatusServiceUnavailable
	case egress.IsPermanent(err):
		return false
	}
	code := smtpStatus(err)
	return code == 0 || code >= 400 && code < 500
}

// deduplicates reports whether a message's platform would currently recognize a
// repeat by its key.
func (g *Gateways) deduplicates(s *store.Sending, now time.Time) bool {
	r, ok := platformOf(s.Gateway.Type, s.Gateway.Config).(deduplicator)
	return ok &&
		s.Gateway.ID != "" &&
		!s.FirstAt.IsZero() &&
		now.Before(s.FirstAt.Add(r.dedupWindow(Message{
			Text:  s.Text,
			Skip:  s.Parts,
			Token: s.Token,
		})))
}
