package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent/child"
	"satchel/agent/testenv"
)

// TestMain also runs the child that reads documents.
func TestMain(m *testing.M) {
	if runChild(os.Args) {
		return
	}
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(testenv.Run(m))
}

// asProgram is the variable that makes the test binary run as the program.
const asProgram = "SATCHEL_TEST_PROGRAM"

// floors is the table of docs/architecture.md: the floor of each package and, where that is not
// every lower floor, the packages that it may import. A package is named by its longest
// prefix here.
var floors = map[string]struct {
	floor   int
	imports []string
}{
	"agent/clock":      {0, only()},
	"agent/cputime":    {0, only()},
	"agent":            {0, only("agent/clock")},
	"agent/work":       {0, only()},
	"agent/markup":     {0, only()},
	"agent/charset":    {0, only("agent", "agent/markup")},
	"agent/mailbox":    {0, only("agent")},
	"agent/signature":  {0, only("agent")},
	"agent/links":      {0, only("agent")},
	"agent/egress":     {0, only("agent", "agent/signature")},
	"agent/template":   {0, only("agent")},
	"agent/child":      {0, only("agent")},
	"agent/cli":        {0, only("agent", "agent/cli/client")},
	"agent/cli/client": {0, only("agent", "agent/egress")},
	"agent/llm":        {floor: 1},
	"agent/mcp":        {floor: 1},
	"agent/openapi":    {1, only("agent", "agent/child", "agent/egress")},
	"agent/script":     {floor: 1},
	"store/replica": {
		2,
		only("agent", "agent/egress", "agent/signature", "agent/work", "store", "store/capture"),
	},
	"store/cluster": {
		2,
		only("agent", "agent/egress", "agent/work", "store", "store/capture", "store/cluster/pg"),
	},
	"store/cluster/pg":     {0, only()},
	"store/cluster/pgtest": {0, only("agent/testenv")},
	"agent/testenv":        {0, only()},
	"store/sqlite":         {0, only()},
	"store/capture":        {0, only()},
	"store/search":         {floor: 1},
	"store/sqlsandbox":     {floor: 1},
	"store": {
		1,
		only(
			"agent", "agent/clock", "agent/links", "agent/signature", "agent/egress", "store/search",
			"store/sqlsandbox", "store/sqlite", "store/capture", "agent/mailbox",
		),
	},
	"agent/mcp/registry":    {floor: 2},
	"agent/credentials":     {2, only("agent", "agent/egress", "agent/signature", "agent/template", "store")},
	"agent/apis":            {2, only("agent", "agent/egress", "agent/openapi", "store")},
	"browser":               {floor: 2},
	"browser/install":       {floor: 2},
	"crawl":                 {floor: 2},
	"gateways":              {floor: 2},
	"gateways/subscription": {floor: 2},
	"schedule":              {floor: 2},
	"vector":                {floor: 2},
	"agent/chat": {
		3,
		only(
			"agent", "agent/apis", "agent/charset", "agent/clock", "agent/egress", "agent/template", "agent/llm",
			"agent/script", "store", "vector",
		),
	},
	"agent/browse":   {3, only("agent", "agent/chat", "agent/egress", "agent/llm", "browser", "store")},
	"flow/condition": {4, only("agent", "agent/template")},
	"flow/graph":     {4, only("agent", "flow/condition")},
	"flow/n8n":       {4, only("agent", "agent/clock")},
	"flow/templates": {4, only("agent", "agent/clock", "flow/graph")},
	"flow/dispatch":  {4, only("agent", "agent/work", "store")},
	"flow": {
		4,
		only(
			"agent", "agent/browse", "agent/charset", "agent/mailbox", "agent/clock", "agent/links", "agent/work",
			"agent/egress", "agent/template", "agent/script", "agent/llm", "agent/mcp", "agent/apis", "agent/chat",
			"store", "store/sqlsandbox", "vector", "browser", "gateways", "flow/condition", "flow/graph",
		),
	},
	"schedule/callbacks":     {floor: 5},
	"httpapi/rest":           {4, only("agent", "store")},
	"httpapi/auth":           {4, only("agent", "agent/egress", "store")},
	"httpapi":                {floor: 5},
	"httpapi/console/bundle": {0, only()},
	"httpapi/console/e2e":    {0, only()},
	"httpapi/apitest":        {floor: 6},
	"":                       {floor: 6},
}

func only(packages ...string) []string { return append([]string{}, packages...) }

