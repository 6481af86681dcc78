package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"satchel/store/sqlite"
)

// stored is the credential that an owner set for one host, and fresh one that an admin
// sets when changing the host.
const (
	stored = "st0red-credential"
	fresh  = "fr3sh-credential"
)

// captureServer is a server that records everything it receives.
type captureServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen strings.Builder
}

func (c *captureServer) record(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.WriteString(text + "\n")
}

// received reports whether a credential arrived, plain or in Basic authentication.
func (c *captureServer) received(credential string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.seen.String()
	for _, form := range []string{
		credential,
		base64.StdEncoding.EncodeToString([]byte("u:" + credential)),
		base64.StdEncoding.EncodeToString([]byte("AC1:" + credential)),
		base64.StdEncoding.EncodeToString([]byte("\x00u\x00" + credential)),
	} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

func (c *captureServer) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Reset()
}

// newCaptureServer starts a capturing server. Paths below /away/ redirect to another.
func newCaptureServer(t *testing.T, away string) *captureServer {
	t.Helper()
	c := &captureServer{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		c.record(fmt.Sprint(r.Method, r.RequestURI, r.Host, r.Header, string(body)))
		if rest, ok := strings.CutPrefix(r.URL.Path, "/away/"); ok {
			status := http.StatusFound
			_, _ = fmt.Sscan(rest, &status)
			w.Header().Set("Location", away+"/landed")
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(
			w,
			`{"ok":true,"result":{"id":1,"is_bot":true},"items":[{"id":1,"text":"a"}],"next":"`+away+
				`/next","data":[{"index":0,"embedding":[0.5,0.5]}],"choices":[{"index":0,"finish_reason":"stop",`+
				`"message":{"role":"assistant","content":"hi"}}]}`,
		)
	}))
	t.Cleanup(c.Close)
	return c
}

// newCaptureMailServer is a capturing mail server that offers a login without TLS.
func newCaptureMailServer(t *testing.T) (*captureServer, string) {
	t.Helper()
	c := &captureServer{Server: httptest.NewUnstartedServer(nil)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		c.Listener.Close()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serveSMTP(conn)
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return c, port
}

func (c *captureServer) serveSMTP(conn net.Conn) {
	defer conn.Close()
	_, _ = io.WriteString(conn, "220 mail ESMTP\r\n")
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		line := string(buf[:n])
		c.record(line)
		for _, word := range strings.Fields(line) {
			if plain, err := base64.StdEncoding.DecodeString(word); err == nil {
				c.record(string(plain))
			}
		}
		switch {
		case strings.HasPrefix(line, "EHLO"):
			_, _ = io.WriteString(conn, "250-mail\r\n250 AUTH PLAIN LOGIN\r\n")
		case strings.HasPrefix(line, "AUTH"):
			_, _ = io.WriteString(conn, "235 in\r\n")
		default:
			_, _ = io.WriteString(conn, "250 ok\r\n")
		}
	}
}

// redirection is one way to have a stored credential sent to another host. In its steps
// HOME is the host that the credential was set for, ELSE the other one, STORED the
// credential, FRESH another one, MASK its mask, and $0, $1, … the ids of records that
// earlier steps created.
type redirection struct {
	name string
	// steps are requests as "METHOD path body" on the agent, or "SQL query". The last
	// must be refused with 400 and name field; if field is "" it is allowed, but the
	// credential must not be sent.
	steps []string
	field string
	use   []string // requests that would send the credential
}

// redirectFixture runs redirections against a service.
type redirectFixture struct {
	*testClient
	home, other, mailHome, mailOther *captureServer
	words                            *strings.Replacer
	n, through                       int
	arrived                          bool // a fresh credential reached the other host
}

func newRedirectFixture(t *testing.T) *redirectFixture {
	h := &redirectFixture{testClient: newOwnClient(t), other: newCaptureServer(t, "")}
	h.home = newCaptureServer(t, h.other.URL)
	var mailHome, mailOther string
	h.mailHome, mailHome = newCaptureMailServer(t)
	h.mailOther, mailOther = newCaptureMailServer(t)
	local := strings.Replace(h.home.URL, "127.0.0.1", "127.0.0.2", 1)
	h.words = strings.NewReplacer(
		"HOME", h.home.URL,
		"ELSEHOST", strings.TrimPrefix(h.other.URL, "http://"),
		"ELSE", h.other.URL,
		"STORED", stored,
		"FRESH", fresh,
		"MASK", "********",
		"TLS", strings.Replace(h.home.URL, "http:", "https:", 1),
		"LOCAL", local,
		"MAILPORT", mailHome,
		"OTHERPORT", mailOther,
	)
	return h
}

// do makes the request of a step; ids replace $0, $1, ….
func (h *redirectFixture) do(t *testing.T, agent, step string, ids []string) answer {
	t.Helper()
	step = h.words.Replace(step)
	for i, id := range ids {
		step = strings.ReplaceAll(step, fmt.Sprint("$", i), id)
	}
	method, rest, _ := strings.Cut(step, " ")
	if method == "SQL" {
		query, _ := json.Marshal(map[string]string{"query": rest})
		return h.send(t, "POST", agent+"/sql/execute", string(query))
	}
	path, body, _ := strings.Cut(rest, " ")
	return h.send(t, method, agent+path, body)
}

