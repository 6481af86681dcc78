package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// checkAPIs imports this server's own description and calls this server with it:
// directly, with a tool, with the tools of a model, and in a workflow.
func (w *contractClient) checkAPIs(t *testing.T, at string) {
	t.Helper()
	id := strings.TrimPrefix(at, "/api/agents/")
	body := `{"name":"self","url":"` + w.url + `/api/openapi.json","server":"` + w.url + `/api/"}`
	one := at + "/apis/" + w.create(t, at+"/apis", body)
	w.request(t, 409, "POST", at+"/apis", body)
	w.request(t, 400, "POST", at+"/apis", `{"name":"other","document":"hello"}`)
	w.request(t, 200, "GET", at+"/apis", "")
	made := w.request(t, 200, "GET", one, "").json
	if made["server_url"] != w.url+"/api" ||
		len(fmt.Sprint(made["operations"])) != 3 ||
		made["format"] != "openapi-3.1" ||
		len(made["warnings"].([]any)) != 0 {
		t.Errorf(
			"%v operations of %v in %v: %v",
			made["operations"],
			made["server_url"],
			made["format"],
			made["warnings"],
		)
	}
	found := w.request(
		t,
		200,
		"GET",
		one+"/operations?search=contact&tag=Contacts&limit=200",
		"",
	).json["operations"].([]any)
	if len(found) < 5 {
		t.Errorf("found %d operations of contacts", len(found))
	}
	w.request(t, 404, "GET", one+"/operations/none", "")
	w.request(t, 200, "GET", one+"/operations/createContact", "")
	if found := w.request(
		t,
		200,
		"GET",
		one+"/operations?search=list+contact",
		"",
	).json["operations"].([]any); len(found) < 2 {
		t.Errorf("%d operations have both words", len(found))
	}
	added := w.request(
		t,
		200,
		"POST",
		one+"/operations/createContact/execute",
		`{"arguments":{"id":"`+id+`","body":{"name":"Ada & Co. 100%","email":"ada@self.test","tags":["a","b c"]}}}`,
	)
	if added.json["success"] != true {
		t.Fatal(added.text)
	}
	w.request(t, 400, "POST", one+"/operations/createContact/execute", `{"arguments":{"body":{}}}`)
	tools := w.request(
		t, 200, "POST", one+"/tools",
		`{"operations":["listContacts"],"prefix":"self_"}`,
	).json["tools"].([]any)
	w.request(t, 409, "POST", one+"/tools", `{"operations":["getContact","listContacts"],"prefix":"self_"}`)
	if list := w.request(t, 200, "GET", at+"/tools?search=self_", "").json["tools"].([]any); len(list) != 1 {
		t.Errorf("%d tools after a conflict", len(list))
	}
	tool := at + "/tools/" + tools[0].(map[string]any)["id"].(string)
	w.request(
		t, 200, "PUT", tool,
		`{"config":{"api_id":"self","operation":"listContacts","defaults":{"id":"`+id+
			`"},"response_path":"contacts[0].name"}}`,
	)
	if a := w.request(
		t, 200, "POST", tool+"/execute",
		`{"arguments":{"search":"ada@self"}}`,
	); a.json["result"] != "Ada & Co. 100%" {
		t.Errorf("%s", a.text)
	}
	set := at + "/tools/" +
		w.create(
			t,
			at+"/tools",
			`{"name":"satchel","type":"api-set","config":{"api_id":"self","allow":{"methods":["GET"]}}}`,
		)
	if a := w.request(
		t, 200, "POST", set+"/execute",
		`{"arguments":{"query":"list contacts"}}`,
	); !strings.Contains(a.text, `"listContacts"`) ||
		strings.Contains(a.text, "createContact") {
		t.Errorf("%s", a.text)
	}
	if a := w.request(
		t, 200, "POST", set+"/execute",
		`{"arguments":{"operation":"getVersion"}}`,
	); a.json["success"] != true {
		t.Errorf("%s", a.text)
	}
	w.request(t, 400, "POST", set+"/execute", `{"arguments":{"operation":"createContact","arguments":{"id":"x"}}}`)
	if a := w.request(t, 200, "PUT", one, `{}`); a.json["confirm"] != "" || len(a.json["changed"].([]any)) != 0 {
		t.Errorf("refreshed: %s", a.text)
	}
	w.request(t, 409, "DELETE", one, "")
	w.request(t, 204, "DELETE", tool, "")
	w.request(t, 204, "DELETE", set, "")
	w.request(t, 204, "DELETE", one, "")
}
