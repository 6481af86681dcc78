package n8n

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// env translates the parameters of a unit where it stands.
type env struct {
	c       *converter
	u       *unit
	in      *stream // what $json is; of a list: its first item
	at      *region
	scripts []string // expressions that only JavaScript can compute
	id      string   // of the node that computes them
}

// each is the environment of a unit that runs once for each item.
func (c *converter) each(u *unit) *env {
	s := c.joined(u)
	if u.executeOnce && (s.list || s.at != s.at.context()) {
		s = c.firstOf(u, s)
	}
	s = c.eachOf(u, s)
	return &env{c: c, u: u, in: s, at: s.at}
}

// firstOf makes a stream of the first item of a list.
func (c *converter) firstOf(u *unit, s *stream) *stream {
	at := s.at.context()
	js, from := c.itemsOf(u, s, at)
	id := c.newID(u.id + "_first")
	c.put(u, id, "code", map[string]any{"code": assemble("return " + js + "[0]"), "label": u.name + ": first item"}, from, at)
	return &stream{from: []exit{{id, "", at}}, at: at, ref: natural(id), taken: ran(id), guards: map[string]string{}}
}

// emit adds the unit's node, and before it the one that computes what templates
// cannot. It returns what leaves the node.
func (e *env) emit(kind string, data map[string]any) *stream {
	if e.u.unsupported {
		e.c.keep(e.u)
		return e.u.outputs[0]
	}
	from := e.in.from
	if len(e.scripts) > 0 {
		var fields strings.Builder
		for i, s := range e.scripts {
			fmt.Fprintf(&fields, "  v%d: %s,\n", i+1, s)
		}
		code := e.script("return {\n" + fields.String() + "}")
		if e.u.unsupported {
			e.c.keep(e.u)
			return e.u.outputs[0]
		}
		e.c.put(e.u, e.id, "code", map[string]any{"code": code, "label": e.u.name + ": values"}, from, e.at)
		from = []exit{{e.id, "", e.at}}
	}
	e.c.put(e.u, e.u.id, kind, data, from, e.at)
	s := &stream{from: []exit{{e.u.id, "", e.at}}, at: e.at, ref: natural(e.u.id), taken: ran(e.u.id), guards: e.in.guards, same: []*unit{e.u}}
	if e.u.onError == "continueErrorOutput" {
		failed := *s
		failed.from = []exit{{e.u.id, "error", e.at}}
		failed.taken, failed.ref = "false", ref{path: "", js: "({ error: nodes[" + quote(e.u.id) + "]?.error })"}
		failed.guards = withGuard(s.guards, e.u.id, "error")
		s.guards = withGuard(s.guards, e.u.id, "")
		e.u.outputs[1] = &failed
	}
	e.u.outputs[0] = s
	return s
}

// pass adds a node whose input flows on unchanged.
func (e *env) pass(kind string, data map[string]any) *stream {
	s := e.emit(kind, data)
	if !e.u.unsupported {
		s.ref, s.same = e.in.ref, append([]*unit{e.u}, e.in.same...)
	}
	return s
}

func withGuard(guards map[string]string, branch, handle string) map[string]string {
	all := map[string]string{branch: handle}
	for k, v := range guards {
		all[k] = v
	}
	return all
}

// compute returns the template of a JavaScript expression.
func (e *env) compute(js string) string {
	if e.id == "" {
		e.id = e.c.newID(e.u.id + "_values")
	}
	e.scripts = append(e.scripts, js)
	return fmt.Sprintf("{{nodes.%s.v%d}}", e.id, len(e.scripts))
}

