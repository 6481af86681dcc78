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

// fakeServices plays every company that templates talk to, a model and web sites, and
// records its requests.
type fakeServices struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
	down  bool   // whether the site of the shop is down
	says  string // the model's answer
	page  string // the text of the watched page
	rows  int    // how often the sheet was read
}

func newFakeServices(t *testing.T) *fakeServices {
	o := &fakeServices{page: "We open at seven."}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

// answers are the companies' responses, by the end of the path.
var answers = []struct{ path, answer string }{
	{"/getMe", `{"ok":true,"result":{"id":77,"is_bot":true,"first_name":"Shop","username":"shop_bot"}}`},
	{"/sendMessage", `{"ok":true,"result":{"message_id":500,"chat":{"id":42}}}`},
	{"/deleteWebhook", `{"ok":true,"result":true}`},
	{
		"/auth.test",
		`{"ok":true,"team":"Shop","team_id":"T1","user":"bot","user_id":"U1","bot_id":"B1",` +
			`"url":"https://shop.slack.com/"}`,
	},
	{"/chat.postMessage", `{"ok":true,"channel":"C1","ts":"1.2"}`},
	{"/users/@me", `{"id":"9","username":"docs"}`},
	{"/applications/@me", `{"id":"9","name":"docs"}`},
	{"/messages", `{"id":"3","channel_id":"645"}`},
	{"/domains", `{"data":[{"name":"shop.example","status":"verified"}]}`},
	{"/emails", `{"id":"mail-1"}`},
	{"/Messages.json", `{"sid":"SM1","to":"+4915112345678"}`},
	{"/Accounts/AC1.json", `{"sid":"AC1","friendly_name":"Shop","status":"active","type":"Full"}`},
	{"/refunds", `{"id":"refund-1"}`},
	{"/people", `{"company":"Analytical Engines"}`},
}

func (o *fakeServices) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/getUpdates") { // no messages from users
		<-r.Context().Done()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), body))
	switch r.URL.Path {
	case "/model/models":
		fmt.Fprint(w, `{"data":[{"id":"qwen3:4b"}]}`)
		return
	case "/model/chat/completions":
		w.Header().Set("Content-Type", "application/json")
		said, _ := json.Marshal(o.says)
		if bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(
				w,
				"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},"+
					"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
				said,
			)
			return
		}
		fmt.Fprintf(
			w,
			`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`,
			said,
		)
		return
	case "/token":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"token-of-the-sheet","token_type":"Bearer","expires_in":3600}`)
		return
	case "/v4/spreadsheets/sheet-1/values/A:C": // each time it is read, it has one more row
		w.Header().Set("Content-Type", "application/json")
		sheet := [][]string{
			{"Name", "Product", "Price"},
			{"Ada", "Rye", "4.20"},
			{"Bob", "Spelt", "3.90"},
			{"Cid", "Oat", "5.10"},
		}
		o.rows = min(o.rows+1, len(sheet)-1)
		_ = json.NewEncoder(w).Encode(map[string]any{"range": "A:C", "values": sheet[:o.rows+1]})
		return
	case "/site":
		if o.down {
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprintf(
			w,
			"<title>Shop</title><main><p>%s Bread of many kinds for everybody who comes by.</p></main>",
			o.page,
		)
		return
	case "/login", "/form":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(
			w,
			`<form onsubmit="event.preventDefault(); const p = document.createElement('p'); p.id = 'result'; `+
				`p.textContent = 'Booked for ' + this.name.value + ', ' + this.email.value; this.after(p)">`+
				`<input name=name><input name=email><button type=submit>Send</button></form>`,
		)
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

