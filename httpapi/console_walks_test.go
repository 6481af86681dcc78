package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeModel is a provider that gives one answer and refuses every key but "k".
func fakeModel(t *testing.T, answer string) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"wrong key"}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"small"},{"id":"large"}]}`)
			return
		}
		var asked struct{ Stream bool }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if !asked.Stream {
			fmt.Fprintf(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, quoted(answer))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range strings.SplitAfter(answer, " ") {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted(word))
		}
		fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(ts.Close)
	return ts.URL + "/v1"
}

// drop lets files fall on an element of the page.
func (s *stranger) drop(on string, files map[string]string) {
	s.t.Helper()
	raw, _ := json.Marshal(files)
	s.value(`(() => {
		const data = new DataTransfer();
		for (const [name, text] of Object.entries(` + string(raw) + `)) data.items.add(new File([text], name));
		document.querySelector(` + quoted(on) + `).dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
	})()`)
}

// ask writes into the field of a page and sends it.
func (s *stranger) askAgent(text string) {
	s.t.Helper()
	s.until(`document.querySelector("#main .composer textarea")`)
	s.value(`(() => { const field = document.querySelector("#main .composer textarea"); field.value = ` + quoted(text) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	s.until(`document.querySelector("#main .composer [type=submit]:not(:disabled)")`)
	s.value(`void document.querySelector("#main .composer").requestSubmit()`)
}

const handbook = "# Handbook\n\n## Returns\n\nYou may return bread within two days with the receipt.\n\n## Opening\n\nWe open at seven."

// TestConsoleAsk drops a handbook on Home, chooses a model, asks, and finds the
// passage of a citation marked in its source; before, without a model, the
// passages themselves.
func TestConsoleAsk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	address := fakeModel(t, "Yes, within two days [1]. "+hostile+" [9]")
	for i, width := range []int{1280, 375} {
		s := th.visit(t, width)
		if i == 0 {
			s.drop(".composer", map[string]string{"handbook.md": handbook})
			s.until(`document.querySelector(".toasts").textContent.includes("handbook.md is stored")`)
			s.goTo("knowledge", `document.querySelector(".source-row .badge").textContent === "ready"`)
			s.goTo("home", says("What can"))
			s.askAgent("May I return bread?")
			s.until(`location.hash.includes("/chat/conversation-") && document.querySelector(".passage")?.textContent.includes("within two days") && ` + says("No model is set"))
			s.unharmed("passages")
			s.goTo("settings", says("Language model"))
			s.fill("Provider", "openai-compatible", "API key, if it asks for one", "wrong", "Address", address, "Model", "small")
			s.press("Test")
			s.until(`document.querySelector("#main .issue")?.textContent.length > 5`)
			s.fill("API key, if it asks for one", "k")
			s.press("Test")
			s.until(`document.querySelector("#main .test-good")?.textContent.includes("It answered in")`)
			s.press("Save")
			s.until(`document.querySelector(".toasts").textContent.includes("Saved") && [...document.querySelectorAll("#main input[type=password]")].some((f) => f.placeholder.startsWith("Set"))`)
			s.unharmed("a model")
		}
		s.goTo("chat", says("Ask default"))
		s.askAgent("How long may I return bread?")
		s.until(`document.querySelector("button.cite") && document.querySelector("[aria-label='Answer again']") && ` + says("[9]"))
		s.unharmed("an answer")
		s.value(`void document.querySelector("button.cite").click()`)
		s.until(`document.querySelector(".drawer mark")?.textContent.includes("within two days")`)
		s.unharmed("a citation")
		s.value(`void document.querySelector("[aria-label='Answer again']").click()`)
		s.until(says("2/2"))
		s.value(`void document.querySelector("[aria-label='Good answer']").click()`)
		s.until(`document.querySelector("[aria-label='Good answer'][aria-pressed=true]")`)
		s.unharmed("two answers")
	}
}

// TestConsoleDropsManyFiles drops sixty files at once: all are stored, also
// where the rate limit has few requests left.
func TestConsoleDropsManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	s := th.visit(t, 1280)
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("note-%02d.md", i)] = fmt.Sprintf("# Note %d\n\nWhat it says is number %d.", i, i)
	}
	s.drop(".composer", files)
	s.until(`document.querySelector(".toasts").textContent.includes("60 files stored")`)
	if stored := at(th.must(t, 200, "GET", "/api/agents/default/sources?limit=1", ""), "meta.total"); fmt.Sprint(stored) != "60" {
		t.Errorf("%v sources are stored", stored)
	}
	s.goTo("knowledge", `document.querySelectorAll(".source-row").length === 50`)
}
