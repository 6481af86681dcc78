package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/flow/templates"
)

// outside stands for every company that templates talk to, for a model and for
// web sites, and remembers what it was asked.
type outside struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
	down  bool   // the site of the shop
	says  string // what the model answers
	page  string // what the watched page says
}

func newOutside(t *testing.T) *outside {
	o := &outside{page: "We open at seven."}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

// answers are what the companies say, by what the path ends in.
var answers = []struct{ path, answer string }{
	{"/getMe", `{"ok":true,"result":{"id":77,"is_bot":true,"first_name":"Shop","username":"shop_bot"}}`},
	{"/sendMessage", `{"ok":true,"result":{"message_id":500,"chat":{"id":42}}}`},
	{"/deleteWebhook", `{"ok":true,"result":true}`},
	{"/auth.test", `{"ok":true,"team":"Shop","team_id":"T1","user":"bot","user_id":"U1","bot_id":"B1","url":"https://shop.slack.com/"}`},
	{"/chat.postMessage", `{"ok":true,"channel":"C1","ts":"1.2"}`},
	{"/users/@me", `{"id":"9","username":"docs"}`}, {"/applications/@me", `{"id":"9","name":"docs"}`},
	{"/messages", `{"id":"3","channel_id":"645"}`},
	{"/domains", `{"data":[{"name":"shop.example","status":"verified"}]}`}, {"/emails", `{"id":"mail-1"}`},
	{"/Messages.json", `{"sid":"SM1","to":"+4915112345678"}`}, {"/Accounts/AC1.json", `{"sid":"AC1","friendly_name":"Shop","status":"active","type":"Full"}`},
	{"/refunds", `{"id":"refund-1"}`}, {"/people", `{"company":"Analytical Engines"}`},
}

func (o *outside) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/getUpdates") { // nobody writes
		<-r.Context().Done()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), body))
	switch r.URL.Path {
	case "/model/chat/completions":
		w.Header().Set("Content-Type", "application/json")
		said, _ := json.Marshal(o.says)
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, said)
		return
	case "/site":
		if o.down {
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprintf(w, "<title>Shop</title><main><p>%s Bread of many kinds for everybody who comes by.</p></main>", o.page)
		return
	case "/login", "/form":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<form onsubmit="event.preventDefault(); const p = document.createElement('p'); p.id = 'result'; p.textContent = 'Booked for ' + this.name.value + ', ' + this.email.value; this.after(p)"><input name=name><input name=email><button type=submit>Send</button></form>`)
		return
	case "/invoices":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<a href="invoice-7.pdf">Invoice 7</a>`)
		return
	case "/invoice-7.pdf":
		w.Header().Set("Content-Disposition", "attachment; filename=invoice-7.pdf")
		fmt.Fprint(w, "%PDF-1.4 seven")
		return
	}
	for _, a := range answers {
		if strings.HasSuffix(r.URL.Path, a.path) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, a.answer)
			return
		}
	}
	http.NotFound(w, r)
}

func (o *outside) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// asked counts the calls that hold all of these texts.
func (o *outside) asked(texts ...string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, call := range o.calls {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(call, text)
		}
		if all {
			n++
		}
	}
	return n
}

// rig is an agent on which templates are tried.
type rig struct {
	*testing.T
	*service
	out *outside
}

const onDefault = "/agents/default"

// gateway is the config of a platform whose API is the outside.
func (r *rig) gateway(platform string) map[string]any {
	c := map[string]any{"apiBaseUrl": r.out.URL + "/" + platform}
	for name, value := range map[string]map[string]any{
		"telegram": {"botToken": "77:t"}, "slack": {"botToken": "xoxb-1", "signingSecret": "s"}, "discord": {"botToken": "b", "applicationId": "9", "publicKey": strings.Repeat("ab", 32)},
		"email": {"apiKey": "re_1", "fromAddress": "hi@shop.example"}, "sms": twilioConfig, "whatsapp": twilioConfig,
	}[platform] {
		c[name] = value
	}
	return c
}

var twilioConfig = map[string]any{"accountSid": "AC1", "authToken": "t", "phoneNumber": "+15005550006"}

