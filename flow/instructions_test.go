package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/browse"
	"satchel/agent/chat"
	"satchel/agent/credentials"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

const (
	shopUser     = "ada-lovelace"
	shopPassword = "hunter22-secret"
)

// shopPages is a site whose pages, addresses and titles show what was typed.
var shopPages = map[string]string{
	"/": `<title>Shop</title><form action="/in"><label>Name <input name=user></label><label>Password ` +
		`<input type=password name=pw></label><button>Sign in</button></form>`,
	"/in": `<title>Welcome, %s</title><p>Your password is %s.</p><a href="/orders">Orders</a>`,
	"/orders": `<title>Orders</title><p>You have 3 orders.</p><label>Password again <input type=password></label>
		<button onclick="document.querySelector('p').textContent = 'Confirmed'">Confirm</button>`,
}

// startLogin serves shopPages.
func startLogin(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page := shopPages[r.URL.Path]
		if r.URL.Path == "/in" {
			page = fmt.Sprintf(page, r.FormValue("user"), r.FormValue("pw"))
		}
		fmt.Fprint(w, "<!doctype html>", page)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// shopModel is a fake language model for the shop. It records its prompts.
type shopModel struct {
	mu      sync.Mutex
	prompts []string
}

func (m *shopModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct{ Content string }
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	prompt := ""
	for _, message := range request.Messages {
		prompt += message.Content + "\n"
	}
	m.mu.Lock()
	m.prompts = append(m.prompts, prompt)
	m.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{
			"message":       map[string]any{"role": "assistant", "content": answerOf(prompt)},
			"finish_reason": "stop",
		}},
	})
}

// answerOf returns the model's answer to a prompt.
func answerOf(prompt string) string {
	has := func(text string) bool { return strings.Contains(prompt, text) }
	switch {
	case has("Buy a boat."):
		return `{"actions":[],"reason":"There is no boat."}`
	case has("Leave the shop."):
		return nextStep(planAction("navigate", "", "http://elsewhere.example/"))
	case has("You read a web page"):
		return `{"value":"` +
			regexp.MustCompile(`Your password is (\S+)\.`).FindStringSubmatch(prompt + "Your password is unknown.")[1] +
			`"}`
	case has("Write the result as JSON"):
		return `{"orders":3}`
	case has("You look at a web page"):
		return string(mustJSON(map[string]any{
			"actions": []any{planAction("click", refIn(prompt, `link "Orders"`), "")},
			"reason":  "",
		}))
	case has("Choose the actions that carry out"):
		return string(mustJSON(map[string]any{
			"actions": []any{
				planAction("type", refIn(prompt, `textbox "Name"`), "%USER%"),
				planAction("type", refIn(prompt, `textbox "Password"`), "%PASSWORD%"),
				planAction("click", refIn(prompt, `button "Sign in"`), ""),
			},
			"reason": "",
		}))
	case has(`link "Orders"`):
		return nextStep(planAction("click", refIn(prompt, `link "Orders"`), ""))
	case has("Confirmed"):
		return nextStep(planAction("done", "", "There are 3 orders."))
	case has("]: %PASSWORD%"):
		return nextStep(planAction("click", refIn(prompt, `button "Confirm"`), ""))
	}
	return nextStep(planAction("type", refIn(prompt, `"Password again"`), "%PASSWORD%"))
}

func planAction(action, ref, text string) map[string]string {
	return map[string]string{"action": action, "ref": ref, "text": text, "description": "as instructed"}
}

// nextStep returns an action as the answer to the prompt of a browse node.
func nextStep(action map[string]string) string {
	action["note"] = ""
	return string(mustJSON(action))
}

// refIn returns the ref of the element in a prompt whose line contains a text.
func refIn(prompt, label string) string {
	m := regexp.MustCompile(`(?m)^.*` + regexp.QuoteMeta(label) + `.*?\[ref=(\w+)\]`).FindStringSubmatch(prompt)
	if m == nil {
		return "none"
	}
	return m[1]
}

