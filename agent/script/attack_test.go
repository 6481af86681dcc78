//go:build !race

// The race detector makes the engine some twenty times slower and its memory
// larger, so limits of time and memory are meaningless with it.

package script

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"satchel/agent"
	"satchel/agent/child"
)

// attackTime is the time limit of the attacks that run until it expires.
var attackTime = flag.Duration("attack", 150*time.Millisecond, "time limit of the scripts that attack")

// attacks are scripts that try to block, fill or break the process that runs them.
// Each ends with one of the codes; an empty code means a result.
var attacks = []struct {
	name, code string
	ends       []agent.Code
}{
	{"infinite loop", "for (;;) {}", []agent.Code{CodeTimeout}},
	{
		"infinite loop that catches",
		"for (;;) { try { for (;;) {} } catch {} finally { continue } }",
		[]agent.Code{CodeTimeout},
	},
	{"endless promises", "const f = () => Promise.resolve().then(f); await f()", []agent.Code{CodeTimeout, CodeMemory}},
	{
		"promises that multiply",
		"const f = () => { Promise.resolve().then(f); Promise.resolve().then(f) }; f(); await new Promise(() => {})",
		[]agent.Code{CodeTimeout, CodeMemory},
	},
	{"new Array(1e9).fill(1)", "return new Array(1e9).fill(1).length", []agent.Code{CodeTimeout, CodeMemory}},
	{"list that grows", "const a = []; for (;;) a.push(a.length)", []agent.Code{CodeTimeout, CodeMemory}},
	{
		"typed arrays",
		"const a = []; for (;;) a.push(new Float64Array(1e6).fill(1))",
		[]agent.Code{CodeTimeout, CodeMemory},
	},
	{
		"one array of 2 GB",
		"return new Uint8Array(2 ** 31).fill(1).length",
		[]agent.Code{CodeThrown, CodeMemory, CodeTimeout},
	},
	{
		"join bomb",
		"return new Array(2 ** 29).join('x'.repeat(1000)).length",
		[]agent.Code{CodeThrown, CodeMemory, CodeTimeout},
	},
	{"string doubling", "let s = 'x'; for (;;) s += s", []agent.Code{CodeThrown, CodeMemory, CodeTimeout}},
	{
		"strings kept",
		"const a = []; for (;;) a.push('x'.repeat(1e6) + a.length)",
		[]agent.Code{CodeMemory, CodeTimeout},
	},
	{"padStart", "return 'x'.padStart(2 ** 30).length", []agent.Code{CodeThrown, CodeMemory, CodeTimeout}},
	{"backreference regex", `return /^(a+)+\1$/.test("a".repeat(40) + "b")`, []agent.Code{CodeTimeout}},
	{
		"nested quantifiers",
		`return /^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(60))`,
		[]agent.Code{CodeTimeout, CodeThrown},
	},
	{
		"regex replace",
		`return "a".repeat(1e7).replace(/a/g, "$&".repeat(1000)).length`,
		[]agent.Code{CodeThrown, CodeMemory, CodeTimeout},
	},
	{"deep recursion", "const f = (n) => f(n + 1) + 1; return f(0)", []agent.Code{CodeThrown}},
	{"deep recursion through natives", "const f = () => [1].map(f); f()", []agent.Code{CodeThrown}},
	{"deep JSON.parse", "return JSON.parse('['.repeat(5e6))", []agent.Code{CodeThrown, CodeMemory, CodeTimeout}},
	{
		"deep JSON.stringify",
		"let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a",
		[]agent.Code{CodeResult, CodeMemory, CodeTimeout},
	},
	{"deep source text", "return eval('('.repeat(1e6))", []agent.Code{CodeThrown, CodeMemory, CodeTimeout}},
	{
		"indexOf on a huge array-like",
		"return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
		[]agent.Code{CodeTimeout},
	},
	{
		"sort on a huge array-like",
		"return Array.prototype.sort.call({length: 2 ** 40, 0: 1}).length",
		[]agent.Code{CodeTimeout, CodeMemory, CodeThrown},
	},
	{"BigInt power", "return (3n ** 100000000n > 1n)", []agent.Code{CodeTimeout, CodeMemory, CodeThrown}},
	{
		"Atomics.wait",
		"return Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
		[]agent.Code{CodeTimeout, CodeThrown},
	},
	{"promise that never resolves", "await new Promise(() => {})", []agent.Code{CodeStalled}},
	{
		"unhandled rejection",
		"Promise.reject(new Error('nobody')); await new Promise(() => {})",
		[]agent.Code{CodeStalled},
	},
	{"100 MB of console", "for (let i = 0; i < 100; i++) console.log('x'.repeat(1e6)); return 1", []agent.Code{""}},
	{
		"console of a huge object",
		"console.log(Array.from({length: 2e6}, (_, i) => i)); return 1",
		[]agent.Code{"", CodeTimeout, CodeMemory},
	},
	{"huge result", "return 'x'.repeat(2e7)", []agent.Code{CodeResult}},
	{"huge error", "throw new Error('x'.repeat(5e7))", []agent.Code{CodeThrown, CodeMemory}},
	{
		"fetch flood",
		"await Promise.all(Array.from({length: 1000}, () => fetch(url + '/megabyte').catch(() => {}))); return 1",
		[]agent.Code{"", CodeTimeout, CodeMemory},
	},
	{"fetch that drips", "await fetch(url + '/drip')", []agent.Code{CodeTimeout}},
	{"fetch and forget", "for (let i = 0; i < 40; i++) fetch(url + '/drip'); return 1", []agent.Code{""}},
	{
		"replaced built-ins",
		"JSON.stringify = () => '}{'; JSON.parse = () => { throw 1 }; Promise.prototype.then = null; Array.isArray " +
			"= () => true; Reflect.apply = null; return {a: 1}",
		[]agent.Code{"", CodeResult, CodeStalled},
	},
	{
		"getters on Object.prototype",
		"for (const k of ['then', 'length', 'value', 'get', 'toJSON', 'name', '0', " +
			"'1']) Object.defineProperty(Object.prototype, k, {get() { for (;;) {} }}); return {}",
		[]agent.Code{"", CodeTimeout},
	},
	{
		"setters on Array.prototype",
		"Object.defineProperty(Array.prototype, '0', {set() { throw new Error('set') }}); await fetch(url, " +
			"{headers: {a: 'b'}}); return 1",
		[]agent.Code{"", CodeThrown},
	},
	{"an endless toJSON", "return {toJSON() { for (;;) {} }}", []agent.Code{CodeTimeout}},
	{
		"an endless error message",
		"throw {__proto__: Error.prototype, get message() { for (;;) {} }}",
		[]agent.Code{CodeTimeout},
	},
	{"an endless then", "return {then() { for (;;) {} }}", []agent.Code{CodeTimeout}},
	{"import of std", "return await import('std')", []agent.Code{CodeThrown}},
	{"import of os", "return await import('os')", []agent.Code{CodeThrown}},
	{
		"the harness through a stack",
		"Error.prepareStackTrace = (e, s) => { globalThis.got = s }; try { fetch() } catch {} " +
			"return typeof globalThis.got",
		[]agent.Code{"", CodeStalled},
	},
	{
		"Function constructor",
		"return Function('return this')() === globalThis && (async () => {}).constructor('for (;;) {}')()",
		[]agent.Code{CodeTimeout},
	},
	{
		"a wrapper left open",
		"}).call(this)}); for (;;) {} (function(){ return (async function(){",
		[]agent.Code{CodeTimeout},
	},
	{
		"endless proxy",
		"const p = new Proxy({}, {ownKeys() { return Array.from({length: 1e7}, (_, i) => 'k' + i) }}); " +
			"return Object.keys(p).length",
		[]agent.Code{"", CodeTimeout, CodeMemory},
	},
	{
		"weak references and finalizers",
		"const r = new FinalizationRegistry(() => { for (;;) {} }); for (let i = 0; i < 1e4; " +
			"i++) r.register({}, i); return 1",
		[]agent.Code{"", CodeTimeout},
	},
}