// run runs the steps of a redirection in an agent of its own, and then its uses.
func (h *redirectFixture) run(t *testing.T, l redirection) {
	t.Helper()
	h.n++
	agent := "/api/agents/" + h.must(t, 201, "POST", "/api/agents", fmt.Sprintf(`{"name":"a%d"}`, h.n))["id"].(string)
	var ids []string
	for i, step := range l.steps {
		a := h.do(t, agent, step, ids)
		id, _ := a.json["id"].(string)
		ids = append(ids, id)
		last := i == len(l.steps)-1
		switch {
		case !last && a.StatusCode >= 400 && !strings.HasPrefix(step, "SQL"):
			t.Fatalf("step %d: %d %s", i, a.StatusCode, a.text)
		case last &&
			l.field != "" &&
			(a.StatusCode != 400 ||
				at(a.json, "error.details.field") != l.field && at(a.json, "error.details.errors.0.field") != l.field):
			t.Errorf("want 400 naming %s: %d %s", l.field, a.StatusCode, a.text)
		}
		h.waitIndexedStep(t, agent, step, a)
	}
	for _, step := range l.use {
		h.waitIndexedStep(t, agent, step, h.do(t, agent, step, ids))
	}
	h.checkCredentials(t)
}

// checkCredentials fails if the other host received the stored credential.
func (h *redirectFixture) checkCredentials(t *testing.T) {
	t.Helper()
	for _, c := range []*captureServer{h.other, h.mailOther} {
		if c.received(stored) {
			h.through++
			t.Error("the credential reached the other host")
		}
		h.arrived = h.arrived || c.received(fresh)
		c.reset()
	}
}

// waitIndexedStep waits until the source of a step, if it has one, is indexed.
func (h *redirectFixture) waitIndexedStep(t *testing.T, agent, step string, a answer) {
	t.Helper()
	id, _ := a.json["id"].(string)
	if strings.HasPrefix(id, "source-") && a.StatusCode < 300 {
		h.waitIndexed(t, agent+"/sources/"+id)
	}
}

const (
	compatible = `PUT /settings {"llm_provider":"openai-compatible","llm_model":"m",` +
		`"llm_base_url":"HOME/v1","llm_api_key":"STORED"}`
	embedding = `PUT /settings {"embedding_provider":"openai-compatible","embedding_model":"m",` +
		`"embedding_base_url":"HOME/v1","embedding_api_key":"STORED"}`
	say      = `POST /chat {"message":"hi"}`
	ask      = `GET /sources/search?query=hi`
	bearer   = `"auth":{"type":"bearer","token":"MASK"}`
	execute  = `POST /tools/$0/execute {"arguments":{}}`
	toolMade = `POST /tools {"name":"t","type":"api","config":{"url":"HOME/x",` +
		`"auth":{"type":"bearer","token":"STORED"}}}`
	trigger  = `{"id":"t","type":"trigger"}`
	edge     = `"edges":[{"source":"t","target":"h"}]`
	flowMade = `POST /workflows {"name":"f","status":"active","nodes":[` + trigger +
		`,{"id":"h","type":"http-request","data":{"url":"HOME/x","auth":{"type":"bearer","token":"STORED"}}}],` +
		edge + `}`
	flowRun  = `POST /workflows/execute {"workflow_id":"$0","wait":5}`
	feedMade = `POST /sources {"type":"api","name":"s","config":{"url":"HOME/x","items_path":"items",` +
		`"auth":{"type":"bearer","token":"STORED"}}}`
	refresh  = `POST /sources/$0/refresh`
	verifyIt = `POST /gateways/$0/verify`
	register = `POST /gateways/$0/register {"base_url":"https://public.example"}`
	mailMade = `POST /gateways {"type":"smtp","name":"g","config":{"smtpHost":"127.0.0.1","smtpPort":MAILPORT,` +
		`"smtpTls":"none","smtpUsername":"u","smtpPassword":"STORED","fromAddress":"a@example.com"}}`
	mcpMade = `POST /mcp {"name":"m","url":"HOME/mcp","auth":{"type":"bearer","token":"STORED"}}`
	mcpLook = `GET /mcp/$0/tools`
)

// node is a step that updates a workflow's http-request node.
func node(url, rest string) string {
	return `PUT /workflows/$0 {"nodes":[` + trigger + `,{"id":"h","type":"http-request","data":{"url":"` + url + `",` +
		rest + `}}]}`
}

