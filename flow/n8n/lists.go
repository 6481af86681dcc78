package n8n

import (
	"fmt"
	"slices"
	"strings"
)

// whole returns the environment of a unit that works on all items at once. items
// holds the JavaScript for each input's list.
func (converter *converter) whole(unit *unit) (environment *env, items []string) {
	var all []*stream
	inputs := max(len(unit.in), 1)
	for i := range inputs {
		all = append(all, converter.incoming(unit, i)...)
	}
	environment = &env{
		c:  converter,
		u:  unit,
		in: &stream{ref: ref{path: "input", js: "input"}, guards: map[string]string{}},
	}
	if len(all) == 0 {
		return environment, slices.Repeat([]string{"[]"}, inputs)
	}
	at := contextOf(all)
	environment.at = at
	var from []exit
	for index := range inputs {
		parts := []string{}
		in := converter.incoming(unit, index)
		if len(in) > 1 && !(exclusive(in) && in[0].at == at) {
			unit.approximate(
				"RUNS",
				"Several connections lead to one input: n8n runs the node once for each of them, here it "+
					"runs once with all items.",
			)
		}
		for _, s := range in {
			js, exits := converter.itemsOf(unit, s, at)
			parts = append(parts, js)
			from = append(from, exits...)
		}
		switch len(parts) {
		case 0:
			items = append(items, "[]")
		case 1:
			items = append(items, parts[0])
		default:
			items = append(items, "[..."+strings.Join(parts, ", ...")+"]")
		}
	}
	environment.in = &stream{
		from:   from,
		at:     at,
		list:   true,
		ref:    ref{js: items[0]},
		guards: commonGuards(all),
	}
	if len(all) == 1 {
		environment.in.same = all[0].same
		if s := all[0]; at.within(s.at) {
			environment.in.ref.path = s.ref.path
			if !s.list { // its only item
				environment.in.ref = s.ref
				environment.in.list = false
			}
		}
	}
	return environment, items
}

// contextOf returns the region of a node that collects streams.
func contextOf(all []*stream) (at *region) {
	for i, s := range all {
		if context := s.at.context(); i == 0 || context.within(at) {
			at = context
		}
	}
	return at
}

// emitList adds a code node that returns a list of items.
func (env *env) emitList(js string) *stream {
	env.emit("code", map[string]any{"code": env.script("return { items: " + js + " }")})
	if env.u.unsupported {
		return env.u.outputs[0]
	}
	s := listStream(env.u.id, env.at)
	s.same = []*unit{env.u}
	env.u.outputs[0] = s
	return s
}

// keepItems marks that the items that leave a unit are those that flowed in.
func (env *env) keepItems(s *stream) {
	s.same = append([]*unit{env.u}, env.in.same...)
}

// fieldNames returns the names in a parameter: a comma-separated text or, before
// version 3, a list of fields.
func fieldNames(u *unit, path string) []string {
	if list := u.p.objects(path + ".fields"); list != nil {
		names := []string{}
		for _, f := range list {
			names = append(names, f.text("fieldName"))
		}
		return names
	}
	return words(strings.TrimPrefix(u.p.text(path), "="))
}

func convertSplitOut(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	names := fieldNames(unit, "fieldToSplitOut")
	if strings.Contains(unit.p.text("fieldToSplitOut"), "{{") {
		unit.fail("PARAMETER", "The field to split is computed.")
	}
	options := map[string]any{
		"include": fieldNames(unit, "fieldsToInclude"),
		"others":  unit.p.or("include", "noOtherFields") == "allOtherFields",
		"to":      words(unit.p.text("options.destinationFieldName")),
	}
	if unit.p.or("include", "noOtherFields") != "selectedOtherFields" {
		options["include"] = []string{}
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "$json.")
	}
	env.emitList(fmt.Sprintf("$split(%s, %s, %s)", items[0], quote(names), quote(options)))
}

func convertAggregate(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	js := ""
	if unit.p.or("aggregate", "aggregateIndividualFields") == "aggregateAllItemData" {
		js = items[0]
		switch unit.p.or("include", "allFields") {
		case "specifiedFields":
			js += ".map((json) => $only(json, " + quote(fieldNames(unit, "fieldsToInclude")) + "))"
		case "allFieldsExcept":
			js += ".map((json) => $without(json, " + quote(fieldNames(unit, "fieldsToExclude")) + "))"
		}
		js = "$set({}, " + quote(unit.p.or("destinationFieldName", "data")) + ", " + js + ")"
	} else {
		fields := []any{}
		for _, f := range unit.p.objects("fieldsToAggregate.fieldToAggregate") {
			from := f.text("fieldToAggregate")
			to := from[strings.LastIndexByte(from, '.')+1:]
			if f.flag("renameField") {
				to = f.or("outputFieldName", to)
			}
			fields = append(fields, map[string]any{"from": from, "to": to})
		}
		js = fmt.Sprintf(
			"$aggregated(%s, %s, %s)",
			items[0],
			quote(fields),
			quote(map[string]any{
				"merge":   unit.p.flag("options.mergeLists"),
				"missing": unit.p.flag("options.keepMissing"),
			}),
		)
	}
	env.emit("code", map[string]any{"code": env.script("return " + js)})
}

