package agent

import "testing"

func TestRecipient(t *testing.T) {
	ada := Contact{ID: "contact-1", Email: "ada@example.com", Phone: "+1 555", WhatsApp: "+49", ExternalID: "slack:U1"}
	bob := Contact{ID: "contact-2", Phone: "+1 555", ExternalID: "telegram:12"}
	for name, c := range map[string]struct {
		gateway GatewayType
		thread  string
		contact Contact
		want    string
	}{
		"a thread":             {GatewaySlack, "C1:1.2", ada, "C1:1.2"},
		"mail has no thread":   {GatewayEmail, "<1@x>", ada, "ada@example.com"},
		"no email address":     {GatewayEmail, "<1@x>", bob, ""},
		"a number":             {GatewaySMS, "", ada, "+1 555"},
		"WhatsApp's number":    {GatewayWhatsApp, "", ada, "+49"},
		"WhatsApp by phone":    {GatewayWhatsApp, "", bob, "+1 555"},
		"a person in Slack":    {GatewaySlack, "", ada, "U1"},
		"no id in Slack":       {GatewaySlack, "", bob, ""},
		"a person in Telegram": {GatewayTelegram, "", bob, "12"},
		"no id in Telegram":    {GatewayTelegram, "", ada, ""},
		"never in Discord":     {GatewayDiscord, "", ada, ""},
		"a webhook's own id":   {GatewayWebhook, "", bob, "telegram:12"},
		"a webhook's contact":  {GatewayWebhook, "", Contact{ID: "contact-3"}, "contact-3"},
		"a thread only":        {GatewaySMS, "+1", Contact{}, "+1"},
	} {
		conversation := Conversation{ExternalThreadID: c.thread}
		if got := conversation.Recipient(c.gateway, &c.contact); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
