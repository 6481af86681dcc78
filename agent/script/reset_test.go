package script

import (
	"bytes"
	"slices"
	"testing"
	"time"
	"unsafe"

	lib "modernc.org/libquickjs"
	"satchel/agent"
)

// hostile lists scripts that try to leave something for the next script in their
// child, which may be another agent's.
var hostile = map[string]string{
	"globals": "globalThis.left = 1; left2 = 2; var left3 = 3; delete globalThis.Map; " +
		"globalThis.fetch = () => 1; return 1",
	"let and functions": "eval.call(null, 'let left = 1; const left2 = 2; function left3() {}'); (0, " +
		"eval)('class Left {}'); return 1",
	"prototypes": "for (const c of [Object, Array, String, Number, Promise, Function, Error, Map]) { " +
		"c.prototype.left = 1; Object.setPrototypeOf(c.prototype, null === c ? null : " +
		"Object.getPrototypeOf(c.prototype)); } return 1",
	"prototype getters": "for (const k of ['then', 'length', 'get', 'toJSON', 'values', " +
		"'0']) Object.defineProperty(Object.prototype, k, {configurable: false, set() { throw 1 }, " +
		"get() { throw 1 }}); return 1",
	"built-ins": "JSON.stringify = JSON.parse = () => 'left'; Promise.prototype.then = Reflect.apply = " +
		"null; console.log = null; Math.random = () => 4; return 1",
	"frozen": "for (const k of Object.getOwnPropertyNames(globalThis)) { try { " +
		"Object.freeze(globalThis[k]); Object.freeze(globalThis[k].prototype) } catch {} } " +
		"Object.freeze(globalThis); return 1",
	"symbols": "Symbol.for('left'); Object.prototype[Symbol.for('left')] = 1; " +
		"Array.prototype[Symbol.iterator] = null; return 1",
	"pending jobs": "const f = () => { globalThis.left = 1; Promise.resolve().then(f) }; " +
		"Promise.resolve().then(f); return 1",
	"endless jobs": "const f = () => { globalThis.left = 1; return Promise.resolve().then(f) }; await f()",
	"a job that waits": "(async () => { await null; await null; await null; globalThis.left = 1; " +
		"for (;;) {} })(); return 1",
	"finalizers": "globalThis.r = new FinalizationRegistry(() => { globalThis.left = 1 }); for (let i = 0; " +
		"i < 1e4; i++) r.register({}, i); return 1",
	"endless loop":        "globalThis.left = 1; for (;;) {}",
	"caught interruption": "globalThis.left = 1; for (;;) { try { for (;;) {} } catch {} finally { continue } }",
	"memory":              "globalThis.left = []; for (;;) left.push('x'.repeat(1e5) + left.length)",
	"some memory": "globalThis.left = []; for (let i = 0; i < 100; " +
		"i++) left.push('x'.repeat(1e5) + i); return 1",
	"small blocks": "globalThis.left = []; for (let i = 0; i < 1e5; i++) left.push({i}); return 1",
	"recursion":    "globalThis.left = 1; const f = () => [1].map(f); f()",
	"a generator at work": "globalThis.left = (function* () { try { yield 1 } finally { for (;;) {} } " +
		"})(); left.next(); return 1",
	"invalid JavaScript": "}{ left",
	"thrown and caught":  "globalThis.left = new Proxy({}, {get() { throw left }}); throw left",
	"a stalled promise":  "globalThis.left = new Promise(() => {}); await left",
	"a wrapper left open": "}).call(this)}); globalThis.left = 1; throw {get lineNumber() { throw this }}; " +
		"(function(){ return (async function(){",
}