func (o *fakeServices) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// requested counts the calls that contain all of these texts.
func (o *fakeServices) requested(texts ...string) int {
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

// templateFixture is an agent on which templates are tried.
type templateFixture struct {
	*testing.T
	*service
	out *fakeServices
}

const onDefault = "/agents/default"

// gateway returns the config of a platform whose API is the fake services.
func (f *templateFixture) gateway(platform string) map[string]any {
	c := map[string]any{"apiBaseUrl": f.out.URL + "/" + platform}
	for name, value := range map[string]map[string]any{
		"telegram": {"botToken": "77:t"},
		"slack":    {"botToken": "xoxb-1", "signingSecret": "s"},
		"discord":  {"botToken": "b", "applicationId": "9", "publicKey": strings.Repeat("ab", 32)},
		"email":    {"apiKey": "re_1", "fromAddress": "hi@shop.example"},
		"sms":      twilioConfig,
		"whatsapp": twilioConfig,
	}[platform] {
		c[name] = value
	}
	return c
}

var twilioConfig = map[string]any{"accountSid": "AC1", "authToken": "t", "phoneNumber": "+15005550006"}

// activate sets a template up, verifies its gateways and activates it.
func (f *templateFixture) activate(id string, values map[string]any) (made map[string]any, workflow string) {
	f.Helper()
	made = f.call(f.T, "POST", onDefault+"/templates/"+id, map[string]any{"values": values}, 201)
	for _, g := range made["gateways"].([]any) {
		if v := f.call(f.T, "POST", onDefault+"/gateways/"+f.id(g)+"/verify", nil, 200); v["success"] != true {
			f.Fatalf("verify: %v", v)
		}
	}
	workflow = f.id(made["workflow"])
	if status := made["workflow"].(map[string]any)["status"]; status != "draft" {
		f.Errorf("the workflow is %v", status)
	}
	for _, s := range made["sources"].([]any) {
		f.waitFor(f.T, onDefault, "/sources/"+f.id(s), "ready")
	}
	f.call(f.T, "PUT", onDefault+"/workflows/"+workflow, map[string]any{"status": "active"}, 200)
	for _, s := range made["schedules"].([]any) {
		if status := s.(map[string]any)["status"]; status != "paused" {
			f.Errorf("the schedule is %v", status)
		}
		change := map[string]any{"status": "active"}
		if s.(map[string]any)["type"] == "cron" {
			change["cron_expression"] = "0 0 1 1 *" // only runSchedule runs it
		}
		f.call(f.T, "PUT", onDefault+"/schedules/"+f.id(s), change, 200)
	}
	return made, workflow
}

func (f *templateFixture) id(record any) string { return record.(map[string]any)["id"].(string) }

// newGateway returns the id of the nth gateway that was created.
func (f *templateFixture) newGateway(made map[string]any) string {
	return f.id(made["gateways"].([]any)[0])
}

// waitExecution waits until the newest of n executions of a workflow has ended.
func (f *templateFixture) waitExecution(workflow string, n int) (execution map[string]any) {
	f.Helper()
	f.until(f.T, onDefault, fmt.Sprintf("the end of execution %d of %s", n, workflow), func() bool {
		list := f.executions(workflow)
		if len(list) < n || list[0]["status"] == "queued" || list[0]["status"] == "running" {
			return false
		}
		execution = f.execution(list[0])
		return true
	})
	return execution
}

// executions returns a workflow's executions, newest first.
func (f *templateFixture) executions(workflow string) []map[string]any {
	f.Helper()
	var list []map[string]any
	for _, x := range f.call(
		f.T,
		"GET",
		onDefault+"/workflows/executions?workflow_id="+workflow,
		nil,
		200,
	)["executions"].([]any) {
		list = append(list, x.(map[string]any))
	}
	return list
}

// execution reads an execution that has ended, which must be complete.
func (f *templateFixture) execution(listed map[string]any) map[string]any {
	f.Helper()
	x := f.call(f.T, "GET", onDefault+"/workflows/executions/"+f.id(listed), nil, 200)
	if x["status"] != "complete" {
		raw, _ := json.MarshalIndent(x, "", " ")
		f.Fatalf("the execution is %v: %s", x["status"], raw)
	}
	return x
}

// decideApproval waits until an approval of a workflow is waiting, and decides it.
func (f *templateFixture) decideApproval(workflow, node, decision, comment string) {
	f.Helper()
	f.until(f.T, onDefault, "an approval of "+node, func() bool {
		for _, w := range f.call(f.T, "GET", onDefault+"/waiting", nil, 200)["waiting"].([]any) {
			w := w.(map[string]any)
			if w["workflow_id"] == workflow && w["node_id"] == node {
				f.call(
					f.T,
					"POST",
					onDefault+"/workflows/executions/"+w["execution_id"].(string)+"/resume",
					map[string]any{"node_id": node, "data": map[string]any{"decision": decision, "comment": comment}},
					200,
				)
				return true
			}
		}
		if list := f.executions(workflow); len(list) > 0 && list[0]["status"] == "error" {
			f.execution(list[0])
		}
		return false
	})
}

func (f *templateFixture) simulate(gateway, from, text string) {
	f.Helper()
	f.call(
		f.T,
		"POST",
		onDefault+"/gateways/"+gateway+"/simulate",
		map[string]any{"from": from, "name": "Ada", "text": text, "send": true},
		201,
	)
}

func (f *templateFixture) runSchedule(made map[string]any) {
	f.Helper()
	path := onDefault + "/schedules/" + f.id(made["schedules"].([]any)[0])
	f.until(f.T, onDefault, "the end of the previous run", func() bool { // the run ends after its execution
		runs := f.call(f.T, "GET", path, nil, 200)["executions"].([]any)
		return len(runs) == 0 || runs[0].(map[string]any)["status"] != "running"
	})
	f.call(f.T, "POST", path+"/run", nil, 200)
}

// hook posts to a workflow's webhook and returns the response.
func (f *templateFixture) hook(workflow, body string, header map[string]string) string {
	f.Helper()
	req, err := http.NewRequestWithContext(
		f.Context(),
		"POST",
		f.url+onDefault+"/hooks/"+workflow,
		strings.NewReader(body),
	)
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		f.Fatalf("hook: %d %s", resp.StatusCode, raw)
	}
	return string(raw)
}