func settingsRedirections() []redirection {
	openai := `PUT /settings {"llm_provider":"openai","llm_model":"m","llm_base_url":"HOME/v1",` +
		`"openai_api_key":"STORED"}`
	anthropic := `PUT /settings {"llm_provider":"anthropic","llm_model":"m","llm_base_url":"HOME/v1",` +
		`"anthropic_api_key":"STORED"}`
	ollama := `PUT /settings {"llm_provider":"ollama","llm_model":"m","llm_base_url":"HOME/v1","llm_api_key":"STORED"}`
	base := func(url string) string { return `PUT /settings {"llm_base_url":"` + url + `"}` }
	return []redirection{
		{"compatible: another base", []string{compatible, base("ELSE/v1")}, "llm_api_key", []string{say}},
		{"openai: another base", []string{openai, base("ELSE/v1")}, "openai_api_key", []string{say}},
		{"anthropic: another base", []string{anthropic, base("ELSE/v1")}, "anthropic_api_key", []string{say}},
		{"ollama: another base", []string{ollama, base("ELSE/v1")}, "llm_api_key", []string{say}},
		{
			"openai: a base where there was none",
			[]string{
				`PUT /settings {"llm_provider":"openai","llm_model":"m","openai_api_key":"STORED"}`,
				base("ELSE/v1"),
			},
			"openai_api_key",
			nil,
		},
		{
			"anthropic: a base where there was none",
			[]string{
				`PUT /settings {"llm_provider":"anthropic","llm_model":"m","anthropic_api_key":"STORED"}`,
				base("ELSE/v1"),
			},
			"anthropic_api_key",
			nil,
		},
		{"openai: the base cleared", []string{openai, `PUT /settings {"llm_base_url":null}`}, "openai_api_key", nil},
		{"ollama: the base cleared", []string{ollama, `PUT /settings {"llm_base_url":""}`}, "llm_api_key", nil},
		{"the same host with https", []string{compatible, base("TLS/v1")}, "llm_api_key", []string{say}},
		{"another address of the same machine", []string{compatible, base("LOCAL/v1")}, "llm_api_key", []string{say}},
		{
			"the provider changes to ollama elsewhere",
			[]string{compatible, `PUT /settings {"llm_provider":"ollama","llm_base_url":"ELSE/v1"}`},
			"llm_api_key",
			[]string{say},
		},
		{
			"the provider changes to ollama's own address",
			[]string{compatible, `PUT /settings {"llm_provider":"ollama","llm_base_url":null}`},
			"llm_api_key",
			nil,
		},
		{
			"a key kept for later, another provider",
			[]string{
				`PUT /settings {"llm_provider":"openai","llm_model":"m","llm_api_key":"STORED"}`,
				`PUT /settings {"llm_provider":"openai-compatible","llm_base_url":"ELSE/v1"}`,
			},
			"llm_api_key",
			[]string{say},
		},
		{
			"a key with no provider yet",
			[]string{
				`PUT /settings {"llm_api_key":"STORED"}`,
				`PUT /settings {"llm_provider":"openai-compatible","llm_model":"m","llm_base_url":"ELSE/v1"}`,
			},
			"llm_api_key",
			[]string{say},
		},
		{
			"no provider, then the base, then the provider",
			[]string{
				compatible,
				`PUT /settings {"llm_provider":null}`,
				base("ELSE/v1"),
				`PUT /settings {"llm_provider":"openai-compatible"}`,
			},
			"llm_api_key",
			[]string{say},
		},
		{
			"the base set while another provider is selected",
			[]string{
				openai,
				`PUT /settings {"llm_provider":"ollama","llm_base_url":"ELSE/v1"}`,
				`PUT /settings {"llm_provider":"openai"}`,
			},
			"openai_api_key",
			[]string{say},
		},
		{
			"the key removed by empty text",
			[]string{compatible, `PUT /settings {"llm_base_url":"ELSE/v1","llm_api_key":""}`},
			"",
			[]string{say},
		},
		{
			"the key removed by null",
			[]string{compatible, `PUT /settings {"llm_base_url":"ELSE/v1","llm_api_key":null}`},
			"",
			[]string{say},
		},
		{
			"a mask as the key",
			[]string{compatible, `PUT /settings {"llm_base_url":"ELSE/v1","llm_api_key":"MASK"}`},
			"",
			[]string{say},
		},
		{
			"a key of its own elsewhere",
			[]string{compatible, `PUT /settings {"llm_base_url":"ELSE/v1","llm_api_key":"FRESH"}`},
			"",
			[]string{say},
		},
		{
			"back and forth with a fresh key",
			[]string{compatible, `PUT /settings {"llm_base_url":"ELSE/v1","llm_api_key":"FRESH"}`, base("HOME/v1")},
			"llm_api_key",
			[]string{say},
		},
		{
			"a redirect of a chat",
			[]string{strings.Replace(compatible, "HOME/v1", "HOME/away/307?", 1)},
			"",
			[]string{say},
		},
		{
			"a redirect of a chat to GET",
			[]string{strings.Replace(openai, "HOME/v1", "HOME/away/302?", 1)},
			"",
			[]string{say},
		},
		{
			"embedding: another base",
			[]string{embedding, `PUT /settings {"embedding_base_url":"ELSE/v1"}`},
			"embedding_api_key",
			[]string{ask},
		},
		{
			"embedding: local, the base, and back",
			[]string{
				embedding,
				`PUT /settings {"embedding_provider":"local","embedding_base_url":"ELSE/v1"}`,
				`PUT /settings {"embedding_provider":"openai-compatible"}`,
			},
			"embedding_api_key",
			[]string{ask},
		},
		{
			"embedding: a key with no base yet",
			[]string{
				`PUT /settings {"embedding_api_key":"STORED"}`,
				`PUT /settings {"embedding_provider":"openai-compatible","embedding_model":"m",` +
					`"embedding_base_url":"ELSE/v1"}`,
			},
			"embedding_api_key",
			[]string{ask},
		},
		{
			"embedding: a redirect",
			[]string{strings.Replace(embedding, "HOME/v1", "HOME/away/307?", 1)},
			"",
			[]string{ask},
		},
	}
}

