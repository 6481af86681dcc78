package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// form is a page with an element for every action.
const form = `<title>Form</title>
<style>#far { margin-top: 3000px } #covered { display: none }</style>
<p class="line">one</p><p class="line">two <b>bold</b></p>
<a id="next" href="/next">next</a> <a id="tab" href="/next" target="_blank">tab</a>
<form onsubmit="document.title = 'sent ' + this.name.value; return false">
<input id="name" name="name" value="was" onkeydown="keys.push(event.key)"> <select id="colour"><option value="r">red<option value="g">green</select>
<select id="many" multiple><option>a<option>b<option>c</select> <input type="file" id="file" multiple>
<button id="send">Send</button></form>
<div id="hover" onmouseover="this.textContent = 'hovered'">hover me</div>
<div id="double" ondblclick="this.textContent = 'twice'" oncontextmenu="this.textContent = 'right'; return false">click me</div>
<div id="covered">never seen</div><div id="later"></div><div id="far" data-x="7">far away</div>
<script>const keys = []; function soon(f) { setTimeout(f, 50) }</script>`

// do performs an action given as JSON.
func do(t testing.TB, s *Session, body string) (map[string]any, error) {
	t.Helper()
	var a agent.Action
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	return s.Do(t.Context(), a)
}

func must(t testing.TB, s *Session, body string) map[string]any {
	t.Helper()
	result, err := do(t, s, body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return result
}

func TestActions(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": form, "/next": "<title>Next</title>the end"})
	first := s.ActivePage()
	data := base64.StdEncoding.EncodeToString([]byte("hello"))
	for _, c := range []struct{ name, action, field, want string }{
		{"navigate", `{"action":"navigate","url":"` + url + `/"}`, "status", "200"},
		{"title", `{"action":"navigate","url":"` + url + `/"}`, "title", "Form"},
		{"extract text", `{"action":"extract","selector":".line"}`, "value", "one"},
		{
			"extract html",
			`{"action":"extract","selector":".line >> nth=1","attribute":"html"}`,
			"value",
			"two <b>bold</b>",
		},
		{"extract value", `{"action":"extract","selector":"#name","attribute":"value"}`, "value", "was"},
		{"extract attribute", `{"action":"extract","selector":"#far","attribute":"data-x"}`, "value", "7"},
		{
			"extract a missing attribute",
			`{"action":"extract","selector":"#far","attribute":"data-y"}`,
			"value",
			"<nil>",
		},
		{"extract all", `{"action":"extract","selector":".line","all":true}`, "value", "[one two bold]"},
		{"extract all without a match", `{"action":"extract","selector":".none","all":true}`, "value", "[]"},
		{"hover", `{"action":"hover","selector":"#hover"}`, "", ""},
		{"hovered", `{"action":"extract","selector":"#hover"}`, "value", "hovered"},
		{"double click", `{"action":"click","selector":"#double","clicks":2}`, "", ""},
		{"clicked twice", `{"action":"extract","selector":"#double"}`, "value", "twice"},
		{"right click", `{"action":"click","selector":"#double","button":"right"}`, "", ""},
		{"clicked right", `{"action":"extract","selector":"#double"}`, "value", "right"},
		{"type", `{"action":"type","selector":"#name","text":"!"}`, "", ""},
		{"typed", `{"action":"extract","selector":"#name","attribute":"value"}`, "value", "was!"},
		{"type over", `{"action":"type","selector":"#name","text":"Ada","clear":true}`, "", ""},
		{"with key events", `{"action":"evaluate","script":"keys.join('')"}`, "value", "!DeleteAda"},
		{"press in an element", `{"action":"press","selector":"#name","key":"Enter"}`, "title", "sent Ada"},
		{"press", `{"action":"press","key":"Shift+Tab"}`, "", ""},
		{"select by value", `{"action":"select","selector":"#colour","value":"g"}`, "values", "[g]"},
		{"select by label", `{"action":"select","selector":"#colour","label":"red"}`, "values", "[r]"},
		{"select several", `{"action":"select","selector":"#many","values":["a","c"]}`, "values", "[a c]"},
		{"select none", `{"action":"select","selector":"#many","values":[]}`, "values", "[]"},
		{
			"upload",
			`{"action":"upload","selector":"#file","files":[{"name":"a.txt","mime_type":"text/plain","data":"` + data +
				`"},{"name":"b","data":""}]}`,
			"files", "2",
		},
		{
			"uploaded",
			`{"action":"evaluate","script":"const f = document.querySelector('#file').files; return f[0].name + ` +
				`f[0].type + await f[0].text() + f.length"}`,
			"value",
			"a.txttext/plainhello2",
		},
		{"scroll", `{"action":"scroll","direction":"down","amount":700}`, "y", "700"},
		{"scroll to the end", `{"action":"scroll","direction":"top"}`, "y", "0"},
		{"scroll to an element", `{"action":"scroll","selector":"#far"}`, "", ""},
		{"scrolled", `{"action":"evaluate","script":"scrollY > 1000"}`, "value", "true"},
		{"wait for a time", `{"action":"wait","timeout":5}`, "", ""},
		{"wait until hidden", `{"action":"wait","selector":"#covered","state":"hidden"}`, "", ""},
		{"add text later", `{"action":"evaluate","script":"soon(() => later.textContent = 'here')"}`, "value", "<nil>"},
		{"wait for it", `{"action":"wait","selector":"text=here"}`, "", ""},
		{
			"evaluate an expression",
			`{"action":"evaluate","script":"args.a + args.b.length","args":{"a":1,"b":[1,2]}}`,
			"value",
			"3",
		},
		{"evaluate a function", `{"action":"evaluate","script":"({a}) => [a]","args":{"a":"x"}}`, "value", "[x]"},
		{
			"evaluate a promise",
			`{"action":"evaluate","script":"new Promise(done => soon(() => done(5)))"}`,
			"value",
			"5",
		},
		{"screenshot", `{"action":"screenshot"}`, "image", "data:image/png;base64,iVBOR"},
		{
			"full-page screenshot",
			`{"action":"screenshot","full_page":true,"format":"jpeg"}`,
			"image",
			"data:image/jpeg;base64,/9j/",
		},
		{
			"screenshot of an element",
			`{"action":"screenshot","selector":"#send"}`,
			"image",
			"data:image/png;base64,iVBOR",
		},
		{"pdf", `{"action":"pdf"}`, "data", "data:application/pdf;base64,JVBER"},
		{"snapshot", `{"action":"snapshot"}`, "text", "- paragraph"},
		{"a short snapshot", `{"action":"snapshot","max_length":30}`, "truncated", "true"},
		{"cookies", `{"action":"cookies"}`, "cookies", "[]"},
		{"click a link", `{"action":"click","selector":"#next"}`, "", ""},
		{"wait for an address", `{"action":"wait","url":"**/n*t"}`, "url", url + "/next"},
		{"back", `{"action":"back"}`, "url", url + "/"},
		{"forward", `{"action":"forward"}`, "url", url + "/next"},
		{"reload", `{"action":"reload"}`, "status", "200"},
		{"back again", `{"action":"back"}`, "title", "Form"},
		{"a new tab", `{"action":"click","selector":"#tab"}`, "", ""},
		{"in the new tab", `{"action":"wait","url":"` + url + `/next"}`, "url", url + "/next"},
		{
			"in the first tab",
			`{"action":"extract","selector":"#far","page_id":"` + first.ID() + `"}`,
			"page_id",
			first.ID(),
		},
	} {
		result, err := do(t, s, c.action)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := fmt.Sprint(result[c.field]); c.field != "" &&
			!strings.HasPrefix(strings.TrimLeft(got, " \n"), c.want) {
			t.Errorf("%s: %s is %.200q, want %q", c.name, c.field, got, c.want)
		}
	}
}

// A wait action with only a timeout waits for that time, and does not fail with a
// timeout error.
func TestWaitForATime(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	for _, ms := range []int{1, 300} {
		start := time.Now()
		must(t, s, fmt.Sprintf(`{"action":"wait","timeout":%d}`, ms))
		if elapsed := time.Since(start); elapsed < time.Duration(ms)*time.Millisecond {
			t.Errorf("a wait of %d ms took %v", ms, elapsed)
		}
	}
}

func TestActionsThatFail(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": form})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	tab := s.ActivePage().ID()
	for _, c := range []struct {
		name, action string
		code         agent.Code
		field        string
	}{
		{"bad selector", `{"action":"click","selector":"#a["}`, agent.CodeInvalidAction, "selector"},
		{"unknown engine", `{"action":"extract","selector":"magic=x"}`, agent.CodeInvalidAction, "selector"},
		{"wrong element", `{"action":"select","selector":"#name","value":"x"}`, agent.CodeInvalidAction, "selector"},
		{"no file field", `{"action":"upload","selector":"#send","files":[]}`, agent.CodeInvalidAction, "selector"},
		{"no such key", `{"action":"press","key":"Hyper"}`, agent.CodeInvalidAction, "key"},
		{"no such tab", `{"action":"press","key":"a","page_id":"page-x"}`, agent.CodeInvalidAction, "page_id"},
		{"invalid JavaScript", `{"action":"evaluate","script":"this is not"}`, agent.CodeInvalidAction, "script"},
		{
			"a script that throws",
			`{"action":"evaluate","script":"throw new SyntaxError('mine')"}`,
			agent.CodeInvalidAction,
			"script",
		},
		{
			"a script with a large result",
			`{"action":"evaluate","script":"'x'.repeat(2e6)"}`,
			agent.CodeInvalidAction,
			"script",
		},
		{
			"element that never appears",
			`{"action":"click","selector":"#none","timeout":300}`,
			agent.CodeActionTimeout,
			"",
		},
		{
			"element that stays hidden",
			`{"action":"wait","selector":"#covered","timeout":300}`,
			agent.CodeActionTimeout,
			"",
		},
		{"URL that never matches", `{"action":"wait","url":"**/never","timeout":300}`, agent.CodeActionTimeout, ""},
		{
			"script that never ends",
			`{"action":"evaluate","script":"for (;;);","timeout":500}`,
			agent.CodeActionTimeout,
			"",
		},
		{
			"promise that never ends",
			`{"action":"evaluate","script":"new Promise(() => {})","timeout":300}`,
			agent.CodeActionTimeout,
			"",
		},
		{"connection refused", `{"action":"navigate","url":"http://127.0.0.1:1/"}`, agent.CodeBrowser, ""},
	} {
		_, err := do(t, s, c.action)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != c.code || c.field != "" && e.Details["field"] != c.field {
			t.Errorf("%s: %v, want %s about %q", c.name, err, c.code, c.field)
			continue
		}
		if e.Details["action"] == nil || strings.Contains(e.Message, "Call log") {
			t.Errorf("%s: %q %v", c.name, e.Message, e.Details)
		}
	}
	// The session still works.
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	if got := must(t, s, `{"action":"extract","selector":".line"}`); got["value"] != "one" || got["page_id"] != tab {
		t.Errorf("afterwards: %v, in the tab %s", got, tab)
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": form})
	var actions []agent.Action
	batch := `[{"action":"navigate","url":"` + url +
		`/"},{"action":"click","selector":"#none","timeout":200},{"action":"extract","selector":".line"}]`
	if err := json.Unmarshal([]byte(batch), &actions); err != nil {
		t.Fatal(err)
	}
	for _, keepGoing := range []bool{false, true} {
		outcomes, err := s.DoAll(t.Context(), actions, keepGoing)
		want := map[bool]int{false: 2, true: 3}[keepGoing]
		if err != nil ||
			len(outcomes) != want ||
			!outcomes[0].Success ||
			outcomes[1].Success ||
			outcomes[1].Error.Code != agent.CodeActionTimeout {
			t.Errorf("keepGoing %v: %+v, %v", keepGoing, outcomes, err)
		}
		if keepGoing && (outcomes[2].Result["value"] != "one" || outcomes[2].Action != "extract") {
			t.Errorf("the third action: %+v", outcomes[2])
		}
	}
	actions[2].Selector = ""
	if outcomes, err := s.DoAll(t.Context(), actions, true); agent.ErrorCode(err) != agent.CodeInvalidAction ||
		outcomes != nil {
		t.Errorf("a batch with an invalid action: %v, %v", outcomes, err)
	}
	for _, n := range []int{0, agent.MaxActions + 1} {
		if _, err := s.DoAll(
			t.Context(),
			make([]agent.Action, n),
			true,
		); agent.ErrorCode(err) != agent.CodeInvalidAction {
			t.Errorf("a batch of %d: %v", n, err)
		}
	}
}

func TestTakeoverRefusesActions(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	if err := s.Takeover(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := do(t, s, `{"action":"snapshot"}`); agent.ErrorCode(err) != agent.CodeInvalidAction {
		t.Errorf("an action during a takeover: %v", err)
	}
	if err := s.Takeover(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	must(t, s, `{"action":"snapshot"}`)
}

func TestActionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	hold := make(chan struct{}, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hold <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	visit := func() {
		_, err := s.Do(ctx, agent.Action{Action: "navigate", URL: slow.URL})
		done <- err
	}
	go visit()
	<-hold
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled action: %v", err)
	}
	must(t, s, `{"action":"navigate","url":"about:blank"}`)
	ctx = t.Context()
	go visit()
	<-hold
	s.end("")
	if err := <-done; agent.ErrorCode(err) != agent.CodeBrowser && agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("an action whose session ended: %v", err)
	}
}

// slowNavigation serves a page and another, /next, whose response starts when begin
// is called and ends when finish is called. A request for /begin calls begin too.
func slowNavigation(t *testing.T) (url string, begin, finish func()) {
	t.Helper()
	started, released := make(chan struct{}), make(chan struct{})
	begin, finish = sync.OnceFunc(func() { close(started) }), sync.OnceFunc(func() { close(released) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/begin":
			begin()
		case "/next":
			<-started
			fmt.Fprint(w, "<!doctype html><title>Next</title><p>")
			_ = http.NewResponseController(w).Flush()
			<-released
			fmt.Fprint(w, "<p id=a>second")
		default:
			fmt.Fprint(w, "<!doctype html><title>First</title><p id=a>first")
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		begin()
		finish()
	})
	return server.URL, begin, finish
}

const readA = "document.querySelector('#a').textContent"

// Chromium holds back a script while a navigation has no response yet, and rejects
// it when the new document arrives.
func TestEvaluateDuringANavigation(t *testing.T) {
	t.Parallel()
	navigate := func(t *testing.T, url string) *Session {
		s := open(t, agent.SessionOptions{})
		must(t, s, `{"action":"navigate","url":"`+url+`"}`)
		must(t, s, `{"action":"evaluate","script":"void (location = '/next')"}`)
		return s
	}
	t.Run("a script that has not started runs in the new document", func(t *testing.T) {
		url, begin, finish := slowNavigation(t)
		s, other := navigate(t, url), open(t, agent.SessionOptions{})
		type answer struct {
			result map[string]any
			err    error
		}
		answers := make(chan answer, 1)
		go func() {
			result, err := s.Do(t.Context(), agent.Action{Action: "evaluate", Script: readA})
			answers <- answer{result, err}
		}()
		must(t, other, `{"action":"navigate","url":"`+url+`"}`) // by now the driver has sent the script
		begin()
		s.waitFor(t, "the new document", func() bool { return strings.HasSuffix(s.ActivePage().URL(), "/next") })
		finish()
		if got := <-answers; got.err != nil || got.result["value"] != "second" {
			t.Errorf("got %v, %v", got.result, got.err)
		}
	})
	t.Run("a script that has started is not run again", func(t *testing.T) {
		s := open(t, agent.SessionOptions{})
		url, _, finish := slowNavigation(t)
		finish()
		must(t, s, `{"action":"navigate","url":"`+url+`"}`)
		result, err := do(
			t,
			s,
			`{"action":"evaluate","script":"location = '/next'; await fetch('/begin'); await new Promise(() => {})"}`,
		)
		var known *agent.Error
		if !errors.As(err, &known) || known.Code != agent.CodeBrowser || known.Details["reason"] != "navigated" {
			t.Fatalf("got %v, %v", result, err)
		}
	})
	t.Run("a navigation continues after a script that waits for it timed out", func(t *testing.T) {
		url, begin, finish := slowNavigation(t)
		s := navigate(t, url)
		page := s.ActivePage()
		if _, err := do(
			t,
			s,
			`{"action":"evaluate","script":"1","timeout":300}`,
		); agent.ErrorCode(err) != agent.CodeActionTimeout {
			t.Errorf("during the navigation: %v", err)
		}
		begin()
		finish()
		if page.open.Err() != nil {
			t.Fatal("the tab was closed")
		}
		s.waitFor(t, "the new document", func() bool { return strings.HasSuffix(page.URL(), "/next") })
		if got := must(t, s, `{"action":"evaluate","script":"`+readA+`"}`); got["value"] != "second" {
			t.Errorf("got %v", got)
		}
	})
}

// A script runs on pages whose content security policy forbids eval.
func TestEvaluateUnderAPolicy(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		fmt.Fprint(w, "<p id=a>x")
	}))
	t.Cleanup(strict.Close)
	must(t, s, `{"action":"navigate","url":"`+strict.URL+`"}`)
	if got := must(
		t,
		s,
		`{"action":"evaluate","script":"document.querySelector('#a').textContent"}`,
	); got["value"] != "x" {
		t.Errorf("got %v", got)
	}
}