// owners lists the packages that a third-party module belongs to. Modules that only have
// data structures of the language, golang.org/x, may be imported by all.
var owners = map[string]string{
	"modernc.org/sqlite":                            "store store/sqlsandbox store/sqlite",
	"modernc.org/libquickjs":                        "agent/script",
	"modernc.org/memory":                            "agent/script",
	"github.com/landlock-lsm/go-landlock":           "agent/child",
	"github.com/gofrs/flock":                        "store",
	"github.com/superfly/ltx":                       "store/capture",
	"github.com/jackc/pgx/v5":                       "store/cluster/pg",
	"github.com/gocolly/colly/v2":                   "crawl",
	"github.com/bmatcuk/doublestar/v4":              "crawl",
	"github.com/go-co-op/gocron/v2":                 "schedule",
	"github.com/playwright-community/playwright-go": "browser",
	"github.com/saintfish/chardet":                  "agent/charset",
	"github.com/blevesearch/snowballstem":           "store/search",
	"github.com/BurntSushi/toml":                    "agent/cli",
	"github.com/spf13/cobra":                        "agent/cli agent/cli/client",
	"github.com/wneessen/go-mail":                   "gateways",
	"github.com/labstack/echo/v4":                   "httpapi httpapi/rest",
	"github.com/danielgtaylor/huma/v2":              "httpapi/rest",
	"github.com/MicahParks/keyfunc/v3":              "httpapi/auth",
	"github.com/MicahParks/jwkset":                  "httpapi/auth httpapi/apitest",
	"github.com/golang-jwt/jwt/v5":                  "httpapi/auth httpapi/apitest",
	"github.com/evanw/esbuild":                      "httpapi/console/bundle",
	"github.com/modelcontextprotocol/go-sdk":        "agent/mcp httpapi/apitest",
	"github.com/santhosh-tekuri/jsonschema/v6":      "agent/chat",
	"go.yaml.in/yaml/v3":                            "agent/openapi",
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// packageOf returns the name in floors of one of our import paths.
func packageOf(importPath string) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(importPath, "satchel"), "/")
	for rel != "." && rel != "" {
		if _, ok := floors[rel]; ok {
			return rel
		}
		rel = path.Dir(rel)
	}
	return ""
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		from := packageOf(p.ImportPath)
		for _, imported := range p.Imports {
			if imported == "html/template" || imported == "text/template" {
				t.Errorf(
					"%s imports %s, which has the linker keep every method, a tenth of the binary: "+
						"httpapi/html.go writes pages without it",
					p.ImportPath,
					imported,
				)
			}
			if imported != "satchel" && !strings.HasPrefix(imported, "satchel/") {
				checkOwner(t, p.ImportPath, from, imported)
				continue
			}
			to := packageOf(imported)
			allowed := floors[from].imports
			switch {
			case from == to:
			case allowed == nil:
				if floors[to].floor >= floors[from].floor {
					t.Errorf(
						"%s (floor %d) imports %s (floor %d): imports go down only",
						p.ImportPath,
						floors[from].floor,
						imported,
						floors[to].floor,
					)
				}
			case !slices.Contains(allowed, to):
				t.Errorf("%s imports %s: package %q may import %q only", p.ImportPath, imported, from, allowed)
			}
		}
	}
}

func checkOwner(t *testing.T, importer, from, imported string) {
	t.Helper()
	for module, owner := range owners {
		if (imported == module || strings.HasPrefix(imported, module+"/")) &&
			!slices.Contains(strings.Fields(owner), from) {
			t.Errorf("%s imports %s, which belongs to %q alone", importer, imported, owner)
		}
	}
	if first, _, _ := strings.Cut(imported, "/"); from == "agent" && strings.Contains(first, ".") {
		t.Errorf("%s imports %s: the nouns import the standard library only", importer, imported)
	}
}

// TestNotice: NOTICE names every module that is linked into the program, but those that a
// folder of ours replaces.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, word := range strings.Fields(string(notice)) {
		named[strings.TrimSuffix(word, ",")] = true
	}
	for _, platform := range []string{"linux", "darwin", "windows"} {
		list := exec.Command(
			"go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Replace}}{{.Path}}{{end}}{{end}}",
			".",
		)
		list.Env = append(os.Environ(), "GOOS="+platform, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, module := range strings.Fields(string(out)) {
			if module != "satchel" && !named[module] {
				t.Errorf("%s is not named", module)
				named[module] = true
			}
		}
	}
}