func toolRedirections() []redirection {
	made := func(rest string) string {
		return `POST /tools {"name":"t","type":"api","config":{"url":"HOME/x",` + rest + `}}`
	}
	put := func(url, rest string) string { return `PUT /tools/$0 {"config":{"url":"` + url + `",` + rest + `}}` }
	header := func(value string) string { return `"auth":{"type":"header","name":"X-Acme","value":"` + value + `"}` }
	evil := `UPDATE tools SET config = json_set(config, '$.url', 'ELSE/x')`
	leads := []redirection{
		{"bearer", []string{toolMade, put("ELSE/x", bearer)}, "config.auth.token", nil},
		{
			"basic",
			[]string{
				made(`"auth":{"type":"basic","username":"u","password":"STORED"}`),
				put("ELSE/x", `"auth":{"type":"basic","username":"u","password":"MASK"}`),
			},
			"config.auth.password", nil,
		},
		{"a header of auth", []string{made(header("STORED")), put("ELSE/x", header("MASK"))}, "config.auth.value", nil},
		{
			"the header Authorization",
			[]string{made(`"headers":{"Authorization":"STORED"}`), put("ELSE/x", `"headers":{"Authorization":"MASK"}`)},
			"config.headers.Authorization",
			nil,
		},
		{
			"the header X-Api-Key",
			[]string{made(`"headers":{"X-Api-Key":"STORED"}`), put("ELSE/x", `"headers":{"X-Api-Key":"MASK"}`)},
			"config.headers.X-Api-Key",
			nil,
		},
		{"with https", []string{toolMade, put("TLS/x", bearer)}, "config.auth.token", nil},
		{"another address of the same machine", []string{toolMade, put("LOCAL/x", bearer)}, "config.auth.token", nil},
		{"the host as user", []string{toolMade, put("http://a.example@ELSEHOST/x", bearer)}, "config.url", nil},
		{
			"a template as the host",
			[]string{
				`POST /tools {"name":"t","type":"api","config":{"url":"http://{{host}}/x",` +
					`"auth":{"type":"bearer","token":"STORED"}}}`,
			},
			"config.url",
			nil,
		},
		{
			"a template as the scheme",
			[]string{
				`POST /tools {"name":"t","type":"api","config":{"url":"{{http}}://a.example/x",` +
					`"auth":{"type":"bearer","token":"STORED"}}}`,
			},
			"config.url",
			nil,
		},
		{
			"a template after the host",
			[]string{
				`POST /tools {"name":"t","type":"api","config":{"url":"HOME{{rest}}",` +
					`"auth":{"type":"bearer","token":"STORED"}}}`,
			},
			"config.url",
			nil,
		},
		{
			"the address twice",
			[]string{toolMade, `PUT /tools/$0 {"config":{"url":"HOME/x","url":"ELSE/x",` + bearer + `}}`},
			"config.auth.token",
			nil,
		},
		{
			"the address in another case",
			[]string{toolMade, `PUT /tools/$0 {"config":{"url":"HOME/x","URL":"ELSE/x",` + bearer + `}}`},
			"config.URL",
			nil,
		},
		{
			"no auth in between",
			[]string{toolMade, put("ELSE/x", `"auth":{"type":"none"}`), put("ELSE/x", bearer)},
			"",
			nil,
		},
		{
			"another type in between",
			[]string{
				toolMade,
				`PUT /tools/$0 {"type":"function","config":{"code":"return 1","url":"ELSE/x",` + bearer + `}}`,
			},
			"config.auth.token",
			nil,
		},
		{"SQL", []string{toolMade, "SQL " + evil}, "", nil},
		{
			"SQL with replace",
			[]string{toolMade, "SQL UPDATE tools SET config = replace(config, 'HOME', 'ELSE')"},
			"",
			nil,
		},
		{"SQL, then a name through the API", []string{toolMade, "SQL " + evil, `PUT /tools/$0 {"name":"u"}`}, "", nil},
		{
			"SQL, then the mask through the API",
			[]string{toolMade, "SQL " + evil, put("ELSE/x", bearer)},
			"config.auth.token",
			nil,
		},
		{
			"SQL takes over the id",
			[]string{
				toolMade,
				"SQL UPDATE tools SET id = 'tool-x'",
				`SQL INSERT INTO tools(id, name, type, config) VALUES ('$0','v','api','{"url":"ELSE/x",` +
					bearer + `}')`,
			},
			"",
			nil,
		},
		{
			"SQL gives the id to a tool of one's own",
			[]string{
				toolMade,
				`POST /tools {"name":"v","type":"api","config":{"url":"ELSE/x",` + bearer + `}}`,
				"SQL UPDATE tools SET id = 'tool-x' WHERE id = '$0'",
				"SQL UPDATE tools SET id = '$0' WHERE id = '$1'",
			},
			"",
			nil,
		},
		{
			"an argument as the path",
			[]string{made(`"auth":{"type":"bearer","token":"STORED"}`), put("HOME/{{p}}", bearer)},
			"",
			[]string{
				`POST /tools/$0/execute {"arguments":{"p":"@ELSEHOST/"}}`,
				`POST /tools/$0/execute {"arguments":{"p":"/ELSEHOST/"}}`,
				`POST /tools/$0/execute {"arguments":{"p":"\\@ELSEHOST"}}`,
			},
		},
		{
			"a fresh token elsewhere",
			[]string{toolMade, put("ELSE/x", `"auth":{"type":"bearer","token":"FRESH"}`)},
			"",
			nil,
		},
	}
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		leads = append(leads, redirection{
			"a redirect " + status,
			[]string{strings.Replace(made(header("STORED")), "HOME/x", "HOME/away/"+status, 1)},
			"",
			nil,
		})
	}
	for i := range leads {
		if leads[i].use == nil {
			leads[i].use = []string{execute}
		}
	}
	return leads
}

