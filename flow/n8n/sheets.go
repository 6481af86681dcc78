package n8n

import (
	"fmt"
	"strings"
)

// convertSheets converts most operations of Google Sheets to a request. Rows are
// looked up and updated by code, since that takes two requests.
func convertSheets(c *converter, u *unit) {
	e := c.each(u)
	operation := u.p.or("operation", "read")
	if u.p.or("resource", "sheet") != "sheet" ||
		operation != "update" && operation != "appendOrUpdate" ||
		u.version < 4 {
		c.service(e)
		return
	}
	mapper := params(u.p.object("columns"))
	row := "$json"
	if mapper.or("mappingMode", "defineBelow") == "defineBelow" {
		row = e.js(map[string]any(mapper.object("value")))
	}
	keys := mapper.list("matchingColumns")
	if len(keys) == 0 {
		if keys = []any{u.p.text("columnToMatchOn")}; keys[0] == "" {
			keys = []any{"row_number"}
		}
	}
	data := map[string]any{}
	for _, kind := range sortedKeys(u.credentials) {
		e.attach(data, kind)
	}
	raw := u.params["documentId"]
	id, _ := e.formatParameter("id", raw)
	document := quote(id)
	if hasExpression(u.p.text("documentId")) {
		document = e.js(raw)
	}
	sheet := quote(e.sheet(u.params["sheetName"]))
	if hasExpression(u.p.text("sheetName")) {
		sheet = e.js(unlocated(u.params["sheetName"]))
	}
	u.approximate(
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
	e.emit("code", map[string]any{"code": e.script(code), "timeout_ms": 30_000})
	if e.at != nil && !u.unsupported {
		e.at.effects = append(e.at.effects, u)
	}
}

// convertFeed makes code that reads an RSS or Atom feed.
func convertFeed(c *converter, u *unit) {
	e := c.each(u)
	u.approximate(
		"OPERATION",
		"The feed is read by code: title, link, pubDate, isoDate, creator, content, "+
			"contentSnippet, guid and categories.",
	)
	s := e.emit("code", map[string]any{"code": e.script("return { items: await $feed(" + e.js(u.p.at("url")) + ") }")})
	if u.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", listStream(u.id, e.at).ref
	u.outputs[0] = &list
	if strings.TrimSpace(u.p.text("url")) == "" {
		u.fail("PARAMETER", "The address of the feed is missing.")
	}
}
