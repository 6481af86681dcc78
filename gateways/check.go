package gateways

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// credentialFields maps each platform to the config field that is wrong if the platform
// does not know the account.
var credentialFields = map[agent.GatewayType]string{
	agent.GatewayTelegram: "config.botToken",
	agent.GatewaySlack:    "config.botToken",
	agent.GatewayDiscord:  "config.botToken",
	agent.GatewaySMS:      "config.authToken",
	agent.GatewayWhatsApp: "config.authToken",
	agent.GatewayWebhook:  "config.url",
}

var namedField = regexp.MustCompile(`config\.[A-Za-z]+`)

// failedField returns the config field that caused a verification to fail, or "" if it
// is no single one.
func failedField(gateway store.OpenGateway, err error) string {
	if field := namedField.FindString(clientMessage(err)); field != "" {
		return field
	}
	credential := credentialFields[gateway.Type]
	if gateway.Type == agent.GatewayEmail && gateway.Config.Provider == agent.ProviderResend {
		credential = "config.apiKey"
	}
	smtp := gateway.Type == agent.GatewayEmail && credential == ""
	status := statusOf(err)
	switch {
	case smtp && slices.Contains([]int{530, 534, 535, 538}, smtpStatus(err)):
		return "config.smtpPassword"
	case smtp && smtpStatus(err) == 0:
		return "config.smtpHost"
	case smtp:
		return ""
	case status != nil &&
		slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, status.status):
		return credential
	case gateway.Type == agent.GatewayWebhook:
		return "config.url"
	case status == nil && gateway.Config.APIBaseURL != "":
		return "config.apiBaseUrl"
	}
	return ""
}

// TestMessage is a text for trying out a gateway.
type TestMessage struct {
	To   string // the recipient, as the platform identifies it: a chat, channel, number or address
	Text string
}

// TestResult is the outcome of a test message.
type TestResult struct {
	ID    string        // the platform's id of the message
	Took  time.Duration // until the platform answered
	Error string        // why it was not sent; empty if it was
}

// SendTest sends a text through one gateway, outside of any conversation. A
// refusal by the platform is reported in the outcome, not as an error.
func (g *Gateways) SendTest(
	ctx context.Context,
	db *store.DB,
	id string,
	message TestMessage,
) (result TestResult, err error) {
	gateway, err := db.Gateway(ctx, id)
	if err != nil {
		return result, err
	}
	message.To, message.Text = strings.TrimSpace(message.To), strings.TrimSpace(message.Text)
	var is agent.Issues
	is.Check(message.To != "", "to", "is required")
	is.Check(len(message.To) <= maxToBytes, "to", "is too long")
	is.Check(message.Text != "", "text", "is required")
	is.Check(len(message.Text) <= agent.MaxMessageLength, "text", "is too long")
	if err := is.Err(); err != nil {
		return result, err
	}
	if gateway.Status != agent.GatewayActive {
		return result, agent.Errorf(agent.CodeConflict, "the gateway is not active: verify it")
	}
	began := g.now()
	if gateway.Type == agent.GatewayEmail {
		result.ID, _, err = g.SendEmail(ctx, db, id, &Email{
			To:      []string{message.To},
			Subject: testSubject,
			Text:    message.Text,
		})
	} else {
		var sent Sent
		sent, err = g.Send(ctx, db, SendRequest{
			Type:      gateway.Type,
			GatewayID: id,
			To:        message.To,
			Text:      message.Text,
		})
		result.ID = sent.ID
	}
	result.Took = g.now().Sub(began)
	if agent.ErrorCode(err) == agent.CodeUpstream {
		result.Error = agent.Explain(err)
		return result, nil
	}
	return result, err
}

// testSubject is the subject of a test message by email.
const testSubject = "Test message"
