package script

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// rows returns n objects of about 100 bytes.
func rows(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"n": i, "text": strings.Repeat("x", 80)}
	}
	return list
}

// Scripts read large variables like small ones: every operation has the same result,
// whether or not the variables are sent in pieces.
func TestLargeVariables(t *testing.T) {
	variables := map[string]any{
		"trigger": map[string]any{
			"b":           1,
			"a":           []any{3, 1, 2, nil, "x"},
			"deep":        map[string]any{"list": []any{map[string]any{"k": []any{1, 2}}, []any{}}},
			"__proto__":   map[string]any{"p": 1},
			"toString":    "own",
			"constructor": 7,
			"length":      2,
			"0":           "zero",
			"then":        nil,
			"é\"\\":       true,
			"empty":       map[string]any{},
		},
		"item": rows(50),
	}
	cases := []string{
		"return trigger",
		"return item",
		"return [trigger.b, trigger.a, trigger.none, trigger.deep.list[0].k[1]]",
		"return Object.keys(trigger)",
		"return Object.entries(trigger.deep)",
		"return JSON.stringify(trigger)",
		"return JSON.stringify(item)",
		"return [Array.isArray(item), Array.isArray(trigger), item instanceof Array, typeof item, item.length]",
		"return [trigger === trigger, trigger.deep === trigger.deep, item[1] === item[1], item[1] === " +
			"[...item][1], item.at(2) === item[2]]",
		"return [item[0].n, item[49].n, item[50], item[-1], item['01'], item.none, item[1.5]]",
		"return item.map(r => r.n)",
		"return item.filter(r => r.n % 2).length",
		"return item.reduce((s, r) => s + r.n, 0)",
		"let s = 0; for (const r of item) s += r.n; return s",
		"let s = 0; for (let i = 0; i < item.length; i++) s += item[i].n; return s",
		"const k = []; for (const i in trigger) k.push(i); return k",
		"const k = []; for (const i in item) k.push(i); return k",
		"return item.slice(3, 5)",
		"return item.slice(-1)",
		"return [item.at(-1), item.indexOf(item[3]), item.includes(item[4])]",
		"return trigger.a.sort()",
		"return [trigger.a.concat([9], trigger.a), [].concat(trigger.a)]",
		"return [...trigger.a, ...trigger.deep.list]",
		"return {...trigger, c: 3}",
		"const {a, ...rest} = trigger; return [a, rest]",
		"const [x, , y] = item; return [x, y]",
		"trigger.b = 2; trigger.c = 3; delete trigger.deep; return trigger",
		"trigger.deep.list[0].k.push(3); return trigger",
		"item.push(1); item[0] = 'first'; return [item.length, item]",
		"item.length = 2; return item",
		"item.splice(1, 48); return item",
		"return item.reverse()[0]",
		"const first = item[0]; first.n = 'changed'; return item.map(r => r.n)",
		"item[60] = 1; return [item.length, item[55], 55 in item]",
		"delete item[1]; return [item.length, item[1], 1 in item]",
		"return ['b' in trigger, 'none' in trigger, 0 in item, 50 in item, 'map' in item, 'toString' in trigger]",
		"return [Object.hasOwn(trigger, 'b'), trigger.hasOwnProperty('none'), Object.getOwnPropertyNames(trigger)]",
		"return Object.getOwnPropertyDescriptor(trigger, 'b')",
		"return Object.getOwnPropertyDescriptor(item, 'length')",
		"return [Object.isFrozen(Object.freeze(trigger)), Object.isFrozen(item), " +
			"Object.isExtensible(Object.preventExtensions(item))]",
		"'use strict'; Object.freeze(trigger); try { trigger.b = 2 } catch (e) { return e.name }",
		"Object.defineProperty(trigger, 'd', {get: () => 4, enumerable: true}); return trigger",
		"return Object.assign({}, trigger, {b: 5})",
		"return [trigger.toString, trigger.constructor, trigger.length, trigger[0], " +
			"String(item[0]), trigger.deep.toString()]",
		"return Object.getPrototypeOf(trigger) === Object.prototype && Object.getPrototypeOf(item) === Array.prototype",
		"return trigger.__proto__",
		"return await trigger",
		"return await item",
		"return Promise.all(item.slice(0, 2))",
		"console.log(trigger, item[0], item.length); return trigger.a.join()",
		"return Object.prototype.toString.call(item) + item.slice(0, 1) + trigger.a",
		"return new Map(Object.entries(trigger.deep)).get('list').length",
		"return Object.fromEntries(Object.entries(trigger))",
		"Array.prototype.map = () => 'mine'; return item.map()",
		"Object.prototype.z = 1; return [trigger.z, item.z, item[3].z, trigger]",
		"Array.prototype[Symbol.iterator] = null; return [trigger.deep.list[0], item[3]]",
		"return [trigger.a.flat(), trigger.a.findLast(v => v === 'x'), " +
			"trigger.a.entries().next(), trigger.a.toSorted?.()]",
		"return structuredCloneIsNone = typeof structuredClone",
		"return item.n",
		"return eval('trigger.b')",
		"return arguments.length",
	}
	whole := newPool(t, Options{Size: 1})
	whole.inline = MaxVariables
	for _, inline := range []int{0, 60, 400, inlineBytes} {
		pieces := newPool(t, Options{Size: 1})
		pieces.inline = inline
		for _, code := range cases {
			t.Run(fmt.Sprintf("%d bytes inline: %s", inline, code), func(t *testing.T) {
				want, wantErr := whole.Run(t.Context(), Call{Code: code, Variables: variables, Timeout: MaxTimeout})
				got, gotErr := pieces.Run(t.Context(), Call{Code: code, Variables: variables, Timeout: MaxTimeout})
				if !reflect.DeepEqual(got.Value, want.Value) ||
					!reflect.DeepEqual(got.Logs, want.Logs) ||
					fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
					t.Errorf("got %v %v %v\nwant %v %v %v", got.Value, got.Logs, gotErr, want.Value, want.Logs, wantErr)
				}
			})
		}
	}
}