func nodeRedirections() []redirection {
	made := func(rest string) string {
		return `POST /workflows {"name":"f","status":"active","nodes":[` + trigger +
			`,{"id":"h","type":"http-request","data":{` + rest + `}}],` + edge + `}`
	}
	token := `"auth":{"type":"bearer","token":"STORED"}`
	header := func(value string) string { return `"auth":{"type":"header","name":"X-Acme","value":"` + value + `"}` }
	testNode := `POST /workflows/$0/test-node {"node_id":"h"}`
	leads := []redirection{
		{"bearer", []string{flowMade, node("ELSE/x", bearer)}, "data.auth.token", nil},
		{
			"basic",
			[]string{
				made(`"url":"HOME/x","auth":{"type":"basic","username":"u","password":"STORED"}`),
				node("ELSE/x", `"auth":{"type":"basic","username":"u","password":"MASK"}`),
			},
			"data.auth.password", nil,
		},
		{
			"a header of auth",
			[]string{made(`"url":"HOME/x",` + header("STORED")), node("ELSE/x", header("MASK"))},
			"data.auth.value",
			nil,
		},
		{
			"the header Authorization",
			[]string{
				made(`"url":"HOME/x","headers":{"Authorization":"STORED"}`),
				node("ELSE/x", `"headers":{"Authorization":"MASK"}`),
			},
			"data.headers.Authorization",
			nil,
		},
		{"with https", []string{flowMade, node("TLS/x", bearer)}, "data.auth.token", nil},
		{"a template as the host", []string{made(`"url":"http://{{input.host}}/x",` + token)}, "data.url", nil},
		{"a template as the address", []string{made(`"url":"{{input.url}}",` + token)}, "data.url", nil},
		{"a template after the host", []string{made(`"url":"HOME{{input.rest}}",` + token)}, "data.url", nil},
		{
			"a template set later",
			[]string{flowMade, node("{{input.url}}", bearer)},
			"data.url",
			[]string{`POST /workflows/execute {"workflow_id":"$0","wait":5,"input":{"url":"ELSE/x"}}`},
		},
		{
			"the header Host",
			[]string{made(`"url":"HOME/x","headers":{"host":"evil.example"},` + token)},
			"data.headers.Host",
			nil,
		},
		{
			"a draft without an address",
			[]string{
				`POST /workflows {"name":"f","nodes":[{"id":"h","type":"http-request","data":{` + token + `}}]}`,
				node("ELSE/x", bearer),
			},
			"data.auth.token",
			[]string{testNode},
		},
		{
			"an old version restored",
			[]string{
				made(`"url":"ELSE/x","auth":{"type":"bearer","token":"FRESH"}`),
				node("HOME/x", token),
				`POST /workflows/$0/versions/1/restore`,
			},
			"data.auth.token",
			nil,
		},
		{
			"an execution of an old version",
			[]string{
				made(`"url":"ELSE/x?fail","response_type":"json","auth":{"type":"bearer","token":"FRESH"}`),
				`POST /workflows/execute {"workflow_id":"$0","wait":5}`,
				node("HOME/x", token),
			},
			"",
			[]string{`POST /workflows/executions/$1/retry {"from_node":"h"}`},
		},
		{
			"SQL",
			[]string{flowMade, "SQL UPDATE workflows SET nodes = replace(nodes, 'HOME', 'ELSE')"},
			"",
			[]string{flowRun, testNode},
		},
		{
			"SQL, then a name through the API",
			[]string{
				flowMade,
				"SQL UPDATE workflows SET nodes = replace(nodes, 'HOME', 'ELSE')",
				`PUT /workflows/$0 {"name":"g"}`,
			},
			"",
			[]string{flowRun, testNode},
		},
		{
			"SQL, then the mask through the API",
			[]string{
				flowMade,
				"SQL UPDATE workflows SET nodes = replace(nodes, 'HOME', 'ELSE')",
				node("ELSE/y", bearer),
			},
			"data.auth.token",
			[]string{flowRun, testNode},
		},
		{
			"SQL with a template as the host",
			[]string{flowMade, "SQL UPDATE workflows SET nodes = replace(nodes, 'HOME', 'http://{{input.host}}')"},
			"",
			[]string{`POST /workflows/execute {"workflow_id":"$0","wait":5,"input":{"host":"ELSEHOST"}}`},
		},
		{
			"SQL copies the nodes",
			[]string{
				flowMade,
				"SQL INSERT INTO workflows(id, name, nodes, edges, status) SELECT 'workflow-x', 'x', replace(nodes, " +
					"'HOME', 'ELSE'), edges, status FROM workflows",
			},
			"",
			[]string{`POST /workflows/execute {"workflow_id":"workflow-x","wait":5}`},
		},
		{
			"SQL takes over the id",
			[]string{
				flowMade,
				made(`"url":"ELSE/x"`),
				"SQL UPDATE workflows SET id = 'workflow-y' WHERE id = '$0'",
				`SQL UPDATE workflows SET id = '$0', nodes = json_set(nodes, '$[1].data.auth', ` +
					`json('{"type":"bearer","token":"MASK"}')) WHERE id = '$1'`,
			},
			"",
			[]string{flowRun, testNode},
		},
		{"an import with masks", []string{made(`"url":"ELSE/x",` + bearer)}, "data.auth.token", nil},
		{
			"the ids of two nodes swapped",
			[]string{
				`POST /workflows {"name":"f","nodes":[{"id":"h","type":"http-request","data":{"url":"HOME/x",` + token +
					`}},{"id":"i","type":"http-request","data":{"url":"ELSE/x"}}]}`,
				`PUT /workflows/$0 {"nodes":[{"id":"i","type":"http-request","data":{"url":"HOME/x"}},{"id":"h",` +
					`"type":"http-request","data":{"url":"ELSE/x",` + bearer + `}}]}`,
			},
			"data.auth.token",
			[]string{testNode},
		},
		{
			"a trigger's secret",
			[]string{
				`POST /workflows {"name":"f","nodes":[{"id":"h","type":"trigger","data":{"event":"webhook",` +
					`"auth":{"type":"header","name":"X-A","value":"STORED"}}}]}`,
				node("ELSE/x", header("MASK")),
			},
			"data.auth.value",
			[]string{testNode},
		},
		{
			"a fresh token elsewhere",
			[]string{flowMade, node("ELSE/x", `"auth":{"type":"bearer","token":"FRESH"}`)},
			"",
			nil,
		},
	}
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		leads = append(leads, redirection{
			"a redirect " + status,
			[]string{made(`"url":"HOME/away/` + status + `",` + header("STORED"))},
			"",
			nil,
		})
	}
	for i := range leads {
		if leads[i].use == nil {
			leads[i].use = []string{flowRun}
		}
	}
	return leads
}

