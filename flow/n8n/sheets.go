package n8n

import (
	"fmt"
	"strings"
)

// convertSheets converts most operations of Google Sheets to a request. Rows are
// looked up and updated by code, since that takes two requests.
func convertSheets(converter *converter, unit *unit) {
	env := converter.each(unit)
	operation := unit.p.or("operation", "read")
	if unit.p.or("resource", "sheet") != "sheet" ||
		operation != "update" && operation != "appendOrUpdate" ||
		unit.version < 4 {
		converter.service(env)
		return
	}
	mapper := params(unit.p.object("columns"))
	row := "$json"
	if mapper.or("mappingMode", "defineBelow") == "defineBelow" {
		row = env.js(map[string]any(mapper.object("value")))
	}
	keys := mapper.list("matchingColumns")
	if len(keys) == 0 {
		if keys = []any{unit.p.text("columnToMatchOn")}; keys[0] == "" {
			keys = []any{"row_number"}
		}
	}
	data := map[string]any{}
	for _, kind := range sortedKeys(unit.credentials) {
		env.attach(data, kind)
	}
	raw := unit.params["documentId"]
	id, _ := env.formatParameter("id", raw)
	document := quote(id)
	if hasExpression(unit.p.text("documentId")) {
		document = env.js(raw)
	}
	sheet := quote(env.sheet(unit.params["sheetName"]))
	if hasExpression(unit.p.text("sheetName")) {
		sheet = env.js(unlocated(unit.params["sheetName"]))
	}
	unit.approximate(
		"OPERATION",
		"It is done by code that reads the sheet and writes the row; two at the same time may overwrite each other.",
	)
	credential, _ := data["credential"].(string)
	code := fmt.Sprintf(
		"return await $writeRow({ document: %s, sheet: %s, keys: %s, row: %s, append: %t, credential: %s })",
		document,
		sheet,
		quote(keys),
		row,
		operation == "appendOrUpdate",
		quote(credential),
	)
	env.emit("code", map[string]any{"code": env.script(code), "timeout_ms": 30_000})
	if env.at != nil && !unit.unsupported {
		env.at.effects = append(env.at.effects, unit)
	}
}

// convertFeed makes code that reads an RSS or Atom feed.
func convertFeed(converter *converter, unit *unit) {
	env := converter.each(unit)
	unit.approximate(
		"OPERATION",
		"The feed is read by code: title, link, pubDate, isoDate, creator, content, "+
			"contentSnippet, guid and categories.",
	)
	s := env.emit("code", map[string]any{
		"code": env.script("return { items: await $feed(" + env.js(unit.p.at("url")) + ") }"),
	})
	if unit.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", listStream(unit.id, env.at).ref
	unit.outputs[0] = &list
	if strings.TrimSpace(unit.p.text("url")) == "" {
		unit.fail("PARAMETER", "The address of the feed is missing.")
	}
}
