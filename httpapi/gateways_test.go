package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func (w *contractClient) checkGateways(t *testing.T, agent string) {
	t.Helper()
	id := w.create(
		t,
		agent+"/gateways",
		`{"type":"smtp","name":"Mail","config":{"smtpHost":"127.0.0.1","smtpPort":1,"fromAddress":"a@example.com"}}`,
	)
	at := agent + "/gateways/" + id
	w.request(t, 400, "POST", agent+"/gateways", `{"type":"x","name":"y"}`)
	w.request(t, 200, "GET", agent+"/gateways", "")
	w.request(t, 200, "GET", at, "")
	w.request(t, 200, "PUT", at, `{"is_default":true}`)
	w.request(t, 200, "POST", at+"/verify", "")
	w.request(t, 200, "GET", at, "")
	w.request(t, 204, "DELETE", at, "")
	w.request(t, 404, "GET", at, "")
	site := w.create(
		t,
		agent+"/gateways",
		`{"type":"web","name":"Site","config":{"allowedOrigins":["https://shop.example.com"],`+
			`"hours":"Mon-Fri 09:00-17:00"}}`,
	)
	w.request(t, 200, "GET", agent+"/gateways/"+site+"/widget", "")
	w.request(t, 200, "POST", agent+"/gateways/"+site+"/verify", "")
	visitor := w.request(
		t,
		201,
		"POST",
		agent+"/gateways/"+site+"/simulate",
		`{"from":"visitor-1","name":"Ada","text":"Have you a price list?"}`,
	)
	body, media := multipartForm(t, map[string]string{"content": "Here it is"}, "prices.csv", []byte("bread,3\n"), nil)
	w.requestWith(
		t,
		201,
		"POST",
		agent+"/conversations/"+visitor.json["conversation_id"].(string)+"/files",
		body,
		media,
	)
	made := w.request(
		t, 201, "POST", agent+"/gateways",
		`{"type":"webhook","name":"Hook","config":{"url":"https://example.com/"}}`,
	)
	at = agent + "/gateways/" + made.json["id"].(string)
	w.request(t, 200, "POST", at+"/webhook/register", "")
	w.request(t, 200, "POST", at+"/webhook/register", `{"baseUrl":"https://satchel.example"}`)
	w.request(t, 400, "POST", at+"/webhook/register", `{"baseUrl":"x"}`)
	w.request(t, 409, "POST", at+"/test", `{"to":"ada","text":"Hello"}`)
	url, _ := newWebhookTarget(t)
	w.request(t, 200, "PUT", at, `{"config":{"url":"`+url+`"}}`)
	w.request(t, 200, "POST", at+"/verify", "")
	w.request(t, 200, "POST", at+"/test", `{"to":"ada","text":"Hello"}`)
	w.request(t, 400, "POST", at+"/test", `{"to":"","text":"Hello"}`)
	w.request(t, 401, "POST", at+"/webhook", `{}`)
	signed := &contractClient{
		w.with("X-Webhook-Secret", made.json["webhook_secret"].(string)),
		w.described,
		w.seen,
		w.all,
	}
	signed.request(t, 200, "POST", at+"/webhook", `{"from":"ada","text":"Hello"}`)
	signed.request(t, 400, "POST", at+"/webhook", `{`)
	signed.request(t, 413, "POST", at+"/webhook", strings.Repeat(" ", 1<<20+1))
	signed.request(t, 404, "POST", agent+"/gateways/gateway-none/webhook", `{}`)
}

