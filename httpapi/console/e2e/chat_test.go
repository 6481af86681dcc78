package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"satchel/httpapi/apitest"
)

// pausingModel streams the beginning of an answer, and the rest when rest is
// closed. It knows one model and one key.
func pausingModel(t *testing.T) (settings string, rest chan struct{}) {
	t.Helper()
	rest = make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":[{"id":"good"}]}`)
			return
		}
		var asked struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Model != "good" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"The model is gone, <b> says the provider."}}`)
			return
		}
		piece := func(text string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted(text))
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		piece("The beginning ")
		select {
		case <-rest:
		case <-r.Context().Done():
			return
		}
		piece("and the end.\n\n- [x] done\n- [ ] open")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(ts.Close)
	return `"llm_provider":"openai-compatible","llm_api_key":"k","llm_base_url":` + quoted(ts.URL+"/v1"), rest
}

// TestConsoleAnswerContinues reloads the page in the middle of an answer, which
// continues, and after one that failed, whose error stays.
func TestConsoleAnswerContinues(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	model, rest := pausingModel(t)
	use := func(name string) {
		ts.must(t, 200, "PUT", "/api/agents/default/settings", `{`+model+`,"llm_model":`+quoted(name)+`}`)
	}
	use("good")
	p := ts.openConsole(t, 1280)
	p.open("chat", `document.querySelector(".composer textarea")`)
	p.askAgent("Continue, please.")
	const begun = `document.querySelector(".turn .markdown")?.textContent.includes("The beginning") && ` +
		`[...document.querySelectorAll(".composer button")].some((b) => b.textContent === "Stop")`
	p.waitFor(begun)
	p.reloadPage()
	p.waitFor(begun)
	close(rest)
	p.waitFor(`document.querySelector("[aria-label=Regenerate]") && ` + hasText("and the end.") + ` && ` +
		hasText("☑ done") + ` && ` + hasText("☐ open") + ` && document.querySelectorAll(".bubble").length === 1`)
	p.checkPage("a continued answer")

	use("gone")
	p.within("chat", hasText("Ask your agent"))
	p.askAgent("Which model are you?")
	const failed = `document.querySelector(".turn .card.bad")?.textContent.includes("does not know the model") && ` +
		`document.querySelector(".turn .card.bad a").hash.endsWith("/settings/model") && ` +
		`document.querySelectorAll(".bubble").length === 1`
	p.waitFor(failed)
	p.reloadPage()
	p.waitFor(failed)
	p.checkPage("a failed answer")
	use("good")
	p.click("Try again")
	p.waitFor(`document.querySelector("[aria-label=Regenerate]") && ` + hasText("and the end.") +
		` && document.querySelectorAll(".bubble").length === 1 && !document.querySelector(".turn .card.bad")`)
	p.reloadPage()
	p.waitFor(`document.querySelector("[aria-label=Regenerate]") && !document.querySelector(".turn .card.bad")`)
}

// reloadPage reloads the page and waits for the new one.
func (p *consolePage) reloadPage() {
	p.t.Helper()
	p.reload()
	p.waitFor(`document.querySelector("#main h1")`)
}

// signIn uses a key in the page, which shows Home, from now on.
func (p *consolePage) signIn(key string) {
	p.t.Helper()
	p.eval(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
	p.reload()
	p.waitFor(`document.querySelector("#main h1")?.textContent === "Home" && ` +
		`!document.querySelector(".rail-foot .badge") && ` +
		isLive)
}

// within goes to another address of the page that is open, and checks it once an
// expression is true.
func (p *consolePage) within(page, expression string) {
	p.t.Helper()
	p.eval(`location.hash = ` + quoted(p.base+page))
	p.waitFor(expression)
	p.checkPage(page)
}

// TestConsoleChatAddresses asks a suggested question, opens its citation by its
// address, reads the beginning of a long conversation, and finds a conversation.
func TestConsoleChatAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"small","llm_api_key":"k","llm_base_url":`+
			quoted(apitest.NewFixedModel(t, "Within two days [1]."))+`}`,
	)
	source := ts.upload(t, "/api/agents/default/sources", "handbook.md", handbook, nil)
	ts.waitIndexed(t, "/api/agents/default/sources/"+fmt.Sprint(source.JSON["id"]))
	talk := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations",
		`{"metadata":{"title":"A long talk about loaves","via":"chat"}}`,
	)["id"].(string)
	ts.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n `+
			`WHERE i < 209) INSERT INTO messages(conversation_id, role, content) SELECT ?, iif(i % 2 = 0, 'user', `+
			`'assistant'), 'said ' || i || ' times' FROM n","params":["`+talk+`"]}`,
	)
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.open("chat", hasText("Returns?"))
		p.click("Returns?")
		// as it is stored
		p.waitFor(`document.querySelector("button.cite") && !document.querySelector(".turn[aria-live]")`)
		p.clickOn(`document.querySelector("button.cite")`)
		const cited = `/conversation-.*[?]chunk=chunk-/.test(location.hash) && document.querySelector(".drawer ` +
			`mark")?.textContent.includes("within two days")`
		p.waitFor(cited)
		p.reloadPage()
		p.waitFor(cited)
		p.checkPage("a citation by its address")
		p.eval(`history.back()`)
		p.waitFor(`!document.querySelector(".drawer") && !location.hash.includes("chunk=") && ` +
			`document.querySelector("button.cite")`)

		if width == 1280 {
			for _, entry := range []string{"large", "Make large the agent's model"} {
				p.clickOn(`document.querySelector(".composer button[title=Model]")`)
				p.click(entry)
			}
			p.waitFor(`!document.querySelector(".composer [role=menu]") && document.querySelector(".composer ` +
				`button[title=Model]").textContent === "large"`)
			p.clickOn(`document.querySelector(".composer button[title=Model]")`)
			p.waitFor(`document.querySelector(".composer [role=menuitem]").textContent === "large (the agent's)"`)
			if model := ts.must(t, 200, "GET", "/api/agents/default/settings", "")["llm_model"]; model != "large" {
				t.Errorf("the agent's model is %v", model)
			}
		}
		p.within("chat/"+talk, `document.querySelectorAll(".turn").length === 200 && `+hasText("said 209 times"))
		p.eval(`document.querySelector(".thread-view").scrollTo(0, 0)`)
		p.eval(`void (window.read = document.querySelector(".turn"), window.top1 = read.getBoundingClientRect().top)`)
		p.click("Earlier messages")
		p.waitFor(`document.querySelectorAll(".turn").length === 210 && ` +
			`document.querySelector(".turn").textContent.includes("said 0 times") && ` +
			`Math.abs(read.getBoundingClientRect().top - top1) < 60`)
		p.checkPage("earlier messages")
		if p.eval(`document.getElementById("main").textContent.includes("Earlier messages")`) == true {
			t.Error("the page says that there are more messages")
		}
		if width == 375 {
			ts.must(
				t,
				201,
				"POST",
				"/api/agents/default/conversations/"+talk+"/messages",
				`{"role":"user","content":"said last"}`,
			)
			p.waitFor(hasText("said last"))
			p.waitFor(`document.querySelectorAll(".turn").length === 211`)
		}
		p.pressKeys("Control+k")
		p.waitFor(`document.querySelector("dialog[open] input")`)
		p.typeText("loaves")
		p.waitFor(`document.querySelector("dialog[open] [aria-selected=true]")?.textContent === "A long talk ` +
			`about loavesConversation"`)
		p.pressKeys("Enter")
		p.waitFor(`location.hash.endsWith("/chat/` + talk + `")`)
	}
}

