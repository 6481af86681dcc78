package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
)

// TestChatWithoutModel checks that with fallback passages a turn is answered with
// passages, and that such an answer is stored and not sent to a model later.
func TestChatWithoutModel(t *testing.T) {
	c, chat := newTestClient(t), "/api/agents/default/chat"
	made := c.upload(
		t,
		"/api/agents/default/sources",
		"policy.md",
		"# Returns\n\nGoods that you do not like can be sent back within thirty days.\n",
		nil,
	)
	source := fmt.Sprint(made.json["id"])
	c.waitIndexed(t, "/api/agents/default/sources/"+source)
	if a := c.send(t, "POST", chat, `{"message":"How do I return goods?"}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "llm_provider" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := c.send(t, "POST", chat, `{"message":"Hi","fallback":"guess"}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "fallback" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	a := c.must(t, 200, "POST", chat, `{"message":"How do I return goods?","fallback":"passages"}`)
	if a["mode"] != "passages" ||
		at(a, "sources.0.source_id") != source ||
		!strings.Contains(fmt.Sprint(at(a, "sources.0.content")), "thirty days") {
		t.Fatalf("%v", a)
	}
	streamed := c.send(t, "POST", chat, `{"message":"How do I return goods?","fallback":"passages","stream":true}`)
	events := readStream(t, streamed.text)
	if len(events) != 2 ||
		events[0][0] != "sources" ||
		events[1][0] != "done" ||
		!strings.Contains(events[1][1], `"mode":"passages"`) {
		t.Errorf("%v", events)
	}
	conversation := fmt.Sprint(a["conversation_id"])
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations/"+conversation, "")
	if at(kept, "metadata.title") != "How do I return goods?" ||
		at(kept, "messages.0.content") != "How do I return goods?" ||
		at(kept, "messages.1.metadata.mode") != "passages" ||
		at(kept, "messages.1.metadata.sources.0.source_id") != source ||
		at(kept, "messages.1.metadata.sources.0.n") != json.Number("1") {
		t.Errorf("kept %v", kept)
	}
	if text := fmt.Sprint(at(kept, "messages.1.content")); !strings.HasPrefix(text, "No language model is set up. ") {
		t.Errorf("the answer is %q", text)
	}
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai","llm_model":"m-1","llm_api_key":"sk-1"}`,
	)
	keyless := c.must(t, 200, "POST", chat, `{"message":"And without its key?","fallback":"passages"}`)
	if text := fmt.Sprint(at(keyless, "message.content")); keyless["mode"] != "passages" ||
		!strings.Contains(text, "the setting openai_api_key is not set") {
		t.Errorf("without the provider's key: %v", keyless)
	}
	search := c.must(t, 200, "GET", "/api/agents/default/sources/search?query=returns&rerank=llm", "")
	if search["notice"] != "the language model cannot be used, since the setting openai_api_key is not set: "+
		"the search ran without one" {
		t.Errorf("a search without the provider's key: %v", search["notice"])
	}
	m := newModelServer(t, func(int, map[string]any) string { return "Within thirty days." })
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_api_key":null,"llm_base_url":"`+m.URL+`/v1"}`,
	)
	again := c.must(
		t, 200, "POST", chat,
		`{"message":"And now?","fallback":"passages","conversation_id":"`+conversation+`"}`,
	)
	if sent := fmt.Sprint(m.Messages(0)); again["mode"] != nil ||
		strings.Contains(sent, "No language model") ||
		!strings.Contains(sent, "How do I return goods?") {
		t.Errorf("sent %s, answered %v", sent, again)
	}
}

