package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAttachments checks that the files of a message are downloaded, that a workflow can
// read one, and that browsers receive them without running anything in them.
func TestAttachments(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(
			w,
			map[string]string{
				"/a.png": "\x89PNG\x0D\x0A\x1A\x0A picture",
				"/b":     `<html><script>alert(1)</script>`,
			}[r.URL.Path],
		)
	}))
	t.Cleanup(files.Close)
	c := newTestClient(t)
	const base = "/api/agents/default"
	c.must(t, 201, "POST", base+"/workflows", `{"name":"Files","status":"active","nodes":[{"id":"start","type":"trigger","data":{"event":"message.received"}},
		{"id":"file","type":"attachment","data":{"message_id":"{{message.id}}"}}],"edges":[{"source":"start","target":"file"}]}`)
	gateway := c.must(
		t, 201, "POST", base+"/gateways",
		`{"type":"webhook","name":"Shop","config":{"secret":"0123456789abcdef"}}`,
	)
	address := base + "/gateways/" + gateway["id"].(string)
	c.must(t, 200, "POST", address+"/verify", "")
	c.with("X-Webhook-Secret", "0123456789abcdef").must(
		t, 200, "POST", address+"/webhook",
		`{"id":"1","from":"ada","attachments":[{"url":"`+files.URL+`/a.png","name":"a.png"},{"url":"`+files.URL+
			`/b","name":"b.png","mime_type":"image/png"}]}`,
	)
	message := base + "/messages/1/attachments/"
	c.until(t, message+"1", "is downloaded", func() bool { return c.send(t, "GET", message+"1", "").StatusCode == 200 })
	for path, want := range map[string]string{"0": "image/png", "1": "application/octet-stream"} {
		a := c.send(t, "GET", message+path, "")
		if a.StatusCode != 200 ||
			a.Header.Get("Content-Type") != want ||
			a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment;") ||
			!strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
	}
	c.must(t, 404, "GET", message+"2", "")
	c.must(t, 404, "GET", base+"/messages/9/attachments/0", "")
	c.must(t, 400, "GET", base+"/messages/1/attachments/x", "")
	executions := func() []any {
		return c.must(t, 200, "GET", base+"/workflows/executions?status=complete", "")["executions"].([]any)
	}
	c.until(t, base, "the workflow is complete", func() bool { return len(executions()) == 1 })
	id := executions()[0].(map[string]any)["id"].(string)
	if read := c.must(
		t,
		200,
		"GET",
		base+"/workflows/executions/"+id+"/nodes/file?part=output",
		"",
	); !strings.Contains(fmt.Sprint(read), "image/png") {
		t.Errorf("%v", read)
	}
}
