package gateways

import (
	"cmp"
	"context"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// immediate returns a request as it is stored in the conversation that it reaches.
func (r *SendRequest) immediate(gateway store.OpenGateway) store.Immediate {
	to := strings.TrimSpace(r.To)
	m := store.Immediate{
		GatewayID:      gateway.ID,
		Type:           gateway.Type,
		Threads:        []string{to},
		Addresses:      []string{to},
		Text:           r.Text,
		Origin:         r.Origin,
		Key:            r.Key,
		Format:         r.Format,
		KeepReferences: r.KeepReferences,
	}
	switch gateway.Type {
	case agent.GatewaySlack:
		if channel, _, _ := strings.Cut(to, ":"); r.Thread != "" {
			m.Threads = []string{channel + ":" + r.Thread, channel}
		}
	case agent.GatewaySMS, agent.GatewayWhatsApp:
		number := strings.TrimPrefix(to, twilioWhatsApp.prefix)
		m.Threads, m.Addresses = []string{to, twilio{}.number(number)}, []string{number}
	}
	return m
}

// immediate returns an email as it is stored in the conversations of its recipients.
func (e *Email) immediate(o store.OpenGateway) store.Immediate {
	text := e.Text
	if text == "" {
		text = htmlText(e.HTML)
	}
	return store.Immediate{
		GatewayID:      o.ID,
		Type:           o.Type,
		Addresses:      bareAddresses(e.To),
		Text:           cmp.Or(text, e.Subject, noEmailText),
		Origin:         e.Origin,
		Key:            e.IdempotencyKey,
		Subject:        e.Subject,
		KeepReferences: e.KeepReferences,
	}
}

// noEmailText replaces the text of an email that has none.
const noEmailText = "[email]"

// endImmediate records the outcome of sending a message immediately. The message may
// have arrived, so an error is only logged.
func (g *Gateways) endImmediate(
	ctx context.Context,
	db *store.DB,
	s *store.ImmediateSending,
	sent Sent,
	err error,
) {
	e := store.Ended{ExternalID: sent.ID, Channel: sent.Channel}
	if err != nil {
		e.Problem = clientMessage(err)
	}
	if err := db.EndImmediate(context.WithoutCancel(ctx), s, e); err != nil {
		g.log.Error("store the outcome of a message", "agent", db.ID(), "error", err)
	}
}

// notSent returns the result for a message that was sent by an earlier attempt, or that
// is only simulated.
func notSent(s *store.ImmediateSending, to string) Sent {
	if s.Sent {
		return Sent{ID: s.ExternalID, Channel: s.Channel}
	}
	return Sent{ID: agent.NewID(simulatedKind), Channel: to}
}

// simulatedKind is the kind of the ids of simulated messages.
const simulatedKind = "simulated"

// IsSimulated reports whether the id that Send or SendEmail returned is of a message
// that was not sent, because it results from a simulated one.
func IsSimulated(id string) bool { return strings.HasPrefix(id, simulatedKind+"-") }
