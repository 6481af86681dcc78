package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertSet makes a set node, or a code node if other fields are kept or JSON is
// assembled from parts.
func convertSet(converter *converter, unit *unit) {
	env := converter.each(unit)
	if unit.p.flag("duplicateItem") {
		unit.approximate("DUPLICATE", "Items are not duplicated.")
	}
	if unit.p.text("mode") == "raw" || unit.p.text("mode") == "json" {
		converter.setRaw(env)
		return
	}
	fields, others := assignments(unit)
	env.nulls, env.converts = true, unit.version >= 3
	if !others {
		values := map[string]any{}
		for _, f := range fields {
			v := env.typedValue(f)
			if text, _ := v.(string); unit.version < 3 && strings.HasSuffix(text, optional+"}}") {
				unit.approximate(
					"MISSING",
					"A field whose expression finds nothing is null here; this version of n8n leaves it out.",
				)
			}
			setPath(values, f.name, v, unit.dotsAreNested())
		}
		env.emit("set", map[string]any{"values": values})
		return
	}
	var code strings.Builder
	code.WriteString("const out = " + keptFieldsJS(unit) + "\n")
	for _, f := range fields {
		if unit.dotsAreNested() {
			fmt.Fprintf(&code, "$set(out, %s, %s)\n", quote(f.name), env.typedJS(f))
		} else {
			fmt.Fprintf(&code, "out[%s] = %s\n", quote(f.name), env.typedJS(f))
		}
	}
	env.emit("code", map[string]any{"code": env.script(code.String() + "return out")})
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
func assignments(unit *unit) (all []assignment, others bool) {
	switch {
	case unit.version < 3:
		for _, kind := range []string{"string", "number", "boolean"} {
			for _, f := range unit.p.objects("values." + kind) {
				all = append(all, assignment{f.text("name"), kind, f["value"]})
			}
		}
		return all, !unit.p.flag("keepOnlySet")
	case unit.version < 3.3:
		for _, f := range unit.p.objects("fields.values") {
			kind := strings.TrimSuffix(f.or("type", "stringValue"), "Value")
			all = append(all, assignment{f.text("name"), kind, f[kind+"Value"]})
		}
		return all, unit.p.or("include", "all") != "none"
	}
	for _, f := range unit.p.objects("assignments.assignments") {
		name := f.text("name")
		if !strings.Contains(name, "{{") {
			name = strings.TrimPrefix(name, "=") // an expression without any is text
		}
		all = append(all, assignment{name, f.or("type", "string"), f["value"]})
	}
	return all, unit.p.flag("includeOtherFields")
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
func (env *env) typedValue(f assignment) any {
	text, isText := f.value.(string)
	if !isText {
		return env.value(f.value)
	}
	if _, isExpression := expressionOf(text); isExpression {
		return env.fieldValue(f, text)
	}
	if v, ok := literalOf(f.kind, text); ok {
		return env.value(v)
	}
	return env.value(text)
}

// typedJS returns the value of an assignment as JavaScript.
func (env *env) typedJS(f assignment) string {
	if text, ok := f.value.(string); ok && !strings.HasPrefix(text, "=") {
		if v, ok := literalOf(f.kind, text); ok {
			return quote(v)
		}
	}
	if env.converts {
		return env.fieldJS(f)
	}
	return env.js(f.value)
}

// fieldValue returns the value of an expression. A value computed by JavaScript is
// converted to the type of the field.
func (env *env) fieldValue(assignment assignment, text string) any {
	computed := len(env.scripts)
	value := env.value(text)
	if !env.converts {
		return value
	}
	if len(env.scripts) == computed+1 && value == fmt.Sprintf("{{nodes.%s.v%d}}", env.id, len(env.scripts)) {
		env.scripts[computed] = env.fieldJS(assignment)
		return value
	}
	path, isPath := value.(string)
	if pieces := split(strings.TrimPrefix(text, "=")); !isPath ||
		len(pieces) != 1 ||
		!pieces[0].expr ||
		!strings.HasSuffix(path, "}}") {
		return value
	}
	switch assignment.kind {
	case "string":
		return strings.TrimSuffix(path, "}}") + " | text}}"
	case "number", "boolean":
		return env.compute(env.fieldJS(assignment))
	}
	return value
}

// fieldJS returns a value as JavaScript, converted to the type of the field.
func (env *env) fieldJS(f assignment) string {
	return "$field(" + quote(f.name) + ", " + quote(f.kind) + ", " + env.js(f.value) + ")"
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
func (converter *converter) branch(unit *unit, stream *stream, handles []string) {
	if unit.unsupported {
		return
	}
	field := "result"
	if !strings.HasPrefix(handles[0], "t") {
		field = "case"
	}
	for i, handle := range handles {
		one := *stream
		value := quote(handle)
		if field == "result" {
			value = handle
		}
		one.from = []exit{{unit.id, handle, stream.at}}
		one.taken = fmt.Sprintf("nodes[%q]?.%s === %s", unit.id, field, value)
		one.guards = withGuard(stream.guards, unit.id, handle)
		unit.outputs[i] = &one
	}
}

// convertSwitch makes a switch node.
func convertSwitch(converter *converter, unit *unit) {
	env := converter.each(unit)
	cases, handles := []any{}, []string{}
	add := func(v map[string]any) {
		handle := fmt.Sprintf("output_%d", len(handles))
		v["id"] = handle
		cases, handles = append(cases, v), append(handles, handle)
	}
	data := map[string]any{}
	switch {
	case unit.p.text("mode") == "expression":
		data["value"] = env.value(unit.p.at("output"))
		for i := range int(min(max(unit.p.number("numberOutputs", unit.p.number("outputsAmount", 4)), 1), 15)) {
			add(map[string]any{"value": float64(i)})
		}
	case unit.version < 3:
		for _, t := range legacyRules(unit) {
			add(env.caseTest(t))
		}
	default:
		rules := unit.p.objects("rules.values")
		if rules == nil {
			rules = unit.p.objects("rules.rules") // 3.0, in some exports
		}
		for _, rule := range rules {
			add(env.caseTest(conditionsOf(rule)))
		}
	}
	if unit.p.flag("options.allMatchingOutputs") {
		unit.approximate("ALL_OUTPUTS", "Only the first output whose rule holds is taken, not all of them.")
	}
	data["cases"] = cases
	s := env.emitPassing(agent.NodeSwitch, data)
	if unit.unsupported {
		return
	}
	converter.branch(unit, s, append(handles, "default"))
	converter.fallback(unit, len(handles))
}

// fallback routes items that match no rule as n8n does.
func (converter *converter) fallback(unit *unit, rules int) {
	last := unit.outputs[rules]
	extra := unit.p.text("options.fallbackOutput") == "extra"
	to := unit.p.number("options.fallbackOutput", unit.p.number("fallbackOutput", -1))
	switch {
	case extra:
	case to >= 0 && to < float64(rules):
		i := int(to)
		one := *unit.outputs[i]
		one.from = append(one.from, last.from...)
		one.taken = anyOf([]string{one.taken, last.taken})
		one.guards = commonGuards([]*stream{unit.outputs[i], last})
		unit.outputs[i] = &one
		delete(unit.outputs, rules)
	default:
		delete(unit.outputs, rules)
	}
}

// legacyRules reads the rules of switch 1 and 2, in the order of their outputs.
func legacyRules(unit *unit) []tests {
	byOutput := map[int][]test{}
	most := -1
	for i, rule := range unit.p.objects("rules.rules") {
		output := i
		if unit.version < 2 {
			output = int(min(max(rule.number("output", 0), 0), 14))
		}
		most = max(most, output)
		kind := unit.p.or("dataType", "number")
		byOutput[output] = append(byOutput[output], test{
			kind:      kind,
			operation: rule.or("operation", defaultOperation(kind)),
			left:      operand(kind, unit.p.at("value1")),
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
