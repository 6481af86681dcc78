package n8n

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"satchel/agent"
)

// serviceKind is a node of n8n for one service, with the requests of its operations.
type serviceKind struct {
	Resource   string
	Defaults   map[string]string // operations by resource
	Headers    map[string]any
	Operations map[string]operation // by RESOURCE.OPERATION
}

// operation is a request. In its texts, {path} is replaced by a parameter,
// {a|b} by the first that is present, {a=x} by x if a is absent, and {a#form}
// by another form of a. B in Items and Item is the response.
type operation struct {
	Method, URL string
	Query       map[string]any
	Headers     map[string]any
	Body        any
	BodyType    string         `json:"body_type"`
	Files       map[string]any // of a multipart body
	Response    string         // the type of the response: base64 is the field data of the item
	Items, Item string         // JavaScript: a list of items, or one
	Note        string
	Keeps       bool // n8n outputs its input
}

//go:embed services.json
var servicesFile []byte

var services = sync.OnceValue(func() map[string]serviceKind {
	var all map[string]serviceKind
	if err := json.Unmarshal(servicesFile, &all); err != nil {
		panic(err) // a test reads it
	}
	return all
})

// convertService converts a node for a service to an http-request node.
func convertService(c *converter, u *unit) {
	c.service(c.each(u))
}

// serviceName returns the name of a node in services.json: the older node of
// OpenAI has other parameters than the one that followed it.
func serviceName(u *unit) string {
	if u.kind == "n8n-nodes-base.openAi" {
		return "openAiOld"
	}
	return shortKind(u.kind)
}

func (converter *converter) service(env *env) {
	unit := env.u
	kind := services()[serviceName(unit)]
	resource := unit.p.or("resource", kind.Resource)
	name := unit.p.or("operation", kind.Defaults[resource])
	op, known := kind.Operations[resource+"."+name]
	if first, plain := kind.Defaults[""]; plain &&
		!unit.p.has("resource") &&
		(!known || unit.version < 2) {
		if older, ok := kind.Operations["."+unit.p.or("operation", first)]; ok {
			op, known = older, true
		}
	}
	if !known {
		unit.fail(
			"OPERATION",
			fmt.Sprintf(
				"The operation %s of %s is not known here; an http-request node can call the service.",
				clip(name, 40),
				clip(resource, 40),
			),
		)
	}
	data := map[string]any{}
	env.request(data, kind, op)
	s := env.emit("http-request", data)
	if !unit.unsupported {
		env.serviceOutput(s, op)
	}
}

// request sets the data of an http-request to an operation.
func (env *env) request(data map[string]any, kind serviceKind, op operation) {
	method, _ := env.fill(op.Method)
	data["method"], data["url"] = method, env.fillURL(op.URL)
	if query := env.fillObject(op.Query); len(query) > 0 {
		data["query"] = query
	}
	headers := env.fillObject(op.Headers)
	for name, v := range kind.Headers {
		headers[name] = v
	}
	if len(headers) > 0 {
		data["headers"] = headers
	}
	if op.Body != nil {
		data["body"], _ = env.fill(op.Body)
	}
	if files := env.fillObject(op.Files); len(files) > 0 {
		data["files"] = files
	}
	if op.BodyType != "" {
		data["body_type"] = op.BodyType
	}
	if op.Response != "" {
		data["response_type"] = op.Response
	}
	if op.Note != "" {
		env.u.approximate("OPERATION", op.Note)
	}
	if env.u.p.flag("returnAll") {
		env.u.approximate("PAGES", "Only the first page is read.")
	}
	for _, name := range sortedKeys(env.u.credentials) {
		env.attach(data, name)
	}
}

