package flow

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/gateways"
)

// TestEmailNode sends by a workflow: templates in an HTML body are escaped, and
// the key is that of the run.
func TestEmailNode(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	g := gateways.New(gateways.Options{Folder: folder, Allow: loopback})
	e.Register(MessageKinds(g))
	var keys []string
	var mails []map[string]any
	resend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/emails" {
			raw, _ := io.ReadAll(r.Body)
			mail := map[string]any{}
			_ = json.Unmarshal(raw, &mail)
			mails, keys = append(mails, mail), append(keys, r.Header.Get("Idempotency-Key"))
		}
		_, _ = w.Write([]byte(`{"id":"mail-1","data":[]}`))
	}))
	t.Cleanup(resend.Close)
	db := folder.Default()
	made1, _, err := g.Create(t.Context(), db, "resend", agent.GatewayChange{Name: agent.Some("Mail"), Config: agent.Some(agent.GatewayConfigChange{
		APIKey: agent.Some("k"), FromAddress: agent.Some("a@example.com"), APIBaseURL: agent.Some(resend.URL)})})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Verify(t.Context(), db, made1.ID); err != nil || !v.Success {
		t.Fatal(v, err)
	}
	w := made(t, db, e, `t trigger
		m email {"to":["{{email}}","b@example.com"],"cc":"\"C, Cy\" <c@example.com>, d@example.com","subject":"Hi {{name}}","body":"<p>{{name}}</p>","html":true}
		t -> m`)
	s := ran(t, db, e, w, `{"email":"ada@example.com","name":"<b>Ada</b>"}`)
	if got := string(s.Execution.Output); got != `{"accepted":["ada@example.com","b@example.com","c@example.com","d@example.com"],"message_id":"mail-1"}` {
		t.Errorf("%s, output %s", story(s.Results), got)
	}
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	if m["html"] != "<p>&lt;b&gt;Ada&lt;/b&gt;</p>" || m["subject"] != "Hi <b>Ada</b>" || m["text"] != nil ||
		!reflect.DeepEqual(m["to"], []any{"ada@example.com", "b@example.com"}) || !reflect.DeepEqual(m["cc"], []any{`"C, Cy" <c@example.com>`, "d@example.com"}) {
		t.Errorf("mail %v", m)
	}
	if !strings.HasSuffix(keys[0], ":m:0") || !strings.HasPrefix(keys[0], "execution-") {
		t.Errorf("key %q", keys[0])
	}
}