// Each attack ends within its limits, the server does not grow, and harmless
// scripts that run at the same time succeed.
func TestAttacks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/megabyte":
			_, _ = io.CopyN(w, zeros{}, 1<<20)
		case "/drip":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	p := newPool(t, Options{Size: 4, Warm: 2, Fetch: http.DefaultTransport.RoundTrip})
	harmless := startWellBehaved(t, p)
	table := &strings.Builder{}
	out := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "attack\tended\tafter\tserver before\tafter")
	for _, a := range attacks {
		limit := DefaultTimeout
		if slices.Contains(a.ends, CodeTimeout) {
			limit = *attackTime
		}
		runtime.GC()
		debug.FreeOSMemory()
		before := serverBytes()
		start := time.Now()
		result, err := p.Run(t.Context(), Call{
			Code:      a.code,
			Timeout:   limit,
			Owner:     "attacker",
			Variables: map[string]any{"url": server.URL},
		})
		elapsed := time.Since(start)
		code := agent.ErrorCode(err)
		after := serverBytes()
		ended := string(code)
		if err == nil {
			ended = agent.Clip(fmt.Sprintf("result %v", result.Value), 24)
		}
		fmt.Fprintf(
			out,
			"%s\t%s\t%d ms\t%.1f MB\t%.1f MB\n",
			a.name,
			ended,
			elapsed.Milliseconds(),
			float64(before)/1e6,
			float64(after)/1e6,
		)
		if !slices.Contains(a.ends, code) {
			t.Errorf("%s: %v, want one of %q", a.name, err, a.ends)
		}
		if grown := int64(after) - int64(before); grown > 10<<20 {
			t.Errorf("%s: the server grew by %d bytes", a.name, grown)
		}
	}
	out.Flush()
	ran, slowest := harmless()
	t.Logf("\n%s\n%d harmless scripts ran at the same time, the slowest took %s", table, ran, slowest)
	if ran == 0 {
		t.Error("no harmless script ran")
	}
}

// startWellBehaved runs harmless scripts one after another until the returned
// function is called.
func startWellBehaved(t *testing.T, p *Pool) (stop func() (ran int, slowest time.Duration)) {
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var ran int
	var slowest time.Duration
	work.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			got, err := p.Run(ctx, Call{
				Code:      "return input.n + 1",
				Variables: map[string]any{"input": map[string]any{"n": ran}},
				Owner:     "honest",
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil || got.Value != float64(ran+1) {
				t.Errorf("a harmless script: %v, %v", got.Value, err)
			}
			ran++
			slowest = max(slowest, time.Since(start))
		}
	})
	return func() (int, time.Duration) {
		cancel()
		work.Wait()
		return ran, slowest
	}
}

// serverBytes returns the memory of this process: resident memory on Linux,
// Go's memory elsewhere.
func serverBytes() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return child.Memory()
	}
	pages, _ := strconv.ParseUint(strings.Fields(string(statm))[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}
