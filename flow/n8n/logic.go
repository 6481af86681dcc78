package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertSet makes a set node, or a code node if other fields are kept or JSON is
// assembled from parts.
func convertSet(c *converter, u *unit) {
	e := c.each(u)
	if u.p.flag("duplicateItem") {
		u.approximate("DUPLICATE", "Items are not duplicated.")
	}
	if u.p.text("mode") == "raw" || u.p.text("mode") == "json" {
		c.setRaw(e)
		return
	}
	fields, others := assignments(u)
	e.nulls, e.converts = true, u.version >= 3
	if !others {
		values := map[string]any{}
		for _, f := range fields {
			v := e.typedValue(f)
			if text, _ := v.(string); u.version < 3 && strings.HasSuffix(text, optional+"}}") {
				u.approximate(
					"MISSING",
					"A field whose expression finds nothing is null here; this version of n8n leaves it out.",
				)
			}
			setPath(values, f.name, v, u.dotsAreNested())
		}
		e.emit("set", map[string]any{"values": values})
		return
	}
	var code strings.Builder
	code.WriteString("const out = " + keptFieldsJS(u) + "\n")
	for _, f := range fields {
		if u.dotsAreNested() {
			fmt.Fprintf(&code, "$set(out, %s, %s)\n", quote(f.name), e.typedJS(f))
		} else {
			fmt.Fprintf(&code, "out[%s] = %s\n", quote(f.name), e.typedJS(f))
		}
	}
	e.emit("code", map[string]any{"code": e.script(code.String() + "return out")})
}

// dotsAreNested reports whether dots in names denote nested objects.
func (u *unit) dotsAreNested() bool {
	if v, ok := u.p.at("options.dotNotation").(bool); ok {
		return v
	}
	return true
}

// keptFieldsJS returns the JavaScript for the fields that are kept.
func keptFieldsJS(u *unit) string {
	include := u.p.or("include", "all")
	switch {
	case include == "selected":
		return "$only($json, " + quote(words(u.p.text("includeFields"))) + ")"
	case include == "except":
		return "$without($json, " + quote(words(u.p.text("excludeFields"))) + ")"
	case include == "none":
		return "{}"
	}
	return "$copy($json)"
}

// assignment is a field that a set node writes.
type assignment struct {
	name, kind string
	value      any
}

// assignments returns the fields that a set node writes, by version, and whether
// other fields are kept.
func assignments(u *unit) (all []assignment, others bool) {
	switch {
	case u.version < 3:
		for _, kind := range []string{"string", "number", "boolean"} {
			for _, f := range u.p.objects("values." + kind) {
				all = append(all, assignment{f.text("name"), kind, f["value"]})
			}
		}
		return all, !u.p.flag("keepOnlySet")
	case u.version < 3.3:
		for _, f := range u.p.objects("fields.values") {
			kind := strings.TrimSuffix(f.or("type", "stringValue"), "Value")
			all = append(all, assignment{f.text("name"), kind, f[kind+"Value"]})
		}
		return all, u.p.or("include", "all") != "none"
	}
	for _, f := range u.p.objects("assignments.assignments") {
		name := f.text("name")
		if !strings.Contains(name, "{{") {
			name = strings.TrimPrefix(name, "=") // an expression without any is text
		}
		all = append(all, assignment{name, f.or("type", "string"), f["value"]})
	}
	return all, u.p.flag("includeOtherFields")
}

// setPath sets the value at a path, which may have dots.
func setPath(object map[string]any, path string, v any, dots bool) {
	for dots {
		key, rest, more := strings.Cut(path, ".")
		if !more || key == "" || rest == "" {
			break
		}
		inner, ok := object[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[key] = inner
		}
		object, path = inner, rest
	}
	object[path] = v
}

// typedValue returns the value of an assignment.
func (e *env) typedValue(f assignment) any {
	text, isText := f.value.(string)
	if !isText {
		return e.value(f.value)
	}
	if _, isExpression := expressionOf(text); isExpression {
		return e.fieldValue(f, text)
	}
	if v, ok := literalOf(f.kind, text); ok {
		return e.value(v)
	}
	return e.value(text)
}

// typedJS returns the value of an assignment as JavaScript.
func (e *env) typedJS(f assignment) string {
	if text, ok := f.value.(string); ok && !strings.HasPrefix(text, "=") {
		if v, ok := literalOf(f.kind, text); ok {
			return quote(v)
		}
	}
	if e.converts {
		return e.fieldJS(f)
	}
	return e.js(f.value)
}

