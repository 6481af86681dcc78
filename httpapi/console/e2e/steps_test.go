package e2e

import (
	"os"
	"testing"

	"satchel/httpapi/apitest"
)

// step returns an expression for the row of a first step on Home.
func step(title string) string {
	return `[...document.querySelectorAll(".checklist li")].find((li) => li.querySelector(".grow ` +
		`> span").textContent === ` +
		quoted(title) + `)`
}

// TestConsoleFirstSteps completes the short first steps of a new agent without leaving
// Home: a document or a site, and the model.
func TestConsoleFirstSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	model := apitest.NewFixedModel(t, "Yes, within two days [1].")
	source := axe(t)
	for i, look := range axeLooks {
		agent := []string{"wide", "narrow"}[i]
		ts.must(t, 201, "POST", "/api/agents", `{"name":`+quoted(agent)+`}`)
		p := ts.openConsole(t, look.width)
		p.eval(source)
		p.base = "#/agents/" + agent + "/"
		p.open("home", `document.querySelector(".checklist .next button")`)
		home := p.eval(`location.hash`)
		w := p.begin(13, "First steps on Home: knowledge, the model", 10)
		p.clickOn(step("Add knowledge") + `.querySelector("button")`)
		p.waitFor(`document.querySelector(".step-form form")`)
		w.aside(func() {
			p.click("Add site")
			p.waitFor(hasFieldError("Address of a site", "Enter the address of a site."))
			p.fill("Address of a site", "https://")
			p.click("Add site")
			p.waitFor(`document.querySelector(".step-form input[aria-invalid=true]")`)
			p.show(agent, "knowledge")
		})
		p.eval(`document.querySelector(".step-form button").focus()`) // as a click does
		if i == 0 {
			p.click("Use an example")
		} else {
			p.fill("Address of a site", ts.site)
			p.click("Add site")
		}
		p.waitFor(step("Add knowledge") +
			`.className === "done" && !document.querySelector(".step-form") && document.activeElement === ` +
			step("Choose a model") + `.querySelector("button")`)
		p.pressKeys("Enter")
		p.waitFor(step("Choose a model") + `.querySelector("form")`)
		p.fill("Provider", "openai-compatible", "Address", model, "API key, if required", "k")
		p.waitFor(`[...document.querySelectorAll("#main datalist option")].some((o) => o.value === "large")`)
		p.fill("Model", "large")
		p.click("Test")
		p.waitFor(`document.querySelector(".step-form .test-good")?.textContent.includes("Answered in")`)
		w.aside(func() { p.show(agent, "model") })
		p.click("Save")
		p.waitFor(step("Choose a model") + `.className === "done" && ` + hasText("2 of 5 done"))
		w.aside(func() { p.show(agent, "done") })
		p.clickOn(step("Ask a question") + `.querySelector("button")`)
		p.waitFor(`document.activeElement.matches(".ask textarea")`)
		w.end(t)
		if left := p.eval(`location.hash`); left != home {
			t.Errorf("the steps led to %v", left)
		}
		if s := ts.must(t, 200, "GET", "/api/agents/"+agent+"/settings", ""); s["llm_model"] != "large" {
			t.Errorf("%s: the settings have the model %v", agent, s["llm_model"])
		}
	}
}

// show checks the page in light and dark, and takes pictures of it if a folder is given.
func (p *consolePage) show(name, state string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		p.colorScheme(scheme)
		p.checkPage(state)
		p.checkAccessible(name + ", " + state + ", " + scheme)
		if folder := os.Getenv("SATCHEL_SCREENSHOTS"); folder != "" {
			p.picture(folder, "state-"+name+"-"+state+"-"+scheme)
		}
	}
}