// value translates a parameter: expressions become templates, other text stays
// what it is.
func (e *env) value(v any) any {
	switch v := unlocated(v).(type) {
	case string:
		return e.text(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = e.value(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, inner := range v {
			object[key] = e.value(inner)
		}
		return object
	default:
		return v
	}
}

// textOf translates a parameter to a text.
func (e *env) textOf(path string) string {
	switch v := e.value(e.u.p.at(path)).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		raw, _ := json.Marshal(v) // plain values
		return plain(string(raw))
	}
}

func (e *env) text(s string) any {
	source, ok := expressionOf(s)
	if !ok {
		return plain(s)
	}
	pieces := split(source)
	if len(pieces) == 1 && pieces[0].expr {
		return e.expression(pieces[0].text, true)
	}
	var out strings.Builder
	for _, p := range pieces {
		if !p.expr {
			out.WriteString(plain(p.text))
			continue
		}
		switch v := e.expression(p.text, false).(type) {
		case string:
			out.WriteString(v)
		case nil:
		default:
			raw, _ := json.Marshal(v)
			out.WriteString(plain(string(raw)))
		}
	}
	return out.String()
}

// plain escapes what templates would read.
func plain(s string) string { return strings.ReplaceAll(s, "{{", `{{"{{"}}`) }

// expression translates one expression. whole: it is all of a text, so the type
// of its value counts.
func (e *env) expression(source string, whole bool) any {
	if source == "" {
		return ""
	}
	if chain, ok := readChain(source); ok {
		if chain.root == "" {
			if text, isText := chain.value.(string); isText {
				return plain(text)
			}
			return chain.value
		}
		if path, ok := e.path(chain, whole); ok {
			return "{{" + path + "}}"
		}
	}
	return e.compute("(" + source + ")")
}

// js translates a parameter to a JavaScript expression.
func (e *env) js(v any) string {
	switch v := unlocated(v).(type) {
	case string:
		source, ok := expressionOf(v)
		if !ok {
			return quote(v)
		}
		pieces := split(source)
		if len(pieces) == 1 && pieces[0].expr {
			if pieces[0].text == "" {
				return "undefined"
			}
			return "(" + pieces[0].text + ")"
		}
		parts := []string{}
		for _, p := range pieces {
			if p.expr {
				parts = append(parts, "$text("+p.text+")")
			} else {
				parts = append(parts, quote(p.text))
			}
		}
		if len(parts) == 0 {
			return `""`
		}
		return "[" + strings.Join(parts, ", ") + `].join("")`
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = e.js(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := []string{}
		for _, key := range sortedKeys(v) {
			parts = append(parts, "["+quote(key)+"]: "+e.js(v[key]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return quote(v)
	}
}

// quote writes a plain value as JavaScript.
func quote(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // there are only plain values
	}
	return string(raw)
}

const datesInUTC = "Dates are computed in UTC, with the common part of Luxon."

// forbidden are names in expressions and code that nothing here stands for.
var forbidden = []struct {
	pattern *regexp.Regexp
	code    string
	message string
}{
	{regexp.MustCompile(`\$(env|vars|secrets|credentials)\b`), "SECRET", "Reads $%s, which is not imported: nothing of n8n's environment, variables and secrets is read."},
	{regexp.MustCompile(`\$?(getWorkflowStaticData)\b`), "STATIC_DATA", "Uses $%s: workflows keep no data between executions here. Use a table."},
	{regexp.MustCompile(`\b(require|import)\s*\(`), "MODULE", "Loads modules with %s, which scripts here cannot."},
	{regexp.MustCompile(`\b(Buffer)\b`), "BUFFER", "Uses %s, which scripts here do not have."},
	{regexp.MustCompile(`\bthis\.(helpers|getNodeParameter|getCredentials|getWorkflowStaticData|getInputData)\b`), "HELPERS", "Uses this.%s of n8n, which is not there."},
	{regexp.MustCompile(`(\$binary|\.binary)\b`), "BINARY", "Reads files of items (%s), which are not imported."},
	{regexp.MustCompile(`\$(jmespath|evaluateExpression|prevNode|parameter|self|position|fromAI|getPairedItem|nodeVersion|nodeId|mode|resumeWebhookUrl|webhookId)\b`), "EXPRESSION", "Uses $%s, which is not supported."},
	{regexp.MustCompile(`\$execution\.(resumeUrl|resumeFormUrl|customData|mode)\b`), "EXPRESSION", "Uses $execution.%s, which is not supported."},
	{regexp.MustCompile(`\b(setTimeout|setInterval|XMLHttpRequest|Intl)\b`), "EXPRESSION", "Uses %s, which scripts here do not have."},
}

var named = regexp.MustCompile(`\$\(\s*(?:"([^"\n]*)"|'([^'\n]*)'|` + "`([^`\n]*)`" + `)\s*\)|\$(?:node|items)\s*[\[(]\s*(?:"([^"\n]*)"|'([^'\n]*)')\s*[\])]|\$node\.([A-Za-z_][A-Za-z0-9_]*)`)

// references are the names of the nodes that a script reads.
func references(code string) (names []string) {
	for _, m := range named.FindAllStringSubmatch(code, -1) {
		for _, name := range m[1:] {
			if name != "" {
				names = append(names, strings.NewReplacer(`\'`, "'", `\"`, `"`).Replace(name))
			}
		}
	}
	return names
}

// script completes code with what n8n's names stand for.
func (e *env) script(code string) string {
	for _, f := range forbidden {
		if m := f.pattern.FindStringSubmatch(code); m != nil {
			e.u.fail(f.code, fmt.Sprintf(f.message, m[len(m)-1]))
		}
	}
	if strings.Contains(code, "DateTime") || strings.Contains(code, "$now") || strings.Contains(code, "$today") || strings.Contains(code, ".toDateTime(") {
		e.u.approximate("DATES", datesInUTC)
	}
	if strings.Contains(code, ".toLocale") {
		e.u.approximate("LOCALE", "Texts of dates and numbers are not written in the way of a language: locales are not known here.")
	}
	return assemble(e.names(code) + code)
}

// names declares the names that code of n8n reads.
func (e *env) names(code string) string {
	var out strings.Builder
	mentions := func(name string) bool { return mentioned(code, name) }
	if mentions("$input") || mentions("$items") || mentions("$all") {
		fmt.Fprintf(&out, "const $all = %s\n", e.all())
		if mentions("$input") || mentions("$items") {
			out.WriteString("const $input = $from(() => $all, () => " + e.current() + ")\n")
		}
	}
	if mentions("$json") || mentions("$item") || mentions("$data") {
		out.WriteString("const $json = " + e.current() + "\n")
	}
	if mentions("$itemIndex") || mentions("$runIndex") {
		index := "0"
		if e.at != nil {
			index = "index"
		}
		fmt.Fprintf(&out, "const $itemIndex = %s, $runIndex = %s\n", index, index)
	}
	out.WriteString(e.others(code))
	if mentions("$execution") {
		out.WriteString("const $execution = { id: execution.id, mode: \"production\" }\n")
	}
	if mentions("$workflow") {
		out.WriteString("const $workflow = { id: workflow.id, name: workflow.name, active: true }\n")
	}
	if mentions("$now") {
		out.WriteString("const $now = DateTime.now()\n")
	}
	if mentions("$today") {
		out.WriteString("const $today = DateTime.now().startOf(\"day\")\n")
	}
	return out.String()
}

// current is the item in JavaScript.
func (e *env) current() string {
	if e.in.list {
		return "(" + e.in.ref.js + "[0] ?? {})"
	}
	return e.in.ref.js
}

// all are all items that flow in.
func (e *env) all() string {
	if e.in.list {
		return e.in.ref.js
	}
	return "[" + e.in.ref.js + "]"
}

// others declares $("name") and its older forms, for the names that code reads.
func (e *env) others(code string) string {
	if !mentioned(code, "$") && !mentioned(code, "$node") && !mentioned(code, "$items") {
		return ""
	}
	var refs []string
	seen := map[string]bool{}
	for _, name := range references(code) {
		if seen[name] {
			continue
		}
		seen[name] = true
		other := e.c.byName[name]
		if other == nil {
			e.u.fail("REFERENCE", fmt.Sprintf("Reads the node %q, which is not there.", clip(name, 60)))
			return ""
		}
		all, item, ok := e.read(other)
		if !ok {
			return ""
		}
		refs = append(refs, fmt.Sprintf("  [%s]: $from(() => %s, () => %s),\n", quote(name), all, item))
	}
	if calls := strings.Count(code, "$(") + strings.Count(code, "$node") - strings.Count(code, "$node = "); len(refs) == 0 && calls > 0 {
		e.u.fail("REFERENCE", "Reads nodes by names that are computed.")
	}
	return "const $node = {\n" + strings.Join(refs, "") + "}\nconst $ = (name) => $node[name]\nconst $items = (name) => (name === undefined ? $input : $node[name]).all()\n"
}

// read returns JavaScript for all items of another unit, and for the one that
// belongs to the current item.
func (e *env) read(other *unit) (all, item string, ok bool) {
	s := outputOf(other)
	if s == nil {
		e.u.fail("REFERENCE", fmt.Sprintf("Reads the node %q, which does not come before this one.", clip(other.name, 60)))
		return "", "", false
	}
	if js, ok := e.paired(other, s); ok {
		item = js
	} else {
		item = "$unpaired(" + quote(other.name) + ")"
	}
	if e.at.within(s.at) {
		switch {
		case s.list:
			return s.ref.js, item, true
		case s.taken != "":
			return "(" + s.taken + " ? [" + s.ref.js + "] : [])", item, true
		}
		return "[" + s.ref.js + "]", item, true
	}
	all, _ = e.c.itemsOf(other, s, e.at.context())
	return all, item, true
}

// paired returns the item of another unit that belongs to the current one.
func (e *env) paired(other *unit, s *stream) (js string, ok bool) {
	if r := e.repeats(other); r != nil {
		return r.variable, true
	}
	if !s.list && e.at.within(s.at) {
		return s.ref.js, true
	}
	return "", false
}

// repeats returns the loop around the unit whose items are those of another.
func (e *env) repeats(other *unit) *region {
	for r := e.at; r != nil; r = r.parent {
		for _, u := range r.same {
			if u == other {
				return r
			}
		}
	}
	return nil
}

// outputOf is what leaves a unit, by the first output that has anything.
func outputOf(u *unit) *stream {
	for output := range 16 {
		if s := u.outputs[output]; s != nil {
			return s
		}
	}
	return nil
}
