package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/store/sqlite"
)

const smallPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// sendFiles sends a visitor's message with files, given alternately as name and content.
func (c *testClient) sendFiles(t *testing.T, path, id, text string, files ...string) answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("id", id)
	_ = form.WriteField("text", text)
	for i := 0; i < len(files); i += 2 {
		part, _ := form.CreateFormFile("file", files[i])
		_, _ = part.Write([]byte(files[i+1]))
	}
	_ = form.Close()
	return c.do(t, "POST", path, &body, form.FormDataContentType())
}

// storedUploads returns the number of files whose bytes are in the agent's file.
func (c *testClient) storedUploads(t *testing.T) (n int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, []byte(c.send(t, "POST", "/api/agents/default/backup", "").text), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(sqlite.Source{Path: path, Mode: sqlite.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		db.QueryRow("SELECT count(DISTINCT upload) FROM _file_parts").Scan(&n),
		db.Close(),
	); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVisitorFiles checks that visitors' files are stored like those of other gateways,
// that people can send files back, and that nobody else gets either.
func TestVisitorFiles(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, shopWidget)
	_, other, _ := c.createWidget(t, shopWidget)
	ada, bob, stranger := c.asVisitor(t, path), c.asVisitor(t, path), c.asVisitor(t, other)
	next := ada.visitorEvents(t, path, "")
	if hello := waitEvent(t, next, "hello", anyEvent); fmt.Sprint(at(hello, "files.max")) != "5" {
		t.Errorf("%v", hello)
	}
	if a := ada.sendFiles(
		t, path+"/messages", "1", "", "../../bill?.pdf", "%PDF-1.7 bill", "a.png", smallPNG, "page.txt",
		"<html><script>alert(1)</script>",
	); a.StatusCode != 201 {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	if a := ada.sendFiles(t, path+"/messages", "1", "", "bill.pdf", "%PDF-1.7 bill"); a.StatusCode != 200 {
		t.Errorf("a repeat: %d %s", a.StatusCode, a.text)
	}
	said := waitEvent(t, next, "message", anyEvent)
	names := fmt.Sprint(at(said, "files.0.name"), at(said, "files.1.mime_type"), at(said, "files.2.mime_type"))
	if said["text"] != "" || !strings.HasPrefix(names, "bill_.pdf") || said["client_id"] != "1" {
		t.Errorf("%v", said)
	}
	conversation := at(c.must(t, 200, "GET", "/api/agents/default/conversations", ""), "conversations.0.id").(string)
	messages := c.must(t, 200, "GET", "/api/agents/default/conversations/"+conversation, "")
	if text := fmt.Sprint(at(messages, "messages.0.content")); !strings.HasPrefix(text, "[file: ") ||
		!strings.Contains(text, "[image: a.png]") {
		t.Errorf("the agent reads %s", text)
	}
	if at(messages, "messages.0.metadata.attachments.1.status") != "stored" {
		t.Errorf("%v", messages)
	}
	id := fmt.Sprint(said["id"])
	for n, want := range []string{"application/pdf", "image/png", "application/octet-stream"} {
		at := fmt.Sprintf("/%s/%d", id, n)
		for name, a := range map[string]answer{
			"visitor": ada.send(t, "GET", path+"/files"+at, ""),
			"person":  c.send(t, "GET", "/api/agents/default/messages/"+id+"/attachments/"+fmt.Sprint(n), ""),
		} {
			if a.StatusCode != 200 ||
				a.Header.Get("Content-Type") != want ||
				!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") ||
				a.Header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s, %s: %d %v", name, want, a.StatusCode, a.Header)
			}
		}
		for name, status := range map[*testClient]int{bob: 404, c: 401} {
			if a := name.send(t, "GET", path+"/files"+at, ""); a.StatusCode != status {
				t.Errorf("another visitor gets %d %s", a.StatusCode, a.text)
			}
		}
		if a := stranger.send(t, "GET", other+"/files"+at, ""); a.StatusCode != 404 {
			t.Errorf("over another widget %d", a.StatusCode)
		}
	}
	for _, none := range []string{"/" + id + "/3", "/" + id + "/-1", "/" + id + "/x", "/x/0", "/999/0"} {
		if a := ada.send(t, "GET", path+"/files"+none, ""); a.StatusCode != 404 {
			t.Errorf("%s: %d", none, a.StatusCode)
		}
	}
	sent := c.sendFiles(
		t,
		"/api/agents/default/conversations/"+conversation+"/files",
		"", "", "offer.pdf", "%PDF-1.7 offer",
	)
	if sent.StatusCode != 201 ||
		at(sent.json, "metadata.author") != "human" ||
		at(sent.json, "content") != "[file: offer.pdf]" {
		t.Fatalf("%d %s", sent.StatusCode, sent.text)
	}
	answer := waitEvent(t, next, "message", func(m map[string]any) bool { return m["from"] == "person" })
	if answer["text"] != "" || at(answer, "files.0.name") != "offer.pdf" {
		t.Errorf("%v", answer)
	}
	if a := ada.send(t, "GET", fmt.Sprintf("%s/files/%v/0", path, answer["id"]), ""); a.text != "%PDF-1.7 offer" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := bob.send(t, "GET", fmt.Sprintf("%s/files/%v/0", path, answer["id"]), ""); a.StatusCode != 404 {
		t.Errorf("another visitor gets %d", a.StatusCode)
	}
	chat := c.must(t, 201, "POST", "/api/agents/default/conversations", `{}`)["id"].(string)
	for name, at := range map[string]string{"no widget": chat, "no conversation": "conversation-none"} {
		if a := c.sendFiles(
			t,
			"/api/agents/default/conversations/"+at+"/files",
			"", "x", "a.pdf", "%PDF-1.7",
		); a.StatusCode != 400 && a.StatusCode != 404 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"note","content":"ours","metadata":{"attachments":[{"name":"x","status":"stored"}]}}`,
	)
	if n := c.storedUploads(t); n != 4 {
		t.Errorf("%d files are stored", n)
	}
}

// TestVisitorFileLimits checks that files that a widget does not accept leave nothing
// behind.
func TestVisitorFileLimits(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(
		t,
		`{"allowedOrigins":["`+shopOrigin+
			`"],"maxFiles":2,"maxFileSize":1,"fileTypes":[".PDF","png"],"messagesPerMinute":100}`,
	)
	_, off, _ := c.createWidget(t, `{"allowedOrigins":["`+shopOrigin+`"],"files":false}`)
	ada := c.asVisitor(t, path)
	pdf := "%PDF-1.7 "
	for name, tc := range map[string]struct {
		status int
		files  []string
	}{
		"one too many":   {400, []string{"a.pdf", pdf, "b.pdf", pdf, "c.pdf", pdf}},
		"too large":      {413, []string{"a.pdf", pdf, "b.pdf", pdf + strings.Repeat("x", 1<<20)}},
		"another type":   {400, []string{"a.pdf", pdf, "b.txt", "text"}},
		"not a picture":  {400, []string{"a.png", "<html>"}},
		"a program":      {400, []string{"a.pdf", "MZ\x90"}},
		"empty":          {400, []string{"a.pdf", ""}},
		"without a file": {400, nil},
	} {
		if a := ada.sendFiles(t, path+"/messages", "1", "Hello", tc.files...); a.StatusCode != tc.status {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
	if a := ada.sendFiles(t, path+"/messages", "", "without an id", "a.pdf", pdf); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "id" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	visitor := c.asVisitor(t, off)
	if a := visitor.sendFiles(t, off+"/messages", "1", "", "a.pdf", pdf); a.StatusCode != 403 {
		t.Errorf("disabled: %d %s", a.StatusCode, a.text)
	}
	if hello := waitEvent(t, visitor.visitorEvents(t, off, ""), "hello", anyEvent); hello["files"] != nil {
		t.Errorf("%v", hello)
	}
	if n := c.storedUploads(t); n != 0 {
		t.Errorf("%d files are left behind", n)
	}
	if a := c.sendFiles(t, path+"/messages", "1", "", "a.pdf", pdf); a.StatusCode != 401 {
		t.Errorf("without a token: %d", a.StatusCode)
	}
}

// TestVisitorFileBudget checks that a visitor's bytes per day are limited, however many
// messages they use.
func TestVisitorFileBudget(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, `{"allowedOrigins":["`+shopOrigin+`"],"maxFileSize":20,"messagesPerMinute":100}`)
	ada, bob := c.asVisitor(t, path), c.asVisitor(t, path)
	big := "%PDF-1.7 " + strings.Repeat("x", 19<<20)
	for n, want := range []int{201, 201, 429} {
		if a := ada.sendFiles(t, path+"/messages", fmt.Sprint(n), "", "a.pdf", big); a.StatusCode != want {
			t.Errorf("message %d: %d %s", n, a.StatusCode, a.text)
		}
	}
	ada.must(t, 201, "POST", path+"/messages", `{"id":"text","text":"Text goes on"}`)
	if a := bob.sendFiles(t, path+"/messages", "1", "", "a.pdf", "%PDF-1.7"); a.StatusCode != 201 {
		t.Errorf("another visitor: %d %s", a.StatusCode, a.text)
	}
	if n := c.storedUploads(t); n != 3 {
		t.Errorf("%d files are stored", n)
	}
}
