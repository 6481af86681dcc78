package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"satchel/agent"
)

// TestToolsThatCannotBeUsed checks that a tool that cannot be used does not disable its server.
func TestToolsThatCannotBeUsed(t *testing.T) {
	const good = `{"name":"good","description":"Works","inputSchema":{"type":"object",` +
		`"properties":{"n":{"type":"integer"}}}}`
	const none = `{"type":"object"}`
	for name, test := range map[string]struct{ other, want string }{
		"no schema":       {`{"name":"other"}`, "other" + none},
		"null schema":     {`{"name":"other","inputSchema":null}`, "other" + none},
		"empty schema":    {`{"name":"other","inputSchema":{}}`, "other{}"},
		"schema is text":  {`{"name":"other","inputSchema":"object"}`, ""},
		"schema of array": {`{"name":"other","inputSchema":{"type":"array"}}`, ""},
		"huge schema": {
			`{"name":"other","inputSchema":{"type":"object","title":"` + strings.Repeat("x", MaxSchema) + `"}}`,
			"",
		},
		"double name":      {`{"name":"good","inputSchema":{"type":"object"}}`, ""},
		"no name":          {`{"inputSchema":{"type":"object"}}`, ""},
		"name is a number": {`{"name":7,"inputSchema":{"type":"object"}}`, ""},
		"null":             {`null`, ""},
		"text":             {`"other"`, ""},
		"other fields": {
			`{"name":"other","title":7,"annotations":"x","icons":{},"outputSchema":"y","_meta":1,` +
				`"inputSchema":{"type":"object"}}`,
			"other" + none,
		},
		"description": {
			`{"name":"other","description":["x"],"inputSchema":{"type":"object"}}`,
			"other" + none,
		},
		"empty list of PHP": {
			`{"name":"other","inputSchema":{"type":"object","properties":[],"required":{}}}`,
			`other{"properties":{},"required":[],"type":"object"}`,
		},
		"type in a list": {`{"name":"other","inputSchema":{"type":["object"]}}`, `other{"type":"object"}`},
		"input_schema": {
			`{"name":"other","input_schema":{"type":"object","title":"x"}}`,
			`other{"title":"x","type":"object"}`,
		},
		"only as a task": {
			`{"name":"other","execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}`,
			"",
		},
		"optionally as a task": {
			`{"name":"other","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}}`,
			"other" + none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			peer := httptest.NewServer(answerToolsWith(
				`{"tools":[` + good + `,` + test.other + `],"resultType":"complete"}`,
			))
			defer peer.Close()
			tools, err := newClient(t).Tools(t.Context(), Server{URL: peer.URL})
			got := ""
			for _, tool := range tools[min(1, len(tools)):] {
				got += tool.Name + string(tool.Parameters)
			}
			if err != nil ||
				len(tools) == 0 ||
				tools[0].Name != "good" ||
				tools[0].Description != "Works" ||
				got != test.want {
				t.Errorf("%v, %v", tools, err)
			}
		})
	}
}

// TestDeclaredCapabilities checks that the tools of a server are found however it declares them.
func TestDeclaredCapabilities(t *testing.T) {
	for _, declared := range []string{`{"tools":{}}`, `{"tools":[],"logging":[]}`, `{}`, `[]`} {
		discover := strings.Replace(toolsCapability, `{"tools":{}}`, declared, 1)
		peer := httptest.NewServer(answerTo(discover, func(w http.ResponseWriter, _ *http.Request, id string) {
			fmt.Fprintf(
				w,
				`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":{}}],"resultType":"complete"}}`,
				id,
			)
		}))
		tools, err := newClient(t).Tools(t.Context(), Server{URL: peer.URL})
		peer.Close()
		if err != nil || len(tools) != 1 {
			t.Errorf("%s: %v, %v", declared, tools, err)
		}
	}
	peer := httptest.NewServer(answerTo(
		strings.Replace(toolsCapability, `{"tools":{}}`, `{}`, 1),
		func(w http.ResponseWriter, _ *http.Request, id string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, id)
		},
	))
	defer peer.Close()
	if tools, err := newClient(t).Tools(t.Context(), Server{URL: peer.URL}); err != nil || len(tools) != 0 {
		t.Errorf("a server without tools: %v, %v", tools, err)
	}
}