// instructedEngine is an engine with a browser that is controlled by instructions.
type instructedEngine struct {
	*Engine
	db    *store.DB
	model *shopModel
	url   string // of the model
	log   bytes.Buffer
}

func openInstructed(t *testing.T) *instructedEngine {
	t.Helper()
	x := &instructedEngine{model: &shopModel{}}
	x.db, x.Engine, _ = openWithBrowser(t)
	model := httptest.NewServer(x.model)
	t.Cleanup(model.Close)
	x.url = model.URL
	log := slog.New(slog.NewTextHandler(&x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	chats := chat.New(chat.Options{
		Model: llm.New(llm.Options{Allow: loopback}),
		Index: vector.New(x.options.Folder, vector.Local(), log),
		Log:   log,
	})
	n := browse.New(browse.Options{Chat: chats, Live: x.browsing.live, Log: log})
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	x.Instruct(n, credentials.New(credentials.Options{Env: store.Env{Folder: x.options.Folder, Log: log}}).Variables)
	for _, c := range []struct {
		name  string
		kind  agent.CredentialType
		value map[string]string
	}{
		{"shop-login", agent.CredentialEnv, map[string]string{"USER": shopUser, "PASSWORD": shopPassword}},
		{"warehouse", agent.CredentialHeader, map[string]string{"X-Key": "abc"}},
	} {
		if _, err := x.db.CreateCredential(
			t.Context(),
			agent.Credential{Name: c.name, Type: c.kind, Hosts: []string{"shop.example"}},
			c.value,
		); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// fails checks that a graph fails at a node.
func (x *instructedEngine) fails(t *testing.T, name, graph, node string, code agent.Code, says string) {
	t.Helper()
	s := execute(
		t,
		x.db,
		x.Engine,
		createWorkflow(t, x.db, x.Engine, "t trigger\n"+graph),
		string(mustJSON(map[string]any{"shop": startLogin(t)})),
	)
	if e := s.Execution.Error; e == nil ||
		e.NodeID != node ||
		e.Code != string(code) ||
		!strings.Contains(e.Message, says) {
		t.Errorf("%s: %s %+v", name, s.Execution.Status, e)
	}
}

// TestInstructionNodes signs in, observes, extracts and browses to a goal by the
// instructions of nodes, with a login that only the site receives. The second
// run repeats the actions of the first.
func TestInstructionNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and does not test concurrency")
	}
	x := openInstructed(t)
	const opened = `n navigate {"url":"{{shop}}"}
		t -> n
		n -> a
		`
	for node, data := range map[string]string{
		"act":     `{"instruction":"Sign in."}`,
		"observe": `{"instruction":"Sign in."}`,
		"extract": `{"instruction":"What is here?"}`,
		"browse":  `{"goal":"Sign in."}`,
	} {
		x.fails(
			t,
			node+" without a model",
			opened+"a "+node+" "+data,
			"a",
			agent.CodeValidation,
			"llm_provider is not set",
		)
	}
	if _, err := x.db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider: agent.Some("openai-compatible"),
		LLMModel:    agent.Some("small"),
		LLMBaseURL:  agent.Some(x.url),
	}); err != nil {
		t.Fatal(err)
	}
	x.checkRuns(t)
	x.fails(
		t,
		"no matching action",
		opened+`a act {"instruction":"Buy a boat."}`,
		"a",
		agent.CodeInvalidAction,
		"There is no boat.",
	)
	x.fails(
		t,
		"another host",
		opened+`a browse {"goal":"Leave the shop.","takeover":false}`,
		"a",
		agent.CodeExecution,
		"allowed hosts",
	)
	x.fails(t, "no session", `a observe {"instruction":"Sign in."}
		t -> a`, "a", agent.CodeConflict, "open one with a navigate node")
	x.fails(
		t,
		"no such login",
		opened+`a act {"instruction":"Sign in.","credential":"nobody"}`,
		"a",
		agent.CodeValidation,
		"credential",
	)
	x.fails(
		t,
		"a login of another type",
		opened+`a browse {"goal":"Sign in.","credential":"warehouse"}`,
		"a",
		agent.CodeValidation,
		"type env",
	)
	x.checkSecrets(t)
}