func (f *templateFixture) wantRequest(texts ...string) {
	f.Helper()
	if f.out.requested(texts...) == 0 {
		f.out.set(func() { f.Errorf("no request has %q:\n%s", texts, strings.Join(f.out.calls, "\n")) })
	}
}

// run is the test of one template: what it is set up with, and what is done with it.
var templateRuns = map[string]func(*templateFixture){
	"telegram-handbook": func(f *templateFixture) {
		book := f.call(f.T, "POST", onDefault+"/sources", upload{"handbook.md", handbook, nil}, 201)
		f.waitFor(f.T, onDefault, "/sources/"+f.id(book), "ready")
		made, w := f.activate("telegram-handbook", map[string]any{
			"telegram": f.gateway("telegram"),
			"handbook": f.id(book),
		})
		f.out.set(func() { f.out.says = `{"known":true,"answer":"Within two days."}` })
		f.simulate(f.newGateway(made), "42", "Can I bring a loaf back?")
		f.waitExecution(w, 1)
		f.wantRequest("/sendMessage", "Within two days.", `"chat_id":42`)
		f.wantRequest("/model/chat/completions", "bring it back within two days")
		f.out.set(func() { f.out.says = `{"known":false,"answer":""}` })
		f.simulate(f.newGateway(made), "42", "Do you bake for weddings?")
		f.decideApproval(w, "person", "approved", "We do, ask a week before.")
		f.waitExecution(w, 2)
		f.wantRequest("/sendMessage", "We do, ask a week before.")
	},
	"page-watch": func(f *templateFixture) {
		made, w := f.activate("page-watch", map[string]any{
			"url":   f.out.URL + "/site",
			"email": f.gateway("email"),
			"to":    "me@shop.example",
		})
		f.out.set(func() { f.out.page = "We open at nine now." })
		f.runSchedule(made)
		f.waitExecution(w, 1)
		f.wantRequest("/emails", "me@shop.example", "We open at nine now.")
		// nothing has changed
		f.call(f.T, "POST", onDefault+"/sources/"+f.id(made["sources"].([]any)[0])+"/refresh", nil, 200)
		f.waitFor(f.T, onDefault, "/sources/"+f.id(made["sources"].([]any)[0]), "ready")
		if n := f.out.requested("/emails", "me@shop.example"); n != 1 {
			f.Errorf("%d emails", n)
		}
	},
	"invoice-download": func(f *templateFixture) {
		_, w := f.activate("invoice-download", map[string]any{
			"url":      f.out.URL + "/login",
			"invoices": f.out.URL + "/invoices",
		})
		f.call(f.T, "POST", onDefault+"/workflows/execute", map[string]any{"workflow_id": w}, 200)
		f.decideApproval(w, "login", "approved", "")
		if file := fmt.Sprint(f.waitExecution(w, 1)["output"]); !strings.Contains(file, "invoice-7.pdf") {
			f.Errorf("the file is %s", file)
		}
	},
	"morning-figures": func(f *templateFixture) {
		made, w := f.activate("morning-figures", map[string]any{"slack": f.gateway("slack"), "channel": "C7"})
		f.runSchedule(made)
		f.waitExecution(w, 1)
		f.wantRequest("/chat.postMessage", "C7", "Since yesterday: ", " new contacts")
	},
	"github-slack": func(f *templateFixture) {
		_, w := f.activate("github-slack", map[string]any{
			"secret": "sesame",
			"slack":  f.gateway("slack"),
			"code":   "C-code",
			"issues": "C-issues",
		})
		for kind, body := range map[string]string{
			"issues": `{"action":"opened","issue":{"title":"Oven is cold","html_url":"https://github.com/a/b/1"}}`,
			"push": `{"pusher":{"name":"ada"},"commits":[{},{}],"repository":{"full_name":"a/b"},` +
				`"head_commit":{"message":"Heat it"}}`,
		} {
			mac := hmac.New(sha256.New, []byte("sesame"))
			mac.Write([]byte(body))
			f.hook(w, body, map[string]string{
				"X-GitHub-Event":      kind,
				"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
			})
		}
		f.waitExecution(w, 2)
		f.until(f.T, onDefault, "the messages to Slack", func() bool {
			return f.out.requested("/chat.postMessage", "C-issues", "Issue opened: Oven is cold") > 0 &&
				f.out.requested("/chat.postMessage", "C-code", "ada pushed 2 commits to a/b: Heat it") > 0
		})
	},
	"qualify-form": func(f *templateFixture) {
		_, w := f.activate("qualify-form", map[string]any{"email": f.gateway("email"), "to": "sales@shop.example"})
		f.out.set(func() {
			f.out.says = `{"promising":true,"topic":"A wedding cake","summary":"Wants a cake for 80."}`
		})
		if answer := f.hook(
			w,
			`{"name":"Grace","email":"Grace@Example.com","message":"A cake for 80, please"}`,
			nil,
		); answer != `{"ok":true}` && answer != "{\"ok\":true}\n" {
			f.Errorf("the visitor is shown %q", answer)
		}
		f.waitExecution(w, 1)
		f.wantRequest("/emails", "sales@shop.example", "A lead: A wedding cake", "Wants a cake for 80.")
		rows := f.call(
			f.T,
			"POST",
			onDefault+"/sql/execute",
			map[string]any{"query": "SELECT name, notes FROM contacts WHERE lower(email) = 'grace@example.com'"},
			200,
		)["rows"].([]any)
		if fmt.Sprint(rows) != "[[Grace Wants a cake for 80.]]" {
			f.Errorf("contacts: %v", rows)
		}
	},
	"welcome": func(f *templateFixture) {
		_, w := f.activate("welcome", map[string]any{"email": f.gateway("email")})
		f.call(
			f.T,
			"POST",
			onDefault+"/contacts",
			map[string]any{"name": "Vera", "email": "vera@example.com", "tags": []string{"vip"}},
			201,
		)
		f.waitExecution(w, 1)
		f.wantRequest("/emails", "vera@example.com", "Welcome, Vera")
		f.call(f.T, "POST", onDefault+"/contacts", map[string]any{"name": "Paul", "email": "paul@example.com"}, 201)
		f.waitExecution(w, 2)
		f.wantRequest("/emails", "paul@example.com", "thank you for joining us")
	},
	"refund": func(f *templateFixture) {
		_, w := f.activate("refund", map[string]any{"shop": f.out.URL + "/shop/", "token": "shop-token"})
		f.hook(w, `{"order":"A 17","amount":12.5,"reason":"Burnt"}`, nil)
		f.decideApproval(w, "decide", "approved", "Sorry about that")
		if out := fmt.Sprint(f.waitExecution(w, 1)["output"]); !strings.Contains(out, "refund-1") ||
			!strings.Contains(out, "refunded:true") {
			f.Errorf("output %s", out)
		}
		f.wantRequest("POST /shop/orders/A%2017/refunds Bearer shop-token", `"amount":12.5`, "Sorry about that")
	},
	"site-down": func(f *templateFixture) {
		made, w := f.activate("site-down", map[string]any{
			"url":   f.out.URL + "/site",
			"sms":   f.gateway("sms"),
			"phone": "+4915112345678",
		})
		for i, down := range []bool{false, true, true, false, true} {
			f.out.set(func() { f.out.down = down })
			f.runSchedule(made)
			if out := f.waitExecution(w, i+1)["output"]; out.(map[string]any)["down"] != down {
				f.Errorf("output %v", out)
			}
		}
		if n := f.out.requested("/Messages.json", "4915112345678", "is+down"); n != 2 {
			f.Errorf("%d messages, want one each time it went down", n)
		}
	},
	"whatsapp-reminder": func(f *templateFixture) {
		made, w := f.activate("whatsapp-reminder", map[string]any{
			"whatsapp": f.gateway("whatsapp"),
			"phone":    "+4915112345678",
			"minutes":  30,
		})
		span := time.Now().Truncate(5 * time.Minute).Add(30 * time.Minute)
		for i := range 3 { // one of them begins during this run, whenever that is
			at := span.Add(time.Duration(i)*5*time.Minute + time.Minute)
			f.call(
				f.T,
				"POST",
				onDefault+"/calendar",
				map[string]any{"title": "Tasting", "start_time": at.UTC().Format(time.RFC3339)},
				201,
			)
		}
		f.runSchedule(made)
		f.waitExecution(w, 1)
		if n := f.out.requested("/Messages.json", "whatsapp%3A%2B4915112345678", "Tasting+begins+at"); n != 1 {
			f.Errorf("%d reminders", n)
		}
	},
	"sort-email": func(f *templateFixture) {
		made, w := f.activate("sort-email", map[string]any{
			"email":   f.gateway("email"),
			"support": "help@shop.example",
			"sales":   "sales@shop.example",
			"billing": "bills@shop.example",
		})
		f.out.set(func() { f.out.says = `{"topic":"billing"}` })
		f.simulate(f.newGateway(made), "eve@example.com", "Where is my invoice?")
		f.waitExecution(w, 1)
		rows := f.call(
			f.T,
			"POST",
			onDefault+"/sql/execute",
			map[string]any{
				"query":  "SELECT assignee, needs_human FROM conversations WHERE gateway_id = ?",
				"params": []any{f.newGateway(made)},
			},
			200,
		)["rows"]
		if fmt.Sprint(rows) != "[[bills@shop.example 1]]" {
			f.Errorf("conversations: %v", rows)
		}
	},
	"failure-alarm": func(f *templateFixture) {
		_, w := f.activate("failure-alarm", map[string]any{"telegram": f.gateway("telegram"), "chat": "4242"})
		broken := f.call(f.T, "POST", onDefault+"/workflows", map[string]any{
			"name":   "Broken",
			"status": "active",
			"nodes": []any{
				map[string]any{"id": "t", "type": "trigger"},
				map[string]any{
					"id":   "c",
					"type": "code",
					"data": map[string]any{"code": "throw new Error('the oven is cold')"},
				},
			},
			"edges": []any{map[string]any{"source": "t", "target": "c"}},
		}, 201)
		f.call(f.T, "POST", onDefault+"/workflows/execute", map[string]any{"workflow_id": f.id(broken)}, 200)
		f.waitExecution(w, 1)
		f.wantRequest("/sendMessage", "4242", "Broken failed: ", "the oven is cold")
	},
	"enrich-contacts": func(f *templateFixture) {
		f.call(
			f.T,
			"POST",
			onDefault+"/contacts",
			map[string]any{"name": "Charles", "email": "charles@example.com"},
			201,
		)
		made, w := f.activate("enrich-contacts", map[string]any{"api": f.out.URL + "/people", "token": "people-token"})
		f.runSchedule(made)
		f.waitExecution(w, 1)
		f.wantRequest("GET /people?email=charles%40example.com Bearer people-token")
		rows := f.call(
			f.T,
			"POST",
			onDefault+"/sql/execute",
			map[string]any{
				"query": "SELECT metadata ->> '$.profile.company' FROM contacts WHERE email = 'charles@example.com'",
			},
			200,
		)["rows"]
		if fmt.Sprint(rows) != "[[Analytical Engines]]" {
			f.Errorf("contacts: %v", rows)
		}
	},
	"discord-docs": func(f *templateFixture) {
		made, w := f.activate("discord-docs", map[string]any{
			"docs":    f.out.URL + "/site",
			"discord": f.gateway("discord"),
		})
		f.out.set(func() { f.out.says = "At nine." })
		f.simulate(f.newGateway(made), "645", "When do you open?")
		f.waitExecution(w, 1)
		f.wantRequest("/discord/channels/645/messages", "At nine.", f.out.URL+"/site")
	},
	"fill-form": func(f *templateFixture) {
		_, w := f.activate("fill-form", map[string]any{"token": "form-token", "url": f.out.URL + "/form"})
		answer := f.hook(w, `{"name":"Ada","email":"ada@example.com"}`, map[string]string{
			"Authorization": "Bearer form-token",
		})
		if !strings.Contains(answer, "Booked for Ada, ada@example.com") {
			f.Errorf("the hook returns %q", answer)
		}
	},
}