func convertLimit(c *converter, u *unit) {
	e, items := c.whole(u)
	n := e.js(u.p.at("maxItems"))
	if !u.p.has("maxItems") {
		n = "1"
	}
	cut := ".slice(0, " + n + ")"
	if u.p.text("keep") == "lastItems" {
		cut = ".slice(-" + n + ")"
	}
	e.keepItems(e.emitList(items[0] + cut))
}

func convertSort(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	js := ""
	switch unit.p.or("type", "simple") {
	case "random":
		js = items[0] + ".map((json) => [Math.random(), json]).sort(([a], [b]) => a - b).map(([, json]) => json)"
	case "code":
		js = items[0] + ".map((json) => ({ json })).sort((a, b) => {\n" + unit.p.text("code") + "\n}).map($one)"
	default:
		fields := []any{}
		for _, f := range unit.p.objects("sortFieldsUi.sortField") {
			fields = append(fields, map[string]any{
				"name": f.text("fieldName"),
				"down": f.text("order") == "descending",
			})
		}
		js = fmt.Sprintf("$sorted(%s, %s)", items[0], quote(fields))
	}
	env.keepItems(env.emitList(js))
}

func convertRemoveDuplicates(converter *converter, unit *unit) {
	switch unit.p.or("operation", "removeDuplicateInputItems") {
	case "removeItemsSeenInPreviousExecutions":
		convertSeen(converter, unit)
		return
	case "removeDuplicateInputItems", "removeDuplicates":
	default:
		unit.fail("OPERATION", "The history of duplicates belongs to each new-items node, and is not cleared here.")
	}
	e, items := converter.whole(unit)
	key := "$key"
	switch unit.p.or("compare", "allFields") {
	case "allFieldsExcept":
		key = "(json) => $key($without(json, " + quote(fieldNames(unit, "fieldsToExclude")) + "))"
	case "selectedFields":
		key = "(json) => $key($only(json, " + quote(fieldNames(unit, "fieldsToCompare")) + "))"
	}
	js := fmt.Sprintf("$unique(%s, %s)", items[0], key)
	if unit.p.flag("options.removeOtherFields") && unit.p.text("compare") == "selectedFields" {
		e.emitList(js + ".map((json) => $only(json, " + quote(fieldNames(unit, "fieldsToCompare")) + "))")
		return
	}
	e.keepItems(e.emitList(js))
}

// prefixes are the prefixes of the names of fields that summarize writes.
var prefixes = map[string]string{
	"append":      "appended_",
	"average":     "average_",
	"concatenate": "concatenated_",
	"count":       "count_",
	"countUnique": "unique_count_",
	"max":         "max_",
	"min":         "min_",
	"sum":         "sum_",
}

// summaryNames converts a path to the name of a field.
var summaryNames = strings.NewReplacer("[", "", "]", "", `"`, "", " ", "_", ".", "_")

func convertSummarize(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	fields := []any{}
	for _, params := range unit.p.objects("fieldsToSummarize.values") {
		how := params.or("aggregation", "count")
		if prefixes[how] == "" {
			unit.fail("OPERATION", "The aggregation "+clip(how, 40)+" is not known.")
			break
		}
		separator := params.or("separateBy", ",")
		if separator == "other" {
			separator = params.text("customSeparator")
		}
		name := params.text("field")
		fields = append(fields, map[string]any{
			"name":      name,
			"how":       how,
			"empty":     params.flag("includeEmpty"),
			"separator": strings.NewReplacer(`\n`, "\n").Replace(separator),
			"to":        prefixes[how] + summaryNames.Replace(name),
		})
	}
	by := [][2]string{} // paths, and the names of their fields in the summary
	for _, path := range words(unit.p.text("fieldsToSplitBy")) {
		by = append(by, [2]string{path, summaryNames.Replace(path)})
	}
	js := fmt.Sprintf("$summarized(%s, %s, %s)", items[0], quote(fields), quote(by))
	if unit.p.text("options.outputFormat") == "singleItem" && len(by) > 0 {
		unit.approximate("SUMMARY", "The summary has one item for each group instead of one item with all.")
	}
	if len(by) == 0 {
		env.emit("code", map[string]any{"code": env.script("return " + js + "[0] ?? {}")})
		return
	}
	env.emitList(js)
}