// kept are the names of the standard library that only one package may use; Name{ is a
// composite literal of the type.
var kept = []struct {
	names   map[string][]string // package -> names
	allowed string              // folder
	why     string
}{
	{map[string][]string{
		"net/http":   {"Client{", "DefaultClient", "DefaultTransport", "Transport{", "Get", "Head", "Post", "PostForm"},
		"net":        {"Dial", "DialTimeout", "DialTCP", "DialUDP", "Dialer{", "DialIP", "DialUnix"},
		"crypto/tls": {"Dial", "DialWithDialer", "Dialer{"},
	}, "agent/egress", "every outbound request goes through agent/egress"},
	{
		map[string][]string{"syscall": {"Setrlimit"}, "golang.org/x/sys/unix": {"Setrlimit", "Prlimit"}},
		"agent/child",
		"the limits of a child are put on it by agent/child",
	},
	{map[string][]string{"os": {"Getenv", "LookupEnv", "Environ"}}, ".", "the environment is read in main alone"},
}

// TestSecretsAreMasked: responses are left as they are only for those who made the request
// themselves; a masked one is the default of every client.
func TestSecretsAreMasked(t *testing.T) {
	verbatim := regexp.MustCompile("Verbatim: *true|Verbatim = true")
	var found []string
	goFiles(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") && verbatim.MatchString(text) {
			found = append(found, name)
		}
	})
	if want := []string{
		"agent/cli/client/client.go",
		"agent/egress/proxy.go",
		"httpapi/forwarder.go",
	}; !slices.Equal(found, want) {
		t.Errorf("answers are not masked by %s, but only by %s they need not be", found, want)
	}
}