// checkRuns runs the whole workflow twice.
func (x *instructedEngine) checkRuns(t *testing.T) {
	t.Helper()
	w := createWorkflow(t, x.db, x.Engine, `t trigger
		n navigate {"url":"{{shop}}"}
		a act {"instruction":"Sign in as %USER% with %PASSWORD%.","credential":"shop-login"}
		o observe {"instruction":"Where are the orders?"}
		x extract {"instruction":"What is the password?"}
		b browse {"goal":"Count the orders.","credential":"shop-login","max_steps":"{{limit}}","takeover":false,"output_schema":{"type":"object","properties":{"orders":{"type":"integer"}},"required":["orders"]}}
		s set {"values":{"orders":"{{nodes.b.result.orders}}","after":"{{nodes.b.title}}"}}
		t -> n
		n -> a
		a -> o
		o -> x
		x -> b
		b -> s`)
	input := string(mustJSON(map[string]any{"shop": startLogin(t), "limit": "9"}))
	for _, cached := range []bool{false, true} {
		s := execute(t, x.db, x.Engine, w, input)
		if s.Execution.Status != agent.ExecutionComplete ||
			string(s.Execution.Output) != `{"orders":3,"after":"Orders"}` &&
				string(s.Execution.Output) != `{"after":"Orders","orders":3}` {
			t.Fatalf("got %s %+v %s", s.Execution.Status, s.Execution.Error, s.Execution.Output)
		}
		outputs := map[string]string{}
		for _, r := range s.Results {
			outputs[r.NodeID] = string(r.Output)
			if strings.Contains(string(r.Output), shopPassword) || strings.Contains(string(r.Output), shopUser) {
				t.Errorf("the output of %s contains the login: %s", r.NodeID, r.Output)
			}
		}
		for node, has := range map[string][]string{
			"a": {
				fmt.Sprintf(`"cached":%t`, cached),
				`"title":"Welcome, %USER%"`,
				`pw=%PASSWORD%"`, `"text":"%PASSWORD%"`,
			},
			"o": {`"selector":"role=link[name=\"Orders\"]"`, `"title":"Welcome, %USER%"`},
			"x": {`"value":"%PASSWORD%"`, `pw=%PASSWORD%"`},
			"b": {`"status":"done"`, `"step":3`, `"text":"%PASSWORD%"`, `/orders"`},
		} {
			for _, text := range has {
				if !strings.Contains(outputs[node], text) {
					t.Errorf("cached %t: no %s in %s: %s", cached, text, node, outputs[node])
				}
			}
		}
	}
}

// checkSecrets checks that the login is in no prompt, log or file of the agent.
func (x *instructedEngine) checkSecrets(t *testing.T) {
	t.Helper()
	x.model.mu.Lock()
	defer x.model.mu.Unlock()
	texts := map[string]string{"the log": x.log.String(), "a prompt": strings.Join(x.model.prompts, "\n")}
	stored := false
	err := filepath.Walk(x.options.Folder.Path(), func(path string, info os.FileInfo, err error) error {
		if err != nil || !strings.Contains(path, ".db") {
			return err
		}
		raw, err := os.ReadFile(path)
		texts[path] = string(raw)
		stored = stored ||
			strings.Contains(texts[path], "Your password is %PASSWORD%") ||
			strings.Contains(texts[path], "pw=%PASSWORD%")
		return err
	})
	if err != nil || !stored {
		t.Fatalf("none of %d texts records the actions: %v", len(texts), err)
	}
	for where, text := range texts {
		for _, secret := range []string{shopUser, shopPassword} {
			if strings.Contains(text, secret) {
				at := strings.Index(text, secret)
				t.Errorf("%s contains %s: %q", where, secret, text[max(at-200, 0):at+len(secret)])
			}
		}
	}
}