// TestCursorThatStandsStill checks that a list ends where a server returns a cursor that
// it returned before.
func TestCursorThatStandsStill(t *testing.T) {
	requests := 0
	peer := httptest.NewServer(answerTo(toolsCapability, func(w http.ResponseWriter, _ *http.Request, id string) {
		requests++
		fmt.Fprintf(
			w,
			`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"%d",`+
				`"resultType":"complete"}}`,
			id,
			requests%2,
		)
	}))
	defer peer.Close()
	tools, err := newClient(t).Tools(t.Context(), Server{URL: peer.URL})
	if err != nil || len(tools) != 1 || requests != 3 {
		t.Errorf("%v after %d requests, %v", tools, requests, err)
	}
}

// TestResultsOfAnyShape checks that what this client does not know in a result is no error.
func TestResultsOfAnyShape(t *testing.T) {
	for name, test := range map[string]struct{ result, want string }{
		"unknown type": {
			`"content":[{"type":"text","text":"a"},{"type":"chart","x":1}]`,
			`"a\n{\"type\":\"chart\",\"x\":1}"`,
		},
		"no type": {`"content":[{"text":"a"}]`, `"{\"text\":\"a\"}"`},
		"no base64": {
			`"content":[{"type":"image","data":"%%","mimeType":"image/png"}]`,
			`"{\"type\":\"image\",\"data\":\"%%\",\"mimeType\":\"image/png\"}"`,
		},
		"text":              {`"content":"a"`, `"a"`},
		"texts":             {`"content":["a","b"]`, `"a\nb"`},
		"one block":         {`"content":{"type":"text","text":"a"}`, `"a"`},
		"structured alone":  {`"structuredContent":{"a":1}`, `{"a":1}`},
		"structured list":   {`"content":[],"structuredContent":[1,2]`, `[1,2]`},
		"large numbers":     {`"structuredContent":{"id":9007199254740993}`, `{"id":9007199254740993}`},
		"structured null":   {`"content":[{"type":"text","text":"a"}],"structuredContent":null`, `"a"`},
		"error":             {`"content":[{"type":"text","text":"no"}],"isError":true`, "no"},
		"error, structured": {`"content":[],"structuredContent":{"code":7},"isError":true`, `{"code":7}`},
		"error as text":     {`"content":[{"type":"text","text":"no"}],"isError":"true"`, "no"},
		"no error":          {`"content":[{"type":"text","text":"a"}],"isError":"false","x":"isErr"`, `"a"`},
		"null error":        {`"content":[{"type":"text","text":"a"}],"isError":null,"_meta":[]`, `"a"`},
		"a link": {
			`"content":[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"text","text":"b"}]`,
			`{"content":[{"name":"a","type":"resource_link","uri":"file:///a"},{"text":"b","type":"text"}]}`,
		},
		"null content":        {`"content":null,"structuredContent":{"a":1.50}`, `{"a":1.50}`},
		"error, unknown type": {`"content":[{"type":"chart"}],"isError":true`, `{"type":"chart"}`},
	} {
		for _, stream := range []bool{false, true} {
			peer := httptest.NewServer(answerTo(
				toolsCapability,
				func(w http.ResponseWriter, _ *http.Request, id string) {
					message := `{"jsonrpc":"2.0","id":` + id + `,"result":{` + test.result +
						`,"resultType":"complete"}}`
					if stream {
						w.Header().Set("Content-Type", "text/event-stream")
						message = ": hello\nevent: message\ndata: " + message + "\n\n"
					}
					_, _ = io.WriteString(w, message)
				},
			))
			got, err := newClient(t).Call(t.Context(), Server{URL: peer.URL}, "x", nil)
			peer.Close()
			raw, _ := json.Marshal(got)
			if strings.Contains(test.result, "isError") && err != nil {
				raw = []byte(agent.Explain(err))
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if string(raw) != test.want {
				t.Errorf("%s: %s, %v", name, raw, err)
			}
		}
	}
}

// TestReadLines checks the output of a program in pieces of any size.
func TestReadLines(t *testing.T) {
	const text = `{"id":1,"result":{"tools":[{"name":"a","title":7}]}}` + "\nhello\n" +
		`{"id":2,"result":{"content":"x"}}`
	const want = `{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}` + "\nhello\n" +
		`{"id":2,"result":{"content":"x"}}`
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		got, err := io.ReadAll(readLines(io.NopCloser(wrap(strings.NewReader(text)))))
		if err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
	}
	long := strings.NewReader(strings.Repeat("x", MaxBytes+1))
	if _, err := io.Copy(io.Discard, readLines(io.NopCloser(long))); !errors.Is(err, errTooLarge) {
		t.Errorf("a long line: %v", err)
	}
}
