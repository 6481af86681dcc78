package gateways

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// described returns the metadata of an inbound message with its attachments.
func described(in agent.Inbound) []byte {
	kept := map[string]any{}
	_ = json.Unmarshal(in.Metadata, &kept)
	if len(in.Attachments) > 0 {
		kept["attachments"] = in.Attachments
	}
	raw, _ := json.Marshal(kept)
	return raw
}

const tinyPNG = "\x89PNG\x0D\x0A\x1A\x0A rest of a picture"

// receiveFiles stores a message with files, as a platform posts it.
func (c *sendFixture) receiveFiles(tb testing.TB, id string, files ...agent.Attachment) agent.Message {
	tb.Helper()
	in := agent.Inbound{
		ID:          id,
		Thread:      "T" + id,
		Text:        "Look",
		From:        agent.ContactChange{ExternalID: agent.Some("x:1")},
		Attachments: files,
	}
	got, err := c.db.ReceiveInbound(
		tb.Context(),
		c.gate.ID,
		[]store.Receipt{{EventID: id, Messages: []agent.Inbound{in}}},
		0,
	)
	if err != nil || len(got.Messages) != 1 {
		tb.Fatalf("got %+v, %v", got, err)
	}
	return got.Messages[0]
}

// attachment waits for a file of a message and returns it as the message
// describes it, with its bytes.
func (c *sendFixture) attachment(tb testing.TB, m agent.Message, n int) (agent.Attachment, string, error) {
	tb.Helper()
	f, err := c.Attachment(tb.Context(), c.db, m.ID, n)
	_, messages, e := c.db.Conversation(tb.Context(), m.ConversationID, 10)
	if e != nil {
		tb.Fatal(e)
	}
	var kept struct{ Attachments []agent.Attachment }
	if e := json.Unmarshal(messages[0].Metadata, &kept); e != nil || len(kept.Attachments) <= n {
		tb.Fatalf("got %s, %v", messages[0].Metadata, e)
	}
	return kept.Attachments[n], string(f.Data), err
}

func TestAttachmentsAreDownloaded(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host got the credential")
		}
		fmt.Fprint(w, tinyPNG)
	}))
	t.Cleanup(elsewhere.Close)
	for name, tc := range map[string]struct {
		account  string
		answers  map[string][]string
		file     agent.Attachment
		want     string // name, media type and size
		authCall string // the call that must carry the credential
	}{
		"slack": {
			"slack",
			map[string][]string{"GET /files/a.bin": {"200 %PDF-1.7 bytes"}},
			agent.Attachment{URL: "BASE/files/a.bin", Name: "../bill.pdf", MimeType: "image/png"},
			"bill.pdf application/pdf 14",
			"GET /files/a.bin",
		},
		"whatsapp": {
			"whatsapp",
			map[string][]string{"GET /media/1": {"200 " + tinyPNG}},
			agent.Attachment{URL: "BASE/media/1", MimeType: "image/png"},
			"image.png image/png 26",
			"GET /media/1",
		},
		"wrong media type": {
			"slack",
			map[string][]string{"GET /f": {"200 <svg onload=alert(1)>"}},
			agent.Attachment{URL: "BASE/f", Name: "a.png", MimeType: "image/png"},
			"a.png text/plain 21",
			"GET /f",
		},
		"discord": {
			"discord",
			nil,
			agent.Attachment{URL: elsewhere.URL + "/f", Name: "f.png"},
			"f.png image/png 26",
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSendFixture(t, tc.account, tc.answers)
			tc.file.URL = strings.Replace(tc.file.URL, "BASE", c.vendor.URL, 1)
			a, data, err := c.attachment(t, c.receiveFiles(t, "1", tc.file), 0)
			if got := fmt.Sprint(a.Name, " ", a.MimeType, " ", a.Size); err != nil ||
				got != tc.want ||
				a.Status != agent.AttachmentStored ||
				int64(len(data)) != a.Size {
				t.Fatalf("got %s, %q, %+v, %v", got, data, a, err)
			}
			for _, call := range c.vendor.calls() {
				if call.call == tc.authCall && call.header.Get("Authorization") != accounts[tc.account].header {
					t.Errorf("%s has %q", call.call, call.header.Get("Authorization"))
				}
			}
		})
	}
}

// TestCredentialsStayWithTheirPlatform: a redirect is followed without the
// credential, and a URL of another host is not requested at all.
func TestCredentialsStayWithTheirPlatform(t *testing.T) {
	requests := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; r.Header.Get("Authorization") != "" {
			t.Error("another host got the credential")
		}
		fmt.Fprint(w, tinyPNG)
	}))
	t.Cleanup(elsewhere.Close)
	media := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/stored", http.StatusTemporaryRedirect))
	t.Cleanup(media.Close)
	c := newSendFixture(t, "whatsapp", nil)
	m := c.receiveFiles(t, "1", agent.Attachment{URL: elsewhere.URL + "/direct"})
	if a, _, err := c.attachment(t, m, 0); agent.ErrorCode(err) != agent.CodeNotFound ||
		a.Status != agent.AttachmentFailed ||
		!strings.Contains(a.Error, "platform's own addresses") ||
		requests != 0 {
		t.Errorf("%+v, %v, %d requests", a, err, requests)
	}
	config := agent.GatewayConfigChange{APIBaseURL: agent.Some(media.URL), AuthToken: agent.Some("auth-secret")}
	if _, err := c.Update(t.Context(), c.db, c.gate.ID, agent.GatewayChange{Config: agent.Some(config)}); err != nil {
		t.Fatal(err)
	}
	c.sql(t, "UPDATE gateways SET status = 'active'")
	m = c.receiveFiles(t, "2", agent.Attachment{URL: media.URL + "/m"})
	if a, data, err := c.attachment(t, m, 0); err != nil || data != tinyPNG || requests != 1 {
		t.Errorf("%+v, %q, %v, %d requests", a, data, err, requests)
	}
}