// TestCitationsAreKept checks that a stored answer has the passages by the numbers that
// it cites, and that only those that were sent count.
func TestCitationsAreKept(t *testing.T) {
	c, _ := newClientWithModel(t, func(int, map[string]any) string {
		return "Within thirty days [1], says [9] and [a link](http://x)."
	})
	made := c.upload(
		t,
		"/api/agents/default/sources",
		"policy.md",
		"# Returns\n\nGoods that you do not like can be sent back within thirty days.\n",
		nil,
	)
	source := fmt.Sprint(made.json["id"])
	c.waitIndexed(t, "/api/agents/default/sources/"+source)
	a := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"How long can goods be sent back?"}`)
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations/"+fmt.Sprint(a["conversation_id"]), "")
	passages, _ := at(kept, "messages.1.metadata.sources").([]any)
	if len(passages) != 1 {
		t.Fatalf("kept %v", kept)
	}
	for name, want := range map[string]any{
		"n":           json.Number("1"),
		"source_id":   source,
		"source_name": "policy.md",
		"chunk_id":    at(a, "sources.0.id"),
		"page":        json.Number("0"),
		"section":     "Returns",
		"url":         "",
		"score":       at(a, "sources.0.score"),
		"content":     at(a, "sources.0.content"),
		"cited":       true,
	} {
		if got := at(passages[0], name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestChatRetry checks that an answer can be requested again, from another model, that
// both are kept, and that the next turn sends the newest in place of the first.
func TestChatRetry(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string { return fmt.Sprintf("Answer %d.", n) })
	const chat = "/api/agents/default/chat"
	first := c.must(t, 200, "POST", chat, `{"message":"How?"}`)
	conversation := fmt.Sprint(first["conversation_id"])
	c.must(t, 200, "POST", chat, `{"message":"Why?","conversation_id":"`+conversation+`"}`)
	id := fmt.Sprint(at(first, "message.id"))
	second := c.must(t, 200, "POST", chat, `{"retry_of":`+id+`,"model":"m-2"}`)
	if second["conversation_id"] != conversation ||
		at(second, "message.content") != "Answer 3." ||
		m.Requests[2]["model"] != "m-2" {
		t.Errorf("%v, from the model %v", second, m.Requests[2]["model"])
	}
	if sent := m.Messages(2); len(sent) != 2 || at(sent[1], "content") != "How?" {
		t.Errorf("sent %v", sent)
	}
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations/"+conversation, "")["messages"].([]any)
	if len(kept) != 5 ||
		at(kept[4], "metadata.retry_of") != json.Number(id) ||
		at(kept[4], "metadata.model") != "m-2" ||
		at(kept[1], "content") != "Answer 1." {
		t.Errorf("kept %v", kept)
	}
	c.must(t, 200, "POST", chat, `{"retry_of":`+fmt.Sprint(at(second, "message.id"))+`}`) // of a retry
	c.must(t, 200, "POST", chat, `{"message":"Thanks","conversation_id":"`+conversation+`"}`)
	var sent []string
	for _, said := range m.Messages(4)[1:] {
		sent = append(sent, fmt.Sprint(at(said, "content")))
	}
	if got := strings.Join(sent, "|"); got != "How?|Answer 4.|Why?|Answer 2.|Thanks" {
		t.Errorf("sent %s", got)
	}
	for _, off := range []string{
		`{"retry_of":999}`,
		`{"retry_of":` + fmt.Sprint(at(kept[0], "id")) + `}`,
		`{"retry_of":-1}`,
		`{"retry_of":` + id + `,"conversation_id":"conversation-x"}`,
	} {
		if a := c.send(t, "POST", chat, off); a.StatusCode != 400 || at(a.json, "error.details.field") != "retry_of" {
			t.Errorf("%s: %d %s", off, a.StatusCode, a.text)
		}
	}
	if a := c.send(t, "POST", chat, `{}`); a.StatusCode != 400 || at(a.json, "error.details.field") != "message" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}

// holdModel sets a provider that streams "Half " and finishes once let is closed.
func holdModel(t *testing.T, c *testClient) (let chan struct{}) {
	t.Helper()
	let = make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Half "}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-let:
			fmt.Fprint(
				w,
				`data: {"choices":[{"index":0,"delta":{"content":"and whole."},"finish_reason":"stop"}]}`+
					"\n\ndata: [DONE]\n\n",
			)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(provider.Close)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+provider.URL+`/v1"}`,
	)
	return let
}

// startTurn sends a turn with a run_id, reads its stream up to a text, and
// disconnects.
func (c *testClient) startTurn(t *testing.T, body, upTo string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", c.url+"/api/agents/default/chat", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), upTo) {
			return
		}
	}
	t.Fatalf("%d without %q", resp.StatusCode, upTo)
}

// TestRunOutlivesItsConnection checks that a turn with a run_id finishes after its client
// disconnects, and that others can read it from the start.
func TestRunOutlivesItsConnection(t *testing.T) {
	c := newTestClient(t)
	let := holdModel(t, c)
	const chat = "/api/agents/default/chat"
	for _, id := range []string{"short", "with_sign", strings.Repeat("x", 65)} {
		if a := c.send(t, "POST", chat, `{"message":"Go","run_id":"`+id+`"}`); a.StatusCode != 400 ||
			at(a.json, "error.details.field") != "run_id" {
			t.Errorf("%s: %d %s", id, a.StatusCode, a.text)
		}
	}
	c.must(t, 404, "GET", chat+"/run-0001/events", "")
	c.must(t, 404, "POST", chat+"/run-0001/stop", "")
	c.startTurn(t, `{"message":"Go","run_id":"run-0001","stream":true}`, "Half ")
	if a := c.send(t, "POST", chat, `{"message":"Go","run_id":"run-0001"}`); a.StatusCode != 409 {
		t.Errorf("the same id: %d %s", a.StatusCode, a.text)
	}
	close(let)
	for range 2 { // live, then from what was stored
		a := c.send(t, "GET", chat+"/run-0001/events", "")
		events := readStream(t, a.text)
		var text, done string
		for _, e := range events {
			switch e[0] {
			case "delta":
				var piece struct{ Text string }
				_ = json.Unmarshal([]byte(e[1]), &piece)
				text += piece.Text
			case "done":
				done = e[1]
			}
		}
		if text != "Half and whole." ||
			!strings.Contains(done, `"content":"Half and whole."`) ||
			events[len(events)-1][0] != "done" {
			t.Errorf("%q", events)
		}
	}
	if a := c.must(t, 200, "POST", chat+"/run-0001/stop", ""); a["stopped"] != false ||
		at(a, "message.content") != "Half and whole." {
		t.Errorf("stopped a run that had ended: %v", a)
	}
	if a := c.must(
		t, 200, "POST", chat,
		`{"message":"Go","run_id":"run-0002"}`,
	); at(a, "message.content") != "Half and whole." {
		t.Errorf("without a stream: %v", a)
	}
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":null}`)
	for _, stream := range []string{"", `,"stream":true`} {
		if a := c.send(
			t,
			"POST",
			chat,
			`{"message":"Go","run_id":"run-no-model`+fmt.Sprint(len(stream))+`"`+stream+`}`,
		); a.StatusCode != 400 || at(a.json, "error.details.field") != "llm_provider" {
			t.Errorf("without a model: %d %s", a.StatusCode, a.text)
		}
	}
}

