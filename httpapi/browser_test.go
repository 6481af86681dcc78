package httpapi

import (
	"context"
	"os"
	"sync"
	"testing"

	room "satchel/browser"
	"satchel/browser/install"
)

// installedBrowser makes Chromium and its driver ready by the product's own
// installer, once.
var installedBrowser = sync.OnceValues(func() (room.Program, error) {
	p, err := install.Ready(context.Background(), install.Options{
		Chromium: os.Getenv("SATCHEL_CHROMIUM"), Driver: os.Getenv("SATCHEL_BROWSER_DRIVER"), Getenv: os.Getenv})
	return room.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
})

func (w *witness) askOfBrowser(t *testing.T, at string) {
	at += "/browser"
	id := w.made(t, at, `{"viewport":{"width":800,"height":600},"locale":"en-GB","timezone":"Europe/Berlin"}`)
	w.ask(t, 400, "POST", at, `{"viewport":{"width":1,"height":600}}`)
	w.ask(t, 200, "GET", at, "")
	w.ask(t, 200, "GET", at+"/"+id, "")
	w.ask(t, 404, "GET", at+"/session-x", "")
	w.ask(t, 200, "POST", at+"/"+id+"/execute", `{"action":"evaluate","script":"1 + 1"}`)
	w.ask(t, 200, "POST", at+"/"+id+"/execute", `{"actions":[{"action":"snapshot"},{"action":"click","selector":"#none","timeout":50}]}`)
	w.ask(t, 400, "POST", at+"/"+id+"/execute", `{"action":"click"}`)
	w.ask(t, 400, "POST", at+"/"+id+"/execute", `{"action":"navigate","url":"file:///etc/passwd"}`)
	w.ask(t, 408, "POST", at+"/"+id+"/execute", `{"action":"click","selector":"#none","timeout":50}`)
	w.ask(t, 404, "POST", at+"/session-x/execute", `{"action":"snapshot"}`)
	w.askOfTakeovers(t, at+"/"+id)
	w.ask(t, 200, "DELETE", at+"?id="+id, "")
	w.ask(t, 404, "DELETE", at+"?id="+id, "")
}

// TestServerWithoutBrowser has no Chromium to start.
func TestServerWithoutBrowser(t *testing.T) {
	v, server := openWith(t, func(o *Options) {
		o.Browser = room.New(room.Options{Folder: o.Folder, Log: o.Log, Find: func(context.Context) (room.Program, error) {
			return room.Program{}, &install.Missing{What: "Chromium", Reason: "secret path", Run: install.Line}
		}})
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
