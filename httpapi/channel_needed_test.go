package httpapi

import (
	"regexp"
	"testing"

	"satchel/flow/graph"
)

// wireNames are names of the API that people do not know.
var wireNames = regexp.MustCompile(`chatbot_[ab]|team_chat|community_chat|email_provider|sms_provider`)

// TestMessageNodeNeedsChannel: a node that sends through a platform of which the agent has
// no channel is a problem of the node, and the workflow cannot be activated.
func TestMessageNodeNeedsChannel(t *testing.T) {
	c := newOwnClient(t)
	for _, kind := range graph.Types {
		if kind.Platform() == "" {
			continue
		}
		channel := c.must(t, 201, "POST", "/api/agents", `{"name":"`+kind.Label+`"}`)
		base := "/api/agents/" + channel["id"].(string)
		nodes := `"nodes":[{"id":"t","type":"trigger"},{"id":"m","type":"` + kind.Name + `","data":` + kind.Example +
			`}],"edges":[{"source":"t","target":"m"}]`
		found := c.must(t, 200, "POST", base+"/workflows/validate", `{`+nodes+`}`)
		if at(found, "issues.0.node_id") != "m" ||
			at(found, "issues.0.field") != "nodes[1].data.gateway_id" ||
			at(found, "issues.0.severity") != "error" {
			t.Errorf("%s: %v", kind.Label, found)
		}
		id := c.must(t, 201, "POST", base+"/workflows", `{"name":"Flow",`+nodes+`}`)["id"].(string)
		refused := c.must(t, 400, "PUT", base+"/workflows/"+id, `{"status":"active"}`)
		said := at(refused, "error.message").(string)
		if wireNames.MatchString(said) || at(refused, "error.details.node_id") != "m" {
			t.Errorf("%s: %v", kind.Label, refused)
		}
		c.must(t, 201, "POST", base+"/gateways", `{"type":"`+string(kind.Platform())+`","name":"Channel","config":{}}`)
		c.must(t, 200, "PUT", base+"/workflows/"+id, `{"status":"active"}`)
	}
	if said := at(
		c.must(t, 400, "POST", "/api/agents/default/gateways", `{"name":"x","type":"fax"}`),
		"error.message",
	).(string); wireNames.MatchString(said) {
		t.Error(said)
	}
}
