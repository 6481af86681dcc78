package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// newDescribedAPI is an API whose description and answers have hostile texts.
func newDescribedAPI(t *testing.T) *httptest.Server {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/openapi.json" {
			_, _ = io.WriteString(w, `{"asked":`+quoted(r.URL.Query().Get("kind"))+`,"name":`+quoted(hostile)+`}`)
			return
		}
		fmt.Fprintf(w, `{"openapi":"3.1.0","info":{"title":%[1]s,"version":%[1]s},"servers":[{"url":"/"}],"security":[{"key":[]}],
			"paths":{"/pets":{"get":{"operationId":"listPets","summary":%[1]s,"description":%[1]s,"tags":[%[1]s],"parameters":[{"name":"kind","in":"query","required":true,"description":%[1]s,"schema":{"type":"string"}},{"name":"more","in":"query","schema":{"$ref":"other.json"}}]},
				"delete":{"summary":"Remove all","deprecated":true}}},
			"components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-Key"}}}}`, quoted(hostile))
	}))
	t.Cleanup(ts.Close)
	return ts
}

// walkAPIs imports an API, tries an operation, creates a tool from it and adds it to a
// workflow.
func walkAPIs(t *testing.T, ts *testServer, p *consolePage) {
	pets := newDescribedAPI(t)
	p.open("apis", hasText("No APIs yet"))
	p.checkPage("no APIs")
	p.click("Import API")
	p.waitFor(showsRedirect)
	p.fill("Name", "pets", "Description address", pets.URL+"/nothing")
	p.click("Import")
	p.waitFor(`document.querySelector("dialog .issue")`)
	p.fill("Description address", pets.URL+"/openapi.json")
	p.click("Import")
	p.waitFor(`location.hash.includes("apis/api-") && ` + hasText("Remove all") + ` && ` + hasText("X-Key"))
	p.checkPage("an API")
	api := fmt.Sprint(ts.must(t, 200, "GET", "/api/agents/default/apis/pets", "")["id"])
	p.open("apis/"+api+"/listPets", hasText("Try it"))
	p.fill("kind *", "cat & dog")
	p.click("Call it")
	p.waitFor(hasText("Answered") + ` && ` + hasText("cat & dog"))
	p.checkPage("an operation")
	p.click("Create tool")
	p.fill("Name prefix", "pets_")
	p.click("Make")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("1 tool made")`)
	tool := ts.must(t, 200, "GET", "/api/agents/default/tools?search=pets_", "")["tools"].([]any)
	p.open("tools/"+fmt.Sprint(at(tool[0], "id")), hasText("Set arguments"))
	p.fill("Set arguments", `{"kind":"cat"}`)
	p.click("Save")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("Saved")`)
	p.checkPage("a tool of an operation")
	workflow := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/workflows",
		`{"name":"Pets","nodes":[{"id":"start","type":"trigger"},{"id":"call","type":"operation","data":{"api":"`+api+
			`"}}],"edges":[{"source":"start","target":"call"}]}`,
	)
	p.open("workflows/"+fmt.Sprint(workflow["id"])+"?node=call", `document.querySelector(".operation-options button")`)
	p.clickOn(`[...document.querySelectorAll(".operation-options button")].find((b) => b.textContent.includes("GET"))`)
	p.waitFor(`document.querySelector(".operation-chosen") && [...document.querySelectorAll("#main textarea, ` +
		`#main input")].some((f) => f.ariaLabel === "kind")`)
	p.checkPage("a node of an operation")
	p.open("apis", hasText("used in 2 places"))
	p.checkPage("APIs")
}
