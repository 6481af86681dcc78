package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/egress"
)

// newClient returns a Client whose guarded HTTP client may reach loopback.
func newClient(tb testing.TB) *Client {
	tb.Helper()
	guard := egress.New(egress.Policy{Allow: agent.MustAddressRanges("127.0.0.1/32"), MaxResponse: -1})
	tb.Cleanup(guard.CloseIdleConnections)
	return New(Options{HTTP: guard.HTTP(), Version: "test"})
}

// testServer returns the SDK's own server with a few tools.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	sdk.AddTool(
		s,
		&sdk.Tool{Name: "add", Description: "Adds"},
		func(_ context.Context, _ *sdk.CallToolRequest, in sum) (*sdk.CallToolResult, map[string]int, error) {
			return nil, map[string]int{"sum": in.A + in.B}, nil
		},
	)
	plain := json.RawMessage(`{"type":"object"}`)
	s.AddTool(
		&sdk.Tool{Name: "hello", InputSchema: plain},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: "hello"}, &sdk.TextContent{Text: "world"}},
			}, nil
		},
	)
	s.AddTool(
		&sdk.Tool{Name: "picture", InputSchema: plain},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}},
			}, nil
		},
	)
	s.AddTool(
		&sdk.Tool{Name: "fails", InputSchema: plain},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			sent := ""
			if r.Extra != nil {
				sent = r.Extra.Header.Get("Authorization")
			}
			result := &sdk.CallToolResult{}
			result.SetError(fmt.Errorf("no ticket 7; you sent %s", sent))
			return result, nil
		},
	)
	annotated := json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`,
	)
	s.AddTool(
		&sdk.Tool{Name: "where", InputSchema: annotated},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		},
	)
	return s
}

// transports are the transports and protocol versions that a server may support.
var transports = map[string]func() http.Handler{
	"2026-07-28, stateless": func() http.Handler {
		return sdk.NewStreamableHTTPHandler(
			func(*http.Request) *sdk.Server { return testServer() },
			&sdk.StreamableHTTPOptions{Stateless: true},
		)
	},
	"2026-07-28, stateless, JSON": func() http.Handler {
		return sdk.NewStreamableHTTPHandler(
			func(*http.Request) *sdk.Server { return testServer() },
			&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true},
		)
	},
	"2025-11-25, sessions": func() http.Handler {
		s := testServer()
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	},
	"SSE": func() http.Handler {
		s := testServer()
		return sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)
	},
}

func TestAllTransports(t *testing.T) {
	for name, handler := range transports {
		t.Run(name, func(t *testing.T) {
			peer := httptest.NewServer(handler()) // in the second round the transport is known
			t.Cleanup(func() {
				peer.CloseClientConnections()
				peer.Close()
			})
			c, s := newClient(t), Server{URL: peer.URL + "/mcp"}
			for round := range 2 { // in the second round the transport is known
				tools, err := c.Tools(t.Context(), s)
				if err != nil || len(tools) != 5 || StatusOf(err) != agent.MCPConnected {
					t.Fatalf("round %d: %d tools, %v", round, len(tools), err)
				}
				if !strings.Contains(string(tools[0].Parameters), `"a"`) ||
					tools[0].Name != "add" ||
					tools[0].Description != "Adds" {
					t.Errorf("tool %+v", tools[0])
				}
				for tool, want := range map[string]any{
					"add":   map[string]any{"sum": json.Number("5")},
					"hello": "hello\nworld",
					"where": `{"a":2,"b":3,"region":"eu"}`,
					"picture": map[string]any{
						"content": []any{map[string]any{
							"type":     "image",
							"mimeType": "image/png",
							"data":     base64.StdEncoding.EncodeToString([]byte("png")),
						}},
					},
				} {
					arguments := json.RawMessage(`{"a":2,"b":3,"region":"eu"}`)
					if tool == "add" {
						arguments = json.RawMessage(`{"a":2,"b":3}`)
					}
					got, err := c.Call(t.Context(), s, tool, arguments)
					if err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("round %d: %s returns %#v, %v", round, tool, got, err)
					}
				}
				if _, err := c.Call(t.Context(), s, "fails", nil); agent.ErrorCode(err) != agent.CodeExecution ||
					!strings.Contains(err.Error(), "no ticket 7") {
					t.Errorf("a tool's own error is %v", err)
				}
				if _, err := c.Call(t.Context(), s, "nothing", nil); agent.ErrorCode(err) != agent.CodeUpstream ||
					!strings.Contains(agent.Explain(err), "the MCP server reports: ") {
					t.Errorf("an unknown tool is %v", err)
				}
			}
		})
	}
}

// TestServerChangesTransport: the transport that a client remembers for a server may
// become invalid.
func TestServerChangesTransport(t *testing.T) {
	var handler atomic.Value
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(func() {
		peer.CloseClientConnections()
		peer.Close()
	})
	c, s := newClient(t), Server{URL: peer.URL}
	for _, from := range []string{"SSE", "2025-11-25, sessions", "2026-07-28, stateless"} {
		for _, to := range []string{"2026-07-28, stateless", "SSE", "2025-11-25, sessions", from} {
			handler.Store(http.HandlerFunc(transports[to]().ServeHTTP))
			if _, err := c.Call(t.Context(), s, "hello", nil); err != nil {
				t.Errorf("%s: %v", to, err)
			}
		}
	}
}

// TestMirroredArguments: arguments also go into headers if the schema says so,
// even for a tool that this process has never listed; other servers are not
// listed before each call.
func TestMirroredArguments(t *testing.T) {
	for name, test := range map[string]struct {
		schema, header string
		listings       int
	}{
		"plain":      {`{"type":"object","properties":{"region":{"type":"string"}}}`, "", 1},
		"mirrored":   {`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`, "eu", 3},
		"no listing": {``, "", 3},
	} {
		var listings int
		var header string
		peer := httptest.NewServer(answerTo(toolsCapability, func(w http.ResponseWriter, r *http.Request, id string) {
			if r.Header.Get("Mcp-Method") == "tools/list" {
				listings++
				if test.schema == "" {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no list today"}}`, id)
					return
				}
				fmt.Fprintf(
					w,
					`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"where","inputSchema":%s}],`+
						`"resultType":"complete"}}`,
					id,
					test.schema,
				)
				return
			}
			header = r.Header.Get("Mcp-Param-Region")
			fmt.Fprintf(
				w,
				`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"here"}],`+
					`"resultType":"complete"}}`,
				id,
			)
		}))
		c := newClient(t)
		for range 3 {
			if got, err := c.Call(
				t.Context(),
				Server{URL: peer.URL},
				"where",
				json.RawMessage(`{"region":"eu"}`),
			); err != nil || got != "here" || header != test.header {
				t.Errorf("%s: %v, %v, header %q", name, got, err, header)
			}
		}
		if listings != test.listings {
			t.Errorf("%s: tools were listed %d times, want %d", name, listings, test.listings)
		}
		peer.Close()
	}
}

