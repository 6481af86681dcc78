package browser

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

func TestDownloadsAreKept(t *testing.T) {
	t.Parallel()
	b, db := ownAgent(t, "downloads")
	disconnected := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="../../evil name.txt"`)
			_, _ = w.Write([]byte("hello"))
		case "/endless":
			defer close(disconnected)
			w.Header().Set("Content-Disposition", "attachment")
			for chunk := bytes.Repeat([]byte("x"), 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<a id="file" href="/file">get</a>`))
		}
	}))
	t.Cleanup(web.Close)
	s := openIn(t, b, db, agent.SessionOptions{})
	must(t, s, `{"action":"navigate","url":"`+web.URL+`/"}`)
	must(t, s, `{"action":"click","selector":"#file"}`)
	if got := must(t, s, `{"action":"navigate","url":"`+web.URL+`/endless"}`); got["download"] != true {
		t.Errorf("navigating to a download: %v", got)
	}
	<-disconnected
	waited := must(t, s, `{"action":"wait","download":true}`)["download"].(agent.Download)
	if _, err := do(t, s, `{"action":"wait","download":true}`); agent.ErrorCode(err) != agent.CodeBrowser ||
		!strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("waiting for the endless download: %v", err)
	}
	list, _, err := db.Downloads(t.Context(), s.ID(), store.Page{
		Limit: 10,
		Order: []store.Order{{Field: "size", Desc: true}},
	})
	if err != nil || len(list) != 2 || list[0] != waited {
		t.Fatalf("%+v, %v; waited for %+v", list, err, waited)
	}
	if _, err := do(
		t,
		s,
		`{"action":"wait","download":true,"timeout":1}`,
	); agent.ErrorCode(err) != agent.CodeActionTimeout {
		t.Errorf("waiting for a third download: %v", err)
	}
	if d := list[0]; d.Status != agent.DownloadDone ||
		d.Size != 5 ||
		d.SessionID != s.ID() ||
		d.URL != web.URL+"/file" ||
		agent.FileName(d.Name) != d.Name {
		t.Errorf("the file: %+v", d)
	}
	if d := list[1]; d.Status != agent.DownloadFailed || d.Error == "" {
		t.Errorf("the endless download: %+v", d)
	}
	file, err := db.DownloadFile(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := file.WriteTo(t.Context(), &got); err != nil || got.String() != "hello" {
		t.Errorf("got %q, %v", got.String(), err)
	}
	if _, err := db.DownloadFile(t.Context(), list[1].ID); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the file of a failed download: %v", err)
	}
	if err := db.DeleteDownload(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DownloadFile(t.Context(), list[0].ID); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("after its deletion: %v", err)
	}
}