func sourceRedirections() []redirection {
	put := func(url, rest string) string {
		return `PUT /sources/$0 {"config":{"url":"` + url + `",` + rest + `}}`
	}
	return []redirection{
		{"bearer", []string{feedMade, put("ELSE/x", bearer)}, "config.auth.token", []string{refresh}},
		{
			"the address alone",
			[]string{feedMade, `PUT /sources/$0 {"config":{"url":"ELSE/x"}}`},
			"config.auth.token",
			[]string{refresh},
		},
		{
			"a secret header",
			[]string{
				`POST /sources {"type":"api","name":"s","config":{"url":"HOME/x","headers":{"X-Api-Key":"STORED"}}}`,
				`PUT /sources/$0 {"config":{"url":"ELSE/x"}}`,
			},
			"config.headers.X-Api-Key",
			[]string{refresh},
		},
		{"with https", []string{feedMade, put("TLS/x", bearer)}, "config.auth.token", []string{refresh}},
		{
			"a template as the host",
			[]string{
				`POST /sources {"type":"api","name":"s","config":{"url":"http://{{host}}/",` +
					`"auth":{"type":"bearer","token":"STORED"}}}`,
			},
			"config.url",
			nil,
		},
		{
			"the next page",
			[]string{
				strings.Replace(
					feedMade,
					`"items_path"`,
					`"pagination":{"type":"cursor","next_path":"next"},"items_path"`,
					1,
				),
			},
			"",
			[]string{refresh},
		},
		{"a redirect", []string{strings.Replace(feedMade, "HOME/x", "HOME/away/307", 1)}, "", []string{refresh}},
		{
			"a redirect with a header of its own",
			[]string{
				`POST /sources {"type":"api","name":"s","config":{"url":"HOME/away/302","auth":{"type":"header",` +
					`"name":"X-Acme","value":"STORED"}}}`,
			},
			"",
			[]string{refresh},
		},
		{
			"SQL",
			[]string{feedMade, "SQL UPDATE sources SET config = replace(config, 'HOME', 'ELSE')"},
			"",
			[]string{refresh},
		},
		{
			"a fresh token elsewhere",
			[]string{feedMade, put("ELSE/x", `"auth":{"type":"bearer","token":"FRESH"}`)},
			"",
			[]string{refresh},
		},
	}
}