// TestSecretFieldsAreMasked: the values of password fields are masked in everything
// that is read from the page.
func TestSecretFieldsAreMasked(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": `<form id="f"><label>Name <input id="name" value="Ada"></label><label>Password <input id="pw" type="password" value="hunter-html"></label>
		<label>Code <input id="code" autocomplete="one-time-code"></label><label>PIN <input id="pin" type="password"></label></form>`})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	must(t, s, `{"action":"type","selector":"#pw","text":"hunter-typed","clear":true}`)
	must(t, s, `{"action":"type","selector":"#code","text":"123456"}`)
	for action, want := range map[string]string{
		`{"action":"extract","selector":"#pw","attribute":"value"}`:              "********",
		`{"action":"extract","selector":"#pw","attribute":"VALUE"}`:              "********",
		`{"action":"extract","selector":"input","attribute":"value","all":true}`: "[Ada ******** ******** ]",
	} {
		if got := must(t, s, action); fmt.Sprint(got["value"]) != want {
			t.Errorf("%s: %v", action, got)
		}
	}
	html := fmt.Sprint(must(t, s, `{"action":"extract","selector":"#f","attribute":"html"}`))
	text := fmt.Sprint(must(t, s, `{"action":"snapshot"}`))
	for _, secret := range []string{"hunter", "123456"} {
		if strings.Contains(html, secret) || strings.Contains(text, secret) {
			t.Errorf("%s appears in\n%s\n%s", secret, html, text)
		}
	}
	if !strings.Contains(text, "Ada") || strings.Count(text, "********") != 2 || !strings.Contains(html, "Ada") {
		t.Errorf("%s\n%s", html, text)
	}
	if got := must(
		t,
		s,
		`{"action":"evaluate","script":"document.querySelector('#pw').value"}`,
	); got["value"] != "hunter-typed" {
		t.Errorf("the page itself has changed: %v", got)
	}
}
