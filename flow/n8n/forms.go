package n8n

import (
	"fmt"
	"strconv"
	"strings"
)

// forms convert parameters to the form that a service requires. Their argument
// follows a colon in services.json.
var forms map[string]func(e *env, v any, argument string) (any, bool)

func init() {
	forms = map[string]func(e *env, v any, argument string) (any, bool){
		"parents": func(e *env, v any, _ string) (any, bool) {
			id, _ := e.formatParameter("id", v)
			return "'" + fmt.Sprint(id) + "' in parents", true
		},
		"path": func(e *env, v any, _ string) (any, bool) {
			return strings.Trim(fmt.Sprint(e.value(v)), "/"), true
		},
		"spotify": func(e *env, v any, _ string) (any, bool) {
			text, _ := v.(string)
			if !hasExpression(text) {
				text = text[strings.LastIndexByte(text, ':')+1:]
			}
			return e.value(text), true
		},
		"item":             itemOrFields,
		"fieldsOrItem":     fieldsOrItem,
		"baserow":          baserowFields,
		"comma":            joinedList,
		"named":            namedList,
		"notionProperties": notionProperties,
		"hubspot":          hubspotFilters,
		"docs":             docsRequests,
		"mime":             mimeOf,
		"base64":           base64Of,
		"driveText":        driveText,
		"driveFile":        driveFile,
		"imageContent":     imageContent,
		"author":           authorOf,
		"imageFormat": func(_ *env, v any, _ string) (any, bool) {
			return map[bool]string{true: "url", false: "b64_json"}[v == "imageUrl"], true
		},
		"file": func(e *env, v any, _ string) (any, bool) {
			field, _ := v.(string)
			return e.file(field), true
		},
	}
}

// itemOrFields returns the whole item, or only the named fields.
func itemOrFields(e *env, v any, _ string) (any, bool) {
	if all, ok := e.u.p.at("addAllFields").(bool); ok && !all ||
		e.u.p.has("updateAllFields") && !e.u.p.flag("updateAllFields") {
		return e.compute("$only(" + e.currentItemJS() + ", " + quote(v) + ")"), true
	}
	return e.wholeItem(), true
}

func fieldsOrItem(e *env, v any, _ string) (any, bool) {
	if _, ok := v.([]any); !ok {
		return e.wholeItem(), true
	}
	return e.rowFields("fields", v)
}

// baserowFields returns fields named by their numbers, as in Baserow's API.
func baserowFields(e *env, v any, _ string) (any, bool) {
	fields, ok := fieldsOrItem(e, v, "")
	object, isObject := fields.(map[string]any)
	for name, value := range object {
		if _, err := strconv.Atoi(name); err == nil {
			delete(object, name)
			object["field_"+name] = value
		}
	}
	return fields, ok && (!isObject || len(object) > 0)
}