// TestGateway checks a gateway from its creation to its deletion, and looks for its
// secrets where they must not be.
func TestGateway(t *testing.T) {
	c := newOwnClient(t)
	resend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer re_plaintext_key" {
			w.WriteHeader(401)
			return
		}
		_, _ = w.Write([]byte(`{"data":[{"name":"example.com","status":"verified"}]}`))
	}))
	t.Cleanup(resend.Close)
	const at = "/api/agents/default/gateways"
	first := c.must(
		t, 201, "POST", at,
		`{"type":"resend","name":"One","is_default":true,"config":{"apiKey":"re_plaintext_key",`+
			`"fromAddress":"a@example.com","apiBaseUrl":"`+resend.URL+`"}}`,
	)
	id, secret := first["id"].(string), first["webhook_secret"].(string)
	if first["type"] != "email" ||
		first["status"] != "inactive" ||
		first["is_default"] != true ||
		first["config"] != nil ||
		first["webhook_url"] != at+"/"+id+"/webhook" ||
		!strings.HasPrefix(secret, "whsec_") ||
		!reflect.DeepEqual(first["configured_fields"], []any{"apiBaseUrl", "apiKey", "fromAddress", "provider"}) {
		t.Errorf("created %v", first)
	}
	verified := c.must(t, 200, "POST", at+"/"+id+"/verify", "")
	if verified["success"] != true || nested(verified, "info.fromDomainVerified") != true || verified["error"] != nil {
		t.Errorf("verified %v", verified)
	}
	if g := c.must(t, 200, "GET", at+"/"+id, ""); g["status"] != "active" ||
		g["verified"] != true ||
		g["webhook_secret"] != nil {
		t.Errorf("after verify %v", g)
	}
	if g := c.must(t, 200, "PUT", at+"/"+id, `{"name":"Renamed"}`); g["status"] != "active" || g["name"] != "Renamed" {
		t.Errorf("a new name changed %v", g)
	}
	if g := c.must(
		t, 200, "PUT", at+"/"+id,
		`{"config":{"apiKey":"re_wrong_key"}}`,
	); g["status"] != "inactive" || g["verified"] != false {
		t.Errorf("new credentials left %v", g)
	}
	verified = c.must(t, 200, "POST", at+"/"+id+"/verify", "")
	if verified["success"] != false ||
		verified["info"] != nil ||
		!strings.Contains(verified["error"].(string), "refused the API key") {
		t.Errorf("verified %v", verified)
	}
	second := c.must(t, 201, "POST", at, `{"type":"smtp","name":"Two","is_default":true}`)
	if g := c.must(t, 200, "GET", at+"/"+id, ""); g["is_default"] != false ||
		g["status"] != "error" ||
		g["last_error"] == "" {
		t.Errorf("next to another default %v", g)
	}
	if v := c.must(t, 200, "POST", at+"/"+second["id"].(string)+"/verify", ""); v["success"] != false ||
		!strings.Contains(v["error"].(string), "config.smtpHost missing") {
		t.Errorf("verify of an empty config %v", v)
	}
	for _, path := range []string{"", "/" + id, "?type=resend"} {
		if a := c.send(t, "GET", at+path, ""); strings.Contains(a.text, "re_") && strings.Contains(a.text, "_key") ||
			strings.Contains(a.text, secret) {
			t.Errorf("%s shows a secret: %s", path, a.text)
		}
	}
	backup := c.send(t, "POST", "/api/agents/default/backup", "")
	for _, plain := range []string{"re_plaintext_key", "re_wrong_key", strings.TrimPrefix(secret, "whsec_")} {
		if strings.Contains(backup.text, plain) {
			t.Errorf("the file has %s in plain text", plain)
		}
	}
	c.must(t, 204, "DELETE", at+"/"+id, "")
	left := c.must(t, 200, "POST", "/api/agents/default/sql/execute", `{"query":"SELECT count(*) FROM gateways"}`)
	if got := nested(left, "rows.0.0"); !reflect.DeepEqual(got, nested(c.must(t, 200, "GET", at, ""), "meta.total")) {
		t.Errorf("%v gateways by SQL", got)
	}
}

