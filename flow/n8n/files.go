package n8n

import (
	"fmt"
	"strings"
)

// filesAreFields is the note on nodes that handle files: a file of n8n becomes a
// base64 field of the item, with the file's name.
const filesAreFields = "Files are base64 in a field of the item here, with the name that the file had in n8n."

// convertFromFile makes code that reads a file.
func convertFromFile(converter *converter, unit *unit) {
	operation := unit.p.or("operation", "csv")
	name := unit.p.or("binaryPropertyName", "data")
	text := "$fileText($json, " + quote(name) + ")"
	unit.approximate("FILE", filesAreFields)
	js, many := "", false
	switch operation {
	case "csv":
		header := true
		if v, ok := unit.p.at("options.headerRow").(bool); ok {
			header = v
		}
		js, many = fmt.Sprintf("$csv(%s, %s, %t)", text, quote(unit.p.or("options.delimiter", ",")), header), true
	case "text", "html", "xml":
		js = text
	case "fromJson":
		js = "(" + text + " === \"\" ? {} : JSON.parse(" + text + "))"
	case "binaryToPropery":
		js = "$get($json, " + quote(name) + ")"
	default:
		unit.fail(
			"FILE",
			"Files of the type "+clip(operation, 40)+" are not read by nodes; uploaded as sources they are.",
		)
	}
	e := converter.each(unit)
	if !many {
		js = "$set({}, " + quote(unit.p.or("destinationKey", "data")) + ", " + js + ")"
		e.emit("code", map[string]any{"code": e.script("return " + js)})
		return
	}
	s := e.emit("code", map[string]any{"code": e.script("return { items: " + js + " }")})
	if unit.unsupported {
		return
	}
	list := *s
	list.list, list.taken, list.ref = true, "", listStream(unit.id, e.at).ref
	unit.outputs[0] = &list
}

// convertToFile makes code that writes a file.
func convertToFile(converter *converter, unit *unit) {
	operation := unit.p.or("operation", "csv")
	unit.approximate("FILE", filesAreFields)
	field := quote(unit.p.or("binaryPropertyName", "data"))
	name, kind := unit.p.or("options.fileName", ""), "text/plain"
	file := func(e *env, data string) string {
		return fmt.Sprintf(
			"return { [%s]: %s, fileName: %s, mimeType: %s }",
			field,
			data,
			e.js(name),
			quote(unit.p.or("options.mimeType", kind)),
		)
	}
	source := func(e *env) string {
		return "$get($json, " + quote(unit.p.text("sourceProperty")) + ")"
	}
	switch {
	case operation == "toText":
		e := converter.each(unit)
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64($text("+source(e)+"))"))})
	case operation == "toBinary":
		e := converter.each(unit)
		kind = "application/octet-stream"
		data := source(e)
		if v, ok := unit.p.at("options.dataIsBase64").(bool); ok && !v {
			data = "$base64($text(" + data + "))"
		}
		e.emit("code", map[string]any{"code": e.script(file(e, data))})
	case operation == "toJson" && unit.p.text("mode") == "each":
		kind = "application/json"
		e := converter.each(unit)
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64(JSON.stringify($json))"))})
	case operation == "toJson", operation == "csv":
		e, items := converter.whole(unit)
		kind = map[string]string{"toJson": "application/json", "csv": "text/csv"}[operation]
		data := "JSON.stringify(" + items[0] + ")"
		if operation == "csv" {
			header := true
			if v, ok := unit.p.at("options.headerRow").(bool); ok {
				header = v
			}
			unit.approximate("ORDER", "The columns are in alphabetical order, since fields of items keep no order.")
			data = fmt.Sprintf("$toCSV(%s, %s, %t)", items[0], quote(unit.p.or("options.delimiter", ",")), header)
		}
		e.emit("code", map[string]any{"code": e.script(file(e, "$base64("+data+")"))})
	default:
		unit.fail("FILE", "Files of the type "+clip(operation, 40)+" are not written.")
		converter.each(unit)
	}
}

// convertMoveFile converts the older node that reads and writes files.
func convertMoveFile(converter *converter, unit *unit) {
	env := converter.each(unit)
	unit.approximate("FILE", filesAreFields)
	all := true
	for _, name := range []string{"setAllData", "convertAllData"} {
		if v, ok := unit.p.at(name).(bool); ok {
			all = v
		}
	}
	code := ""
	if unit.p.or("mode", "binaryToJson") == "binaryToJson" {
		text := "$fileText($json, " + quote(unit.p.or("sourceKey", "data")) + ")"
		if all || unit.p.flag("options.jsonParse") {
			text = "JSON.parse(" + text + ")"
		}
		if code = "return " + text; !all {
			code = "return $set({}, " + quote(unit.p.or("destinationKey", "data")) + ", " + text + ")"
		}
	} else {
		data := "JSON.stringify($json)"
		if !all {
			data = "$get($json, " + quote(unit.p.or("sourceKey", "data")) + ")"
			if !unit.p.flag("options.useRawData") {
				data = "JSON.stringify(" + data + ")"
			}
			data = "$text(" + data + ")"
		}
		code = fmt.Sprintf(
			"return { [%s]: $base64(%s), fileName: %s, mimeType: %s }",
			quote(unit.p.or("destinationKey", "data")),
			data,
			env.js(unit.p.text("options.fileName")),
			quote(unit.p.or("options.mimeType", "application/json")),
		)
	}
	if strings.HasPrefix(unit.p.text("sourceKey"), "=") || strings.HasPrefix(unit.p.text("destinationKey"), "=") {
		unit.fail("PARAMETER", "The name of the field is computed.")
	}
	env.emit("code", map[string]any{"code": env.script(code)})
}