func TestCredentials(t *testing.T) {
	inner := transports["2026-07-28, stateless"]()
	for name, test := range map[string]struct {
		auth        agent.MCPAuth
		header, has string
	}{
		"bearer": {agent.MCPAuth{Type: "bearer", Token: "sesame-7"}, "Authorization", "Bearer sesame-7"},
		"basic": {
			agent.MCPAuth{Type: "basic", Username: "ada", Password: "sesame-7"},
			"Authorization",
			"Basic YWRhOnNlc2FtZS03",
		},
		"header": {agent.MCPAuth{Type: "header", Name: "X-Shop", Value: "sesame-7"}, "X-Shop", "sesame-7"},
	} {
		peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(test.header) != test.has {
				http.Error(w, "who are you, "+r.Header.Get(test.header), http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		c := newClient(t)
		if _, err := c.Tools(t.Context(), Server{URL: peer.URL, Auth: test.auth}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wrong := test.auth
		wrong.Token, wrong.Password, wrong.Value = "open-8", "open-8", "open-8"
		_, err := c.Tools(t.Context(), Server{URL: peer.URL, Auth: wrong})
		if StatusOf(err) != agent.MCPError ||
			agent.Explain(err) != "the MCP server rejected the credentials (HTTP 401)" ||
			strings.Contains(err.Error(), "open-8") {
			t.Errorf("%s: with the wrong credential %v", name, err)
		}
		if test.auth.Type == "bearer" {
			_, err := c.Call(t.Context(), Server{URL: peer.URL, Auth: test.auth}, "fails", nil)
			if !strings.Contains(err.Error(), "no ticket 7; you sent Bearer ********") {
				t.Errorf("a server that repeats the token: %v", err)
			}
		}
		peer.Close()
	}
}

// answerTo answers server/discover as a server of 2026-07-28, and passes other methods
// to next.
func answerTo(discover string, next func(w http.ResponseWriter, r *http.Request, id string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if call.Method == "server/discover" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, discover)
			return
		}
		next(w, r, string(call.ID))
	})
}