// TestGatewayTest verifies a bot with a wrong token, then with the right one, and sends
// test messages through it.
func TestGatewayTest(t *testing.T) {
	c := newTestClient(t)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !strings.HasPrefix(r.URL.Path, "/bot1:right/"):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"ok":false,"description":"Unauthorized"}`)
		case strings.HasSuffix(r.URL.Path, "/getMe"):
			fmt.Fprint(w, `{"ok":true,"result":{"id":1,"is_bot":true,"username":"shop_bot"}}`)
		case strings.Contains(string(body), `"chat_id":42`):
			fmt.Fprint(w, `{"ok":true,"result":{"message_id":7,"chat":{"id":42}}}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"ok":false,"description":"Bad Request: chat not found"}`)
		}
	}))
	t.Cleanup(ts.Close)
	path := "/api/agents/default/gateways/" + c.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"telegram","name":"Bot","config":{"botToken":"1:wrong","apiBaseUrl":"`+ts.URL+`"}}`,
	)["id"].(string)
	if v := c.must(t, 200, "POST", path+"/verify", ""); v["success"] != false ||
		v["field"] != "config.botToken" ||
		v["error"] != "Telegram refused the bot token (401)" {
		t.Errorf("a wrong token: %v", v)
	}
	if a := c.send(t, "POST", path+"/test", `{"to":"42","text":"Hello"}`); a.StatusCode != 409 {
		t.Errorf("a test before it is verified: %d %s", a.StatusCode, a.text)
	}
	c.must(t, 200, "PUT", path, `{"config":{"botToken":"1:right"}}`)
	if v := c.must(t, 200, "POST", path+"/verify", ""); v["success"] != true || v["field"] != nil {
		t.Errorf("the right token: %v", v)
	}
	if sent := c.must(
		t, 200, "POST", path+"/test",
		`{"to":"42","text":"Hello"}`,
	); sent["success"] != true || sent["message_id"] != "7" {
		t.Errorf("sent: %v", sent)
	}
	if sent := c.must(t, 200, "POST", path+"/test", `{"to":"43","text":"Hello"}`); sent["success"] != false ||
		!strings.Contains(sent["error"].(string), "no such chat") {
		t.Errorf("sent without a recipient: %v", sent)
	}
	if a := c.send(t, "POST", path+"/test", `{"to":"42","text":" "}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "text" {
		t.Errorf("without a text: %d %s", a.StatusCode, a.text)
	}
}

// TestRegisterWithoutPublicURL checks that baseUrl is optional: without any public
// address nothing is changed on a platform, and the instructions for people say so.
func TestRegisterWithoutPublicURL(t *testing.T) {
	c := newTestClient(t)
	calls := 0
	platform := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	t.Cleanup(platform.Close)
	for kind, config := range map[string]string{
		"team_chat":      `"botToken":"x","signingSecret":"s"`,
		"chatbot_b":      `"provider":"sms_provider","accountSid":"AC1","authToken":"t","phoneNumber":"+1"`,
		"email":          `"provider":"email_provider_a","fromAddress":"a@example.com","apiKey":"k"`,
		"community_chat": `"botToken":"b","applicationId":"1","publicKey":"` + strings.Repeat("ab", 32) + `"`,
		"sms":            `"accountSid":"AC1","authToken":"t","phoneNumber":"+1"`,
	} {
		made := c.must(
			t,
			201,
			"POST",
			"/api/agents/default/gateways",
			`{"type":"`+kind+`","name":"x","config":{"apiBaseUrl":"`+platform.URL+`",`+config+`}}`,
		)
		got := c.must(t, 200, "POST", "/api/agents/default/gateways/"+made["id"].(string)+"/webhook/register", "")
		byHand := kind != "community_chat" && kind != "sms"
		reason, _ := got[map[bool]string{true: "instructions", false: "error"}[byHand]].(string)
		if got["success"] != byHand ||
			!strings.Contains(reason, "SATCHEL_PUBLIC_URL") ||
			byHand && !strings.HasSuffix(fmt.Sprint(got["webhookUrl"]), fmt.Sprint(made["webhook_url"])) {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if calls != 0 {
		t.Errorf("platforms were called %d times", calls)
	}
}
