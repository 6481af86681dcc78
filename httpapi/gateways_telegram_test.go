package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/httpapi/apitest"
)

// TestConversationOnTelegram checks that a user writes to a bot, the agent searches its
// knowledge, calls a tool and answers; then a person takes over and returns the
// conversation to the agent.
func TestConversationOnTelegram(t *testing.T) {
	bot := apitest.NewTelegramBot(t)
	var mu sync.Mutex
	var sent []string
	c, _ := newClientWithModel(t, func(n int, asked map[string]any) string {
		raw, _ := json.Marshal(asked["messages"])
		mu.Lock()
		sent = append(sent, string(raw))
		mu.Unlock()
		switch n {
		case 1:
			return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",` +
				`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"order_status",` +
				`"arguments":"{\"order\":17}"}}]}}]}`
		case 2:
			return "Order 17 is on its way. You may send it back within thirty days."
		case 3: // the search queries for a message that continues a conversation
			return `{"queries":["order 17"]}`
		}
		return fmt.Sprintf("Answer %d.", n)
	})
	const agent = "/api/agents/default"
	made := c.upload(
		t,
		agent+"/sources",
		"policy.md",
		"# Returns\n\nGoods that you do not like can be sent back within thirty days. We refund the price.\n",
		nil,
	)
	c.waitIndexed(t, agent+"/sources/"+fmt.Sprint(made.json["id"]))
	c.must(
		t, 201, "POST", agent+"/tools",
		`{"name":"order_status","description":"Where an order is.","type":"function",`+
			`"config":{"parameters":{"type":"object","properties":{"order":{"type":"integer"}},`+
			`"required":["order"]},"code":"return {order: args.order, state: 'on its way'}"}}`,
	)
	c.must(t, 200, "PUT", agent+"/settings", `{"auto_reply":true}`)
	g := c.must(
		t, 201, "POST", agent+"/gateways",
		`{"type":"telegram","name":"Bot","config":{"botToken":"77:secret-of-the-bot","apiBaseUrl":"`+bot.URL+`"}}`,
	)
	at1 := agent + "/gateways/" + g["id"].(string)
	if v := c.must(t, 200, "POST", at1+"/verify", ""); v["success"] != true ||
		at(v, "info.id") != json.Number("77") ||
		at(v, "info.firstName") != "Shop" {
		t.Fatalf("verified %v", v)
	}
	if r := c.must(t, 200, "POST", at1+"/webhook/register", ""); r["success"] != true ||
		!strings.Contains(fmt.Sprint(r["instructions"]), "polling") {
		t.Errorf("registered %v", r)
	}
	bot.Receive("Where is order 17, and can I send it back?")
	if got := bot.Answer(t); got != "Order 17 is on its way. You may send it back within thirty days." {
		t.Fatalf("the bot sent %q", got)
	}
	mu.Lock()
	if !strings.Contains(sent[0], "thirty days") || !strings.Contains(sent[1], "on its way") {
		t.Errorf("the model received %v", sent)
	}
	mu.Unlock()
	list := c.must(t, 200, "GET", agent+"/conversations?gateway_id="+g["id"].(string), "")
	conversation := agent + "/conversations/" + at(list, "conversations.0.id").(string)
	if at(list, "conversations.0.external_thread_id") != "42" || at(list, "meta.total") != json.Number("1") {
		t.Errorf("conversations %v", list)
	}
	ada := c.must(t, 200, "GET", agent+"/contacts/"+at(list, "conversations.0.contact_id").(string), "")
	if ada["name"] != "Ada" || ada["external_id"] != "telegram:42" || ada["chatbot_a"] != "@ada" {
		t.Errorf("the contact %v", ada)
	}
	delivered := func() []any {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			messages := c.must(t, 200, "GET", conversation, "")["messages"].([]any)
			last := messages[len(messages)-1]
			if at(last, "metadata.delivery.status") == "sent" || time.Now().After(deadline) {
				return messages
			}
		}
	}
	messages := delivered()
	if len(messages) != 2 ||
		at(messages[1], "metadata.in_reply_to") != at(messages[0], "id") ||
		at(messages[1], "metadata.sources.0.n") == nil ||
		at(messages[1], "metadata.tool_calls.0.name") != "order_status" ||
		at(messages[1], "metadata.author") != nil ||
		at(messages[0], "metadata.external_id") != "77/42/1" {
		t.Errorf("stored %v", messages)
	}

	c.must(
		t, 201, "POST", conversation+"/messages",
		`{"role":"assistant","content":"A person here: it arrives today.","send":true}`,
	)
	if got := bot.Answer(t); got != "A person here: it arrives today." {
		t.Errorf("the bot sent %q", got)
	}
	if v := c.must(t, 200, "GET", conversation, ""); v["muted"] != true {
		t.Errorf("after a person's answer muted is %v", v["muted"])
	}
	bot.Receive("Thank you, person.")
	for deadline := time.Now().Add(20 * time.Second); ; {
		if len(c.must(t, 200, "GET", conversation, "")["messages"].([]any)) == 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the message did not arrive")
		}
	}
	c.must(t, 200, "PUT", conversation, `{"muted":false}`)
	bot.Receive("And now?")
	if got := bot.Answer(t); got != "Answer 4." {
		t.Errorf("the bot sent %q", got)
	}
	mu.Lock()
	if last := sent[len(sent)-1]; !strings.Contains(last, "A person here") ||
		!strings.Contains(last, "Thank you, person.") ||
		strings.Count(last, "And now?") != 1 {
		t.Errorf("the model received %s", last)
	}
	mu.Unlock()
	after := c.must(t, 200, "GET", at1, "")
	if after["event_count"] != json.Number("3") || after["last_error"] != "" {
		t.Errorf("the gateway %v", after)
	}
	var roles []string
	for _, m := range delivered() {
		roles = append(roles, fmt.Sprint(at(m, "role")))
	}
	if !slices.Equal(roles, []string{"user", "assistant", "assistant", "user", "user", "assistant"}) {
		t.Errorf("roles %v", roles)
	}
}
