package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSecretsAndSQL stores a secret with every kind of record that has one, and looks for
// it in everything that SQL can read and in a backup. Then it tries to write one in clear
// by SQL: each statement is refused with a 4xx that says why, and changes nothing.
func TestSecretsAndSQL(t *testing.T) {
	c := newTestClient(t)
	base := "/api/agents/default"
	secret := "whsec_" + strings.Repeat("c2VjcmV0", 4)
	made := map[string]string{}
	for kind, body := range map[string]string{
		"tools": `{"name":"t","type":"api","config":{"url":"https://api.example.com","auth":{"type":"basic",` +
			`"username":"u","password":"SECRET"},"headers":{"X-Api-Key":"SECRET"}}}`,
		"sources": `{"name":"s","type":"api","config":{"url":"http://127.0.0.1:1/","auth":{"type":"bearer",` +
			`"token":"SECRET"},"headers":{"Cookie":"SECRET"}}}`,
		"mcp":      `{"name":"m","url":"http://127.0.0.1:1/mcp","auth":{"type":"bearer","token":"SECRET"}}`,
		"gateways": `{"name":"g","type":"webhook","config":{"url":"https://example.com","secret":"SECRET"}}`,
		"webhooks": `{"url":"https://example.com/hook","events":["*"],"secret":"SECRET"}`,
		"schedules": `{"name":"c","type":"delayed","delay_seconds":1000,"callback_type":"webhook",` +
			`"callback_id":"https://example.com/hook","secret":"SECRET"}`,
		"workflows": `{"name":"w","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook",` +
			`"auth":{"type":"hmac","secret":"SECRET"}}},{"id":"h","type":"http-request",` +
			`"data":{"url":"https://example.com","headers":{"Authorization":"SECRET"}}}]}`,
	} {
		made[kind] = fmt.Sprint(c.must(t, 201, "POST", base+"/"+kind, strings.ReplaceAll(body, "SECRET", secret))["id"])
	}
	c.must(t, 200, "PUT", base+"/settings", `{"llm_api_key":"`+secret+`"}`)
	c.mustNotContain(t, secret)
	clear := "sk-cl3ar"
	for statement, status := range map[string]int{
		`UPDATE tools SET config = '{"url":"https://api.example.com","auth":{"type":"bearer","token":"CLEAR"}}'`: 500,
		`UPDATE tools SET config = json_set(config, '$.auth.password', 'CLEAR')`:                                 500,
		`UPDATE tools SET config = json_set(config, '$.headers', json('{"X-Auth-Token":"CLEAR"}'))`:              500,
		`INSERT INTO tools(name, type, config) VALUES ('u', 'api', '{"url":"https://api.example.com",` +
			`"auth":{"type":"bearer","token":"CLEAR"}}')`: 500,
		`UPDATE sources SET config = json_set(config, '$.auth.token', 'CLEAR')`:                    403,
		`UPDATE workflows SET nodes = json_set(nodes, '$[0].data.auth.secret', 'CLEAR')`:           500,
		`UPDATE workflows SET nodes = json_set(nodes, '$[1].data.headers.Authorization', 'CLEAR')`: 500,
		`UPDATE mcp_servers SET auth = 'CLEAR'`:                                                    400,
		`UPDATE gateways SET config = 'CLEAR'`:                                                     400,
		`UPDATE webhooks SET secret = 'CLEAR'`:                                                     400,
		`UPDATE schedules SET secret = 'CLEAR'`:                                                    400,
		`INSERT INTO _secrets VALUES ('settings', 'llm_api_key', '', 'CLEAR', '')`:                 403,
		`UPDATE _triggers SET auth = '{"type":"header","name":"a","value":"CLEAR"}'`:               403,
	} {
		body, _ := json.Marshal(map[string]string{"query": strings.ReplaceAll(statement, "CLEAR", clear)})
		a := c.send(t, "POST", base+"/sql/execute", string(body))
		if a.StatusCode != status || strings.Contains(a.text, clear) {
			t.Errorf("%s: %d %s", statement, a.StatusCode, a.text)
		}
		if strings.Contains(statement, "json_set(config, '$.auth.password") &&
			!strings.Contains(a.text, "only be written by the API") {
			t.Errorf("the error does not say why: %s", a.text)
		}
	}
	c.mustNotContain(t, clear)
	// A mask keeps what is stored, and values that are not secret may be written.
	c.sql(t, `UPDATE tools SET config = json_set(config, '$.url', 'https://api.example.com/v2')`)
	if tool := c.must(
		t,
		200,
		"GET",
		base+"/tools/"+made["tools"],
		"",
	); at(tool, "config.url") != "https://api.example.com/v2" ||
		at(tool, "config.auth.password") != "********" {
		t.Errorf("%v", tool)
	}
	// Each sealed field has only one spelling.
	a := c.send(
		t,
		"PUT",
		base+"/tools/"+made["tools"],
		`{"config":{"url":"https://api.example.com","Auth":{"type":"bearer","token":"`+clear+`"}}}`,
	)
	if a.StatusCode != 400 || at(a.json, "error.details.field") != "config.Auth" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}

func (c *testClient) sql(t *testing.T, query string) map[string]any {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	return c.must(t, 200, "POST", "/api/agents/default/sql/execute", string(body))
}

// mustNotContain looks for a text in the tables that SQL can read and in a backup.
func (c *testClient) mustNotContain(t *testing.T, secret string) {
	t.Helper()
	for _, table := range c.must(t, 200, "GET", "/api/agents/default/sql/schema", "")["tables"].([]any) {
		name := fmt.Sprint(at(table, "name"))
		if rows := fmt.Sprint(c.sql(t, "SELECT * FROM "+name)); strings.Contains(rows, secret) {
			t.Errorf("SQL shows a secret in %s: %s", name, rows)
		}
	}
	if dump := c.send(t, "POST", "/api/agents/default/backup", "").text; len(dump) < 4096 ||
		strings.Contains(dump, secret) {
		t.Errorf("a backup of %d bytes has a secret in clear", len(dump))
	}
}
