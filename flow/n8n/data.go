package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// tableOperations maps the operations of n8n's data tables to those of a table node.
var tableOperations = map[string]string{
	"insert":     "insert",
	"get":        "find",
	"deleteRows": "delete",
	"update":     "update",
	"upsert":     "upsert",
}

// tableConditions maps the conditions of n8n's data tables to those of a table node.
var tableConditions = map[string]string{
	"eq": "equals", "neq": "not_equals", "gt": "gt", "gte": "gte", "lt": "lt", "lte": "lte", "like": "contains",
	"ilike": "contains", "isEmpty": "is_empty", "isNotEmpty": "is_not_empty",
	"isTrue": "is_true", "isFalse": "is_false",
}

var notInTable = agent.Pattern(`[^a-z0-9_]+`)

// convertTable makes a table node.
func convertTable(converter *converter, unit *unit) {
	env := converter.each(unit)
	operation := tableOperations[unit.p.or("operation", "insert")]
	if operation == "" || unit.p.or("resource", "row") != "row" {
		unit.fail("OPERATION", "The operation "+clip(unit.p.text("operation"), 40)+" has no counterpart.")
	}
	table, _ := unit.params["dataTableId"].(map[string]any)
	name := strings.Trim(
		notInTable().ReplaceAllString(
			strings.ToLower(params(table).or(
				"cachedResultName",
				params(table).or("value", unit.p.text("dataTableId")),
			)),
			"_",
		),
		"_",
	)
	unit.approximate(
		"TABLE",
		fmt.Sprintf(
			"Create the table %s with the columns that n8n had; its rows can be imported as CSV.",
			clip(name, 60),
		),
	)
	data := map[string]any{"table": name, "operation": operation}
	conditions := env.rowConditions()
	switch operation {
	case "upsert":
		first, _ := append(conditions, map[string]any{})[0].(map[string]any)
		data["key"], _ = first["column"].(string)
		if len(conditions) != 1 {
			unit.fail("CONDITION", "A row is found by one column here.")
		}
	case "insert":
	default:
		data["conditions"] = conditions
	}
	if unit.p.has("columns") && operation != "find" && operation != "delete" {
		data["row"], _ = env.columns(unit.p.at("columns"))
	}
	if operation == "find" && !unit.p.flag("returnAll") {
		data["limit"] = min(max(unit.p.number("limit", 50), 1), 1000)
	}
	s := env.emit("table", data)
	if unit.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", ref{
		path: "nodes." + unit.id + ".rows",
		js:   fmt.Sprintf("(nodes[%q]?.rows ?? [])", unit.id),
	}
	if operation == "find" || operation == "update" || operation == "delete" {
		unit.outputs[0] = &list
		return
	}
	s.ref = ref{path: "nodes." + unit.id + ".row", js: fmt.Sprintf("nodes[%q]?.row", unit.id)}
}