// goFiles calls visit with the name and text of each Go file, in the order of names.
func goFiles(t *testing.T, visit func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		visit(filepath.ToSlash(name), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onRequest are the files whose tests or benchmarks only run if a variable or flag asks
// for them.
const onRequest = "soak_test.go vector/search_bench_test.go store/cluster/bench_test.go " +
	"httpapi/console/e2e/screenshots_test.go"

// TestSkips holds that tests are only skipped by -short, on another system, or by
// agent/testenv, that each package prints the line of agent/testenv, and that tests take
// their browser from installtest, which skips them without one.
func TestSkips(t *testing.T) {
	skip := regexp.MustCompile(`\b(t|tb|b|f)\.Skip(f|Now)?\(`)
	needs := regexp.MustCompile(`(testenv|installtest)\.(Need|Program)\(|pgtest\.Start\(`)
	finds := regexp.MustCompile(`\binstall\.(Find|Ready)\(`)
	needed, reported := map[string]string{}, map[string]bool{}
	goFiles(t, func(name, text string) {
		folder := path.Dir(name)
		if !strings.HasSuffix(name, "_test.go") || folder == "agent/testenv" {
			return
		}
		if needs.MatchString(text) {
			needed[folder] = name
		}
		if finds.MatchString(text) {
			t.Errorf("%s: call installtest.Need, which skips the test if there is no browser", name)
		}
		reported[folder] = reported[folder] || strings.Contains(text, "testenv.Run(m)")
		before := ""
		for line := range strings.Lines(text) {
			if skip.MatchString(line) &&
				!strings.Contains(before, "testing.Short()") &&
				!strings.Contains(before, "runtime.GOOS") &&
				!slices.Contains(strings.Fields(onRequest), name) {
				t.Errorf("%s: call agent/testenv instead of %s", name, strings.TrimSpace(line))
			}
			before = line
		}
	})
	for folder, name := range needed {
		if !reported[folder] {
			t.Errorf("%s needs what may be missing, and no TestMain calls testenv.Run", name)
		}
	}
}

// TestOneWayOut searches every source file of the product for names that belong to one
// package.
func TestOneWayOut(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, entry os.DirEntry, err error) error {
		notProgram := []string{
			"sdk", "store/cluster/pgtest", "httpapi/apitest", "agent/testenv",
			"browser/install/installtest",
		}
		if slices.Contains(notProgram, filepath.ToSlash(name)) { // clients, and helpers of tests
			return filepath.SkipDir
		}
		if err != nil ||
			entry.IsDir() ||
			!strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, ".") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		imports := map[string]string{} // local name -> path
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			local := path.Base(imported)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			imports[local] = imported
		}
		ast.Inspect(file, func(n ast.Node) bool {
			suffix := ""
			if literal, ok := n.(*ast.CompositeLit); ok {
				n, suffix = literal.Type, "{"
			}
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok {
				for _, k := range kept {
					if slices.Contains(k.names[imports[x.Name]], selector.Sel.Name+suffix) &&
						filepath.Dir(name) != k.allowed {
						t.Errorf("%s uses %s.%s: %s", name, x.Name, selector.Sel.Name, k.why)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// service is a complete server run through the command line.
type service struct {
	url  string
	out  *syncBuffer
	stop func() error
}

type syncBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	lines chan struct{} // one signal per write
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	select {
	case b.lines <- struct{}{}:
	default:
	}
	return n, err
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var listens = regexp.MustCompile(`listens on (http://\S+)`)

// start runs "satchel serve" in this process and waits until it listens.
func start(t *testing.T, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &syncBuffer{lines: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0", "--rate-limits", "off"}, args...), out)
	}()
	s := &service{out: out, stop: sync.OnceValue(func() error {
		cancel()
		return <-ended
	})}
	t.Cleanup(func() { _ = s.stop() })
	for {
		if m := listens.FindStringSubmatch(out.String()); m != nil {
			s.url = m[1] + "/api"
			return s
		}
		select {
		case <-out.lines:
		case err := <-ended:
			t.Fatalf("serve ended: %v\n%s", err, out)
		}
	}
}

// call makes a request and decodes the response's body.
func (s *service) call(t *testing.T, method, path string, body any, want int) map[string]any {
	t.Helper()
	var reader io.Reader
	media := "application/json"
	switch b := body.(type) {
	case nil:
	case upload:
		reader, media = b.form(t)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	if reader != nil {
		req.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, resp.StatusCode, want, raw)
	}
	answer := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, path, err, raw)
		}
	}
	return answer
}

// upload is a file with additional form fields.
type upload struct {
	name, content string
	fields        map[string]string
}

func (u upload) form(t *testing.T) (io.Reader, string) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for name, value := range u.fields {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", u.name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(part, u.content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf, w.FormDataContentType()
}

// handbook is a document; the questions about it use other words.
const handbook = `# Handbook of the Harbour Bakery

## Returns
If a loaf is not to your liking, bring it back within two days together with
the receipt. We give your money back or bake you another one, as you prefer.

## Opening hours
The shop opens at six in the morning from Monday to Saturday. On Sundays the
oven stays cold and the door stays shut.

## Allergies
Our rye sourdough holds no milk and no eggs. All cakes are made in a room where
hazelnuts and almonds are handled.
`

// TestWalk follows the README: create an agent, upload a document, ask in other words,
// query by SQL, copy the file to another folder, start there.
func TestWalk(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "--data", data)
	agent := s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	id := agent["id"].(string)
	source := s.call(
		t,
		"POST",
		"/agents/bakery/sources",
		upload{
			"handbook.md",
			handbook,
			map[string]string{"type": "file", "name": "Handbook", "chunk_size": "300", "overlap": "0"},
		},
		201,
	)
	if source["status"] != "processing" {
		t.Errorf("a new source is %v, want processing", source["status"])
	}
	s.waitFor(t, "/agents/bakery", "/sources/"+source["id"].(string), "ready")
	s.wantSearch(t, "can I get a refund for bread I did not enjoy", "money back")
	s.wantSearch(t, "is the store closed at the weekend", "Sundays")
	s.call(t, "POST", "/agents/bakery/contacts", map[string]any{"name": "Ada", "email": "ada@example.com"}, 201)
	rows := s.call(
		t,
		"POST",
		"/agents/bakery/sql/execute",
		map[string]any{"query": "SELECT name FROM contacts WHERE email = ?", "params": []any{"ada@example.com"}},
		200,
	)
	if got := rows["rows"].([]any)[0].([]any)[0]; got != "Ada" {
		t.Errorf("SQL returns %v", got)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}

	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(filepath.Join(other, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(data, "agents", id+".db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "agents", id+".db-wal")); err == nil {
		t.Error("a stopped server leaves a -wal")
	}
	if err := os.WriteFile(filepath.Join(other, "agents", id+".db"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, "--data", other)
	if got := s.call(t, "GET", "/agents/bakery", nil, 200)["status"]; got != "paused" {
		t.Errorf("a copied agent is %v, want paused", got)
	}
	s.wantSearch(t, "can I get a refund for bread I did not enjoy", "money back")
}

// wantSearch searches, and wants the passage with text first.
func (s *service) wantSearch(t *testing.T, question, text string) {
	t.Helper()
	answer := s.call(t, "POST", "/agents/bakery/sources/search", map[string]any{"query": question}, 200)
	results := answer["results"].([]any)
	if len(results) == 0 {
		t.Fatalf("nothing found for %q", question)
	}
	if first := results[0].(map[string]any)["content"].(string); !strings.Contains(first, text) {
		t.Errorf("%q: first is %q, want the passage with %q", question, first, text)
	}
}

// waitFor waits until a source of an agent has a status.
func (s *service) waitFor(t *testing.T, agent, path, status string) {
	t.Helper()
	s.until(t, agent, path+" is "+status, func() bool {
		got := s.call(t, "GET", agent+path, nil, 200)
		if got["status"] == "error" {
			t.Fatalf("%s: %v", path, got["error"])
		}
		return got["status"] == status
	})
}

// until waits until a condition holds. It checks the condition each time that the agent's
// stream reports a change.
func (s *service) until(t *testing.T, agent, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+agent+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if lines.Text() == "" && holds() { // the end of an event
			return
		}
	}
	executions, _ := json.MarshalIndent(s.call(t, "GET", agent+"/workflows/executions?limit=5", nil, 200), "", " ")
	t.Fatalf("not within a minute: %s\n%s\n%s", what, executions, s.out)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "--data", data)
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	out := func(args ...string) (string, error) {
		var buf bytes.Buffer
		err := run(context.Background(), append(args, "--data", data), &buf)
		return buf.String(), err
	}
	backup := filepath.Join(t.TempDir(), "bakery.db")
	if _, err := out("backup", "bakery", backup); err != nil {
		t.Fatal("backup of a running server's agent:", err)
	}
	if _, err := out("backup", "bakery", backup); err == nil {
		t.Error("a backup over an existing file is not refused")
	}
	if text, err := out("doctor"); err != nil ||
		!strings.Contains(text, `agent "bakery"`) ||
		!strings.Contains(text, "  browser: ") ||
		!strings.Contains(text, "ok  confinement of scripts and documents: ") ||
		!strings.Contains(text, "in use by a running server") {
		t.Errorf("doctor: %v\n%s", err, text)
	}
	if err := run(
		context.Background(),
		[]string{"serve", "--addr", "127.0.0.1:0", "--data", data},
		&bytes.Buffer{},
	); err == nil || !strings.Contains(err.Error(), "another Satchel server") {
		t.Errorf("a second server: %v", err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/api")
	if text, err := out("doctor", "--probe", "--addr", address); err != nil || text != "" {
		t.Errorf("probe of a running server: %v %s", err, text)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := out("doctor", "--probe", "--addr", address); err == nil {
		t.Error("the probe of a stopped server succeeds")
	}
	if text, err := out("restore", backup); err != nil || !strings.Contains(text, "restored as agent-") {
		t.Errorf("restore: %v %s", err, text)
	}
	if text, err := out("key", "create", "ci", "--role", "viewer"); err != nil || !strings.HasPrefix(text, "satchel_") {
		t.Errorf("key create: %v %s", err, text)
	}
	if text, err := out("key", "list"); err != nil || !strings.Contains(text, "viewer") {
		t.Errorf("key list: %v %s", err, text)
	}
	if text, err := out("key", "revoke", "nosuch"); err == nil ||
		!strings.Contains(err.Error(), `"satchel key list" lists them`) {
		t.Errorf("key revoke of an unknown name: %v %s", err, text)
	}
	if text, err := out("key", "revoke", "ci"); err != nil {
		t.Errorf("key revoke: %v %s", err, text)
	}
	if text, err := out("key", "rotate"); err != nil || !strings.Contains(text, "master key was replaced") {
		t.Errorf("key rotate: %v %s", err, text)
	}
	if text, err := out(
		"config",
		"--master-key",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
	); err != nil || strings.Contains(text, "AAAA") {
		t.Errorf("config: %v\n%s", err, text)
	}
	if err := run(
		context.Background(),
		[]string{"serve", "--addr", "0.0.0.0:0", "--data", filepath.Join(t.TempDir(), "x")},
		&bytes.Buffer{},
	); err == nil || !strings.Contains(err.Error(), "--no-auth") {
		t.Errorf("an open server for everyone: %v", err)
	}
}

func TestStartSaysThatNothingConfines(t *testing.T) {
	cases := []struct {
		name    string
		offered child.Confinement
		lines   int
	}{
		{"nothing", child.Confinement{NoNewPrivileges: true}, 1},
		{"another system", child.Confinement{}, 1},
		{"Landlock", child.Confinement{NoNewPrivileges: true, Landlock: 1}, 0},
		{"seccomp", child.Confinement{NoNewPrivileges: true, Seccomp: true}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.offered.Warn(slog.New(slog.NewTextHandler(&out, nil)))
			if got := strings.Count(out.String(), "neither Landlock nor seccomp"); got != c.lines {
				t.Errorf("%d lines, want %d: %s", got, c.lines, out.String())
			}
		})
	}
}

// TestDefaultRole starts servers under access control and calls the default agent without
// an identity.
func TestDefaultRole(t *testing.T) {
	for _, tc := range []struct {
		name, env, file      string
		args                 []string
		says                 string
		read, write, exports int
	}{
		{name: "default", says: "have the role viewer on the default agent", read: 200, write: 403, exports: 403},
		{
			name:    "flag",
			args:    []string{"--default-role", "admin"},
			says:    "have the role admin on the default agent",
			read:    200,
			write:   200,
			exports: 403,
		},
		{name: "variable", env: "none", says: "have no role on the default agent", read: 403, write: 403, exports: 403},
		{
			name:    "file",
			file:    "default_role = 'admin'",
			says:    "have the role admin on the default agent",
			read:    200,
			write:   200,
			exports: 403,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data, settings := t.TempDir(), filepath.Join(t.TempDir(), "settings.toml")
			if err := os.WriteFile(settings, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SATCHEL_DEFAULT_ROLE", tc.env)
			if err := run(t.Context(), []string{"key", "create", "first", "--data", data}, io.Discard); err != nil {
				t.Fatal(err)
			}
			s := start(t, append(tc.args, "--data", data, "--config", settings)...)
			for _, text := range []string{tc.says, "--default-role", "SATCHEL_DEFAULT_ROLE"} {
				if !strings.Contains(s.out.String(), text) {
					t.Errorf("the output of the start has no %q:\n%s", text, s.out)
				}
			}
			s.call(t, "GET", "/agents/default", nil, tc.read)
			s.call(t, "PUT", "/agents/default/settings", map[string]any{"llm_model": "m"}, tc.write)
			s.call(t, "GET", "/agents/default/contacts/export?format=json", nil, tc.exports)
		})
	}
	t.Run("owner is not allowed", func(t *testing.T) {
		err := run(t.Context(), []string{"serve", "--data", t.TempDir(), "--default-role", "owner"}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "admin, viewer, none") {
			t.Errorf("%v", err)
		}
	})
	t.Run("open", func(t *testing.T) {
		s := start(t, "--data", t.TempDir())
		if got := s.out.String(); !strings.Contains(got, "everyone who reaches it acts as owner") ||
			!strings.Contains(got, "SATCHEL_DEFAULT_ROLE") {
			t.Errorf("the output of the start is\n%s", got)
		}
	})
}

// TestFirstKeyOnTheCommandLine makes the first key of a folder with each answer to whether
// strangers may read the default agent, and asks a server and doctor about it.
func TestFirstKeyOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		create []string
		fails  string // what the error of key create says
		says   string // of doctor and the server
		read   int
	}{
		{name: "no answer", says: "no one has decided", read: 200},
		{
			name:   "no",
			create: []string{"--strangers-read", "no"},
			says:   "have no role on the default agent and none elsewhere (by the choice of an owner)",
			read:   403,
		},
		{
			name:   "yes",
			create: []string{"--strangers-read", "yes"},
			says:   "have the role viewer on the default agent and none elsewhere (by the choice of an owner)",
			read:   200,
		},
		{name: "neither", create: []string{"--strangers-read", "maybe"}, fails: "--strangers-read must be yes or no"},
		{
			name:   "against the setting",
			create: []string{"--strangers-read", "yes", "--default-role", "none"},
			fails:  "--default-role",
		},
		{name: "an unknown agent", create: []string{"--agents", "default,nosuch"}, fails: `"nosuch"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := t.TempDir()
			var out bytes.Buffer
			err := run(t.Context(), append([]string{"key", "create", "first", "--data", data}, tc.create...), &out)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || out.Len() > 0 {
					t.Errorf("%v, prints %q", err, out.String())
				}
				return
			}
			if err != nil || !strings.HasPrefix(out.String(), "satchel_") {
				t.Fatalf("%v, prints %q", err, out.String())
			}
			s := start(t, "--data", data)
			var doctor bytes.Buffer
			_ = run(t.Context(), []string{"doctor", "--data", data}, &doctor) // the machine may lack a browser
			for name, text := range map[string]string{"server": s.out.String(), "doctor": doctor.String()} {
				if !strings.Contains(text, tc.says) {
					t.Errorf("%s does not say %q:\n%s", name, tc.says, text)
				}
			}
			s.call(t, "GET", "/agents/default", nil, tc.read)
		})
	}
}

// TestChoiceWithLaterKey chooses for strangers with a key made beside a running server.
func TestChoiceWithLaterKey(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	s.call(t, "POST", "/keys", map[string]any{"name": "first", "role": "owner", "agents": []string{"*"}}, 201)
	s.call(t, "GET", "/agents/default", nil, 200)
	var out bytes.Buffer
	if err := run(
		t.Context(),
		[]string{
			"key",
			"create", "v",
			"--role", "viewer",
			"--agents", "bakery",
			"--strangers-read", "no",
			"--data", data,
		},
		&out,
	); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/agents/bakery", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", strings.TrimSpace(out.String()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the key for an agent by its name: %s", resp.Status)
	}
	s.call(t, "GET", "/agents/default", nil, 403)
}

// TestCommandsWithoutData runs commands where there is no data folder: they report where
// they looked, and create nothing.
func TestCommandsWithoutData(t *testing.T) {
	at := t.TempDir()
	t.Chdir(at)
	for _, args := range [][]string{
		{"backup", "bakery", "bakery.db"},
		{"key", "list"},
		{"key", "revoke", "key-x"},
		{"key", "rotate"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			err := run(t.Context(), args, io.Discard)
			for _, text := range []string{filepath.Join(at, "data"), "--data", "SATCHEL_DATA"} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%q is missing in: %v", text, err)
				}
			}
			if made, err := os.ReadDir(at); err != nil || len(made) > 0 {
				t.Errorf("it created %v, %v", made, err)
			}
		})
	}
	t.Run("a folder with other files", func(t *testing.T) {
		other := t.TempDir()
		err := run(t.Context(), []string{"backup", "bakery", "bakery.db", "--data", other}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%v", err)
		}
	})
	t.Run("an unknown name", func(t *testing.T) {
		s := start(t, "--data", "data")
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), []string{"backup", "bakery", "bakery.db"}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), `no agent "bakery" in `+filepath.Join(at, "data")) {
			t.Errorf("%v", err)
		}
	})
}

// TestCrawl crawls a site with the whole program.
func TestCrawl(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			fmt.Fprint(
				w,
				"<title>Harbour Bakery</title><nav><a href=/returns>Returns</a></nav><main><p>Bread and cake at the "+
					"harbour, every morning from six o'clock on.</p></main>",
			)
		case "/returns":
			fmt.Fprint(
				w,
				"<title>Returns</title><main><h1>Returns</h1><p>If a loaf is not to your liking, bring it back "+
					"within two days. We give your money back or bake you another one.</p></main>",
			)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "--data", data)
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	s.call(t, "POST", "/agents/bakery/sources/crawl", map[string]any{"url": site.URL, "name": "Site"}, 400)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, "--data", data, "--outbound-allow", "127.0.0.1/32")
	source := s.call(t, "POST", "/agents/bakery/sources/crawl", map[string]any{"url": site.URL, "name": "Site"}, 201)
	s.waitFor(t, "/agents/bakery", "/sources/"+source["id"].(string), "ready")
	s.wantSearch(t, "can I get a refund for bread I did not enjoy", "money back")
	again := s.call(t, "POST", "/agents/bakery/sources/"+source["id"].(string)+"/reindex", nil, 200)
	if again["status"] != "crawling" {
		t.Errorf("reindex returns %v", again)
	}
	s.waitFor(t, "/agents/bakery", "/sources/"+source["id"].(string), "ready")
	config := s.call(t, "GET", "/agents/bakery/sources/"+source["id"].(string), nil, 200)["config"].(map[string]any)
	if config["pageCount"] != 2.0 || config["unchangedPages"] != 2.0 || config["changedPages"] != 0.0 {
		t.Errorf("crawled again: %v", config)
	}
}
