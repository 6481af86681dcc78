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
func convertTable(c *converter, u *unit) {
	e := c.each(u)
	operation := tableOperations[u.p.or("operation", "insert")]
	if operation == "" || u.p.or("resource", "row") != "row" {
		u.fail("OPERATION", "The operation "+clip(u.p.text("operation"), 40)+" has no counterpart.")
	}
	table, _ := u.params["dataTableId"].(map[string]any)
	name := strings.Trim(
		notInTable().ReplaceAllString(
			strings.ToLower(params(table).or("cachedResultName", params(table).or("value", u.p.text("dataTableId")))),
			"_",
		),
		"_",
	)
	u.approximate(
		"TABLE",
		fmt.Sprintf(
			"Create the table %s with the columns that n8n had; its rows can be imported as CSV.",
			clip(name, 60),
		),
	)
	data := map[string]any{"table": name, "operation": operation}
	conditions := e.rowConditions()
	switch operation {
	case "upsert":
		first, _ := append(conditions, map[string]any{})[0].(map[string]any)
		data["key"], _ = first["column"].(string)
		if len(conditions) != 1 {
			u.fail("CONDITION", "A row is found by one column here.")
		}
	case "insert":
	default:
		data["conditions"] = conditions
	}
	if u.p.has("columns") && operation != "find" && operation != "delete" {
		data["row"], _ = e.columns(u.p.at("columns"))
	}
	if operation == "find" && !u.p.flag("returnAll") {
		data["limit"] = min(max(u.p.number("limit", 50), 1), 1000)
	}
	s := e.emit("table", data)
	if u.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", ref{
		path: "nodes." + u.id + ".rows",
		js:   fmt.Sprintf("(nodes[%q]?.rows ?? [])", u.id),
	}
	if operation == "find" || operation == "update" || operation == "delete" {
		u.outputs[0] = &list
		return
	}
	s.ref = ref{path: "nodes." + u.id + ".row", js: fmt.Sprintf("nodes[%q]?.row", u.id)}
}

// rowConditions returns the conditions that select rows.
func (e *env) rowConditions() []any {
	u := e.u
	conditions := []any{}
	for _, f := range u.p.objects("filters.conditions") {
		condition := map[string]any{"column": f.text("keyName"), "operator": tableConditions[f.or("condition", "eq")]}
		if condition["operator"] == "" {
			u.fail("CONDITION", "The condition "+clip(f.text("condition"), 40)+" is not known.")
		}
		if v, ok := f["keyValue"]; ok {
			condition["value"] = e.value(v)
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
func convertDateTime(c *converter, u *unit) {
	e := c.each(u)
	u.approximate("DATES", datesInUTC)
	js, field, keep := "", "", true
	date := func(path string) string {
		return "$date(" + e.js(u.p.at(path)) + ")"
	}
	duration := func(sign string) string {
		return "({ " + u.p.or("timeUnit", "days") + ": " + sign + "Number(" + e.js(u.p.number("duration", 0)) + ") })"
	}
	if strings.HasPrefix(u.p.text("duration"), "=") {
		duration = func(sign string) string {
			return "({ " + u.p.or("timeUnit", "days") + ": " + sign + "Number(" + e.js(u.p.at("duration")) + ") })"
		}
	}
	if !simpleKey().MatchString(u.p.or("timeUnit", "days")) {
		u.fail("PARAMETER", "The unit of the duration is computed.")
	}
	operation := u.p.or("operation", "getCurrentDate")
	if u.version < 2 {
		operation = u.p.or("action", "format")
		field = u.p.or("dataPropertyName", "data")
		if operation == "calculate" {
			sign := ".plus"
			if u.p.text("operation") == "subtract" {
				sign = ".minus"
			}
			js = date("value") + sign + duration("") + ".toISO()"
		} else {
			format := u.p.or("toFormat", "MM/DD/YYYY")
			js = date("value") + ".toFormat(" + quote(momentTokens.Replace(format)) + ")"
		}
	} else {
		keep = u.p.flag("options.includeInputFields")
		js, field = currentDate(e, operation, date, duration)
	}
	field = u.p.or("outputFieldName", field)
	out := "{}"
	if keep {
		out = "$copy($json)"
	}
	if js == "" {
		u.fail("OPERATION", "The operation "+clip(operation, 40)+" has no counterpart.")
		js = "null"
	}
	e.emit("code", map[string]any{"code": e.script("return $set(" + out + ", " + quote(field) + ", " + js + ")")})
}

// currentDate returns the computation of an operation, and the field that it
// writes by default.
func currentDate(e *env, operation string, date func(string) string, duration func(string) string) (js, field string) {
	p := e.u.p
	switch operation {
	case "getCurrentDate":
		if v, ok := p.at("includeTime").(bool); ok && !v {
			return "DateTime.now().startOf(\"day\").toISO()", "currentDate"
		}
		return "DateTime.now().toISO()", "currentDate"
	case "addToDate":
		return date("magnitude") + ".plus" + duration("") + ".toISO()", "newDate"
	case "subtractFromDate":
		return date("magnitude") + ".minus" + duration("") + ".toISO()", "newDate"
	case "formatDate":
		format := p.or("format", "MM/dd/yyyy")
		if format == "custom" {
			return date("date") + ".toFormat(" + e.js(p.at("customFormat")) + ")", "formattedDate"
		}
		return date("date") + ".toFormat(" + quote(format) + ")", "formattedDate"
	case "roundDate":
		if p.text("mode") == "roundUp" {
			return date("date") + ".plus({ " + quote(p.or("to", "month")) + ": 1 }).startOf(" +
				quote(p.or("to", "month")) + ").toISO()", "roundedDate"
		}
		return date("date") + ".startOf(" + quote(p.or("toNearest", "month")) + ").toISO()", "roundedDate"
	case "getTimeBetweenDates":
		units := p.list("units")
		if units == nil {
			units = []any{"day"}
		}
		return date("endDate") + ".diff(" + date("startDate") + ", " + quote(units) + ").toObject()", "timeDifference"
	case "extractDate":
		part := p.or("part", "month")
		if part == "week" {
			part = "weekNumber"
		}
		return date("date") + "[" + quote(part) + "]", "datePart"
	}
	return "", ""
}

// convertHTML converts an HTML template, or a table, to a text.
func convertHTML(c *converter, u *unit) {
	switch u.p.or("operation", "generateHtmlTemplate") {
	case "generateHtmlTemplate":
		e := c.each(u)
		v := u.p.text("html")
		if !strings.HasPrefix(v, "=") {
			v = "=" + v // expressions count in it, with or without the mark
		}
		e.emit("set", map[string]any{"values": map[string]any{"html": e.value(v)}})
	case "convertToHtmlTable":
		e, items := c.whole(u)
		u.approximate(
			"ORDER",
			"The columns are in alphabetical order, since fields of items keep no order, and the table has no styles.",
		)
		e.emit("code", map[string]any{"code": e.script("return { table: $htmlTable(" + items[0] + ") }")})
	default:
		convertExtraction(c, u)
	}
}
