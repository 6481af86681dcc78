package e2e

import "testing"

// TestConsoleInbox narrows the inbox, changes several conversations at once,
// snoozes one by its key, and answers one with a canned reply by the keyboard.
func TestConsoleInbox(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	ts.must(t, 201, "POST", base+"/admins", `{"email":"grete@example.com","role":"admin"}`)
	for _, r := range []string{
		`{"shortcut":"hours","text":"From nine to five."}`,
		`{"shortcut":"sorry","text":"I am sorry."}`,
	} {
		ts.must(t, 201, "POST", base+"/replies", r)
	}
	gateway := base + "/gateways/" +
		ts.must(
			t, 201, "POST", base+"/gateways",
			`{"type":"webhook","name":"Shop","config":{"secret":"0123456789abcdef"}}`,
		)["id"].(string)
	ts.must(t, 200, "POST", gateway+"/verify", "")
	talks := map[string]string{}
	for _, name := range []string{"Ada", "Bob", "Eve"} {
		talks[name] = ts.must(
			t, 201, "POST", gateway+"/simulate",
			`{"from":"`+name+`","name":"`+name+`","text":"Hello from `+name+`"}`,
		)["conversation_id"].(string)
	}
	shown := func(names string) string {
		return `[...document.querySelectorAll(".inbox-entries a bdi:first-child")].filter((b) => ` +
			`b.classList.contains("clip")).map((b) => b.textContent).join() === ` + quoted(names)
	}
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.eval(axe(t))
		goTo := func(address, expression string) {
			p.eval(`location.hash = ` + quoted(p.base+address))
			p.waitFor(expression)
		}
		p.open("inbox", shown("Eve,Bob,Ada"))
		p.eval(`for (const name of ["Ada", "Bob"]) document.querySelector("[aria-label='Select conversation ` +
			`with " + name + "']").click()`)
		p.waitFor(hasText("2 of 3 selected"))
		p.checkAccessible("selected conversations")
		p.click("More")
		p.click("Assign to grete@example.com")
		p.waitFor(`!document.querySelector(".inbox-bulk") && document.querySelectorAll(".inbox-entries ` +
			`li")[2].textContent.includes("grete@example.com")`)
		p.set("Show", "unassigned")
		p.waitFor(shown("Eve") + ` && location.hash.includes("show=unassigned")`)
		p.checkPage("unassigned conversations")
		p.set("Show", "")
		p.waitFor(shown("Eve,Bob,Ada"))
		goTo(
			"inbox/"+talks["Bob"],
			`location.hash.includes(`+quoted(talks["Bob"])+`) && document.querySelector(".inbox-composer")`,
		)
		p.eval(`document.activeElement.blur()`)
		p.pressKeys("s")
		p.waitFor(`location.hash.includes(` + quoted(talks["Ada"]) + `) && ` + shown("Eve,Ada"))
		p.waitForCount("/conversations?status=snoozed", "conversations", 1) // the page does not wait for it
		goTo("inbox?show=snoozed", shown("Bob"))
		ts.must(t, 200, "PUT", base+"/conversations/"+talks["Bob"], `{"status":"open","assignee":null}`)
		p.waitFor(shown(""))
		ts.must(t, 200, "PUT", base+"/conversations/"+talks["Ada"], `{"assignee":null}`)
		goTo("inbox/"+talks["Ada"], `document.querySelector(".inbox-composer")`)
		p.eval(`document.activeElement.blur()`)
		p.pressKeys("r")
		p.waitFor(`document.activeElement.matches(".inbox-composer textarea")`)
		p.typeText("Hi! !")
		p.waitFor(`document.querySelectorAll(".inbox-canned li").length === 3`)
		p.checkPage("canned replies")
		p.checkAccessible("canned replies")
		p.pressKeys("ArrowDown", "Enter")
		p.waitFor(`document.querySelector(".inbox-composer textarea").value === "Hi! I am sorry." && ` +
			`!document.querySelector(".inbox-canned")`)
		p.eval(`{ const t = document.querySelector(".inbox-composer textarea"); t.value = ""; t.dispatchEvent(new ` +
			`Event("input", { bubbles: true })); }`)
		p.waitFor(`document.querySelector(".inbox-composer [type=submit]").disabled`)
	}
}
