package n8n

import (
	"fmt"
	"slices"
	"strings"
)

// whole returns the environment of a unit that works on all items at once. items
// holds the JavaScript for each input's list.
func (c *converter) whole(u *unit) (e *env, items []string) {
	var all []*stream
	inputs := max(len(u.in), 1)
	for i := range inputs {
		all = append(all, c.incoming(u, i)...)
	}
	e = &env{
		c:  c,
		u:  u,
		in: &stream{ref: ref{path: "input", js: "input"}, guards: map[string]string{}},
	}
	if len(all) == 0 {
		return e, slices.Repeat([]string{"[]"}, inputs)
	}
	at := contextOf(all)
	e.at = at
	var from []exit
	for i := range inputs {
		parts := []string{}
		in := c.incoming(u, i)
		if len(in) > 1 && !(exclusive(in) && in[0].at == at) {
			u.approximate(
				"RUNS",
				"Several connections lead to one input: n8n runs the node once for each of them, here it "+
					"runs once with all items.",
			)
		}
		for _, s := range in {
			js, exits := c.itemsOf(u, s, at)
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
	e.in = &stream{
		from:   from,
		at:     at,
		list:   true,
		ref:    ref{js: items[0]},
		guards: commonGuards(all),
	}
	if len(all) == 1 {
		e.in.same = all[0].same
		if s := all[0]; at.within(s.at) {
			e.in.ref.path = s.ref.path
			if !s.list { // its only item
				e.in.ref = s.ref
				e.in.list = false
			}
		}
	}
	return e, items
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
func (e *env) emitList(js string) *stream {
	e.emit("code", map[string]any{"code": e.script("return { items: " + js + " }")})
	if e.u.unsupported {
		return e.u.outputs[0]
	}
	s := listStream(e.u.id, e.at)
	s.same = []*unit{e.u}
	e.u.outputs[0] = s
	return s
}

// keepItems marks that the items that leave a unit are those that flowed in.
func (e *env) keepItems(s *stream) {
	s.same = append([]*unit{e.u}, e.in.same...)
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

func convertSplitOut(c *converter, u *unit) {
	e, items := c.whole(u)
	names := fieldNames(u, "fieldToSplitOut")
	if strings.Contains(u.p.text("fieldToSplitOut"), "{{") {
		u.fail("PARAMETER", "The field to split is computed.")
	}
	options := map[string]any{
		"include": fieldNames(u, "fieldsToInclude"),
		"others":  u.p.or("include", "noOtherFields") == "allOtherFields",
		"to":      words(u.p.text("options.destinationFieldName")),
	}
	if u.p.or("include", "noOtherFields") != "selectedOtherFields" {
		options["include"] = []string{}
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "$json.")
	}
	e.emitList(fmt.Sprintf("$split(%s, %s, %s)", items[0], quote(names), quote(options)))
}

func convertAggregate(c *converter, u *unit) {
	e, items := c.whole(u)
	js := ""
	if u.p.or("aggregate", "aggregateIndividualFields") == "aggregateAllItemData" {
		js = items[0]
		switch u.p.or("include", "allFields") {
		case "specifiedFields":
			js += ".map((json) => $only(json, " + quote(fieldNames(u, "fieldsToInclude")) + "))"
		case "allFieldsExcept":
			js += ".map((json) => $without(json, " + quote(fieldNames(u, "fieldsToExclude")) + "))"
		}
		js = "$set({}, " + quote(u.p.or("destinationFieldName", "data")) + ", " + js + ")"
	} else {
		fields := []any{}
		for _, f := range u.p.objects("fieldsToAggregate.fieldToAggregate") {
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
			quote(map[string]any{"merge": u.p.flag("options.mergeLists"), "missing": u.p.flag("options.keepMissing")}),
		)
	}
	e.emit("code", map[string]any{"code": e.script("return " + js)})
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

func convertSort(c *converter, u *unit) {
	e, items := c.whole(u)
	js := ""
	switch u.p.or("type", "simple") {
	case "random":
		js = items[0] + ".map((json) => [Math.random(), json]).sort(([a], [b]) => a - b).map(([, json]) => json)"
	case "code":
		js = items[0] + ".map((json) => ({ json })).sort((a, b) => {\n" + u.p.text("code") + "\n}).map($one)"
	default:
		fields := []any{}
		for _, f := range u.p.objects("sortFieldsUi.sortField") {
			fields = append(fields, map[string]any{
				"name": f.text("fieldName"),
				"down": f.text("order") == "descending",
			})
		}
		js = fmt.Sprintf("$sorted(%s, %s)", items[0], quote(fields))
	}
	e.keepItems(e.emitList(js))
}

func convertRemoveDuplicates(c *converter, u *unit) {
	switch u.p.or("operation", "removeDuplicateInputItems") {
	case "removeItemsSeenInPreviousExecutions":
		convertSeen(c, u)
		return
	case "removeDuplicateInputItems", "removeDuplicates":
	default:
		u.fail("OPERATION", "The history of duplicates belongs to each new-items node, and is not cleared here.")
	}
	e, items := c.whole(u)
	key := "$key"
	switch u.p.or("compare", "allFields") {
	case "allFieldsExcept":
		key = "(json) => $key($without(json, " + quote(fieldNames(u, "fieldsToExclude")) + "))"
	case "selectedFields":
		key = "(json) => $key($only(json, " + quote(fieldNames(u, "fieldsToCompare")) + "))"
	}
	js := fmt.Sprintf("$unique(%s, %s)", items[0], key)
	if u.p.flag("options.removeOtherFields") && u.p.text("compare") == "selectedFields" {
		e.emitList(js + ".map((json) => $only(json, " + quote(fieldNames(u, "fieldsToCompare")) + "))")
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

func convertSummarize(c *converter, u *unit) {
	e, items := c.whole(u)
	fields := []any{}
	for _, f := range u.p.objects("fieldsToSummarize.values") {
		how := f.or("aggregation", "count")
		if prefixes[how] == "" {
			u.fail("OPERATION", "The aggregation "+clip(how, 40)+" is not known.")
			break
		}
		separator := f.or("separateBy", ",")
		if separator == "other" {
			separator = f.text("customSeparator")
		}
		name := f.text("field")
		fields = append(fields, map[string]any{
			"name":      name,
			"how":       how,
			"empty":     f.flag("includeEmpty"),
			"separator": strings.NewReplacer(`\n`, "\n").Replace(separator),
			"to":        prefixes[how] + summaryNames.Replace(name),
		})
	}
	by := [][2]string{} // paths, and the names of their fields in the summary
	for _, path := range words(u.p.text("fieldsToSplitBy")) {
		by = append(by, [2]string{path, summaryNames.Replace(path)})
	}
	js := fmt.Sprintf("$summarized(%s, %s, %s)", items[0], quote(fields), quote(by))
	if u.p.text("options.outputFormat") == "singleItem" && len(by) > 0 {
		u.approximate("SUMMARY", "The summary has one item for each group instead of one item with all.")
	}
	if len(by) == 0 {
		e.emit("code", map[string]any{"code": e.script("return " + js + "[0] ?? {}")})
		return
	}
	e.emitList(js)
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

func convertRenameKeys(c *converter, u *unit) {
	e := c.each(u)
	var code strings.Builder
	code.WriteString("const out = $copy($json)\n")
	for _, k := range u.p.objects("keys.key") {
		from, to := quote(k.text("currentKey")), quote(k.text("newKey"))
		fmt.Fprintf(
			&code,
			"if ($get(out, %s) !== undefined) { const v = $get(out, %s); $unset(out, %s); $set(out, %s, v) }\n",
			from, from, from, to,
		)
	}
	if u.p.has("additionalOptions.regexReplacement") {
		u.fail("PARAMETER", "Keys are renamed by a pattern.")
	}
	e.emit("code", map[string]any{"code": e.script(code.String() + "return out")})
}

// convertMerge makes code that joins the lists of all inputs.
func convertMerge(c *converter, u *unit) {
	e, items := c.whole(u)
	for len(items) < 2 {
		items = append(items, "[]")
	}
	one, two := items[0], items[1]
	mode := u.p.or("mode", "append")
	if mode == "combine" {
		mode = u.p.or(
			"combineBy",
			u.p.or("combinationMode", map[bool]string{true: "combineByFields", false: "mergeByFields"}[u.version >= 3]),
		)
	}
	clash := "{ ...a, ...b }"
	if u.p.text("options.clashHandling.values.resolveClash") == "preferInput1" {
		clash = "{ ...b, ...a }"
	}
	if u.p.text("options.clashHandling.values.resolveClash") == "addSuffix" {
		u.approximate("CLASH", "Fields of both inputs with the same name get no suffix: those of the last input win.")
	}
	switch mode {
	case "append":
		e.emitList("[..." + strings.Join(items, ", ...") + "]")
	case "combineByPosition", "mergeByPosition", "mergeByIndex":
		e.byPosition(items, clash)
	case "combineAll", "multiplex":
		e.emitList(fmt.Sprintf("%s.flatMap((a) => %s.map((b) => (%s)))", one, two, clash))
	case "combineByFields", "mergeByFields", "mergeByKey", "keepKeyMatches", "removeKeyMatches":
		e.byFields(mode, one, two)
	case "chooseBranch", "passThrough", "wait":
		chosen := 0
		if u.p.text("output") == "input2" || u.p.number("useDataOfInput", 1) == 2 {
			chosen = 1
		}
		e.emitList(items[chosen])
	default:
		u.fail("OPERATION", "The mode "+clip(mode, 40)+" has no counterpart; a table and a sql node can do the same.")
		e.emitList("[]")
	}
}

// byPosition joins the first items, the second items, and so on.
func (e *env) byPosition(items []string, clash string) {
	how := "Math.min"
	if join := e.u.p.text("join"); e.u.p.flag("options.includeUnpaired") || join == "outer" {
		how = "Math.max"
	}
	merge := "lists.map((list) => list[i] ?? {}).reduce((a, b) => (" + clash + "), {})"
	e.emitList(fmt.Sprintf(
		"((lists) => Array.from({ length: %s(...lists.map((list) => list.length)) }, (_, i) => %s))([%s])",
		how,
		merge,
		strings.Join(items, ", "),
	))
}

// byFields joins items where fields are equal.
func (e *env) byFields(mode, one, two string) {
	p := e.u.p
	fields := [][2]string{}
	for _, f := range p.objects("mergeByFields.values") {
		fields = append(fields, [2]string{f.text("field1"), f.text("field2")})
	}
	if !p.has("mergeByFields.values") {
		for _, name := range words(p.text("fieldsToMatchString")) {
			fields = append(fields, [2]string{name, name})
		}
	}
	if p.has("propertyName1") {
		fields = [][2]string{{p.text("propertyName1"), p.text("propertyName2")}}
	}
	how, output := p.or("joinMode", "keepMatches"), p.or("outputDataFrom", "both")
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
	prefer = p.or("options.clashHandling.values.resolveClash", prefer)
	e.emitList(fmt.Sprintf(
		"$joined(%s, %s, %s, %s, %s, %t, %t)",
		one,
		two,
		quote(fields),
		quote(how),
		quote(output),
		p.or("options.multipleMatches", "all") == "all",
		prefer == "preferInput1",
	))
}