// TestTemplates sets every template up and executes it to its result.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := start(
		t,
		append(
			installedBrowser(t),
			"--data", filepath.Join(t.TempDir(), "data"),
			"--outbound-allow", "127.0.0.1/32",
		)...,
	)
	out := newFakeServices(t)
	s.call(
		t,
		"PUT",
		onDefault+"/settings",
		map[string]any{
			"llm_provider": "openai-compatible",
			"llm_model":    "m",
			"llm_base_url": out.URL + "/model",
			"llm_api_key":  "k",
		},
		200,
	)
	listed := s.call(t, "GET", "/templates", nil, 200)["templates"].([]any)
	if len(listed) != 15 {
		t.Errorf("%d templates", len(listed))
	}
	for _, template := range templates.All() {
		t.Run(template.ID, func(t *testing.T) {
			run := templateRuns[template.ID]
			if run == nil {
				t.Fatal("no test executes it")
			}
			out.set(func() { out.down = false })
			run(&templateFixture{t, s, out})
		})
	}
	raw, err := json.Marshal(s.call(t, "GET", onDefault+"/workflows?limit=200", nil, 200))
	if err != nil || bytes.Contains(raw, []byte("sesame")) || bytes.Contains(raw, []byte("shop-token")) {
		t.Errorf("workflows show a secret: %v", err)
	}
}