func gatewayRedirections() []redirection {
	var leads []redirection
	for kind, rest := range map[string]string{
		"telegram": `"botToken":"STORED"`,
		"slack":    `"botToken":"STORED","signingSecret":"x"`,
		"resend":   `"apiKey":"STORED","fromAddress":"a@example.com"`,
		"discord":  `"botToken":"STORED","applicationId":"1","publicKey":"` + strings.Repeat("ab", 32) + `"`,
		"twilio":   `"authToken":"STORED","accountSid":"AC1","phoneNumber":"+15550100"`,
		"whatsapp": `"authToken":"STORED","accountSid":"AC1","phoneNumber":"+15550100"`,
	} {
		field := "config." + strings.Trim(rest[:strings.IndexByte(rest, ':')], `"`)
		made := `POST /gateways {"type":"` + kind + `","name":"g","config":{"apiBaseUrl":"HOME",` + rest + `}}`
		plain := `POST /gateways {"type":"` + kind + `","name":"g","config":{` + rest + `}}`
		leads = append(
			leads,
			redirection{
				kind + ": another base",
				[]string{made, `PUT /gateways/$0 {"config":{"apiBaseUrl":"ELSE"}}`},
				field,
				[]string{verifyIt, register},
			},
			redirection{
				kind + ": a base where none was",
				[]string{plain, `PUT /gateways/$0 {"config":{"apiBaseUrl":"ELSE"}}`},
				field,
				nil,
			},
			redirection{
				kind + ": the base cleared",
				[]string{made, `PUT /gateways/$0 {"config":{"apiBaseUrl":null}}`},
				field,
				nil,
			},
			redirection{
				kind + ": a redirect",
				[]string{strings.Replace(made, "HOME", "HOME/away/307?", 1)},
				"",
				[]string{verifyIt},
			},
			redirection{
				kind + ": SQL changes the type",
				[]string{strings.Replace(made, "HOME", "ELSE", 1), "SQL UPDATE gateways SET type = 'webhook'"},
				"",
				nil,
			},
		)
	}
	mail := func(change string) redirection {
		return redirection{
			"SMTP: " + change,
			[]string{mailMade, `PUT /gateways/$0 {"config":{` + change + `}}`},
			"config.smtpPassword",
			[]string{verifyIt},
		}
	}
	telegram := func(config string) string {
		return `POST /gateways {"type":"telegram","name":"g","config":{` + config + `}}`
	}
	token := `PUT /settings {"chatbot_a_token":"STORED"}`
	hook := `POST /gateways {"type":"webhook","name":"g","config":{"url":"HOME/x",` +
		`"headers":{"Authorization":"STORED"}}}`
	return append(
		leads,
		mail(`"smtpHost":"127.0.0.2"`),
		mail(`"smtpPort":OTHERPORT`),
		mail(`"smtpPort":OTHERPORT,"smtpHost":"127.0.0.1"`),
		mail(`"smtpPort":null`),
		mail(`"smtpTls":"tls"`),
		mail(`"smtpTls":null`),
		mail(`"provider":"resend","smtpPort":OTHERPORT`),
		redirection{
			"SMTP: TLS disabled",
			[]string{
				strings.Replace(mailMade, `"none"`, `"starttls"`, 1),
				`PUT /gateways/$0 {"config":{"smtpTls":"none"}}`,
			},
			"config.smtpPassword",
			[]string{verifyIt},
		},
		redirection{
			"SMTP: a password with no server yet",
			[]string{
				`POST /gateways {"type":"smtp","name":"g","config":{"smtpUsername":"u","smtpPassword":"STORED",` +
					`"fromAddress":"a@example.com"}}`,
				`PUT /gateways/$0 {"config":{"smtpHost":"127.0.0.1","smtpPort":OTHERPORT,"smtpTls":"none"}}`,
			},
			"config.smtpPassword",
			[]string{verifyIt},
		},
		redirection{
			"SMTP: a fresh password elsewhere",
			[]string{mailMade, `PUT /gateways/$0 {"config":{"smtpPort":OTHERPORT,"smtpPassword":"FRESH"}}`},
			"",
			[]string{verifyIt},
		},
		redirection{
			"webhook: another address for its headers",
			[]string{hook, `PUT /gateways/$0 {"config":{"url":"ELSE/x"}}`},
			"config.headers",
			[]string{verifyIt},
		},
		redirection{
			"webhook: a redirect",
			[]string{strings.Replace(hook, "HOME/x", "HOME/away/307", 1)},
			"",
			[]string{verifyIt},
		},
		redirection{
			"settings' token: a gateway elsewhere",
			[]string{token, telegram(`"apiBaseUrl":"ELSE"`)},
			"config.botToken",
			nil,
		},
		redirection{
			"settings' token: a gateway moves",
			[]string{token, telegram(``), `PUT /gateways/$1 {"config":{"apiBaseUrl":"ELSE"}}`},
			"config.botToken",
			nil,
		},
		redirection{
			"settings' token: the gateway's own token removed",
			[]string{
				token,
				telegram(`"apiBaseUrl":"ELSE","botToken":"FRESH"`),
				`PUT /gateways/$1 {"config":{"botToken":null}}`,
			},
			"config.botToken",
			[]string{`POST /gateways/$1/verify`},
		},
		redirection{
			"settings' token: all but the base removed",
			[]string{
				token,
				telegram(`"botToken":"FRESH"`),
				`PUT /gateways/$1 {"config":{"botToken":"","apiBaseUrl":"ELSE"}}`,
			},
			"config.botToken",
			nil,
		},
	)
}