// convertItemLists converts the older node that combines several of these.
func convertItemLists(c *converter, u *unit) {
	switch u.p.or("operation", "splitOutItems") {
	case "concatenateItems", "aggregateItems":
		convertAggregate(c, u)
	case "limit":
		convertLimit(c, u)
	case "removeDuplicates":
		convertRemoveDuplicates(c, u)
	case "sort":
		convertSort(c, u)
	case "summarize":
		convertSummarize(c, u)
	default:
		convertSplitOut(c, u)
	}
}

func convertRenameKeys(converter *converter, unit *unit) {
	e := converter.each(unit)
	var code strings.Builder
	code.WriteString("const out = $copy($json)\n")
	for _, k := range unit.p.objects("keys.key") {
		from, to := quote(k.text("currentKey")), quote(k.text("newKey"))
		fmt.Fprintf(
			&code,
			"if ($get(out, %s) !== undefined) { const v = $get(out, %s); $unset(out, %s); $set(out, %s, v) }\n",
			from, from, from, to,
		)
	}
	if unit.p.has("additionalOptions.regexReplacement") {
		unit.fail("PARAMETER", "Keys are renamed by a pattern.")
	}
	e.emit("code", map[string]any{"code": e.script(code.String() + "return out")})
}

// convertMerge makes code that joins the lists of all inputs.
func convertMerge(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	for len(items) < 2 {
		items = append(items, "[]")
	}
	one, two := items[0], items[1]
	mode := unit.p.or("mode", "append")
	if mode == "combine" {
		mode = unit.p.or(
			"combineBy",
			unit.p.or(
				"combinationMode",
				map[bool]string{true: "combineByFields", false: "mergeByFields"}[unit.version >= 3],
			),
		)
	}
	clash := "{ ...a, ...b }"
	if unit.p.text("options.clashHandling.values.resolveClash") == "preferInput1" {
		clash = "{ ...b, ...a }"
	}
	if unit.p.text("options.clashHandling.values.resolveClash") == "addSuffix" {
		unit.approximate(
			"CLASH",
			"Fields of both inputs with the same name get no suffix: those of the last input win.",
		)
	}
	switch mode {
	case "append":
		env.emitList("[..." + strings.Join(items, ", ...") + "]")
	case "combineByPosition", "mergeByPosition", "mergeByIndex":
		env.byPosition(items, clash)
	case "combineAll", "multiplex":
		env.emitList(fmt.Sprintf("%s.flatMap((a) => %s.map((b) => (%s)))", one, two, clash))
	case "combineByFields", "mergeByFields", "mergeByKey", "keepKeyMatches", "removeKeyMatches":
		env.byFields(mode, one, two)
	case "chooseBranch", "passThrough", "wait":
		chosen := 0
		if unit.p.text("output") == "input2" || unit.p.number("useDataOfInput", 1) == 2 {
			chosen = 1
		}
		env.emitList(items[chosen])
	default:
		unit.fail(
			"OPERATION",
			"The mode "+clip(mode, 40)+" has no counterpart; a table and a sql node can do the same.",
		)
		env.emitList("[]")
	}
}

// byPosition joins the first items, the second items, and so on.
func (env *env) byPosition(items []string, clash string) {
	how := "Math.min"
	if join := env.u.p.text("join"); env.u.p.flag("options.includeUnpaired") || join == "outer" {
		how = "Math.max"
	}
	merge := "lists.map((list) => list[i] ?? {}).reduce((a, b) => (" + clash + "), {})"
	env.emitList(fmt.Sprintf(
		"((lists) => Array.from({ length: %s(...lists.map((list) => list.length)) }, (_, i) => %s))([%s])",
		how,
		merge,
		strings.Join(items, ", "),
	))
}

// byFields joins items where fields are equal.
func (env *env) byFields(mode, one, two string) {
	params := env.u.p
	fields := [][2]string{}
	for _, f := range params.objects("mergeByFields.values") {
		fields = append(fields, [2]string{f.text("field1"), f.text("field2")})
	}
	if !params.has("mergeByFields.values") {
		for _, name := range words(params.text("fieldsToMatchString")) {
			fields = append(fields, [2]string{name, name})
		}
	}
	if params.has("propertyName1") {
		fields = [][2]string{{params.text("propertyName1"), params.text("propertyName2")}}
	}
	how, output := params.or("joinMode", "keepMatches"), params.or("outputDataFrom", "both")
	switch mode {
	case "keepKeyMatches":
		how, output = "keepMatches", "input1"
	case "removeKeyMatches":
		how, output = "keepNonMatches", "input1"
	case "mergeByKey":
		how = "enrichInput1"
	}
	prefer := "preferInput2"
	if how == "enrichInput2" {
		prefer = "preferInput1"
	}
	prefer = params.or("options.clashHandling.values.resolveClash", prefer)
	env.emitList(fmt.Sprintf(
		"$joined(%s, %s, %s, %s, %s, %t, %t)",
		one,
		two,
		quote(fields),
		quote(how),
		quote(output),
		params.or("options.multipleMatches", "all") == "all",
		prefer == "preferInput1",
	))
}
