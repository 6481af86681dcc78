package chat

import (
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// TestSituation checks what the model learns about itself and the conversation.
func TestSituation(t *testing.T) {
	now := time.Date(2026, 11, 28, 23, 30, 0, 0, time.UTC)
	unnamed := agent.Agent{ID: agent.DefaultID, Name: agent.DefaultID}
	named := agent.Agent{ID: "bakery", Name: "Rosa's bakery", Description: "Answers customers."}
	for name, test := range map[string]struct {
		agent    agent.Agent
		settings store.Settings
		request  Request
		want     string
	}{
		"unnamed": {
			agent: unnamed,
			want:  "You are a helpful assistant.\n\nIt is Saturday, 28 November 2026, 23:30, time zone UTC.",
		},
		"zone": {
			agent:    named,
			settings: store.Settings{Settings: agent.Settings{Timezone: "Europe/Berlin"}},
			want: "You are Rosa's bakery, a helpful assistant. Answers customers.\n\n" +
				"It is Sunday, 29 November 2026, 00:30, time zone Europe/Berlin.",
		},
		"channel": {
			agent:    named,
			settings: store.Settings{Settings: agent.Settings{SystemPrompt: "Be brief."}},
			request:  Request{Channel: agent.GatewayEmail},
			want: "Be brief.\n\nIt is Saturday, 28 November 2026, 23:30, time zone UTC. " +
				"The conversation takes place by e-mail.",
		},
		"own prompt": {
			agent:    unnamed,
			settings: store.Settings{Settings: agent.Settings{SystemPrompt: "Be brief."}},
			request:  Request{System: "Rhyme."},
			want:     "Rhyme.\n\nIt is Saturday, 28 November 2026, 23:30, time zone UTC.",
		},
	} {
		if got := systemPrompt(test.agent, test.settings, test.request, now, nil); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, gateway := range agent.GatewayTypes {
		if name := gateway.PlatformName(); name == "" || strings.Contains(name, "_") {
			t.Errorf("the platform of %s is called %q", gateway, name)
		}
	}
}