// fieldValue returns the value of an expression. A value computed by JavaScript is
// converted to the type of the field.
func (e *env) fieldValue(f assignment, text string) any {
	computed := len(e.scripts)
	v := e.value(text)
	if !e.converts {
		return v
	}
	if len(e.scripts) == computed+1 && v == fmt.Sprintf("{{nodes.%s.v%d}}", e.id, len(e.scripts)) {
		e.scripts[computed] = e.fieldJS(f)
		return v
	}
	path, isPath := v.(string)
	if pieces := split(strings.TrimPrefix(text, "=")); !isPath ||
		len(pieces) != 1 ||
		!pieces[0].expr ||
		!strings.HasSuffix(path, "}}") {
		return v
	}
	switch f.kind {
	case "string":
		return strings.TrimSuffix(path, "}}") + " | text}}"
	case "number", "boolean":
		return e.compute(e.fieldJS(f))
	}
	return v
}

// fieldJS returns a value as JavaScript, converted to the type of the field.
func (e *env) fieldJS(f assignment) string {
	return "$field(" + quote(f.name) + ", " + quote(f.kind) + ", " + e.js(f.value) + ")"
}

// convertIf makes an if-else node.
func convertIf(c *converter, u *unit) {
	e := c.each(u)
	s := e.emitPassing(agent.NodeIfElse, e.test(conditionsOf(u.p)))
	c.branch(u, s, []string{"true", "false"})
}

// convertFilter makes an if-else node of which only one branch continues.
func convertFilter(c *converter, u *unit) {
	e := c.each(u)
	s := e.emitPassing(agent.NodeIfElse, e.test(conditionsOf(u.p)))
	c.branch(u, s, []string{"true", "false"})
}

// branch assigns a handle to each output of a unit.
func (c *converter) branch(u *unit, s *stream, handles []string) {
	if u.unsupported {
		return
	}
	field := "result"
	if !strings.HasPrefix(handles[0], "t") {
		field = "case"
	}
	for i, handle := range handles {
		one := *s
		value := quote(handle)
		if field == "result" {
			value = handle
		}
		one.from = []exit{{u.id, handle, s.at}}
		one.taken = fmt.Sprintf("nodes[%q]?.%s === %s", u.id, field, value)
		one.guards = withGuard(s.guards, u.id, handle)
		u.outputs[i] = &one
	}
}

// convertSwitch makes a switch node.
func convertSwitch(c *converter, u *unit) {
	e := c.each(u)
	cases, handles := []any{}, []string{}
	add := func(v map[string]any) {
		handle := fmt.Sprintf("output_%d", len(handles))
		v["id"] = handle
		cases, handles = append(cases, v), append(handles, handle)
	}
	data := map[string]any{}
	switch {
	case u.p.text("mode") == "expression":
		data["value"] = e.value(u.p.at("output"))
		for i := range int(min(max(u.p.number("numberOutputs", u.p.number("outputsAmount", 4)), 1), 15)) {
			add(map[string]any{"value": float64(i)})
		}
	case u.version < 3:
		for _, t := range legacyRules(u) {
			add(e.caseTest(t))
		}
	default:
		rules := u.p.objects("rules.values")
		if rules == nil {
			rules = u.p.objects("rules.rules") // 3.0, in some exports
		}
		for _, rule := range rules {
			add(e.caseTest(conditionsOf(rule)))
		}
	}
	if u.p.flag("options.allMatchingOutputs") {
		u.approximate("ALL_OUTPUTS", "Only the first output whose rule holds is taken, not all of them.")
	}
	data["cases"] = cases
	s := e.emitPassing(agent.NodeSwitch, data)
	if u.unsupported {
		return
	}
	c.branch(u, s, append(handles, "default"))
	c.fallback(u, len(handles))
}

// fallback routes items that match no rule as n8n does.
func (c *converter) fallback(u *unit, rules int) {
	last := u.outputs[rules]
	extra := u.p.text("options.fallbackOutput") == "extra"
	to := u.p.number("options.fallbackOutput", u.p.number("fallbackOutput", -1))
	switch {
	case extra:
	case to >= 0 && to < float64(rules):
		i := int(to)
		one := *u.outputs[i]
		one.from = append(one.from, last.from...)
		one.taken = anyOf([]string{one.taken, last.taken})
		one.guards = commonGuards([]*stream{u.outputs[i], last})
		u.outputs[i] = &one
		delete(u.outputs, rules)
	default:
		delete(u.outputs, rules)
	}
}

// legacyRules reads the rules of switch 1 and 2, in the order of their outputs.
func legacyRules(u *unit) []tests {
	byOutput := map[int][]test{}
	most := -1
	for i, rule := range u.p.objects("rules.rules") {
		output := i
		if u.version < 2 {
			output = int(min(max(rule.number("output", 0), 0), 14))
		}
		most = max(most, output)
		kind := u.p.or("dataType", "number")
		byOutput[output] = append(byOutput[output], test{
			kind:      kind,
			operation: rule.or("operation", defaultOperation(kind)),
			left:      operand(kind, u.p.at("value1")),
			right:     operand(kind, rule["value2"]),
			sensitive: true,
		})
	}
	all := make([]tests, most+1)
	for output := range all {
		all[output] = tests{list: byOutput[output], any: true}
	}
	return all
}
