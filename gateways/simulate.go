package gateways

import (
	"context"
	"encoding/json"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Simulation is a message that nobody sent, to try a gateway with.
type Simulation struct {
	From string // whom the platform would name: a number, an address, a user's id
	Name string // of that person; empty: none
	Text string
}

// Simulate takes in a message as if a gateway's platform had posted it, and
// returns it as it is stored. What answers it answers for real.
func (g *Gateways) Simulate(ctx context.Context, db *store.DB, gatewayID string, s Simulation) (agent.Message, error) {
	s.From, s.Text = strings.TrimSpace(s.From), strings.TrimSpace(s.Text)
	var is agent.Issues
	is.Check(s.From != "", "from", "is required")
	is.Check(len(s.From) <= maxToBytes, "from", "is too long")
	is.Check(s.Text != "", "text", "is required")
	if err := is.Err(); err != nil {
		return agent.Message{}, err
	}
	gateway, err := db.Gateway(ctx, gatewayID)
	if err != nil {
		return agent.Message{}, err
	}
	if gateway.Status != agent.GatewayActive {
		return agent.Message{}, agent.Errorf(agent.CodeConflict, "the gateway is not active: verify it")
	}
	in := agent.Inbound{ID: agent.NewID("simulated"), Thread: s.From, Text: s.Text, From: simulatedSender(gateway.Type, s.From),
		Metadata: json.RawMessage(`{"simulated":true}`)}
	if gateway.Type == agent.GatewayEmail { // each email begins a thread
		in.Thread = in.ID
	}
	if s.Name != "" {
		in.From.Name = agent.Some(s.Name)
	}
	received, err := db.ReceiveInbound(ctx, gatewayID, []store.Receipt{{EventID: in.ID, Messages: []agent.Inbound{in}}}, 0)
	if err != nil {
		return agent.Message{}, err
	}
	if len(received.Messages) == 0 {
		return agent.Message{}, agent.Errorf(agent.CodeConflict, "the gateway is not active: verify it")
	}
	return received.Messages[0], nil
}

// simulatedSender is the contact that a platform tells of.
func simulatedSender(t agent.GatewayType, from string) agent.ContactChange {
	prefixes := map[agent.GatewayType]string{agent.GatewayTelegram: agent.TelegramContact, agent.GatewaySlack: agent.SlackContact, agent.GatewayDiscord: agent.DiscordContact}
	switch t {
	case agent.GatewayEmail:
		return agent.ContactChange{Email: agent.Some(from)}
	case agent.GatewaySMS:
		return agent.ContactChange{Phone: agent.Some(from)}
	case agent.GatewayWhatsApp:
		return agent.ContactChange{Phone: agent.Some(from), WhatsApp: agent.Some(from)}
	}
	return agent.ContactChange{ExternalID: agent.Some(prefixes[t] + from)}
}
