package gateways

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestTypes: each type of gateway has a platform, can be stored, is accepted by the
// API, and has a name and a form in the console.
func TestTypes(t *testing.T) {
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	source := func(name string) string {
		text, err := os.ReadFile("../httpapi/console/src/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	request := regexp.MustCompile(`type CreateGatewayRequest = .*`).FindString(source("data/types.ts"))
	names := regexp.MustCompile(`(?s)platformNames.*?};`).FindString(source("ui/text.tsx"))
	forms := source("pages/channels/platforms.ts")
	for _, kind := range agent.GatewayTypes {
		name := string(kind)
		if platformOf(kind, agent.GatewayConfig{}) == nil {
			t.Errorf("%s: platformOf returns nil", name)
		}
		if _, err := folder.Default().CreateGateway(
			t.Context(),
			agent.Gateway{Type: kind, Name: name},
			agent.GatewayConfig{},
			"whsec_c2VjcmV0",
		); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(request, `"`+name+`"`) {
			t.Errorf("%s cannot be created by the API: %s", name, request)
		}
		if !strings.Contains(names, name+":") || !strings.Contains(forms, `type: "`+name+`"`) {
			t.Errorf("%s has no name in ui/text.tsx or no form in pages/channels/platforms.ts", name)
		}
	}
}