// TestRunIsStopped checks that the text so far is stored as a partial answer.
func TestRunIsStopped(t *testing.T) {
	c := newTestClient(t)
	holdModel(t, c)
	const chat = "/api/agents/default/chat"
	c.startTurn(t, `{"message":"Go","run_id":"run-0001","stream":true}`, "Half ")
	a := c.must(t, 200, "POST", chat+"/run-0001/stop", "")
	if a["stopped"] != true || at(a, "message.content") != "Half " {
		t.Fatalf("%v", a)
	}
	kept := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/conversations/"+fmt.Sprint(a["conversation_id"]),
		"",
	)["messages"].([]any)
	if len(kept) != 2 || at(kept[1], "content") != "Half " || at(kept[1], "metadata.partial") != true {
		t.Errorf("kept %v", kept)
	}
	events := readStream(t, c.send(t, "GET", chat+"/run-0001/events", "").text)
	if last := events[len(events)-1]; last[0] != "done" || !strings.Contains(last[1], `"partial":true`) {
		t.Errorf("%v", events)
	}
	if a := c.must(t, 200, "POST", chat+"/run-0001/stop", ""); a["stopped"] != false {
		t.Errorf("stopped twice: %v", a)
	}
}

// TestRunsEndWithTheServer checks that partial answers are stored when the server stops.
func TestRunsEndWithTheServer(t *testing.T) {
	folder, server := openService(t)
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(ts.Close)
	c := &testClient{url: ts.URL, folder: folder, header: http.Header{}}
	holdModel(t, c)
	c.startTurn(t, `{"message":"Go","run_id":"run-0001","stream":true}`, "Half ")
	server.Stop()
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations", "")
	messages := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/conversations/"+fmt.Sprint(at(kept, "conversations.0.id")),
		"",
	)["messages"].([]any)
	if len(messages) != 2 || at(messages[1], "content") != "Half " || at(messages[1], "metadata.partial") != true {
		t.Errorf("kept %v", messages)
	}
	if a := c.send(t, "POST", "/api/agents/default/chat", `{"message":"Go","run_id":"run-0002"}`); a.StatusCode != 409 {
		t.Errorf("started after the stop: %d %s", a.StatusCode, a.text)
	}
}

// TestRunsAreForgotten checks that a run is kept for a while after its end, and that the
// oldest are dropped first.
func TestRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rs runs
		say := func(n int) func(context.Context, *run) (chatOut, error) {
			return func(_ context.Context, r *run) (chatOut, error) {
				return chatOut{}, r.appendText(strings.Repeat("x", n))
			}
		}
		start := func(id string, n int) *run {
			r, err := rs.start(t.Context(), runKey{"a", id}, say(n))
			if err != nil {
				t.Fatal(err)
			}
			rs.working.Wait()
			return r
		}
		exists := func(id string) bool {
			_, err := rs.find(runKey{"a", id})
			return err == nil
		}
		start("first", 10)
		time.Sleep(runRetention - time.Nanosecond)
		if !exists("first") {
			t.Error("dropped too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if exists("first") || rs.bytes != 0 {
			t.Errorf("kept for too long, %d bytes", rs.bytes)
		}
		for n := range 20 {
			start(fmt.Sprint("big-", n), maxRunBytes-100)
		}
		if exists("big-0") || !exists("big-19") || rs.bytes > maxRunsBytes {
			t.Errorf("%d bytes are kept", rs.bytes)
		}
		if r := start("endless", maxRunBytes+1); agent.ErrorCode(r.err) != agent.CodeUpstream {
			t.Errorf("over the limit: %v", r.err)
		}
		rs.stop()
		if _, err := rs.start(t.Context(), runKey{"a", "late"}, say(1)); err == nil {
			t.Error("started after the stop")
		}
	})
}