// A large object with few entries is sent with its entries, but without the
// large values in them.
func TestOutlines(t *testing.T) {
	wide := map[string]any{}
	for i := range 1000 {
		wide[fmt.Sprint(i)] = i
	}
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"a list": {
			map[string]any{"items": rows(100), "name": "x", "__proto__": rows(90)},
			`{"values":[{"__proto__":null,"items":null,"name":"x"}],"large":[[0,0,90,"__proto__"],[0,1,100,"items"]]}`,
		},
		"an object":    {map[string]any{"load": wide}, `{"values":[{"load":null}],"large":[[0,0,-1,"load"]]}`},
		"many entries": {wide, `{"values":[null],"large":[[0,0,-1,null]]}`},
		"a text": {
			map[string]any{"text": strings.Repeat("x", inlineBytes)},
			`{"values":[null],"large":[[0,0,-1,null]]}`,
		},
		"several small lists": {
			map[string]any{"a": rows(20), "b": rows(20), "c": rows(20)},
			`{"values":[null],"large":[[0,0,-1,null]]}`,
		},
	} {
		v := &variables{inline: inlineBytes}
		if got, err := v.write(nil, []any{test.value}); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
	v := &variables{inline: inlineBytes}
	got, err := v.write(nil, []any{
		map[string]any{"n": strings.Repeat("x", 3000), "items": rows(100)},
		map[string]any{"n": strings.Repeat("x", 3000), "items": rows(100)},
	})
	if err != nil || len(got) > inlineBytes {
		t.Errorf("two outlines have %d bytes, %v", len(got), err)
	}
}

