package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// TestMain is also the entry point of the child process that runs scripts.
func TestMain(m *testing.M) {
	if RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// newPool returns a pool that stops with the test.
func newPool(t testing.TB, o Options) *Pool {
	t.Helper()
	p := New(o)
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestResults(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	variables := map[string]any{
		"input": map[string]any{"n": 20.0, "text": "héllo 😀\x00 </script>", "list": []any{1.0, "a", nil}},
		"row":   map[string]any{"id": 7},
		"index": 3,
	}
	cases := []struct {
		name, code string
		want       any
	}{
		{"nothing", "", nil},
		{"undefined", "return undefined", nil},
		{"function", "return () => 1", nil},
		{"number", "return input.n * 2 + 2", 42.0},
		{"text", "return input.text + '!'", "héllo 😀\x00 </script>!"},
		{"lone surrogate", `return "\ud800"`, "\ufffd"},
		{"NaN is null", "return [NaN, -0]", []any{nil, 0.0}},
		{
			"object",
			"return {a: [1, {b: null}], u: undefined}",
			map[string]any{"a": []any{1.0, map[string]any{"b": nil}}},
		},
		{"variables", "return [row.id, index, input.list]", []any{7.0, 3.0, []any{1.0, "a", nil}}},
		{
			"missing variables",
			"return [typeof trigger, typeof nodes, typeof item, typeof contact, typeof message, typeof args]",
			[]any{"undefined", "undefined", "undefined", "undefined", "undefined", "undefined"},
		},
		{"a variable may be redeclared", "const input = 1; let message = 2; return input + message", 3.0},
		{"await", "const x = await Promise.resolve(1); return x + await (async () => 2)()", 3.0},
		{"promise", "return Promise.all([1, Promise.resolve(2)])", []any{1.0, 2.0}},
		{"thenable", "return {then: (ok) => ok(5)}", 5.0},
		{"a comment at the end", "return 1 // one", 1.0},
		{"catching", "try { null.x } catch (e) { return e.name }", "TypeError"},
		{
			"catching stack overflow",
			"const f = () => f() + 1; try { f() } catch (e) { return e.message }",
			"stack overflow",
		},
		{"many jobs", "let n = 0; for (let i = 0; i < 1000; i++) n += await i; return n", 499500.0},
		{"a date", "return new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"},
		{"toJSON", "return {toJSON: () => 'j'}", "j"},
		{"an unhandled rejection", "Promise.reject(new Error('x')); return 1", 1.0},
		{
			"no modules, files, processes, timers",
			"return [typeof std, typeof os, typeof require, typeof process, typeof scriptArgs, typeof setTimeout, " +
				"typeof print, typeof $done]",
			[]any{
				"undefined", "undefined", "undefined", "undefined", "undefined", "undefined", "undefined", "undefined",
			},
		},
		{"import of a module", "try { await import('std') } catch (e) { return e.name }", "ReferenceError"},
		{"import of os", "try { await import('os') } catch (e) { return e.name }", "ReferenceError"},
		{"import of a file", "try { await import('/etc/passwd') } catch (e) { return e.name }", "ReferenceError"},
		{"Function stays inside", "return new Function('return typeof os + typeof std')()", "undefinedundefined"},
		{"eval stays inside", "return (0, eval)('typeof globalThis.$done')", "undefined"},
		{"leaving the wrapper", "return 1}).call(this)}), (function(){ return (async function script(){ return 2", 2.0},
	}
	for _, c := range cases {
		got, err := p.Run(t.Context(), Call{Code: c.code, Variables: variables, Timeout: MaxTimeout})
		if err != nil || !reflect.DeepEqual(got.Value, c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", c.name, got.Value, err, c.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	variables := map[string]any{"input": map[string]any{"total": 120, "tags": []string{"vip"}}}
	for code, want := range map[string]any{
		"input.total > 100":                             true,
		"input.total > 100 && input.tags.includes('x')": false,
		" (input.total + 1) ; ; \n":                     121.0,
		"{a: 1}":                                        map[string]any{"a": 1.0},
		"input.total // in euro":                        120.0,
		"await Promise.resolve(1)":                      1.0,
	} {
		got, err := p.Run(t.Context(), Call{Code: code, Expression: true, Variables: variables})
		if err != nil || !reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s: got %#v, %v", code, got.Value, err)
		}
	}
	if _, err := p.Run(t.Context(), Call{Code: "return 1", Expression: true}); agent.ErrorCode(err) != CodeSyntax {
		t.Errorf("a statement: %v", err)
	}
}

func TestErrors(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	cases := []struct {
		name, code string
		want       agent.Code
		message    string
		line       any
	}{
		{
			"syntax",
			"const a = 1\nlet b = ;\nreturn b",
			CodeSyntax,
			"the code is not valid JavaScript: unexpected token in expression: ';'",
			2,
		},
		{"open brace", "if (true) {\nreturn 1", CodeSyntax, "the code is not valid JavaScript", 2},
		{"thrown", "\n\nthrow new Error('no stock')", CodeThrown, "no stock", 3},
		{"thrown below", "function f() {\n  throw new RangeError('far')\n}\nf()", CodeThrown, "RangeError: far", 2},
		{"after await", "await 1\nawait 2\nnull.x", CodeThrown, "TypeError: cannot read property 'x' of null", 3},
		{"undefined name", "return foo", CodeThrown, "ReferenceError: 'foo' is not defined", 1},
		{"in a native function", "\nJSON.parse('{')", CodeThrown, "SyntaxError", 2},
		{"a text", "throw 'just text'", CodeThrown, "just text", nil},
		{"an object", "throw {code: 7}", CodeThrown, `{"code":7}`, nil},
		{"null", "throw null", CodeThrown, "null", nil},
		{"nothing", "throw ''", CodeThrown, "the script threw an error without a message", nil},
		{
			"an error that cannot be read",
			"const e = new Error('x'); Object.defineProperty(e, 'message', {get() { throw 1 }}); throw e",
			CodeThrown,
			"the script threw a value that cannot be shown",
			nil,
		},
		{"a long message", "throw new Error('x'.repeat(5000))", CodeThrown, strings.Repeat("x", maxMessage) + "…", 1},
		{"rejected", "return Promise.reject(new Error('later'))", CodeThrown, "later", 1},
		{"recursion", "const f = () => f() + 1\nreturn f()", CodeThrown, "InternalError: stack overflow", 1},
		{
			"cyclic",
			"const a = {}; a.a = a; return a",
			CodeResult,
			"the result cannot be encoded as JSON: TypeError: circular reference",
			nil,
		},
		{"bigint", "return 1n", CodeResult, "the result cannot be encoded as JSON: TypeError", nil},
		{
			"never settled",
			"await new Promise(() => {})",
			CodeStalled,
			"the script is waiting for a promise that never settles",
			nil,
		},
		{"no fetch here", "await fetch('http://example.com')", CodeThrown, "TypeError: fetch is not available here", 1},
	}
	for _, c := range cases {
		_, err := p.Run(t.Context(), Call{Code: c.code, Timeout: MaxTimeout})
		var e *agent.Error
		if !errors.As(err, &e) ||
			e.Code != c.want ||
			!strings.Contains(e.Message, c.message) ||
			e.Details["line"] != c.line {
			t.Errorf("%s: %v, want %s %q in line %v", c.name, err, c.want, c.message, c.line)
		}
	}
}

// TestCheck: code is compiled, and not run.
func TestCheck(t *testing.T) {
	fetched := false
	p := newPool(t, Options{Size: 1, Fetch: func(*http.Request) (*http.Response, error) {
		fetched = true
		return nil, io.EOF
	}})
	for _, c := range []struct {
		code       string
		expression bool
		line       any // of the error; nil if the code is valid
	}{
		{"for (;;) {}", false, nil},
		{"throw new Error('no')", false, nil},
		{"await fetch('http://127.0.0.1:1'); return input.n", false, nil},
		{
			"1}).call(this)}), fetch('http://127.0.0.1:1'), (function(){ return (async function script(){ return 2",
			false,
			nil,
		},
		{"input.n > 1", true, nil},
		{"const a = 1\nconst a = 2", false, 2},
		{"return {\n  a: 1,\n  b: [}\n}", false, 3},
		{"if (x) {", true, 1},
	} {
		err := p.Check(t.Context(), Call{Code: c.code, Expression: c.expression})
		var known *agent.Error
		if c.line == nil && err != nil ||
			c.line != nil && (!errors.As(err, &known) || known.Code != CodeSyntax || known.Details["line"] != c.line) {
			t.Errorf("%s: %v %v, want line %v", c.code, err, known, c.line)
		}
	}
	if fetched {
		t.Error("a check made a request")
	}
}

func TestBadCalls(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	cases := []struct {
		call  Call
		field string
	}{
		{Call{Code: strings.Repeat(" ", MaxCode+1)}, "code"},
		{Call{Timeout: -1}, "timeout"},
		{Call{Timeout: MaxTimeout + 1}, "timeout"},
		{Call{Memory: 1}, "memory"},
		{Call{Memory: MaxMemory + 1}, "memory"},
		{Call{Variables: map[string]any{"a b": 1}}, "variables"},
		{Call{Variables: map[string]any{"class": 1}}, "variables"},
		{Call{Variables: map[string]any{"x": func() {}}}, "variables"},
		{Call{Variables: map[string]any{"x": strings.Repeat("x", MaxVariables)}}, "variables"},
	}
	for _, c := range cases {
		_, err := p.Run(t.Context(), c.call)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != agent.CodeValidation || e.Details["field"] != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestConsole(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	got, err := p.Run(t.Context(), Call{Code: `console.log("a", 1, null, undefined, true, {b: [1]}, 5n)
		console.info(new TypeError("t")); console.warn(() => 1); console.error(Symbol("s")); console.debug()
		const cyclic = {}; cyclic.c = cyclic; console.log(cyclic)`})
	want := []Log{
		{"log", `a 1 null undefined true {"b":[1]} 5`}, {"info", "TypeError: t"}, {"warn", "[function]"},
		{"error", "Symbol(s)"}, {"debug", ""}, {"log", "[object]"},
	}
	if err != nil || !reflect.DeepEqual(got.Logs, want) {
		t.Errorf("got %v %q", err, got.Logs)
	}
	got, err = p.Run(t.Context(), Call{Code: "for (let i = 0; i < 1000; i++) console.log(i); throw new Error('x')"})
	if n := len(got.Logs); agent.ErrorCode(err) != CodeThrown ||
		n != maxLogLines+1 ||
		got.Logs[n-1].Message != "further lines were dropped" {
		t.Errorf("%d lines, %v", len(got.Logs), err)
	}
	got, err = p.Run(t.Context(), Call{
		Code:    "for (let i = 0; i < 100; i++) console.log('x'.repeat(1e5))",
		Timeout: MaxTimeout,
	})
	total := 0
	for _, l := range got.Logs {
		total += len(l.Message)
	}
	if err != nil || total > maxLogBytes+100 || total < maxLogBytes/2 {
		t.Errorf("%d bytes of log, %v", total, err)
	}
}

// A script does not see changes that another script made to its environment.
func TestNothingIsLeftBehind(t *testing.T) {
	p := newPool(t, Options{Size: 1, Warm: 1})
	_, err := p.Run(t.Context(), Call{Code: `
		globalThis.secret = "s"; Object.prototype.polluted = 1; Array.prototype.map = () => "bad";
		JSON.stringify = () => '"forged"'; Promise.prototype.then = () => {}; console.log = null; globalThis.fetch = () => "mine";
		return 1`})
	if err != nil {
		t.Error(err)
	}
	got, err := p.Run(t.Context(), Call{
		Code: "return [typeof secret, typeof ({}).polluted, [1].map((x) => x + 1), typeof console.log, " +
			"typeof fetch, await Promise.resolve(1)]",
	})
	if want := []any{
		"undefined", "undefined", []any{2.0}, "function", "function", 1.0,
	}; err != nil || !reflect.DeepEqual(got.Value, want) {
		t.Errorf("got %v, %v", got.Value, err)
	}
}

func TestFetch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Method", r.Method)
			w.Header().Add("X-Two", "a")
			w.Header().Add("X-Two", "b")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(
				w,
				`{"body":%q,"token":%q,"list":%q,"host":%q}`,
				body,
				r.Header.Get("X-Token"),
				strings.Join(r.Header.Values("X-List"), "+"),
				r.Host,
			)
		case "/large":
			_, _ = io.CopyN(w, zeros{}, MaxFetchResponse+1)
		case "/megabyte":
			_, _ = io.CopyN(w, zeros{}, 1<<20)
		case "/latin":
			_, _ = w.Write([]byte("caf\xe9"))
		case "/hang":
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("cut"))
		}
	}))
	t.Cleanup(server.Close)
	p := newPool(t, Options{Size: 1, Fetch: func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "10.0.0.1" {
			return nil, agent.Errorf("BLOCKED_ADDRESS", "10.0.0.1 is not allowed")
		}
		return http.DefaultTransport.RoundTrip(r)
	}})
	cases := []struct {
		name, code string
		want       any
	}{
		{"response", `const r = await fetch(url + "/echo", {method: "post", headers: {"X-Token": "t", Host: "evil"}, body: "b"});
			const j = await r.json();
			return [r.ok, r.status, r.statusText, r.url === url + "/echo", r.headers.get("X-METHOD"), r.headers.get("x-two"), r.headers.has("no"), r.headers.get("no"), j.body, j.token, "http://" + j.host === url, (await r.text()).length > 10]`,
			[]any{true, 201.0, "Created", true, "POST", "a, b", false, nil, "b", "t", true, true}},
		{
			"headers as a list",
			`return (await (await fetch(url + "/echo", {headers: [["X-Token", 1], ["X-List", "a"], ` +
				`["X-List", "b"]]})).json()).list`,
			"a+b",
		},
		{
			"headers in turn",
			`const r = await fetch(url + "/echo"); let n = 0; r.headers.forEach((v, k) => { n += k === "x-method" ` +
				`&& v === "GET" ? 1 : 0 }); for (const [k] of r.headers) n += k === "x-method"; return [n, ` +
				`[...r.headers.keys()].includes("x-method"), [...r.headers.values()].includes("GET"), ` +
				`[...r.headers.entries()].length > 1]`,
			[]any{2.0, true, true, true},
		},
		{
			"many at once",
			`const all = await Promise.all(Array.from({length: 20}, () => fetch(url + "/megabyte"))); let n = 0; ` +
				`for (const r of all) n += (await r.text()).length; return n`,
			20.0 * (1 << 20),
		},
		{"not UTF-8", `return (await fetch(url + "/latin")).text()`, "café"},
		{"404 is not an error", `const r = await fetch(url + "/echo/x"); return r.status`, 200.0},
		{
			"broken JSON",
			`try { await (await fetch(url + "/latin")).json() } catch (e) { return e.name }`,
			"SyntaxError",
		},
		{
			"blocked",
			`try { await fetch("http://10.0.0.1/") } catch (e) { return String(e) }`,
			"TypeError: fetch failed: 10.0.0.1 is not allowed",
		},
		{
			"connection refused",
			`try { await fetch("http://127.0.0.1:1/") } catch (e) { return String(e) }`,
			"TypeError: fetch failed: the connection was refused",
		},
		{
			"no URL",
			`try { await fetch("http://a b/") } catch (e) { return String(e) }`,
			"TypeError: the URL, the method or a header of a request is not valid",
		},
		{
			"odd method",
			`try { await fetch(url, {method: "GET / HTTP"}) } catch (e) { return String(e) }`,
			"TypeError: the URL, the method or a header of a request is not valid",
		},
		{
			"large response",
			`try { await fetch(url + "/large") } catch (e) { return String(e) }`,
			"TypeError: the response is larger than 5 MB",
		},
		{
			"cut response",
			`try { await fetch(url + "/cut") } catch (e) { return String(e) }`,
			"TypeError: fetch failed: the connection was closed early",
		},
		{
			"large body",
			`try { await fetch(url, {method: "POST", body: "x".repeat(2e6)}) } catch (e) { return String(e) }`,
			"TypeError: the body of a request can have at most 1048576 bytes",
		},
		{
			"large headers",
			`try { await fetch(url, {headers: {a: "x".repeat(1e5)}}) } catch (e) { return String(e) }`,
			"TypeError: the URL and the headers of a request are too long",
		},
		{
			"too many requests",
			`let n = 0; try { for (;;) { await fetch(url + "/latin"); n++ } } catch (e) { return [n, String(e)] }`,
			[]any{50.0, "TypeError: a script can make at most 50 requests"},
		},
		{"not waited for", `fetch(url + "/hang"); fetch(url + "/megabyte"); return 1`, 1.0},
		{"after the pending requests", `return (await fetch(url + "/latin")).status`, 200.0},
	}
	for _, c := range cases {
		got, err := p.Run(t.Context(), Call{
			Code:      c.code,
			Variables: map[string]any{"url": server.URL},
			Timeout:   MaxTimeout, // the machine may be busy
		})
		if err != nil || !reflect.DeepEqual(got.Value, c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", c.name, got.Value, err, c.want)
		}
	}
	_, err := p.Run(t.Context(), Call{
		Code:      `await fetch(url + "/hang")`,
		Variables: map[string]any{"url": server.URL},
		Timeout:   100 * time.Millisecond,
	})
	if agent.ErrorCode(err) != CodeTimeout {
		t.Errorf("a hanging server: %v", err)
	}
}

// zeros is an endless stream of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
