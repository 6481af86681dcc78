package e2e

import "testing"

// TestConsoleSendsAnAnswer answers an approval whose comment is the answer, on Home, at its
// execution and in a test: the field is open, and nothing empty can be sent.
func TestConsoleSendsAnAnswer(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"ask","type":"approval","data":{"title":"Answer Ada",`+
			`"message":"When do you open?","comment_required":true}}]`,
		`[{"source":"start","target":"ask"}]`,
		`{"concurrency":10}`,
	)
	button := `[...document.querySelectorAll(".decision button")].find((b) => b.textContent === "Send")`
	for _, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.eval(axe(t))
		for _, way := range []string{"home", "execution", "test"} {
			run := func() string {
				return ts.must(
					t, 200, "POST", flowBase+"/execute",
					`{"workflow_id":"`+id+`","input":{}}`,
				)["execution_id"].(string)
			}
			switch way {
			case "home":
				run()
				p.waitFor(button)
			case "execution":
				p.open("workflows/executions/"+run(), button)
			case "test":
				if look.width < 500 {
					continue // the canvas is not edited on a phone
				}
				p.open("workflows/"+id+"?node=ask", `document.querySelector("[data-field=message]")`)
				p.pressKeys("Escape", "Control+Enter")
				p.waitFor(button)
			}
			p.waitFor(button + `.disabled && document.querySelector(".decision textarea").checkVisibility() && ` +
				`![...document.querySelectorAll("button")].some((b) => b.textContent === "Approve")`)
			p.show("answer", way)
			p.fill("Answer", "   ")
			p.waitFor(button + `.disabled`)
			p.fill("Answer", "At nine.")
			p.clickOn(`!` + button + `.disabled && ` + button)
			p.waitFor(`!document.querySelector(".decision")`)
		}
	}
}