// TestTemplatesAreAllOrNothing checks that a refused set-up leaves nothing behind.
func TestTemplatesAreAllOrNothing(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	telegram := map[string]any{"botToken": "77:t"}
	for _, c := range []struct {
		id, field string
		values    map[string]any
	}{
		{"telegram-handbook", "values.telegram", map[string]any{}},
		{
			"telegram-handbook",
			"values.telegram.botToken",
			map[string]any{"telegram": map[string]any{}, "handbook": "source-x"},
		},
		{"telegram-handbook", "values.handbook", map[string]any{"telegram": telegram, "handbook": "source-x"}},
		{"telegram-handbook", "values.telegram", map[string]any{"telegram": "gateway-x", "handbook": "source-x"}},
		{
			"telegram-handbook",
			"values.telegram.apiBaseUrl",
			map[string]any{
				"telegram": map[string]any{"botToken": "77:t", "apiBaseUrl": "http://10.0.0.1"},
				"handbook": "source-x",
			},
		},
		{
			"page-watch",
			"values.when",
			map[string]any{
				"url":   "https://shop.example",
				"email": map[string]any{"fromAddress": "a@shop.example", "apiKey": "k"},
				"to":    "b@shop.example",
				"when":  "never",
			},
		},
		{
			"page-watch",
			"url",
			map[string]any{
				"url":   "http://10.0.0.1/",
				"email": map[string]any{"fromAddress": "a@shop.example", "apiKey": "k"},
				"to":    "b@shop.example",
			},
		},
		{"whatsapp-reminder", "values.minutes", map[string]any{"whatsapp": twilioConfig, "phone": "+1", "minutes": 1}},
	} {
		e := s.call(
			t,
			"POST",
			onDefault+"/templates/"+c.id,
			map[string]any{"values": c.values},
			400,
		)["error"].(map[string]any)
		if field := e["details"].(map[string]any)["field"]; field != c.field {
			t.Errorf("%s %v: %v, want %s", c.id, c.values, e, c.field)
		}
	}
	s.call(t, "POST", onDefault+"/templates/nothing", map[string]any{}, 404)
	for path, list := range map[string]string{
		"/workflows": "workflows",
		"/gateways":  "gateways",
		"/sources":   "sources",
		"/schedules": "schedules",
	} {
		if records := s.call(t, "GET", onDefault+path, nil, 200)[list].([]any); len(records) != 0 {
			t.Errorf("%s: %v", list, records)
		}
	}
}