const toolsCapability = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`

func answerToolsWith(result string) http.Handler {
	return answerTo(toolsCapability, func(w http.ResponseWriter, _ *http.Request, id string) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	})
}

// TestBadServers covers the outcome of each kind of broken server.
func TestBadServers(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed to %s with %v", r.URL, r.Header)
	}))
	defer secret.Close()
	status := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		release := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, release); err != nil {
				return
			}
		}
	})
	for name, test := range map[string]struct {
		peer   http.Handler
		status agent.MCPStatus
		says   string
	}{
		"401":        {status(401, "no"), "error", "rejected the credentials (HTTP 401)"},
		"403":        {status(403, "no"), "error", "rejected the credentials (HTTP 403)"},
		"404":        {status(404, "no"), "error", "HTTP 404"},
		"500":        {status(500, "boom"), "error", "HTTP 500"},
		"429":        {status(429, ""), "error", "HTTP 429"},
		"a web page": {status(200, "<html>"), "error", "not MCP"},
		"empty":      {status(200, ""), "error", "not MCP"},
		"private redirect": {
			http.RedirectHandler(secret.URL, http.StatusTemporaryRedirect),
			"error",
			"redirects to another host",
		},
		"other redirect": {
			http.RedirectHandler("http://169.254.169.254/latest", http.StatusFound),
			"error",
			"redirects to another host",
		},
		"redirect loop": {
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
			}),
			"disconnected",
			"cannot be reached",
		},
		"100 MB": {endless, "error", "more than 8 MB"},
		"hangs up": {
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			"disconnected",
			"the connection was closed early",
		},
		"truncated": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`)
		}), "error", "not MCP"},
		"no listing": {answerToolsWith(`{"tools":7,"resultType":"complete"}`), "error", "not MCP"},
		"reports": {answerTo(toolsCapability, func(w http.ResponseWriter, _ *http.Request, id string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"out of tea"}}`, id)
		}), "error", "the MCP server reports: out of tea (-32000)"},
		"deep": {
			answerToolsWith(`{"tools":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`),
			"error",
			"not MCP",
		},
	} {
		t.Run(name, func(t *testing.T) {
			peer := httptest.NewServer(test.peer)
			defer func() {
				peer.CloseClientConnections()
				peer.Close()
			}()
			_, err := newClient(t).Tools(t.Context(), Server{
				URL:  peer.URL,
				Auth: agent.MCPAuth{Type: "bearer", Token: "sesame-7"},
			})
			if StatusOf(err) != test.status ||
				agent.ErrorCode(err) != agent.CodeUpstream ||
				!strings.Contains(agent.Explain(err), test.says) {
				t.Errorf("%s: %v", StatusOf(err), err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for url, says := range map[string]string{
		closed.URL:               "the connection was refused",
		"http://10.1.2.3/mcp":    "may not reach",
		"http://127.0.0.2:9/mcp": "may not reach",
		strings.Replace(closed.URL, "127.0.0.1", "[::]", 1): "may not reach",
	} {
		_, err := newClient(t).Tools(t.Context(), Server{URL: url})
		if StatusOf(err) != agent.MCPDisconnected || !strings.Contains(agent.Explain(err), says) {
			t.Errorf("%s: %s, %v", url, StatusOf(err), err)
		}
	}
}

// TestHangingServers: a server never responds, responds only to the first request, has
// an endless stream, or a session that cannot be ended. No call may exceed its timeout
// or leak goroutines.
func TestHangingServers(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	legacy := transports["2025-11-25, sessions"]()
	for name, peer := range map[string]http.Handler{
		"always": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}),
		"after the first answer": answerTo(
			toolsCapability,
			func(w http.ResponseWriter, r *http.Request, _ string) { hang(w, r) },
		),
		"as a stream": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\nretry: 100000000\ndata:\n\n")
			hang(w, r)
		}),
		"in the middle of a session": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodDelete ||
				strings.Contains(string(raw), "tools/") ||
				strings.Contains(string(raw), "cancelled") {
				hang(w, r)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
			legacy.ServeHTTP(w, r)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(peer)
			guard := egress.New(egress.Policy{Allow: agent.MustAddressRanges("127.0.0.1/32"), MaxResponse: -1})
			c := New(Options{HTTP: guard.HTTP(), ListTimeout: 200 * time.Millisecond, CallTimeout: time.Minute})
			_, err := c.Tools(t.Context(), Server{URL: server.URL})
			if StatusOf(err) != agent.MCPDisconnected || agent.Explain(err) != "the MCP server did not answer in time" {
				t.Errorf("got error %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			if _, err := c.Call(ctx, Server{URL: server.URL}, "hello", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that cancels gets %v", err)
			}
			server.CloseClientConnections()
			guard.CloseIdleConnections()
			server.Close()
			waitForEnd(t)
		})
	}
}

// waitForEnd waits until all goroutines of clients have ended.
func waitForEnd(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "ClientConn)") &&
			!strings.Contains(stacks, "mcp.(*exchange)") &&
			!strings.Contains(stacks, "mcp.(*ClientSession)") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are still running:\n%s", stacks)
		}
	}
}
