package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"satchel/httpapi/apitest"
)

// drop drops files on an element of the page.
func (p *consolePage) drop(on string, files map[string]string) {
	p.t.Helper()
	p.walk.clicked()
	p.waitFor(`document.querySelector(` + quoted(on) + `)`)
	raw, _ := json.Marshal(files)
	p.eval(`(() => {
		const data = new DataTransfer();
		for (const [name, text] of Object.entries(` + string(raw) + `)) data.items.add(new File([text], name));
		document.querySelector(` + quoted(on) + `).dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
	})()`)
}

// askAgent sends a message in the page's composer.
func (p *consolePage) askAgent(text string) {
	p.t.Helper()
	p.waitFor(`document.querySelector("#main .composer textarea")`)
	p.eval(`(() => { const field = document.querySelector("#main .composer textarea"); field.value = ` + quoted(text) +
		`; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	p.waitFor(`document.querySelector("#main .composer [type=submit]:not(:disabled)")`)
	p.eval(`void document.querySelector("#main .composer").requestSubmit()`)
	p.walk.clicked() // focus the field; Enter sends
	p.walk.pressed()
}

// TestConsoleAsk drops a document on Home and asks a question: without a model it gets
// passages; with one, an answer whose citation opens the passage in its source.
func TestConsoleAsk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	address := apitest.NewFixedModel(t, "Yes, within two days [1]. "+hostile+" [9]")
	for i, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		if i == 0 {
			p.waitFor(`document.activeElement.matches(".composer textarea")`)
			w := p.begin(2, "Drop a PDF, ask without a model, find the link to it", 6)
			p.drop(".composer", map[string]string{
				"handbook.pdf": pdf(
					"Returns",
					"You may return bread within two days with the receipt.",
					"We open at seven.",
				),
			})
			p.waitFor(`document.querySelector(".toasts").textContent.includes("handbook.pdf is uploaded")`)
			w.aside(func() {
				p.open("knowledge", `document.querySelector(".source-row .badge").textContent === "ready"`)
				p.open("home", hasText("What can"))
			})
			p.askAgent("May I return bread?")
			p.waitFor(`location.hash.includes("/chat/conversation-") && ` +
				`document.querySelector(".passage")?.textContent.includes("within two days") && ` +
				hasText("No language model is set up"))
			p.checkPage("passages")
			w.aside(func() { // Back leads to the page where the question was asked
				p.eval(`history.back()`)
				p.waitFor(`document.querySelector("#main h1")?.textContent === "Home"`)
				p.eval(`history.forward()`)
				p.waitFor(`document.querySelector(".passage")`)
			})
			p.clickOn(`document.querySelector("#main a[href$='/settings']")`)
			p.waitFor(hasText("Language model"))
			w.end(t)
			w = p.begin(3, "Provider, key, model from the list, Test", 7)
			p.fill("Provider", "openai-compatible", "Address", address)
			w.aside(func() {
				p.fill("API key, if required", "wrong", "Model", "small")
				p.click("Test")
				p.waitFor(`document.querySelector("#main .issue")?.textContent.length > 5`)
			})
			w.aside(func() { // the error of the key is shown at its field, without a click
				p.waitFor(`document.querySelector("#main ` +
					`input[type=password][aria-invalid=true]")?.closest(".field").querySelector(".issue").textConten` +
					`t === "The provider rejects this key."`)
				p.fill("Model", "")
				p.click("Test")
				p.waitFor(`document.querySelector("#main input[list][aria-invalid=true]")`)
			})
			p.fill("API key, if required", "k")
			p.waitFor(`[...document.querySelectorAll("#main datalist option")].some((o) => o.value === "large")`)
			p.fill("Model", "large")
			p.click("Test")
			p.waitFor(`document.querySelector("#main .test-good")?.textContent.includes("Answered in")`)
			p.click("Save")
			w.end(t)
			p.waitFor(`document.querySelector(".toasts").textContent.includes("Saved")`)
			p.waitFor(`[...document.querySelectorAll("#main input[type=password]")].some((f) => ` +
				`f.placeholder.startsWith("Saved"))`)
			p.checkPage("a model")
		}
		w := p.begin(1, "Drop a PDF on Home, ask, open [1]", 8)
		w.aside(func() {
			if i == 0 {
				p.open("home", hasText("What can"))
			}
		})
		p.drop(".composer", map[string]string{"opening.pdf": pdf("Opening", "We open at seven.")})
		p.waitFor(`document.querySelector(".toasts").textContent.includes("opening.pdf is uploaded")`)
		p.askAgent("How long may I return bread?")
		p.waitFor(`document.querySelector("button.cite") && document.querySelector("[aria-label='Regenerate']") && ` +
			hasText("[9]"))
		p.checkPage("an answer")
		p.eval(`document.querySelector("button.cite").focus()`)
		p.clickOn(`document.querySelector("button.cite")`)
		p.waitFor(`document.querySelector(".drawer mark")?.textContent.includes("within two days")`)
		w.end(t)
		p.checkPage("a citation")
		p.pressKeys("Escape")
		p.waitFor(`!document.querySelector(".drawer") && document.activeElement.matches("button.cite")`)
		p.clickOn(`document.querySelector("[aria-label='Regenerate']")`)
		p.waitFor(hasText("2/2"))
		p.clickOn(`document.querySelector("[aria-label='Good answer']")`)
		p.waitFor(`document.querySelector("[aria-label='Good answer'][aria-pressed=true]")`)
		p.checkPage("two answers")
	}
}

// TestConsoleDropsManyFiles drops sixty files at once: all are stored, even if the rate
// limit allows few more requests.
func TestConsoleDropsManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 1280)
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("note-%02d.md", i)] = fmt.Sprintf("# Note %d\n\nWhat it says is number %d.", i, i)
	}
	w := p.begin(5, "Drop 60 files", 1)
	p.drop(".composer", files)
	p.waitFor(`document.querySelector(".toasts").textContent.includes("60 files stored")`)
	w.end(t)
	if stored := at(
		ts.must(t, 200, "GET", "/api/agents/default/sources?limit=1", ""),
		"meta.total",
	); fmt.Sprint(stored) != "60" {
		t.Errorf("%v sources are stored", stored)
	}
	p.open("knowledge", `document.querySelectorAll(".source-row").length === 50`)
	p.eval(`window.cleared = performance.now(), performance.clearResourceTimings()`)
	for i := range 30 {
		ts.upload(t, "/api/agents/default/sources", fmt.Sprintf("late-%02d.md", i), "# Late", nil)
	}
	p.waitFor(`document.querySelector(".sources").textContent.includes("late-29.md")`)
	if more := p.eval(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/sources?")).length ` +
		`- (performance.now() - cleared) / 2000`).(float64); more > 4 {
		t.Errorf("30 new sources make the page load the list %.1f times more than every two seconds", more)
	}
}