// The data sent to a script does not grow with variables that it does not read.
func TestOnlyReadVariablesAreSent(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	for name, code := range map[string]string{
		"nothing":  "return 1",
		"a length": "return trigger.items.length",
		"an entry": "return trigger.items[index].n",
		"entries":  "return trigger.items.slice(index, index + 3).map(r => r.n)",
		"a key":    "return [nodes.load.rows.at(-1).n, nodes.none, 'load' in nodes]",
	} {
		t.Run(name, func(t *testing.T) {
			var sent []int
			for _, n := range []int{1000, 10_000} {
				r, err := p.Run(t.Context(), Call{Code: code, Variables: map[string]any{
					"index":   n / 2,
					"trigger": map[string]any{"items": rows(n)},
					"nodes":   map[string]any{"load": map[string]any{"rows": rows(n)}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				sent = append(sent, r.Sent)
			}
			if sent[1] > sent[0]+100 || sent[1] > 4*firstPiece {
				t.Errorf("%d bytes sent with 1,000 rows and %d with 10,000", sent[0], sent[1])
			}
		})
	}
	t.Run("everything", func(t *testing.T) {
		r, err := p.Run(t.Context(), Call{
			Code:      "let n = 0; for (let i = 0; i < item.length; i++) n += item[i].n; return n",
			Variables: map[string]any{"item": rows(10_000)},
		})
		if err != nil || r.Value != 49995000.0 || r.Sent > 1_300_000 {
			t.Errorf("%v, %d bytes, %v", r.Value, r.Sent, err)
		}
	})
}

// A script may read up to the limit, and no more.
func TestReadsTooMuch(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	half := strings.Repeat("x", MaxVariables/2)
	call := Call{
		Code:      "let n = 0; for (const text of item) n += text.length; return n",
		Variables: map[string]any{"item": []any{half, half, half}},
	}
	if r, err := p.Run(t.Context(), call); agent.ErrorCode(err) != CodeThrown ||
		!strings.Contains(err.Error(), "reads more than") {
		t.Error(r.Value, err)
	}
	call.Code = "return item[0].length"
	if r, err := p.Run(t.Context(), call); err != nil || r.Value != float64(MaxVariables/2) {
		t.Error(r.Value, err)
	}
	call.Code = "try { item.map(t => t) } catch (e) { return [e.name, item.length] }"
	if r, err := p.Run(t.Context(), call); err != nil || !reflect.DeepEqual(r.Value, []any{"RangeError", 3.0}) {
		t.Error(r.Value, err)
	}
}

// Variables that are read while requests are in progress arrive between their
// responses.
func TestReadsWhileFetching(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("y", 200<<10))
	}))
	defer server.Close()
	p := newPool(t, Options{Size: 1, Fetch: http.DefaultClient.Do})
	code := `const under = []
		for (let i = 0; i < 8; i++) under.push(fetch(args).then(r => r.text()))
		let n = 0
		for (let i = 0; i < item.length; i++) n += item[i].n
		for (const text of await Promise.all(under)) n += text.length
		return n`
	r, err := p.Run(t.Context(), Call{Code: code, Variables: map[string]any{"item": rows(10_000), "args": server.URL}})
	if want := 49995000.0 + 8*200<<10; err != nil || r.Value != want {
		t.Error(r.Value, want, err)
	}
}

// Requests of a child for values that it was not offered are rejected.
func TestReadRefuses(t *testing.T) {
	v := &variables{}
	if _, err := v.write(nil, []any{[]any{1}, map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{
		`{"Number":2}`, `{"Number":-1}`, `{"Number":0,"At":1}`, `{"Number":0,"At":-1}`, `{`, `null1`,
	} {
		t.Run(request, func(t *testing.T) {
			if part, err := v.read([]byte(request)); err == nil {
				t.Errorf("got %s", part)
			}
		})
	}
}

// Finding the names in a script takes time linear in its size.
func TestMentioned(t *testing.T) {
	for code, want := range map[string]string{
		"return {twice: item.n * 2, of: trigger.items.length}": "item items length n of return trigger twice",
		"1a1b $x _y é9z": "$x _y a1b z",
		"":               "",
		"12":             "",
	} {
		names, exact := Mentioned(code)
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want || !exact {
			t.Errorf("%s: %q, %v", code, got, exact)
		}
	}
	for _, code := range []string{"eval('x')", "arguments[0]", `\u0061`} {
		if _, exact := Mentioned(code); exact {
			t.Errorf("the names in %s are reported as exact", code)
		}
	}
}