// live sets a template up, verifies its gateways and activates it.
func (r *rig) live(id string, values map[string]any) (made map[string]any, workflow string) {
	r.Helper()
	made = r.call(r.T, "POST", onDefault+"/templates/"+id, map[string]any{"values": values}, 201)
	for _, g := range made["gateways"].([]any) {
		if v := r.call(r.T, "POST", onDefault+"/gateways/"+r.id(g)+"/verify", nil, 200); v["success"] != true {
			r.Fatalf("verify: %v", v)
		}
	}
	workflow = r.id(made["workflow"])
	if status := made["workflow"].(map[string]any)["status"]; status != "draft" {
		r.Errorf("the workflow is %v", status)
	}
	for _, s := range made["sources"].([]any) {
		r.waitFor(r.T, onDefault+"/sources/"+r.id(s), "ready")
	}
	r.call(r.T, "PUT", onDefault+"/workflows/"+workflow, map[string]any{"status": "active"}, 200)
	for _, s := range made["schedules"].([]any) {
		if status := s.(map[string]any)["status"]; status != "paused" {
			r.Errorf("the schedule is %v", status)
		}
		r.call(r.T, "PUT", onDefault+"/schedules/"+r.id(s), map[string]any{"status": "active"}, 200)
	}
	return made, workflow
}

func (r *rig) id(record any) string { return record.(map[string]any)["id"].(string) }

// newGateway is the id of the nth gateway that was made.
func (r *rig) newGateway(made map[string]any) string { return r.id(made["gateways"].([]any)[0]) }

// ended waits until the newest of n executions of a workflow has ended.
func (r *rig) ended(workflow string, n int) map[string]any {
	r.Helper()
	for r.Context().Err() == nil {
		list := r.call(r.T, "GET", onDefault+"/workflows/executions?workflow_id="+workflow, nil, 200)["executions"].([]any)
		if len(list) < n {
			continue
		}
		if status := list[0].(map[string]any)["status"]; status != "queued" && status != "running" {
			x := r.call(r.T, "GET", onDefault+"/workflows/executions/"+r.id(list[0]), nil, 200)
			if status != "complete" {
				raw, _ := json.MarshalIndent(x, "", " ")
				r.Fatalf("it is %v: %s", status, raw)
			}
			return x
		}
	}
	return nil
}

// waiting waits until an approval of a workflow waits, and decides it.
func (r *rig) decide(workflow, node, decision, comment string) {
	r.Helper()
	for r.Context().Err() == nil {
		for _, w := range r.call(r.T, "GET", onDefault+"/waiting", nil, 200)["waiting"].([]any) {
			w := w.(map[string]any)
			if w["workflow_id"] == workflow && w["node_id"] == node {
				r.call(r.T, "POST", onDefault+"/workflows/executions/"+w["execution_id"].(string)+"/resume",
					map[string]any{"node_id": node, "data": map[string]any{"decision": decision, "comment": comment}}, 200)
				return
			}
		}
	}
}

func (r *rig) simulate(gateway, from, text string) {
	r.Helper()
	r.call(r.T, "POST", onDefault+"/gateways/"+gateway+"/simulate", map[string]any{"from": from, "name": "Ada", "text": text}, 201)
}

func (r *rig) tick(made map[string]any) {
	r.Helper()
	r.call(r.T, "POST", onDefault+"/schedules/"+r.id(made["schedules"].([]any)[0])+"/run", nil, 200)
}

// hook posts to the webhook of a workflow and returns the answer.
func (r *rig) hook(workflow, body string, header map[string]string) string {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), "POST", r.url+onDefault+"/hooks/"+workflow, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		r.Fatalf("hook: %d %s", resp.StatusCode, raw)
	}
	return string(raw)
}

func (r *rig) wants(texts ...string) {
	r.Helper()
	if r.out.asked(texts...) == 0 {
		r.out.set(func() { r.Errorf("nobody was asked for %q:\n%s", texts, strings.Join(r.out.calls, "\n")) })
	}
}

