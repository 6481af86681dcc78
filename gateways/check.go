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
func failedField(o store.OpenGateway, err error) string {
	if field := namedField.FindString(clientMessage(err)); field != "" {
		return field
	}
	credential := credentialFields[o.Type]
	if o.Type == agent.GatewayEmail && o.Config.Provider == agent.ProviderResend {
		credential = "config.apiKey"
	}
	smtp := o.Type == agent.GatewayEmail && credential == ""
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
	case o.Type == agent.GatewayWebhook:
		return "config.url"
	case status == nil && o.Config.APIBaseURL != "":
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
func (g *Gateways) SendTest(ctx context.Context, db *store.DB, id string, m TestMessage) (t TestResult, err error) {
	gateway, err := db.Gateway(ctx, id)
	if err != nil {
		return t, err
	}
	m.To, m.Text = strings.TrimSpace(m.To), strings.TrimSpace(m.Text)
	var is agent.Issues
	is.Check(m.To != "", "to", "is required")
	is.Check(len(m.To) <= maxToBytes, "to", "is too long")
	is.Check(m.Text != "", "text", "is required")
	is.Check(len(m.Text) <= agent.MaxMessageLength, "text", "is too long")
	if err := is.Err(); err != nil {
		return t, err
	}
	if gateway.Status != agent.GatewayActive {
		return t, agent.Errorf(agent.CodeConflict, "the gateway is not active: verify it")
	}
	began := g.now()
	if gateway.Type == agent.GatewayEmail {
		t.ID, _, err = g.SendEmail(ctx, db, id, &Email{
			To:      []string{m.To},
			Subject: testSubject,
			Text:    m.Text,
		})
	} else {
		var sent Sent
		sent, err = g.Send(ctx, db, SendRequest{
			Type:      gateway.Type,
			GatewayID: id,
			To:        m.To,
			Text:      m.Text,
		})
		t.ID = sent.ID
	}
	t.Took = g.now().Sub(began)
	if agent.ErrorCode(err) == agent.CodeUpstream {
		t.Error = agent.Explain(err)
		return t, nil
	}
	return t, err
}

// testSubject is the subject of a test message by email.
const testSubject = "Test message"
