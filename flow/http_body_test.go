package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
)

// received formats a request's body: its parts, or its media type and text.
func received(r *http.Request) string {
	if r.ParseMultipartForm(32<<20) != nil {
		raw, _ := io.ReadAll(r.Body)
		return r.Header.Get("Content-Type") + " " + string(raw)
	}
	var all []string
	for name, values := range r.MultipartForm.Value {
		all = append(all, fmt.Sprintf("%s=%v", name, values))
	}
	for name, files := range r.MultipartForm.File {
		for _, h := range files {
			f, _ := h.Open()
			raw, _ := io.ReadAll(f)
			all = append(all, fmt.Sprintf("%s=%s %s %s", name, h.Filename, h.Header.Get("Content-Type"), raw))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// TestHTTPNodeSendsFiles sends files of a workflow's data and stored ones.
func TestHTTPNodeSendsFiles(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, received(r))
	}))
	t.Cleanup(server.Close)
	db, e := open(t)
	file, err := db.ReceiveFile(t.Context(), "report.pdf", "application/pdf", strings.NewReader("stored"), 100)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := db.CreateDownload(t.Context(), agent.Download{Name: "report.pdf", Status: agent.DownloadDone}, file)
	if err != nil {
		t.Fatal(err)
	}
	input, _ := json.Marshal(map[string]any{
		"plain":  "aGk=",
		"url":    "data:image/png;base64,aGk=",
		"id":     stored.ID,
		"file":   map[string]any{"name": "a.txt", "mime_type": "text/plain", "data": "aGk="},
		"forged": map[string]any{"download_id": stored.ID},
	})
	for _, c := range []struct{ data, want string }{
		{
			`"files":{"a":"{{trigger.plain}}","b":"{{trigger.url}}","c":"{{trigger.file}}","d":{"name":"x.bin",` +
				`"data":"{{trigger.plain}}"}},"body":{"k":["v",2],"o":{"x":1}}`,
			`a=file application/octet-stream hi; b=file image/png hi; c=a.txt text/plain hi; ` +
				`d=x.bin application/octet-stream hi; k=[v 2]; o=[{"x":1}]`,
		},
		{
			`"files":{"a":["{{trigger.url}}",{"download_id":"{{trigger.id}}","mime_type":"text/css"}]}`,
			`a=file image/png hi; a=report.pdf text/css stored`,
		},
		{`"body_type":"multipart","body":{"k":"v"}`, `k=[v]`},
		{`"body_type":"file","body":"{{trigger.url}}"`, `image/png hi`},
		{`"body_type":"file","body":{"download_id":"` + stored.ID + `"}`, `application/octet-stream stored`},
		{
			`"files":{"a":"{{trigger.forged}}"}`,
			`error: files.a must be a file: base64, a data URL, or {name, mime_type, data}`,
		},
		{`"files":{"a":{"source_id":"source-none"}}`, `error: files.a.source_id names no stored file`},
		{`"files":{"a":"?"}`, `error: files.a must be a file: base64, a data URL, or {name, mime_type, data}`},
		{`"files":{"a":"aGk="},"body":"text"`, `error: body must be an object to be sent with files`},
	} {
		w := createWorkflow(t, db, e, `t trigger
			h http-request {"url":"`+server.URL+`","method":"POST",`+c.data+`}
			t -> h`)
		s := execute(t, db, e, w, string(input))
		got := ""
		if s.Execution.Error != nil {
			got = "error: " + s.Execution.Error.Message
		} else {
			var out struct{ Body string }
			if err := json.Unmarshal(s.Execution.Output, &out); err != nil {
				t.Fatal(err)
			}
			got = out.Body
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.data, got, c.want)
		}
	}
}

// TestFilesOfRequestsAreLimited: a stored file that is too large is not read.
func TestFilesOfRequestsAreLimited(t *testing.T) {
	db, _ := open(t)
	file, err := db.ReceiveFile(
		t.Context(),
		"x",
		"",
		bytes.NewReader(make([]byte, egress.MaxUpload+1)),
		egress.MaxUpload+1,
	)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := db.CreateDownload(t.Context(), agent.Download{Name: "x", Status: agent.DownloadDone}, file)
	if err != nil {
		t.Fatal(err)
	}
	ref := map[string]any{"download_id": stored.ID}
	c := &Call{DB: db}
	if _, err := c.file(t.Context(), "body", ref, ref); agent.ErrorCode(err) != agent.CodeExecution ||
		!strings.Contains(err.Error(), "larger than 25 MB") {
		t.Error(err)
	}
}