// run is one template: what it is set up with, and what is done with it.
var templateRuns = map[string]func(*rig){
	"telegram-handbook": func(r *rig) {
		book := r.call(r.T, "POST", onDefault+"/sources", upload{"handbook.md", handbook, nil}, 201)
		r.waitFor(r.T, onDefault+"/sources/"+r.id(book), "ready")
		made, w := r.live("telegram-handbook", map[string]any{"telegram": r.gateway("telegram"), "handbook": r.id(book)})
		r.out.set(func() { r.out.says = `{"known":true,"answer":"Within two days."}` })
		r.simulate(r.newGateway(made), "42", "Can I bring a loaf back?")
		r.ended(w, 1)
		r.wants("/sendMessage", "Within two days.", `"chat_id":42`)
		r.wants("/model/chat/completions", "bring it back within two days")
		r.out.set(func() { r.out.says = `{"known":false,"answer":""}` })
		r.simulate(r.newGateway(made), "42", "Do you bake for weddings?")
		r.decide(w, "person", "approved", "We do, ask a week before.")
		r.ended(w, 2)
		r.wants("/sendMessage", "We do, ask a week before.")
	},
	"page-watch": func(r *rig) {
		made, w := r.live("page-watch", map[string]any{"url": r.out.URL + "/site", "email": r.gateway("email"), "to": "me@shop.example"})
		r.out.set(func() { r.out.page = "We open at nine now." })
		r.tick(made)
		r.ended(w, 1)
		r.wants("/emails", "me@shop.example", "We open at nine now.")
		r.call(r.T, "POST", onDefault+"/sources/"+r.id(made["sources"].([]any)[0])+"/refresh", nil, 200) // nothing has changed
		r.waitFor(r.T, onDefault+"/sources/"+r.id(made["sources"].([]any)[0]), "ready")
		if n := r.out.asked("/emails", "me@shop.example"); n != 1 {
			r.Errorf("%d emails", n)
		}
	},
	"invoice-download": func(r *rig) {
		_, w := r.live("invoice-download", map[string]any{"url": r.out.URL + "/login", "invoices": r.out.URL + "/invoices"})
		r.call(r.T, "POST", onDefault+"/workflows/execute", map[string]any{"workflow_id": w}, 200)
		r.decide(w, "login", "approved", "")
		if file := fmt.Sprint(r.ended(w, 1)["output"]); !strings.Contains(file, "invoice-7.pdf") {
			r.Errorf("the file is %s", file)
		}
	},
	"morning-figures": func(r *rig) {
		made, w := r.live("morning-figures", map[string]any{"slack": r.gateway("slack"), "channel": "C7"})
		r.tick(made)
		r.ended(w, 1)
		r.wants("/chat.postMessage", "C7", "Since yesterday: ", " new contacts")
	},
	"github-slack": func(r *rig) {
		_, w := r.live("github-slack", map[string]any{"secret": "sesame", "slack": r.gateway("slack"), "code": "C-code", "issues": "C-issues"})
		for kind, body := range map[string]string{"issues": `{"action":"opened","issue":{"title":"Oven is cold","html_url":"https://github.com/a/b/1"}}`,
			"push": `{"pusher":{"name":"ada"},"commits":[{},{}],"repository":{"full_name":"a/b"},"head_commit":{"message":"Heat it"}}`} {
			mac := hmac.New(sha256.New, []byte("sesame"))
			mac.Write([]byte(body))
			r.hook(w, body, map[string]string{"X-GitHub-Event": kind, "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil))})
		}
		r.ended(w, 2)
		r.ended(w, 2)
		for r.out.asked("/chat.postMessage", "C-issues", "Issue opened: Oven is cold") == 0 || r.out.asked("/chat.postMessage", "C-code", "ada pushed 2 commits to a/b: Heat it") == 0 {
			if r.Context().Err() != nil {
				r.Fatal("Slack was not told")
			}
		}
	},
	"qualify-form": func(r *rig) {
		_, w := r.live("qualify-form", map[string]any{"email": r.gateway("email"), "to": "sales@shop.example"})
		r.out.set(func() { r.out.says = `{"promising":true,"topic":"A wedding cake","summary":"Wants a cake for 80."}` })
		if answer := r.hook(w, `{"name":"Grace","email":"Grace@Example.com","message":"A cake for 80, please"}`, nil); answer != `{"ok":true}` && answer != "{\"ok\":true}\n" {
			r.Errorf("the visitor is told %q", answer)
		}
		r.ended(w, 1)
		r.wants("/emails", "sales@shop.example", "A lead: A wedding cake", "Wants a cake for 80.")
		rows := r.call(r.T, "POST", onDefault+"/sql/execute", map[string]any{"query": "SELECT name, notes FROM contacts WHERE lower(email) = 'grace@example.com'"}, 200)["rows"].([]any)
		if fmt.Sprint(rows) != "[[Grace Wants a cake for 80.]]" {
			r.Errorf("contacts: %v", rows)
		}
	},
	"welcome": func(r *rig) {
		_, w := r.live("welcome", map[string]any{"email": r.gateway("email")})
		r.call(r.T, "POST", onDefault+"/contacts", map[string]any{"name": "Vera", "email": "vera@example.com", "tags": []string{"vip"}}, 201)
		r.ended(w, 1)
		r.wants("/emails", "vera@example.com", "Welcome, Vera")
		r.call(r.T, "POST", onDefault+"/contacts", map[string]any{"name": "Paul", "email": "paul@example.com"}, 201)
		r.ended(w, 2)
		r.wants("/emails", "paul@example.com", "thank you for joining us")
	},
	"refund": func(r *rig) {
		_, w := r.live("refund", map[string]any{"shop": r.out.URL + "/shop/", "token": "shop-token"})
		r.hook(w, `{"order":"A 17","amount":12.5,"reason":"Burnt"}`, nil)
		r.decide(w, "decide", "approved", "Sorry about that")
		if out := fmt.Sprint(r.ended(w, 1)["output"]); !strings.Contains(out, "refund-1") || !strings.Contains(out, "refunded:true") {
			r.Errorf("output %s", out)
		}
		r.wants("POST /shop/orders/A%2017/refunds Bearer shop-token", `"amount":12.5`, "Sorry about that")
	},
	"site-down": func(r *rig) {
		made, w := r.live("site-down", map[string]any{"url": r.out.URL + "/site", "sms": r.gateway("sms"), "phone": "+4915112345678"})
		for i, down := range []bool{false, true, true, false, true} {
			r.out.set(func() { r.out.down = down })
			r.tick(made)
			if out := r.ended(w, i+1)["output"]; out.(map[string]any)["down"] != down {
				r.Errorf("output %v", out)
			}
		}
		if n := r.out.asked("/Messages.json", "4915112345678", "is+down"); n != 2 {
			r.Errorf("%d messages, want one each time that it went down", n)
		}
	},
	"whatsapp-reminder": func(r *rig) {
		made, w := r.live("whatsapp-reminder", map[string]any{"whatsapp": r.gateway("whatsapp"), "phone": "+4915112345678", "minutes": 30})
		span := time.Now().Truncate(5 * time.Minute).Add(30 * time.Minute)
		for i := range 3 { // one of them begins in the span of this run, whenever it is
			at := span.Add(time.Duration(i)*5*time.Minute + time.Minute)
			r.call(r.T, "POST", onDefault+"/calendar", map[string]any{"title": "Tasting", "start_time": at.UTC().Format(time.RFC3339)}, 201)
		}
		r.tick(made)
		r.ended(w, 1)
		if n := r.out.asked("/Messages.json", "whatsapp%3A%2B4915112345678", "Tasting+begins+at"); n != 1 {
			r.Errorf("%d reminders", n)
		}
	},
	"sort-email": func(r *rig) {
		made, w := r.live("sort-email", map[string]any{"email": r.gateway("email"), "support": "help@shop.example", "sales": "sales@shop.example", "billing": "bills@shop.example"})
		r.out.set(func() { r.out.says = `{"topic":"billing"}` })
		r.simulate(r.newGateway(made), "eve@example.com", "Where is my invoice?")
		r.ended(w, 1)
		rows := r.call(r.T, "POST", onDefault+"/sql/execute", map[string]any{"query": "SELECT assignee, needs_human FROM conversations WHERE gateway_id = ?", "params": []any{r.newGateway(made)}}, 200)["rows"]
		if fmt.Sprint(rows) != "[[bills@shop.example 1]]" {
			r.Errorf("conversations: %v", rows)
		}
	},
	"failure-alarm": func(r *rig) {
		_, w := r.live("failure-alarm", map[string]any{"telegram": r.gateway("telegram"), "chat": "4242"})
		broken := r.call(r.T, "POST", onDefault+"/workflows", map[string]any{"name": "Broken", "status": "active",
			"nodes": []any{map[string]any{"id": "t", "type": "trigger"}, map[string]any{"id": "c", "type": "code", "data": map[string]any{"code": "throw new Error('the oven is cold')"}}},
			"edges": []any{map[string]any{"source": "t", "target": "c"}}}, 201)
		r.call(r.T, "POST", onDefault+"/workflows/execute", map[string]any{"workflow_id": r.id(broken)}, 200)
		r.ended(w, 1)
		r.wants("/sendMessage", "4242", "Broken failed: ", "the oven is cold")
	},
	"enrich-contacts": func(r *rig) {
		r.call(r.T, "POST", onDefault+"/contacts", map[string]any{"name": "Charles", "email": "charles@example.com"}, 201)
		made, w := r.live("enrich-contacts", map[string]any{"api": r.out.URL + "/people", "token": "people-token"})
		r.tick(made)
		r.ended(w, 1)
		r.wants("GET /people?email=charles%40example.com Bearer people-token")
		rows := r.call(r.T, "POST", onDefault+"/sql/execute", map[string]any{"query": "SELECT metadata ->> '$.profile.company' FROM contacts WHERE email = 'charles@example.com'"}, 200)["rows"]
		if fmt.Sprint(rows) != "[[Analytical Engines]]" {
			r.Errorf("contacts: %v", rows)
		}
	},
	"discord-docs": func(r *rig) {
		made, w := r.live("discord-docs", map[string]any{"docs": r.out.URL + "/site", "discord": r.gateway("discord")})
		r.out.set(func() { r.out.says = "At nine." })
		r.simulate(r.newGateway(made), "645", "When do you open?")
		r.ended(w, 1)
		r.wants("/discord/channels/645/messages", "At nine.", r.out.URL+"/site")
	},
	"fill-form": func(r *rig) {
		_, w := r.live("fill-form", map[string]any{"token": "form-token", "url": r.out.URL + "/form"})
		answer := r.hook(w, `{"name":"Ada","email":"ada@example.com"}`, map[string]string{"Authorization": "Bearer form-token"})
		if !strings.Contains(answer, "Booked for Ada, ada@example.com") {
			r.Errorf("the hook answers %q", answer)
		}
	},
}

// TestTemplates sets every template up and executes it to its result.
func TestTemplates(t *testing.T) {
	s := start(t, append(browse(t), "--data", filepath.Join(t.TempDir(), "data"), "--outbound-allow", "127.0.0.1/32")...)
	out := newOutside(t)
	s.call(t, "PUT", onDefault+"/settings", map[string]any{"llm_provider": "openai-compatible", "llm_model": "m", "llm_base_url": out.URL + "/model", "llm_api_key": "k"}, 200)
	listed := s.call(t, "GET", "/templates", nil, 200)["templates"].([]any)
	if len(listed) != 15 {
		t.Errorf("%d templates", len(listed))
	}
	for _, template := range templates.All() {
		t.Run(template.ID, func(t *testing.T) {
			run := templateRuns[template.ID]
			if run == nil {
				t.Fatal("nothing executes it")
			}
			out.set(func() { out.down = false })
			run(&rig{t, s, out})
		})
	}
	raw, err := json.Marshal(s.call(t, "GET", onDefault+"/workflows?limit=200", nil, 200))
	if err != nil || bytes.Contains(raw, []byte("sesame")) || bytes.Contains(raw, []byte("shop-token")) {
		t.Errorf("workflows show a secret: %v", err)
	}
}

// TestTemplatesAreAllOrNothing: what is refused leaves nothing behind.
func TestTemplatesAreAllOrNothing(t *testing.T) {
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	telegram := map[string]any{"botToken": "77:t"}
	for _, c := range []struct {
		id, field string
		values    map[string]any
	}{
		{"telegram-handbook", "values.telegram", map[string]any{}},
		{"telegram-handbook", "values.telegram.botToken", map[string]any{"telegram": map[string]any{}, "handbook": "source-x"}},
		{"telegram-handbook", "values.handbook", map[string]any{"telegram": telegram, "handbook": "source-x"}},
		{"telegram-handbook", "values.telegram", map[string]any{"telegram": "gateway-x", "handbook": "source-x"}},
		{"telegram-handbook", "values.telegram.apiBaseUrl", map[string]any{"telegram": map[string]any{"botToken": "77:t", "apiBaseUrl": "http://10.0.0.1"}, "handbook": "source-x"}},
		{"page-watch", "values.when", map[string]any{"url": "https://shop.example", "email": map[string]any{"fromAddress": "a@shop.example", "apiKey": "k"}, "to": "b@shop.example", "when": "never"}},
		{"page-watch", "url", map[string]any{"url": "http://10.0.0.1/", "email": map[string]any{"fromAddress": "a@shop.example", "apiKey": "k"}, "to": "b@shop.example"}},
		{"whatsapp-reminder", "values.minutes", map[string]any{"whatsapp": twilioConfig, "phone": "+1", "minutes": 1}},
	} {
		e := s.call(t, "POST", onDefault+"/templates/"+c.id, map[string]any{"values": c.values}, 400)["error"].(map[string]any)
		if field := e["details"].(map[string]any)["field"]; field != c.field {
			t.Errorf("%s %v: %v, want %s", c.id, c.values, e, c.field)
		}
	}
	s.call(t, "POST", onDefault+"/templates/nothing", map[string]any{}, 404)
	for path, list := range map[string]string{"/workflows": "workflows", "/gateways": "gateways", "/sources": "sources", "/schedules": "schedules"} {
		if there := s.call(t, "GET", onDefault+path, nil, 200)[list].([]any); len(there) != 0 {
			t.Errorf("%s: %v", list, there)
		}
	}
}