// TestConsoleDrops drops a folder and files that cannot be read, next to a field and next
// to the page, and tries the knowledge with an example.
func TestConsoleDrops(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 375)
	p.open("knowledge", hasText("Use an example"))
	p.eval(`(() => { window.chosen = 0; document.querySelector("#main input[type=file]").click = () => { chosen++; ` +
		`}; document.getElementById("main").focus(); })()`)
	p.pressKeys("u")
	p.waitFor(`chosen === 1`)
	p.click("Use an example")
	p.waitFor(`document.querySelector(".source-row")?.textContent.includes("Example handbook.md") && ` +
		`document.querySelector(".source-row .badge").textContent === "ready"`)
	p.within(
		"knowledge?q=When+can+I+return+bread",
		`document.querySelector(".results li").textContent.includes("within two days") && `+
			`!document.querySelector(".results li:first-child.weak")`,
	)
	p.within(
		"knowledge?q=quantum+chromodynamics",
		`document.querySelector(".results li:first-child.weak")?.textContent.includes("Nothing `+
			`in the knowledge matches")`,
	)
	p.open("home", hasText("What can"))
	p.drop("#main .page", map[string]string{"photo.png": "x", "empty.md": "", "good.md": "# Good"})
	const refused = `document.querySelectorAll(".uploads .issue").length === 2 && ` +
		`document.querySelector(".uploads").textContent.includes("photo.png") && ` +
		`document.querySelector(".uploads").textContent.includes("file is empty")`
	p.waitFor(refused)
	p.checkPage("refused files")
	p.open("chat", refused)
	p.click("Dismiss all")
	p.waitFor(`!document.querySelector(".uploads")`)
	p.eval(`(() => {
		const file = (name) => ({ isFile: true, isDirectory: false, file: (done) => done(new File(["# " + name], name)) });
		const folder = (...found) => ({ isFile: false, isDirectory: true, createReader: () => ({ readEntries: (done) => done(found.splice(0)) }) });
		const drop = new Event("drop", { bubbles: true, cancelable: true });
		drop.dataTransfer = { types: ["Files"], items: [{ kind: "file", getAsFile: () => null, webkitGetAsEntry: () => folder(file("one.md"), file(".hidden.md"), folder(file("two.md"))) }] };
		document.querySelector(".thread-view").dispatchEvent(drop);
	})()`)
	p.waitFor(`document.querySelector(".toasts").textContent.includes("2 files stored")`)
	if taken := p.eval(`(() => { const data = new DataTransfer(); data.setData("text/plain", "dragged"); ` +
		`return !document.querySelector(".composer textarea").dispatchEvent(new DragEvent("drop", { bubbles: true, ` +
		`cancelable: true, dataTransfer: data })); })()`); taken != false {
		t.Error("a text that is dragged into the field is taken for files")
	}
	if taken := p.eval(`(() => { const data = new DataTransfer(); data.items.add(new File(["x"], "x.md")); ` +
		`return document.querySelector("nav.bottom").dispatchEvent(new DragEvent("drop", { bubbles: true, ` +
		`cancelable: true, dataTransfer: data })); })()`); taken != false {
		t.Error("the browser opens a file that is dropped next to the page")
	}
	empty := map[string]string{}
	for i := range 505 { // more than the page lists
		empty[fmt.Sprintf("empty-%d.md", i)] = ""
	}
	p.drop(".thread-view", empty)
	p.waitFor(`document.querySelector(".toasts").textContent.includes("0 of 505 files stored")`)
}

