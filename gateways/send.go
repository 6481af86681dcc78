package gateways

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// SendRequest is a text to send immediately, without a conversation.
type SendRequest struct {
	Type      agent.GatewayType
	GatewayID string // empty: the agent's default of the type
	// To is the platform's id of a chat, channel or number, or the thread of a
	// conversation.
	To     string
	Thread string // the message or thread that it answers; empty: none
	Text   string
	Format string // the platform's name of the text's markup; empty: plain
	// Key is the same for each attempt of a message.
	Key string
	// KeepReferences sends references to takeovers as they are, and not as links. It is
	// for texts that strangers may have written.
	KeepReferences bool
	// Origin is stored with the message in the conversation that it reaches.
	Origin agent.MessageOrigin
}

// Limits of a request.
const (
	maxToBytes     = 500
	maxFormatBytes = 50
)

// Validate checks a request. Fields are named as in a workflow's nodes.
func (r *SendRequest) Validate() error {
	var is agent.Issues
	to := "to"
	if r.Type == agent.GatewaySlack || r.Type == agent.GatewayDiscord {
		to = "channel"
	}
	for _, f := range []struct {
		name, value string
		required    bool
		limit       int
	}{
		{to, r.To, true, maxToBytes}, {"message", r.Text, true, 4 * agent.MaxMessageLength},
		{"thread", r.Thread, false, maxToBytes}, {"format", r.Format, false, maxFormatBytes},
	} {
		is.Check(!f.required || strings.TrimSpace(f.value) != "", f.name, "is required")
		is.Check(len(f.value) <= f.limit, f.name, fmt.Sprintf("must have at most %d bytes", f.limit))
		is.Check(!strings.ContainsRune(f.value, 0), f.name, "must not contain NUL characters")
	}
	return is.Err()
}

// Send sends a text through a gateway and returns when the platform has
// accepted it. If it reaches a conversation, the message is stored there, with its
// delivery; a message whose key was already sent there is not sent again. What results
// from a simulated message is not sent (IsSimulated), nor an execution's answer to a message
// that gets none (NotAnsweredError). A text that is longer than the platform allows is sent as
// several messages, and the first one is returned. A platform's failure is an
// UPSTREAM_ERROR. Only calls that the platform temporarily rejected are
// retried.
func (g *Gateways) Send(ctx context.Context, db *store.DB, request SendRequest) (Sent, error) {
	if err := request.Validate(); err != nil {
		return Sent{}, err
	}
	gateway, err := db.SendingGateway(ctx, request.Type, request.GatewayID)
	if err != nil {
		return Sent{}, err
	}
	p, ok := platformOf(gateway.Type, gateway.Config).(messenger)
	if !ok || gateway.Type == agent.GatewayWeb { // its messages exist in conversations only
		return Sent{}, agent.Invalid("gateway_id", "refers to a gateway that cannot send text messages")
	}
	if missing := p.missing(gateway.Config); len(missing) > 0 {
		return Sent{}, agent.Invalid(
			"gateway_id",
			"refers to a gateway with an incomplete config: "+missingFields(missing),
		)
	}
	s, err := db.BeginImmediate(ctx, request.immediate(gateway))
	if err != nil {
		return Sent{}, err
	}
	switch {
	case s.Refused != "":
		return Sent{}, &NotAnsweredError{s.Refused}
	case s.Sent, s.Simulated:
		return notSent(s, request.To), nil
	}
	sent, err := g.sendNow(ctx, db, p, gateway, request)
	g.endImmediate(ctx, db, s, sent, err)
	return sent, err
}

// sendNow calls the platform of a gateway.
func (g *Gateways) sendNow(
	ctx context.Context,
	db *store.DB,
	messenger messenger,
	gateway store.OpenGateway,
	request SendRequest,
) (sent Sent, err error) {
	if !request.KeepReferences {
		if request.Text, err = db.FillLinks(ctx, request.Text); err != nil {
			return Sent{}, err
		}
	}
	message := Message{
		Text:   request.Text,
		Format: request.Format,
		Key:    request.Key,
	}
	message.To, message.Thread = messenger.recipient(request.To)
	message.Thread = cmp.Or(request.Thread, message.Thread)
	if message.Token, err = db.TakeReplyToken(ctx, gateway.ID, request.To); err != nil {
		return Sent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent, err = messenger.send(ctx, g, gateway.Config, message)
	g.noteMoved(ctx, db, &gateway, message.To, sent)
	var invalid *agent.Error
	switch {
	case errors.As(err, &invalid):
		return sent, err
	case err != nil && sent.Parts > 0:
		return sent, upstreamError(newClientError(
			fmt.Sprintf("%s; %d of its parts were sent", clientMessage(err), sent.Parts),
			err,
		))
	case err != nil:
		return sent, upstreamError(err)
	}
	return sent, nil
}