// serviceOutput sets how the response becomes items.
func (env *env) serviceOutput(stream *stream, op operation) {
	body := fmt.Sprintf("nodes[%q]?.body", env.u.id)
	with := func(js string) string {
		return "(" + bodyName().ReplaceAllString(js, body) + ")"
	}
	switch {
	case op.Keeps:
		stream.ref, stream.same = env.in.ref, append(stream.same, env.in.same...)
	case op.Items != "":
		list := *stream
		list.list, list.taken, list.ref = true, "", ref{js: with(op.Items)}
		env.u.outputs[0] = &list
	case op.Item != "":
		stream.ref = ref{js: with(op.Item)}
	case op.Response != "":
		stream.ref = ref{
			fields: map[string]string{"data": "nodes." + env.u.id + ".body"},
			closed: true,
			js:     "({ data: " + body + " })",
		}
	default:
		stream.ref = ref{
			path:   "nodes." + env.u.id + ".body",
			js:     with("B ?? {}"),
			fields: map[string]string{},
		}
	}
}

var bodyName = agent.Pattern(`\bB\b`)

var placeholder = agent.Pattern(`\{([A-Za-z][^{}]*)\}`)

// fillURL fills a URL. Values are escaped.
func (env *env) fillURL(text string) string {
	return placeholder().ReplaceAllStringFunc(text, func(method string) string {
		if host, ok := strings.CutPrefix(method, "{host:"); ok {
			host = strings.TrimSuffix(host, "}")
			env.u.approximate("HOST", "The host is part of n8n's credential: put yours in the place of "+host+".")
			return host
		}
		item, ok := env.fillPlaceholder(method)
		value := fmt.Sprint(item)
		switch {
		case !ok:
			return ""
		case env.arguments != nil && strings.Contains(value, "{{"), strings.HasSuffix(method, "#path}"):
			return value
		case strings.HasPrefix(value, "{{") &&
			strings.HasSuffix(value, "}}") &&
			strings.Count(value, "{{") == 1 &&
			!strings.Contains(value, "|"):
			return strings.TrimSuffix(value, "}}") + " | url}}"
		case strings.Contains(value, "{{"):
			return value
		case method == "{filePath}":
			return value
		}
		return url.PathEscape(value)
	})
}

