package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/install"
	"satchel/browser/install/installtest"
	"satchel/store"
)

func (w *contractClient) checkBrowser(t *testing.T, at string) {
	installtest.Need(t)
	at += "/browser"
	id := w.create(t, at, `{"viewport":{"width":800,"height":600},"locale":"en-GB","timezone":"Europe/Berlin"}`)
	w.request(t, 400, "POST", at, `{"viewport":{"width":1,"height":600}}`)
	w.request(t, 200, "GET", at, "")
	w.request(t, 200, "GET", at+"/"+id, "")
	w.request(t, 404, "GET", at+"/session-x", "")
	w.request(t, 200, "POST", at+"/"+id+"/execute", `{"action":"evaluate","script":"1 + 1"}`)
	w.request(
		t, 200, "POST", at+"/"+id+"/execute",
		`{"actions":[{"action":"snapshot"},{"action":"click","selector":"#none","timeout":50}]}`,
	)
	w.request(t, 400, "POST", at+"/"+id+"/execute", `{"action":"click"}`)
	w.request(t, 400, "POST", at+"/"+id+"/execute", `{"action":"navigate","url":"file:///etc/passwd"}`)
	w.request(t, 408, "POST", at+"/"+id+"/execute", `{"action":"click","selector":"#none","timeout":50}`)
	w.request(t, 404, "POST", at+"/session-x/execute", `{"action":"snapshot"}`)
	w.checkInstructions(t, at, id)
	w.checkTakeovers(t, at+"/"+id)
	w.request(t, 200, "GET", at+"/"+id+"/actions?limit=2", "")
	w.request(t, 404, "GET", at+"/session-x/actions", "")
	w.request(t, 404, "GET", at+"/session-x/thumbnail", "")
	if a := w.request(t, 200, "GET", at+"/"+id+"/thumbnail", ""); a.Header.Get("Content-Type") != "image/jpeg" ||
		len(a.text) < 500 {
		t.Errorf("the thumbnail: %d bytes, %v", len(a.text), a.Header)
	}
	w.request(t, 200, "POST", at+"/"+id+"/close", "")
	w.request(t, 404, "POST", at+"/session-x/close", "")
	if a := w.request(t, 200, "GET", at+"/"+id, ""); a.json["status"] != "closed" {
		t.Errorf("a closed session is %v", a.json)
	}
	w.request(t, 200, "GET", at+"/"+id+"/actions", "")
	w.request(t, 200, "GET", at+"/"+id+"/thumbnail", "")
	w.request(t, 200, "DELETE", at+"?id="+id, "")
	w.checkDownloads(t, at, id)
	w.request(t, 404, "DELETE", at+"?id="+id, "")
}

// checkInstructions has a model carry out instructions in a session.
func (w *contractClient) checkInstructions(t *testing.T, at, id string) {
	t.Helper()
	m := newModelServer(t, func(_ int, asked map[string]any) string {
		answer := `{"value":"nothing"}`
		if strings.Contains(fmt.Sprint(asked["response_format"]), "ask_person") {
			answer = `{"note":"","action":"done","ref":"","text":"Nothing is here.","description":""}`
			if strings.Contains(fmt.Sprint(asked["messages"]), "Ask somebody") {
				answer = strings.Replace(answer, "done", "ask_person", 1)
			}
		}
		if strings.Contains(fmt.Sprint(asked["response_format"]), "actions") {
			answer = `{"actions":[{"action":"press","ref":"","text":"End","description":"Go to the end."}],"reason":""}`
		}
		return `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` +
			quoted(answer) + `}}]}`
	})
	w.request(
		t,
		200,
		"PUT",
		strings.TrimSuffix(at, "/browser")+"/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`,
	)
	for verb, missing := range map[string]string{
		"act":     `{}`,
		"observe": `{"instruction":" "}`,
		"extract": `{"instruction":"x","schema":{"type":"boat"}}`,
	} {
		w.request(t, 200, "POST", at+"/"+id+"/"+verb, `{"instruction":"Go to the end."}`)
		w.request(t, 400, "POST", at+"/"+id+"/"+verb, missing)
		w.request(t, 404, "POST", at+"/session-x/"+verb, `{"instruction":"Go to the end."}`)
	}
	w.request(t, 400, "POST", at+"/"+id+"/act", `{"instruction":"x","variables":{"a b":"c"}}`)
	w.checkBrowses(t, at+"/"+id)
	if a := w.request(
		t, 200, "POST", at+"/"+id+"/extract",
		`{"instruction":"What is here?"}`,
	); a.json["value"] != "nothing" {
		t.Errorf("what was read is %v", a.json)
	}
}

