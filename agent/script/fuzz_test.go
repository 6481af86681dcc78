package script

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"satchel/agent"
)

// FuzzConverse lets the parent read what a compromised child might send.
func FuzzConverse(f *testing.F) {
	ok := frameWriter{out: io.Discard}
	ok.add(frameFetch, []byte(`{"ID":1,"Method":"GET","URL":"http://example.com","Headers":[["a","b"]]}`))
	ok.add(frameEnd, []byte(`{"Logs":[{"level":"log","message":"x"}]}`))
	ok.add(frameResult, []byte(`{"a":[1]}`))
	f.Add(ok.buf)
	f.Add([]byte("d\x00\x00\x00\x02{}v\x00\x00\x00\x01{"))
	f.Add([]byte("v\xff\xff\xff\xff"))
	f.Add([]byte("i\x00\x00\x00\x00"))
	f.Add([]byte("f\x00\x00\x00\x0f{\"Method\":\"a b\"}"))
	reads := frameWriter{out: io.Discard}
	for _, request := range []string{
		`{"Number":0,"At":3}`,
		`{"Number":1,"Key":"a"}`,
		`{"Number":1,"Whole":true}`,
		`{"Number":9}`,
	} {
		reads.add(frameRead, []byte(request))
	}
	f.Add(reads.buf)
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := &process{out: bufio.NewReader(bytes.NewReader(sent))}
		p.in.out = io.Discard
		x := &exchange{
			process: p,
			serving: fetchServer{
				to:    &p.in,
				fetch: func(*http.Request, string) (*http.Response, error) { return nil, errors.New("no") },
			},
		}
		v := &variables{}
		if _, err := v.write(nil, []any{rows(20), map[string]any{"a": rows(3)}}); err != nil {
			t.Fatal(err)
		}
		_, _, _ = x.serve(t.Context(), v)
		x.serving.work.Wait()
		if x.serving.total > MaxFetches+1 {
			t.Errorf("%d requests", x.serving.total)
		}
	})
}

// FuzzScript runs any text as a script. It ends with a known code, and a harmless
// script succeeds after it.
func FuzzScript(f *testing.F) {
	for _, code := range []string{
		"return 1", "}{", "return `${[1,2]}`", "await null; throw 1", "\x00", "//", "/*",
		"return /(?<n>a)\\k<n>/u.exec('aa')", "#!x", "return new Proxy([], {})",
		"class A { #x; static { this.y = 1 } } return A.y", "for await (const x of [1]) return x", "return [...'😀']",
		"\u2028", "export default 1", "label: for(;;) break label",
		"return 1}).call(this)}), 5, (function(){ return (async()=>{", "function* g(){ yield* [1,2] } return [...g()]",
		"with ({a: 1}) return a", "\xff\xfe",
	} {
		f.Add(code)
	}
	p := newPool(f, Options{Size: 2})
	known := []agent.Code{"", CodeSyntax, CodeThrown, CodeResult, CodeStalled, CodeTimeout, CodeMemory}
	f.Fuzz(func(t *testing.T, code string) {
		for _, expression := range []bool{false, true} {
			if _, err := p.Run(t.Context(), Call{
				Code:       code,
				Expression: expression,
				Timeout:    500 * time.Millisecond,
			}); !slices.Contains(known, agent.ErrorCode(err)) {
				t.Errorf("%q: %v", code, err)
			}
		}
		if got, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil || got.Value != 1.0 {
			t.Errorf("after %q: %v, %v", code, got.Value, err)
		}
	})
}
