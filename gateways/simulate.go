package gateways

import (
	"context"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Simulation is a simulated inbound message for trying out a gateway.
type Simulation struct {
	From string // the sender as the platform would identify them: a number, an address, a user id
	Name string // the sender's name; empty: none
	Text string
	Send bool // what results from it, such as answers, is really sent
}

// Simulate accepts a message as if a gateway's platform had posted it, and
// returns it as stored. Unless s.Send is set, nothing that results from it is sent:
// neither automatic answers nor the messages of workflows. Their conversation shows them
// with the delivery status simulated.
func (g *Gateways) Simulate(
	ctx context.Context,
	db *store.DB,
	gatewayID string,
	simulation Simulation,
) (agent.Message, error) {
	simulation.From, simulation.Text = strings.TrimSpace(simulation.From), strings.TrimSpace(simulation.Text)
	var is agent.Issues
	is.Check(simulation.From != "", "from", "is required")
	is.Check(len(simulation.From) <= maxToBytes, "from", "is too long")
	is.Check(simulation.Text != "", "text", "is required")
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
	in := agent.Inbound{
		ID:          agent.NewID(simulatedKind),
		Thread:      simulation.From,
		Text:        simulation.Text,
		From:        simulatedSender(gateway.Type, simulation.From),
		Simulated:   true,
		SendReplies: simulation.Send,
	}
	if gateway.Type == agent.GatewayEmail { // each email starts a thread
		in.Thread = in.ID
	}
	if simulation.Name != "" {
		in.From.Name = agent.Some(simulation.Name)
	}
	messages := []agent.Inbound{in}
	if err := markUnanswerable(ctx, db, gateway.Type, messages); err != nil {
		return agent.Message{}, err
	}
	received, err := db.ReceiveInbound(
		ctx,
		gatewayID,
		[]store.Receipt{{EventID: in.ID, Messages: messages}},
		0,
	)
	if err != nil {
		return agent.Message{}, err
	}
	if len(received.Messages) == 0 {
		return agent.Message{}, agent.Errorf(agent.CodeConflict, "the gateway is not active: verify it")
	}
	return received.Messages[0], nil
}

// simulatedSender returns the contact that a platform would report.
func simulatedSender(t agent.GatewayType, from string) agent.ContactChange {
	prefixes := map[agent.GatewayType]string{
		agent.GatewayTelegram: agent.TelegramContact,
		agent.GatewaySlack:    agent.SlackContact,
		agent.GatewayDiscord:  agent.DiscordContact,
	}
	switch t {
	case agent.GatewayEmail:
		return mailSender(from)
	case agent.GatewaySMS:
		return agent.ContactChange{Phone: agent.Some(from)}
	case agent.GatewayWhatsApp:
		return agent.ContactChange{Phone: agent.Some(from), WhatsApp: agent.Some(from)}
	}
	return agent.ContactChange{ExternalID: agent.Some(prefixes[t] + from)}
}