// checkBrowses has a model pursue a goal in a session.
func (w *contractClient) checkBrowses(t *testing.T, at string) {
	t.Helper()
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	for _, body := range []string{
		`{}`,
		`{"goal":"x"}`,
		`{"goal":"x","url":"ftp://x"}`,
		`{"goal":"x","url":"` + site.URL + `","hosts":["a b"]}`,
		`{"goal":"x","url":"` + site.URL + `","max_steps":101}`,
	} {
		w.request(t, 400, "POST", at+"/browse", body)
	}
	w.request(t, 400, "POST", at+"/browse?wait=301", `{"goal":"x","url":"`+site.URL+`"}`)
	a := w.request(t, 201, "POST", at+"/browse?wait=60", `{"goal":"See what is here.","url":"`+site.URL+`"}`)
	if steps, _ := a.json["steps"].([]any); a.json["status"] != "done" ||
		a.json["result"] != "Nothing is here." ||
		len(steps) != 1 {
		t.Errorf("the browse is %s", a.text)
	}
	one := at + "/browse/" + a.json["id"].(string)
	w.request(t, 200, "GET", one+"?wait=1", "")
	w.request(t, 409, "POST", one+"/cancel", "")
	waits := w.create(t, at+"/browse", `{"goal":"Ask somebody.","url":"`+site.URL+`"}`)
	w.request(t, 409, "POST", at+"/browse", `{"goal":"x","url":"`+site.URL+`"}`)
	if a := w.request(t, 200, "POST", at+"/browse/"+waits+"/cancel", ""); a.json["status"] != "cancelled" {
		t.Errorf("a cancelled browse is %s", a.text)
	}
	w.request(t, 404, "GET", at+"/browse/browse-x", "")
	w.request(t, 404, "POST", at+"/browse/browse-x/cancel", "")
	w.request(t, 200, "GET", at+"/browse", "")
}

func (w *contractClient) checkDownloads(t *testing.T, at, session string) {
	at = strings.TrimSuffix(at, "/browser")
	db, err := w.folder.Agent(strings.TrimPrefix(at, "/api/agents/"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := db.ReceiveFile(t.Context(), "a.txt", "text/plain", strings.NewReader("hello"), 10)
	if err != nil {
		t.Fatal(err)
	}
	made, err := db.CreateDownload(
		t.Context(),
		agent.Download{SessionID: session, Name: "a.txt", URL: "https://example.com/a.txt", Status: agent.DownloadDone},
		file,
	)
	if err != nil {
		t.Fatal(err)
	}
	w.request(t, 200, "GET", at+"/downloads?session_id="+session, "")
	if a := w.request(t, 200, "GET", at+"/downloads/"+made.ID, ""); a.text != "hello" ||
		a.Header.Get("Content-Disposition") != "attachment; filename=a.txt" {
		t.Errorf("the download: %q %v", a.text, a.Header)
	}
	w.request(t, 204, "DELETE", at+"/downloads/"+made.ID, "")
	w.request(t, 404, "GET", at+"/downloads/"+made.ID, "")
}

// TestServerWithoutBrowser runs a server that has no Chromium to start.
func TestServerWithoutBrowser(t *testing.T) {
	v, server := openWith(t, func(o *Options) {
		o.Browser = browser.New(browser.Options{
			Env: store.Env{Folder: o.Folder, Log: o.Log},
			Find: func(context.Context) (browser.Program, error) {
				return browser.Program{}, &install.Missing{
					What:   "Chromium",
					Reason: "secret path",
					Run:    install.Command,
				}
			},
		})
	})
	if err := server.options.Browser.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.options.Browser.Stop)
	a := v.must(t, 500, "POST", "/api/agents/default/browser", `{}`)
	if got := at(a, "error.code"); got != "BROWSER_ERROR" {
		t.Errorf("without a browser: %v", a)
	}
	if list := v.must(t, 200, "GET", "/api/agents/default/browser", ""); len(list["sessions"].([]any)) != 0 {
		t.Errorf("a session that could not be opened is listed: %v", list)
	}
}
