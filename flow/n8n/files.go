package n8n

import (
	"fmt"
	"strings"
)

// filesAreFields is the note on nodes that handle files: a file of n8n becomes a
// base64 field of the item, with the file's name.
const filesAreFields = "Files are base64 in a field of the item here, with the name that the file had in n8n."

// convertFromFile makes code that reads a file.
func convertFromFile(c *converter, u *unit) {
	operation := u.p.or("operation", "csv")
	name := u.p.or("binaryPropertyName", "data")
	text := "$fileText($json, " + quote(name) + ")"
	u.approximate("FILE", filesAreFields)
	js, many := "", false
	switch operation {
	case "csv":
		header := true
		if v, ok := u.p.at("options.headerRow").(bool); ok {
			header = v
		}
		js, many = fmt.Sprintf("$csv(%s, %s, %t)", text, quote(u.p.or("options.delimiter", ",")), header), true
	case "text", "html", "xml":
		js = text
	case "fromJson":
		js = "(" + text + " === \"\" ? {} : JSON.parse(" + text + "))"
	case "binaryToPropery":
		js = "$get($json, " + quote(name) + ")"
	default:
		u.fail("FILE", "Files of the type "+clip(operation, 40)+" are not read by nodes; uploaded as sources they are.")
	}
	e := c.each(u)
	if !many {
		js = "$set({}, " + quote(u.p.or("destinationKey", "data")) + ", " + js + ")"
		e.emit("code", map[string]any{"code": e.script("return " + js)})
		return
	}
	s := e.emit("code", map[string]any{"code": e.script("return { items: " + js + " }")})
	if u.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", listStream(u.id, e.at).ref
	u.outputs[0] = &list
}

// convertToFile makes code that writes a file.
func convertToFile(c *converter, u *unit) {
	operation := u.p.or("operation", "csv")
	u.approximate("FILE", filesAreFields)
	field := quote(u.p.or("binaryPropertyName", "data"))
	name, kind := u.p.or("options.fileName", ""), "text/plain"
	file := func(e *env, data string) string {
		return fmt.Sprintf(
			"return { [%s]: %s, fileName: %s, mimeType: %s }",
			field,
			data,
			e.js(name),
			quote(u.p.or("options.mimeType", kind)),
		)
	}
	source := func(e *env) string {
		return "$get($json, " + quote(u.p.text("sourceProperty")) + ")"
	}
	switch {
	case operation == "toText":
		e := c.each(u)
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64($text("+source(e)+"))"))})
	case operation == "toBinary":
		e := c.each(u)
		kind = "application/octet-stream"
		data := source(e)
		if v, ok := u.p.at("options.dataIsBase64").(bool); ok && !v {
			data = "$base64($text(" + data + "))"
		}
		e.emit("code", map[string]any{"code": e.script(file(e, data))})
	case operation == "toJson" && u.p.text("mode") == "each":
		kind = "application/json"
		e := c.each(u)
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64(JSON.stringify($json))"))})
	case operation == "toJson", operation == "csv":
		e, items := c.whole(u)
		kind = map[string]string{"toJson": "application/json", "csv": "text/csv"}[operation]
		data := "JSON.stringify(" + items[0] + ")"
		if operation == "csv" {
			header := true
			if v, ok := u.p.at("options.headerRow").(bool); ok {
				header = v
			}
			u.approximate("ORDER", "The columns are in alphabetical order, since fields of items keep no order.")
			data = fmt.Sprintf("$toCSV(%s, %s, %t)", items[0], quote(u.p.or("options.delimiter", ",")), header)
		}
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64("+data+")"))})
	default:
		u.fail("FILE", "Files of the type "+clip(operation, 40)+" are not written.")
		c.each(u)
	}
}

// convertMoveFile converts the older node that reads and writes files.
func convertMoveFile(c *converter, u *unit) {
	e := c.each(u)
	u.approximate("FILE", filesAreFields)
	all := true
	for _, name := range []string{"setAllData", "convertAllData"} {
		if v, ok := u.p.at(name).(bool); ok {
			all = v
		}
	}
	code := ""
	if u.p.or("mode", "binaryToJson") == "binaryToJson" {
		text := "$fileText($json, " + quote(u.p.or("sourceKey", "data")) + ")"
		if all || u.p.flag("options.jsonParse") {
			text = "JSON.parse(" + text + ")"
		}
		if code = "return " + text; !all {
			code = "return $set({}, " + quote(u.p.or("destinationKey", "data")) + ", " + text + ")"
		}
	} else {
		data := "JSON.stringify($json)"
		if !all {
			data = "$get($json, " + quote(u.p.or("sourceKey", "data")) + ")"
			if !u.p.flag("options.useRawData") {
				data = "JSON.stringify(" + data + ")"
			}
			data = "$text(" + data + ")"
		}
		code = fmt.Sprintf(
			"return { [%s]: $base64(%s), fileName: %s, mimeType: %s }",
			quote(u.p.or("destinationKey", "data")),
			data,
			e.js(u.p.text("options.fileName")),
			quote(u.p.or("options.mimeType", "application/json")),
		)
	}
	if strings.HasPrefix(u.p.text("sourceKey"), "=") || strings.HasPrefix(u.p.text("destinationKey"), "=") {
		u.fail("PARAMETER", "The name of the field is computed.")
	}
	e.emit("code", map[string]any{"code": e.script(code)})
}