// TestConsoleReconnects cuts the network: what could not be loaded, and a question that
// was asked, follow without a click once it is back.
func TestConsoleReconnects(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 1280)
	p.cdp("Network.enable", nil)
	cut := func(offline bool) {
		p.cdp("Network.emulateNetworkConditions", map[string]any{
			"offline":            offline,
			"latency":            0,
			"downloadThroughput": -1,
			"uploadThroughput":   -1,
		})
	}
	p.open("chat", hasText("Ask your agent"))
	p.askAgent("Are you there?")
	p.waitFor(hasText("No language model is set up") + ` || ` + hasText("no language model is set up"))
	p.open("knowledge", hasText("No knowledge yet"))
	p.open("chat", `document.querySelector(".entries a")`)
	p.clickOn(`document.querySelector(".entries a")`)
	p.waitFor(`document.querySelectorAll(".bubble").length === 1 && document.querySelector("[aria-label=Regenerate]")`)
	cut(true)
	p.askAgent("And now?")
	p.waitFor(hasText("Connection lost. Reconnecting…") + ` && document.querySelector(".banner")`)
	p.eval(`location.hash = "#/agents/default/knowledge?name=nothing"`)
	p.waitFor(hasText("There was no answer."))
	cut(false)
	p.waitFor(hasText("No sources match") + ` && !document.querySelector(".banner")`)
	p.eval(`void history.back()`)
	p.waitFor(`document.querySelectorAll(".bubble").length === 2 && document.querySelector("[aria-label=Regenerate]")`)
	if said := ts.must(
		t,
		200,
		"GET",
		"/api/agents/default/conversations?channel=chat",
		"",
	); len(said["conversations"].([]any)) != 1 {
		t.Errorf("%v", said)
	}
	p.checkPage("a question that was sent again")
}