// rowConditions returns the conditions that select rows.
func (env *env) rowConditions() []any {
	u := env.u
	conditions := []any{}
	for _, f := range u.p.objects("filters.conditions") {
		condition := map[string]any{"column": f.text("keyName"), "operator": tableConditions[f.or("condition", "eq")]}
		if condition["operator"] == "" {
			u.fail("CONDITION", "The condition "+clip(f.text("condition"), 40)+" is not known.")
		}
		if v, ok := f["keyValue"]; ok {
			condition["value"] = env.value(v)
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

// momentTokens translates formats of the older node to Luxon's tokens.
var momentTokens = strings.NewReplacer(
	"YYYY", "yyyy", "YY", "yy", "DD", "dd", "D", "d", "dddd", "EEEE", "ddd", "EEE", "A", "a",
)

// convertDateTime makes code that computes with dates.
func convertDateTime(converter *converter, unit *unit) {
	env := converter.each(unit)
	unit.approximate("DATES", datesInUTC)
	js, field, keep := "", "", true
	date := func(path string) string {
		return "$date(" + env.js(unit.p.at(path)) + ")"
	}
	duration := func(sign string) string {
		return "({ " + unit.p.or("timeUnit", "days") + ": " + sign + "Number(" +
			env.js(unit.p.number("duration", 0)) + ") })"
	}
	if strings.HasPrefix(unit.p.text("duration"), "=") {
		duration = func(sign string) string {
			return "({ " + unit.p.or("timeUnit", "days") + ": " + sign + "Number(" +
				env.js(unit.p.at("duration")) + ") })"
		}
	}
	if !simpleKey().MatchString(unit.p.or("timeUnit", "days")) {
		unit.fail("PARAMETER", "The unit of the duration is computed.")
	}
	operation := unit.p.or("operation", "getCurrentDate")
	if unit.version < 2 {
		operation = unit.p.or("action", "format")
		field = unit.p.or("dataPropertyName", "data")
		if operation == "calculate" {
			sign := ".plus"
			if unit.p.text("operation") == "subtract" {
				sign = ".minus"
			}
			js = date("value") + sign + duration("") + ".toISO()"
		} else {
			format := unit.p.or("toFormat", "MM/DD/YYYY")
			js = date("value") + ".toFormat(" + quote(momentTokens.Replace(format)) + ")"
		}
	} else {
		keep = unit.p.flag("options.includeInputFields")
		js, field = currentDate(env, operation, date, duration)
	}
	field = unit.p.or("outputFieldName", field)
	out := "{}"
	if keep {
		out = "$copy($json)"
	}
	if js == "" {
		unit.fail("OPERATION", "The operation "+clip(operation, 40)+" has no counterpart.")
		js = "null"
	}
	env.emit("code", map[string]any{"code": env.script("return $set(" + out + ", " + quote(field) + ", " + js + ")")})
}

// currentDate returns the computation of an operation, and the field that it
// writes by default.
func currentDate(
	env *env,
	operation string,
	date func(string) string,
	duration func(string) string,
) (js, field string) {
	params := env.u.p
	switch operation {
	case "getCurrentDate":
		if v, ok := params.at("includeTime").(bool); ok && !v {
			return "DateTime.now().startOf(\"day\").toISO()", "currentDate"
		}
		return "DateTime.now().toISO()", "currentDate"
	case "addToDate":
		return date("magnitude") + ".plus" + duration("") + ".toISO()", "newDate"
	case "subtractFromDate":
		return date("magnitude") + ".minus" + duration("") + ".toISO()", "newDate"
	case "formatDate":
		format := params.or("format", "MM/dd/yyyy")
		if format == "custom" {
			return date("date") + ".toFormat(" + env.js(params.at("customFormat")) + ")", "formattedDate"
		}
		return date("date") + ".toFormat(" + quote(format) + ")", "formattedDate"
	case "roundDate":
		if params.text("mode") == "roundUp" {
			return date("date") + ".plus({ " + quote(params.or("to", "month")) + ": 1 }).startOf(" +
				quote(params.or("to", "month")) + ").toISO()", "roundedDate"
		}
		return date("date") + ".startOf(" + quote(params.or("toNearest", "month")) + ").toISO()", "roundedDate"
	case "getTimeBetweenDates":
		units := params.list("units")
		if units == nil {
			units = []any{"day"}
		}
		return date("endDate") + ".diff(" + date("startDate") + ", " + quote(units) + ").toObject()", "timeDifference"
	case "extractDate":
		part := params.or("part", "month")
		if part == "week" {
			part = "weekNumber"
		}
		return date("date") + "[" + quote(part) + "]", "datePart"
	}
	return "", ""
}

// convertHTML converts an HTML template, or a table, to a text.
func convertHTML(converter *converter, unit *unit) {
	switch unit.p.or("operation", "generateHtmlTemplate") {
	case "generateHtmlTemplate":
		e := converter.each(unit)
		v := unit.p.text("html")
		if !strings.HasPrefix(v, "=") {
			v = "=" + v // expressions count in it, with or without the mark
		}
		e.emit("set", map[string]any{"values": map[string]any{"html": e.value(v)}})
	case "convertToHtmlTable":
		e, items := converter.whole(unit)
		unit.approximate(
			"ORDER",
			"The columns are in alphabetical order, since fields of items keep no order, and the table has no styles.",
		)
		e.emit("code", map[string]any{"code": e.script("return { table: $htmlTable(" + items[0] + ") }")})
	default:
		convertExtraction(converter, unit)
	}
}