func (env *env) fillObject(object map[string]any) map[string]any {
	filled, _ := env.fill(map[string]any(object))
	out, _ := filled.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

// fill fills a value. ok is false if the value consists only of missing parameters.
func (env *env) fill(item any) (any, bool) {
	switch typed := item.(type) {
	case string:
		if m := placeholder().FindString(typed); m == typed && m != "" {
			return env.fillPlaceholder(typed)
		}
		return typed, true
	case []any:
		list := []any{}
		for _, one := range typed {
			if filled, ok := env.fill(one); ok {
				list = append(list, filled)
			}
		}
		return list, len(list) > 0
	case map[string]any:
		object := map[string]any{}
		for _, key := range sortedKeys(typed) {
			filled, ok := env.fill(typed[key])
			if inner, isObject := filled.(map[string]any); ok && key == "*" && isObject {
				for name, value := range inner {
					object[name] = value
				}
			} else if ok && key != "*" {
				object[key] = filled
			}
		}
		return object, len(object) > 0
	}
	return item, true
}

// fillPlaceholder returns the value of {a|b=x#form}.
func (env *env) fillPlaceholder(text string) (any, bool) {
	text, form, _ := strings.Cut(strings.Trim(text, "{}"), "#")
	names, fallback, has := strings.Cut(text, "=")
	for name := range strings.SplitSeq(names, "|") {
		raw := env.u.params[name]
		if strings.Contains(name, ".") {
			raw = env.u.p.at(name)
		}
		if env.u.p.at(name) == nil || env.u.p.at(name) == "" {
			continue
		}
		return env.formatParameter(form, raw)
	}
	switch {
	case has && form != "":
		return env.formatParameter(form, fallback)
	case has:
		return fallback, true
	}
	return nil, form == "row" || form == "drive"
}

// ids matches ids in addresses, by form.
var ids = map[string]func() *regexp.Regexp{
	"id":     agent.Pattern(`/(?:d|folders)/([\w-]+)`),
	"base":   agent.Pattern(`(app\w{14})`),
	"table":  agent.Pattern(`(tbl\w{14})`),
	"notion": agent.Pattern(`([0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})`),
}

// formatParameter returns a parameter in the form that a service requires.
func (env *env) formatParameter(form string, raw any) (any, bool) {
	value := unlocated(raw)
	text, isText := value.(string)
	if pattern := ids[form]; pattern != nil && isText {
		if m := pattern().FindStringSubmatch(text); m != nil && !strings.Contains(text, "{{") {
			return m[1], true
		}
		return env.value(value), true
	}
	form, argument, _ := strings.Cut(form, ":")
	switch form {
	case "sheet":
		return env.sheet(raw), true
	case "row":
		return env.row(value)
	case "columns":
		return env.columns(value)
	case "drive":
		return "name contains '" + strings.ReplaceAll(fmt.Sprint(env.value(value)), "'", `\'`) + "'", true
	case "json":
		return env.json(value), true
	case "list":
		list := []any{}
		all, _ := value.([]any)
		for _, one := range all {
			if object, ok := one.(map[string]any); ok {
				list = append(list, env.value(object[argument]))
			}
		}
		return list, len(list) > 0
	case "recipients":
		list := []any{}
		for _, address := range words(text) {
			list = append(list, map[string]any{"emailAddress": map[string]any{"address": env.value(address)}})
		}
		return list, true
	case "fields", "postgrest", "equal":
		return env.rowFields(form, value)
	}
	if make := forms[form]; make != nil {
		return make(env, value, argument)
	}
	return env.value(value), true
}

// sheet returns the name of a sheet, which is also the range of the whole sheet.
func (env *env) sheet(raw any) any {
	if object, ok := raw.(map[string]any); ok {
		if name := params(object).text("cachedResultName"); name != "" && object["mode"] == "list" {
			return name
		}
		if object["mode"] != "name" {
			env.u.approximate("SHEET", "The sheet is known by its number only: put its name into the URL.")
		}
		return env.value(object["value"])
	}
	return env.value(raw)
}

// columns returns the object of a resource mapper, or the whole item.
func (env *env) columns(v any) (any, bool) {
	mapper, _ := v.(map[string]any)
	if params(mapper).or("mappingMode", "defineBelow") != "defineBelow" {
		return env.wholeItem(), true
	}
	value, _ := mapper["value"].(map[string]any)
	object := map[string]any{}
	for name, one := range value {
		if one != nil && name != "id" {
			object[name] = env.value(one)
		}
	}
	return object, true
}

// row returns a row of a spreadsheet, in the order of its columns.
func (env *env) row(item any) (any, bool) {
	mapper, _ := item.(map[string]any)
	value, _ := mapper["value"].(map[string]any)
	if params(mapper).or("mappingMode", "defineBelow") != "defineBelow" || value == nil {
		env.u.approximate(
			"ORDER",
			"The values are in alphabetical order of their names: fields of items keep no order. Write them out "+
				"in the order of the sheet.",
		)
		return []any{env.compute("Object.values(" + env.currentItemJS() + ")")}, true
	}
	cells, seen := []any{}, map[string]bool{}
	for _, column := range params(mapper).objects("schema") {
		if id := column.text("id"); id != "" && !column.flag("removed") {
			seen[id] = true
			cell := env.value(value[id])
			if cell == nil {
				cell = ""
			}
			cells = append(cells, cell)
		}
	}
	for _, name := range sortedKeys(value) {
		if !seen[name] {
			cells = append(cells, env.value(value[name]))
		}
	}
	return []any{cells}, true
}

// rowFields converts a list of fields to an object, or to conditions of PostgREST.
func (env *env) rowFields(form string, item any) (any, bool) {
	object := map[string]any{}
	list, _ := item.([]any)
	for _, one := range list {
		values, _ := one.(map[string]any)
		switch name := cmp.Or(
			params(values).text("keyName"),
			params(values).text("fieldId"),
			params(values).text("fieldName"),
			params(values).text("name"),
		); {
		case name == "":
		case form == "fields":
			value := values["fieldValue"]
			if value == nil {
				value = values["value"]
			}
			object[name] = env.value(value)
		default:
			condition := "eq"
			if form == "postgrest" {
				condition = params(values).or("condition", "eq")
			}
			object[name] = condition + "." + fmt.Sprint(env.value(values["keyValue"]))
		}
	}
	return object, len(object) > 0
}