// globalsScript is a script that describes everything it finds.
const globalsScript = `
	const seen = new Map(), lines = [];
	const name = (v) => {
		if ((typeof v !== 'object' && typeof v !== 'function') || v === null) return typeof v + ' ' + String(v);
		if (!seen.has(v)) { seen.set(v, seen.size); visit(v) }
		return '#' + seen.get(v);
	};
	const visit = (v) => {
		const own = [seen.get(v), Object.isExtensible(v), typeof v === 'function' ? Function.prototype.toString.call(v) : ''];
		lines.push(own);
		own.push(name(Object.getPrototypeOf(v)));
		for (const key of Reflect.ownKeys(v)) {
			const d = Object.getOwnPropertyDescriptor(v, key);
			own.push(String(key), d.writable, d.enumerable, d.configurable, name(d.value), name(d.get), name(d.set));
		}
	};
	name(globalThis);
	return lines.map((own) => own.join(' ')).join('\n')`

// After a hostile script, a script in the same child finds the same environment as in
// a new child.
func TestHostileScriptsLeaveNothing(t *testing.T) {
	run := func(p *Pool, code string, limit time.Duration) (any, error) {
		got, err := p.Run(t.Context(), Call{Code: code, Timeout: limit, Owner: "x"})
		return got.Value, err
	}
	known := []agent.Code{"", CodeSyntax, CodeThrown, CodeResult, CodeStalled, CodeTimeout, CodeMemory}
	same := 0
	p := newPool(t, Options{Size: 1, Warm: 1})
	fresh, err := run(p, globalsScript, 20*time.Second)
	if text, _ := fresh.(string); err != nil || len(text) < 10_000 {
		t.Fatal(text, err)
	}
	for name, code := range hostile {
		before := lastIdle(p)
		if _, err := run(p, code, 300*time.Millisecond); !slices.Contains(known, agent.ErrorCode(err)) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := run(p, globalsScript, 20*time.Second)
		if err != nil || after != fresh {
			t.Errorf("after %s: %v, %.300v", name, err, after)
		}
		if lastIdle(p) == before {
			same++
		}
	}
	if same < len(hostile)/2 {
		t.Errorf("only %d of %d scripts were followed by one in the same child", same, len(hostile))
	}
}

func lastIdle(p *Pool) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	return p.idle[len(p.idle)-1]
}

// After a reset, an engine's memory is the same as before, byte for byte,
// except for the seed of Math.random.
func TestReset(t *testing.T) {
	w := &worker{}
	e, err := newEngine(w)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range hostile {
		w.end, w.result, w.engine = nil, "", e
		w.run(
			order{Code: code, Names: Names, Timeout: 50 * time.Millisecond, Memory: 16 << 20},
			[]byte(`{"values":[],"large":[]}`),
		)
		top := e.heap.top
		if err := e.reset(); err != nil {
			t.Fatal(name, err)
		}
		memory := unsafe.Slice((*byte)(at(e.heap.start)), top-e.heap.start)
		random := e.ctx + unsafe.Offsetof(lib.TJSContext{}.Frandom_state) - e.heap.start
		memory = slices.Concat(memory[:random], e.heap.image[random:random+8], memory[random+8:])
		if kept := memory[:len(e.heap.image)]; !bytes.Equal(kept, e.heap.image) {
			t.Errorf("after %s the memory differs", name)
		}
		if rest := memory[len(e.heap.image):]; len(bytes.Trim(rest, "\x00")) > 0 {
			t.Errorf("after %s there is data left in %d bytes", name, len(rest))
		}
	}
}

// Scripts do not share the sequence of Math.random.
func TestRandom(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	seen := map[any]bool{}
	for range 20 {
		got, err := p.Run(t.Context(), Call{Code: "return Math.random()"})
		if err != nil || seen[got.Value] {
			t.Fatal(got.Value, err)
		}
		seen[got.Value] = true
	}
}

// Each script may use all of its own memory limit and no more, whatever the
// previous one used.
func TestMemoryOfEach(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	fill := Call{
		Code:   "const a = []; for (let i = 0; i < input; i++) a.push(new Uint8Array(1e6).fill(1)); return a.length",
		Memory: 16 << 20,
	}
	for range 3 {
		for n, want := range map[float64]agent.Code{12: "", 20: CodeMemory} {
			fill.Variables = map[string]any{"input": n}
			if _, err := p.Run(t.Context(), fill); agent.ErrorCode(err) != want {
				t.Errorf("%v MB: %v, want %q", n, err, want)
			}
		}
	}
}
