package agent

import (
	"encoding/json"
	"testing"
)

func TestMatchEvent(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		matches       bool
	}{
		{"*", "contact.created", true},
		{"contact.created", "contact.created", true},
		{"contact.*", "contact.created", true},
		{"browser.*", "browser.takeover.expired", true},
		{"browser.takeover.*", "browser.takeover.expired", true},
		{"contact.created", "contact.updated", false},
		{"contact*", "contact.created", false},
		{"contact.c*", "contact.created", false},
		{"*.created", "contact.created", false},
		{"workflow.*", "contact.created", false},
		{"contact.created.*", "contact.created", false},
		{"", "contact.created", false},
		{".*", "contact.created", false},
	} {
		if got := MatchEvent(c.pattern, c.name); got != c.matches {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
	for pattern, valid := range map[string]bool{
		"*":             true,
		"gateway.event": true,
		"schedule.*":    true,
		"schedule":      false,
		"weather.*":     false,
		"":              false,
		"webhook.test":  false,
	} {
		if ValidEventPattern(pattern) != valid {
			t.Errorf("%q is valid: %v", pattern, !valid)
		}
	}
}

func TestGatewayConfig(t *testing.T) {
	g, config := NewGateway("WhatsApp")
	if g.Type != GatewayWhatsApp || config.Provider != ProviderTwilio {
		t.Errorf("whatsapp is %+v %+v", g, config)
	}
	var ch GatewayConfigChange
	if err := json.Unmarshal(
		[]byte(`{"provider":"smtp","smtpPort":25,"botToken":"x","apiKey":null,"headers":{"X-A":"b"}}`),
		&ch,
	); err != nil {
		t.Fatal(err)
	}
	config = GatewayConfig{APIKey: "k", FromName: "kept"}
	ch.Apply(&config)
	config.ClearOtherTypes(GatewayEmail)
	if config.Provider != ProviderSMTP ||
		config.APIKey != "" ||
		config.BotToken != "" ||
		config.Headers != nil ||
		config.SMTPPort != 25 ||
		config.FromName != "kept" {
		t.Errorf("got %+v", config)
	}
	if err := config.Validate(GatewayEmail); err != nil {
		t.Error(err)
	}
}