// joinedList joins a list with commas; argument is the field of its entries.
func joinedList(e *env, v any, argument string) (any, bool) {
	list, isList := v.([]any)
	if !isList {
		return e.value(v), true
	}
	parts := []string{}
	for _, one := range list {
		if object, ok := one.(map[string]any); ok {
			one = object[argument]
		}
		parts = append(parts, fmt.Sprint(e.value(one)))
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// namedList returns a list of names of metrics or dimensions; argument is n8n's
// default.
func namedList(e *env, v any, argument string) (any, bool) {
	names := []any{}
	list, _ := v.([]any)
	for _, one := range list {
		p, _ := one.(map[string]any)
		name := params(p).or("listName", argument)
		if name == "other" || name == "custom" {
			name = params(p).text("name")
		}
		names = append(names, map[string]any{"name": e.value(name)})
	}
	return names, len(names) > 0
}

// notionProperties returns properties of a page, from {key: "Name|type", …}.
func notionProperties(env *env, item any, _ string) (any, bool) {
	properties := map[string]any{}
	list, _ := item.([]any)
	for _, one := range list {
		p, _ := one.(map[string]any)
		name, kind, _ := strings.Cut(params(p).text("key"), "|")
		value, known := notionValue(env, kind, p)
		switch {
		case name == "":
		case known:
			properties[name] = value
		default:
			env.u.approximate(
				"PROPERTY",
				fmt.Sprintf("The property %s is left out: its type is %s.", clip(name, 60), clip(kind, 40)),
			)
		}
	}
	return properties, len(properties) > 0
}

// notionValue returns the value of a Notion property by its type.
func notionValue(env *env, kind string, params params) (any, bool) {
	first := func(names ...string) any {
		for _, name := range names {
			if params[name] != nil {
				return env.value(params[name])
			}
		}
		return ""
	}
	text := func(v any) []any {
		return []any{map[string]any{"text": map[string]any{"content": v}}}
	}
	each := func(v any, field string) (any, bool) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		all := []any{}
		for _, one := range list {
			all = append(all, map[string]any{field: one})
		}
		return all, true
	}
	var value any
	known := true
	switch kind {
	case "title":
		value = text(first("title"))
	case "rich_text":
		value = text(first("textContent", "richText", "text"))
	case "number":
		value = first("numberValue")
	case "checkbox":
		value = first("checkboxValue")
	case "url", "email":
		value = first(kind + "Value")
	case "phone_number":
		value = first("phoneValue")
	case "select", "status":
		value = map[string]any{"name": first(kind+"Value", "selectValue")}
	case "multi_select":
		value, known = each(first("multiSelectValue"), "name")
	case "relation":
		value, known = each(first("relationValue"), "id")
	case "people":
		value, known = each(first("peopleValue"), "id")
	case "date":
		object := map[string]any{"start": first("date", "dateStart")}
		if params["dateEnd"] != nil && params["range"] == true {
			object["end"] = env.value(params["dateEnd"])
		}
		value = object
	default:
		return nil, false
	}
	return map[string]any{kind: value}, known
}

// hubspotFilters returns the filters of a search.
func hubspotFilters(env *env, value any, _ string) (any, bool) {
	groups := []any{}
	list, _ := value.([]any)
	for _, one := range list {
		group, _ := one.(map[string]any)
		filters := []any{}
		for _, f := range params(group).objects("filtersUi.filterValues") {
			name, _, _ := strings.Cut(f.text("propertyName"), "|")
			filter := map[string]any{"propertyName": name, "operator": f.or("operator", "EQ")}
			if f["value"] != nil {
				filter["value"] = env.value(f["value"])
			}
			filters = append(filters, filter)
		}
		groups = append(groups, map[string]any{"filters": filters})
	}
	return groups, len(groups) > 0
}

// docsRequests returns changes to a Google Docs document.
func docsRequests(env *env, value any, _ string) (any, bool) {
	requests := []any{}
	list, _ := value.([]any)
	for _, one := range list {
		object, _ := one.(map[string]any)
		switch action := params(object).or("action", "insert"); {
		case params(object).or("object", "text") == "text" && action == "insert":
			requests = append(requests, map[string]any{
				"insertText": map[string]any{
					"text":                 env.value(object["text"]),
					"endOfSegmentLocation": map[string]any{"segmentId": ""},
				},
			})
		case action == "replaceAll":
			requests = append(requests, map[string]any{
				"replaceAllText": map[string]any{
					"containsText": map[string]any{
						"text":      env.value(object["text"]),
						"matchCase": object["matchCase"] == true,
					},
					"replaceText": env.value(object["replaceText"]),
				},
			})
		default:
			env.u.fail("OPERATION", "Only text is inserted at the end, or replaced.")
		}
	}
	return requests, len(requests) > 0
}

// mimeOf returns an email in the form that Gmail's API takes.
func mimeOf(env *env, _ any, _ string) (any, bool) {
	params, parts := env.u.p, []string{}
	for _, f := range [][2]string{
		{"to", "sendTo"},
		{"to", "options.sendTo"},
		{"subject", "subject"},
		{"text", "message"},
		{"cc", "options.ccList"},
		{"bcc", "options.bccList"},
	} {
		if params.has(f[1]) {
			parts = append(parts, f[0]+": "+env.js(params.at(f[1])))
		}
	}
	return env.compute(fmt.Sprintf(
		"$mime({ html: %t, %s })",
		params.text("emailType") == "html",
		strings.Join(parts, ", "),
	)), true
}

func base64Of(e *env, v any, _ string) (any, bool) {
	return e.compute("$base64($text(" + e.js(v) + "))"), true
}

// driveText returns a text file with its name, for Google Drive.
func driveText(e *env, v any, _ string) (any, bool) {
	return e.related(`"text/plain"`, "$base64($text("+e.js(v)+"))"), true
}

// driveFile returns a file that a field of the item holds as base64.
func driveFile(e *env, v any, _ string) (any, bool) {
	return e.related(`"application/octet-stream"`, "$get("+e.currentItemJS()+", "+e.js(v)+")"), true
}

func (env *env) related(kind, data string) string {
	metadata := []string{"name: " + env.js(env.u.p.or("name", "file"))}
	id, _ := env.formatParameter("id", env.u.params["folderId"])
	switch text, _ := id.(string); {
	case text == "" || text == "root":
	case strings.Contains(text, "{{"):
		metadata = append(metadata, "parents: ["+env.js(env.u.p.at("folderId"))+"]")
	default:
		metadata = append(metadata, "parents: ["+quote(text)+"]")
	}
	return env.compute(fmt.Sprintf("$related({ %s }, %s, %s)", strings.Join(metadata, ", "), kind, data))
}

// imageContent returns a question and the addresses of images.
func imageContent(env *env, value any, _ string) (any, bool) {
	content := []any{map[string]any{"type": "text", "text": env.value(value)}}
	if env.u.p.text("inputType") == "base64" {
		env.u.approximate("FILE", filesAreFields)
		field := fmt.Sprintf(
			"$get(%s, %s)",
			env.currentItemJS(),
			env.js(env.u.p.or("binaryPropertyName", "data")),
		)
		return append(content, imagePart(env.compute(`"data:image/png;base64," + `+field))), true
	}
	addresses := env.u.p.text("imageUrls")
	list := words(addresses)
	if strings.HasPrefix(addresses, "=") {
		list = []string{addresses}
	}
	for _, address := range list {
		content = append(content, imagePart(env.value(address)))
	}
	return content, true
}

func imagePart(address any) map[string]any {
	return map[string]any{"type": "image_url", "image_url": map[string]any{"url": address}}
}

// authorOf returns the author of a LinkedIn post.
func authorOf(e *env, v any, _ string) (any, bool) {
	kind := "person"
	if v == "organization" {
		kind = "organization"
	}
	return "urn:li:" + kind + ":" + fmt.Sprint(e.value(e.u.p.at(kind))), true
}
