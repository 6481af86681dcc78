package store

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/signature"
)

// TestClearCredentials writes nodes by SQL: those with credentials that the API would
// seal are refused, and all others are accepted. The rule is both in the schema and in
// agent/nodesecret.go; the test compares them.
func TestClearCredentials(t *testing.T) {
	db := openFolder(t).Default()
	w, err := db.CreateWorkflow(t.Context(), agent.Workflow{
		Name:   "w",
		Status: agent.WorkflowDraft,
		Nodes:  []agent.RawNode{},
		Edges:  []agent.RawEdge{},
	})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, node := range []string{
		`{"id":"a","type":"http-request","data":{"auth":{"type":"bearer","token":"t0ken"}}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"type":"bearer","token":"{{trigger.token}}"}}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"type":"bearer","token":"********"}}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"type":"bearer","token":""}}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"type":"basic","username":"ada","password":"p"}}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"type":"header","name":"X-A","value":"v"}}}`,
		`{"id":"a","type":"http-request","data":{"auth":"token"}}`,
		`{"id":"a","type":"http-request","data":{"auth":{"token":5}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"Accept":"text/plain"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"X-API-Key":"k"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"cookie":"k"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"Idempotency-Key":"k"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"Proxy-Authorization":"Basic {{x}}"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":[1]}}`,
		`{"id":"a","type":"http-request"}`,
		`{"id":"a","type":"trigger","data":{"event":"webhook","auth":{"type":"hmac","secret":"s"}}}`,
		`{"id":"a","type":"trigger","data":{"event":"webhook","auth":{"type":"none"}}}`,
		`{"id":"a","type":"set","data":{"values":{"token":"x"},"auth":{"token":"x"}}}`,
		`{"id":"a","type":"http\u002drequest","data":{"headers":{"X-API-\u004bey":"k"}}}`,
		`{"id":"a","type":"set","type":"http-request","data":{},"data":{"auth":{},` +
			`"auth":{"token":"","token":"t0ken"}}}`,
		`{"id":"a","type":"set","data":{"auth":{"token":"x"}},"note":"http-request"}`,
	} {
		_, secrets, err := agent.TakeNodeSecrets([]agent.RawNode{agent.RawNode(node)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.SQL(
			t.Context(),
			"UPDATE workflows SET nodes = json_array(json(?)) WHERE id = ?",
			Params{List: []any{node, w.ID}},
			Access{Write: true},
		)
		clear := len(secrets.Given) > 0
		if (err != nil) != clear || clear && !strings.Contains(err.Error(), "API, which seals them") {
			t.Errorf("%s: sealed by the API: %v, by SQL: %v", node, clear, err)
		}
		_, err = db.SQL(
			t.Context(),
			"INSERT INTO workflows(name, nodes) VALUES ('x', json_array(json(?)))",
			Params{List: []any{node}},
			Access{Write: true},
		)
		if (err != nil) != clear {
			t.Errorf("%s: sealed by the API: %v, inserted by SQL: %v", node, clear, err)
		}
		if clear {
			refused++
		}
	}
	if refused != 8 {
		t.Errorf("%d refused", refused)
	}
}

// TestClearCredentialsOfTools is the same for the configs of tools.
func TestClearCredentialsOfTools(t *testing.T) {
	db := openFolder(t).Default()
	write := Access{Write: true}
	if _, err := db.SQL(
		t.Context(),
		"INSERT INTO tools(id, name, type, config) VALUES ('tool', 'tool', 'api', '{}')",
		Params{},
		write,
	); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, fields := range []string{
		`"auth":{"type":"bearer","token":"t0ken"}`,
		`"auth":{"type":"bearer","token":"{{token}}"}`,
		`"auth":{"type":"bearer","token":"********"}`,
		`"auth":{"type":"basic","username":"ada","password":"p"}`,
		`"auth":{"type":"basic","username":"ada","password":""}`,
		`"auth":{"type":"header","name":"X-A","value":"v"}`,
		`"auth":null,"headers":null`,
		`"headers":{"Accept":"text/plain"}`,
		`"headers":{"X-API-Key":"k"}`,
		`"headers":{"X-A":"a","COOKIE":"k"}`,
		`"headers":{"Idempotency-Key":"k"}`,
		`"a\u0075th":{"type":"bearer","t\u006fken":"t0ken"}`,
		`"auth":{},"auth":{"type":"bearer","token":"","token":"t0ken"}`,
		`"query":{"auth":{"token":"x"}},"body":{"headers":{"Cookie":"x"}}`,
	} {
		config := `{"url":"https://example.com",` + fields + `}`
		tool := agent.Tool{Name: "tool", Type: agent.ToolAPI, Config: json.RawMessage(config)}
		c, err := tool.Validate()
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		given, _ := c.TakeSecrets()
		clear := len(given) > 0
		for _, statement := range []string{
			"UPDATE tools SET config = ?",
			"INSERT INTO tools(name, type, config) VALUES (hex(randomblob(8)), 'api', ?)",
			"INSERT OR REPLACE INTO tools(id, name, type, config) VALUES ('tool', 'tool', 'function', ?)",
		} {
			_, err := db.SQL(t.Context(), statement, Params{List: []any{config}}, write)
			if (err != nil) != clear ||
				clear &&
					(agent.ErrorCode(err) != agent.CodeExecution ||
						!strings.Contains(err.Error(), "API, which seals them")) {
				t.Errorf("%s of %s: sealed by the API: %v, by SQL: %v", statement, config, clear, err)
			}
		}
		if clear {
			refused++
		}
	}
	if refused != 9 {
		t.Errorf("%d refused", refused)
	}
}

// TestHookOfAWorkflow checks that a hook's trigger is the first in the graph, only while
// the workflow is active, and that malformed nodes written by SQL do not let anybody in.
func TestHookOfAWorkflow(t *testing.T) {
	db := openFolder(t).Default()
	nodes := func(list ...string) (raw []agent.RawNode) {
		for _, node := range list {
			raw = append(raw, agent.RawNode(node))
		}
		return raw
	}
	w, err := db.CreateWorkflow(t.Context(), agent.Workflow{Name: "w", Status: agent.WorkflowActive, Nodes: nodes(
		`{"id":"m","type":"trigger","data":{"event":"manual"}}`,
		`{"id":"z","type":"trigger","data":{"event":"webhook","auth":{"type":"hmac","secret":"s3cret"}}}`,
		`{"id":"a","type":"trigger","data":{"event":"webhook"}}`,
	), Edges: []agent.RawEdge{}})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := db.IncomingWebhook(t.Context(), w.ID, "webhook"); err != nil ||
		h.NodeID != "z" ||
		h.Auth.Secret != "s3cret" {
		t.Errorf("%+v, %v", h, err)
	}
	var auths []json.RawMessage
	for _, strange := range []string{`"text"`, `[]`, `{"type":5}`, `{}`, `{"type":"magic"}`} {
		auths = append(auths, json.RawMessage(strange))
	}
	for _, auth := range auths {
		do(
			t,
			db,
			"UPDATE workflows SET nodes = json_array(json_object('id','a','type','trigger','data',"+
				"json_object('event','webhook','auth',json('"+string(auth)+"'))))",
		)
		h, err := db.IncomingWebhook(t.Context(), w.ID, "webhook")
		if err != nil ||
			h.Auth.Type == "" ||
			signature.VerifyIncoming(&h.Auth, func(string) string { return "" }, nil, agent.Now().Time) == nil {
			t.Errorf("%s lets everybody in: %+v, %v", auth, h, err)
		}
	}
	do(t, db, "UPDATE workflows SET status = 'paused'")
	if _, err := db.IncomingWebhook(t.Context(), w.ID, "webhook"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("paused: %v", err)
	}
}