func mcpRedirections() []redirection {
	look := []string{mcpLook, "GET /mcp"}
	return []redirection{
		{"SQL", []string{mcpMade, "SQL UPDATE mcp_servers SET url = 'ELSE/mcp', checked_at = NULL"}, "", look},
		{
			"SQL takes over the id",
			[]string{
				mcpMade,
				"SQL UPDATE mcp_servers SET id = 'mcp-x'",
				"SQL INSERT INTO mcp_servers(id, name, url, auth_type) VALUES ('$0','n','ELSE/mcp','bearer')",
			},
			"",
			look,
		},
		{
			"SQL changes the kind of login",
			[]string{mcpMade, "SQL UPDATE mcp_servers SET url = 'ELSE/mcp', auth_type = 'header'"},
			"",
			look,
		},
		{"a redirect", []string{strings.Replace(mcpMade, "HOME/mcp", "HOME/away/307", 1)}, "", look},
		{"a redirect to GET", []string{strings.Replace(mcpMade, "HOME/mcp", "HOME/away/302", 1)}, "", look},
	}
}

// TestCredentialsStayWithTheirHost checks that after the host of an address was changed,
// the credential that was set for the old host is not sent to the new one.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	h := newRedirectFixture(t)
	count := 0
	for _, group := range []struct {
		name  string
		leads []redirection
	}{
		{"settings", settingsRedirections()},
		{"tool", toolRedirections()},
		{"node", nodeRedirections()},
		{"source", sourceRedirections()},
		{"gateway", gatewayRedirections()},
		{"mcp", mcpRedirections()},
	} {
		for _, l := range group.leads {
			count++
			t.Run(group.name+"/"+l.name, func(t *testing.T) { h.run(t, l) })
		}
	}
	for name, edit := range editedFiles {
		count++
		t.Run("file/"+name, func(t *testing.T) { h.runEdited(t, edit) })
	}
	if !h.home.received(stored) || !h.mailHome.received(stored) || !h.arrived {
		t.Error("credentials did not arrive where they should: the redirections prove nothing")
	}
	t.Logf("%d ways to redirect a credential, %d succeeded", count, h.through)
}

// editedFiles are changes to an exported file before it is imported again.
var editedFiles = map[string]struct{ edit, use string }{
	"settings": {`UPDATE _agent SET settings = replace(settings, 'HOME', 'ELSE')`, say},
	"settings and hosts": {
		`UPDATE _agent SET settings = replace(settings, 'HOME', 'ELSE'); UPDATE _secrets ` +
			`SET hosts = replace(hosts, 'HOME', 'ELSE')`,
		say,
	},
	"hosts removed": {
		`UPDATE _agent SET settings = replace(settings, 'HOME', 'ELSE'); UPDATE _secrets SET hosts = NULL`,
		say,
	},
	"tools and hosts": {
		`UPDATE tools SET config = replace(config, 'HOME', 'ELSE'); UPDATE _secrets ` +
			`SET hosts = replace(hosts, 'HOME', 'ELSE')`,
		`POST /tools/$1/execute {"arguments":{}}`,
	},
	"workflows": {
		`UPDATE workflows SET nodes = replace(nodes, 'HOME', 'ELSE')`,
		`POST /workflows/execute {"workflow_id":"$2","wait":5}`,
	},
	"another field": {
		`UPDATE _agent SET settings = replace(replace(settings, 'HOME', 'ELSE'), 'openai-compatible', 'openai'); ` +
			`UPDATE _secrets SET field = 'openai_api_key' WHERE field = 'llm_api_key'`,
		say,
	},
}

// runEdited exports an agent, edits its file, imports it and uses it.
func (h *redirectFixture) runEdited(t *testing.T, edited struct{ edit, use string }) {
	h.n++
	id := h.must(t, 201, "POST", "/api/agents", fmt.Sprintf(`{"name":"a%d"}`, h.n))["id"].(string)
	var ids []string
	for _, step := range []string{compatible, toolMade, flowMade} {
		a := h.do(t, "/api/agents/"+id, step, nil)
		made, _ := a.json["id"].(string)
		ids = append(ids, made)
	}
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, []byte(h.send(t, "POST", "/api/agents/"+id+"/backup", "").text), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(sqlite.Source{Path: path, Mode: sqlite.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Script(h.words.Replace(edited.edit))
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := fmt.Sprint(h.upload(t, "/api/agents/import", "a.db", string(raw), nil).json["id"])
	h.must(t, 200, "PUT", "/api/agents/"+copied, `{"status":"active"}`)
	h.do(t, "/api/agents/"+copied, edited.use, ids)
	h.checkCredentials(t)
}