func TestFailedAttachments(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{
		"GET /gone":  {"404 no"},
		"GET /login": {"200 <html>log in</html>"},
		"GET /busy":  {"503 later", "200 hello"},
		"GET /large": {"200 " + strings.Repeat("x", agent.MaxAttachmentBytes+2)},
	})
	for path, want := range map[string]string{
		"/gone":  "404",
		"/login": "may not read files",
		"/large": "larger than 20 MB",
	} {
		m := c.receiveFiles(t, path, agent.Attachment{URL: c.vendor.URL + path, MimeType: "image/png"})
		if a, _, err := c.attachment(t, m, 0); err == nil ||
			a.Status != agent.AttachmentFailed ||
			!strings.Contains(a.Error, want) ||
			strings.Contains(a.Error, "xoxb-secret") {
			t.Errorf("%s: %+v, %v", path, a, err)
		}
	}
	m := c.receiveFiles(t, "busy", agent.Attachment{URL: c.vendor.URL + "/busy"})
	if a, _, err := c.attachment(t, m, 0); agent.ErrorCode(err) != agent.CodeConflict ||
		a.Status != agent.AttachmentPending {
		t.Errorf("got %+v, %v", a, err)
	}
	c.clock.pass(filePauses[0])
	if a, data, err := c.attachment(t, m, 0); err != nil || data != "hello" || a.Error != "" {
		t.Errorf("got %+v, %q, %v", a, data, err)
	}
	if r, err := c.db.SQL(
		t.Context(),
		"SELECT count(*) FROM messages",
		store.Params{},
		store.Access{},
	); err != nil || fmt.Sprint(r.Rows) != "[[4]]" {
		t.Errorf("%v, %v: a message was lost", r.Rows, err)
	}
}

// TestKilledWhileDownloading: attempts are counted before they begin, so that a
// download that kills the program each time is given up.
func TestKilledWhileDownloading(t *testing.T) {
	c := newSendFixture(t, "slack", nil)
	c.Stop()
	m := c.receiveFiles(t, "1", agent.Attachment{URL: c.vendor.URL + "/f"})
	for range fileAttempts { // the state after each kill
		if d, err := c.db.BeginAttachment(t.Context(), m.ConversationID, agent.At(c.now())); err != nil || d == nil {
			t.Fatal(d, err)
		}
	}
	c.restart(t)
	if a, _, err := c.attachment(t, m, 0); err == nil ||
		a.Status != agent.AttachmentFailed ||
		!strings.Contains(a.Error, "cut off") {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, call := range c.vendor.calls() {
		if call.call == "GET /f" {
			t.Error("it was downloaded again")
		}
	}
}

// TestTelegramFile: the path of a file is requested from Telegram first. The
// token, which is part of the file's URL, does not appear in errors.
func TestTelegramFile(t *testing.T) {
	token := "42:secret"
	v := newFakePlatform(t, map[string][]string{
		"POST /bot42:secret/getFile": {
			`200 {"ok":true,"result":{"file_id":"F1","file_size":26,"file_path":"photos/file_3.jpg"}}`,
			`400 {"ok":false,"description":"Bad Request: file is too big"}`,
		},
		"GET /file/bot42:secret/photos/file_3.jpg": {"200 " + tinyPNG, "302 x"},
	})
	o := newMailFixture(t)
	d := &store.AttachmentDownload{Attachment: agent.Attachment{ID: "F1", Type: "photo"}, Gateway: store.OpenGateway{
		Gateway: agent.Gateway{ID: "g", Type: agent.GatewayTelegram},
		Config:  agent.GatewayConfig{APIBaseURL: v.URL, BotToken: token},
	}}
	u, err := o.download(t.Context(), o.db, d)
	if err != nil || u.Name != "photo.jpg" || u.MediaType != "image/png" || u.Size != 26 {
		t.Fatalf("got %+v, %v", u, err)
	}
	u.Discard()
	if _, err := o.download(t.Context(), o.db, d); err == nil || !strings.Contains(fileProblem(err), "20 MB") {
		t.Errorf("got error %v", err)
	}
	if text := fileProblem(fmt.Errorf("Get %q: refused", v.URL+"/file/bot"+token)); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// TestAttachmentsAreDeletedWithTheirMessage: deleting a conversation deletes the
// attachments of its messages.
func TestAttachmentsAreDeletedWithTheirMessage(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{"GET /f": {"200 " + tinyPNG}})
	m := c.receiveFiles(t, "1", agent.Attachment{URL: c.vendor.URL + "/f"}, agent.Attachment{URL: c.vendor.URL + "/f"})
	for n := range 2 {
		if _, _, err := c.attachment(t, m, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.db.DeleteConversation(t.Context(), m.ConversationID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.Attachment(t.Context(), m.ID, 0); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Error(err)
	}
}
