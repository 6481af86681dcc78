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

func (c *converter) service(e *env) {
	u := e.u
	kind := services()[serviceName(u)]
	resource := u.p.or("resource", kind.Resource)
	name := u.p.or("operation", kind.Defaults[resource])
	op, known := kind.Operations[resource+"."+name]
	if first, plain := kind.Defaults[""]; plain && !u.p.has("resource") && (!known || u.version < 2) {
		if older, ok := kind.Operations["."+u.p.or("operation", first)]; ok {
			op, known = older, true
		}
	}
	if !known {
		u.fail(
			"OPERATION",
			fmt.Sprintf(
				"The operation %s of %s is not known here; an http-request node can call the service.",
				clip(name, 40),
				clip(resource, 40),
			),
		)
	}
	data := map[string]any{}
	e.request(data, kind, op)
	s := e.emit("http-request", data)
	if !u.unsupported {
		e.serviceOutput(s, op)
	}
}

// request sets the data of an http-request to an operation.
func (e *env) request(data map[string]any, kind serviceKind, op operation) {
	method, _ := e.fill(op.Method)
	data["method"], data["url"] = method, e.fillURL(op.URL)
	if query := e.fillObject(op.Query); len(query) > 0 {
		data["query"] = query
	}
	headers := e.fillObject(op.Headers)
	for name, v := range kind.Headers {
		headers[name] = v
	}
	if len(headers) > 0 {
		data["headers"] = headers
	}
	if op.Body != nil {
		data["body"], _ = e.fill(op.Body)
	}
	if files := e.fillObject(op.Files); len(files) > 0 {
		data["files"] = files
	}
	if op.BodyType != "" {
		data["body_type"] = op.BodyType
	}
	if op.Response != "" {
		data["response_type"] = op.Response
	}
	if op.Note != "" {
		e.u.approximate("OPERATION", op.Note)
	}
	if e.u.p.flag("returnAll") {
		e.u.approximate("PAGES", "Only the first page is read.")
	}
	for _, name := range sortedKeys(e.u.credentials) {
		e.attach(data, name)
	}
}

// serviceOutput sets how the response becomes items.
func (e *env) serviceOutput(s *stream, op operation) {
	body := fmt.Sprintf("nodes[%q]?.body", e.u.id)
	with := func(js string) string {
		return "(" + bodyName().ReplaceAllString(js, body) + ")"
	}
	switch {
	case op.Keeps:
		s.ref, s.same = e.in.ref, append(s.same, e.in.same...)
	case op.Items != "":
		list := *s
		list.list, list.taken, list.ref = true, "", ref{js: with(op.Items)}
		e.u.outputs[0] = &list
	case op.Item != "":
		s.ref = ref{js: with(op.Item)}
	case op.Response != "":
		s.ref = ref{
			fields: map[string]string{"data": "nodes." + e.u.id + ".body"},
			closed: true,
			js:     "({ data: " + body + " })",
		}
	default:
		s.ref = ref{
			path:   "nodes." + e.u.id + ".body",
			js:     with("B ?? {}"),
			fields: map[string]string{},
		}
	}
}

var bodyName = agent.Pattern(`\bB\b`)

var placeholder = agent.Pattern(`\{([A-Za-z][^{}]*)\}`)

// fillURL fills a URL. Values are escaped.
func (e *env) fillURL(text string) string {
	return placeholder().ReplaceAllStringFunc(text, func(m string) string {
		if host, ok := strings.CutPrefix(m, "{host:"); ok {
			host = strings.TrimSuffix(host, "}")
			e.u.approximate("HOST", "The host is part of n8n's credential: put yours in the place of "+host+".")
			return host
		}
		v, ok := e.fillPlaceholder(m)
		value := fmt.Sprint(v)
		switch {
		case !ok:
			return ""
		case e.arguments != nil && strings.Contains(value, "{{"), strings.HasSuffix(m, "#path}"):
			return value
		case strings.HasPrefix(value, "{{") &&
			strings.HasSuffix(value, "}}") &&
			strings.Count(value, "{{") == 1 &&
			!strings.Contains(value, "|"):
			return strings.TrimSuffix(value, "}}") + " | url}}"
		case strings.Contains(value, "{{"):
			return value
		case m == "{filePath}":
			return value
		}
		return url.PathEscape(value)
	})
}

func (e *env) fillObject(object map[string]any) map[string]any {
	filled, _ := e.fill(map[string]any(object))
	out, _ := filled.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

// fill fills a value. ok is false if the value consists only of missing parameters.
func (e *env) fill(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		if m := placeholder().FindString(v); m == v && m != "" {
			return e.fillPlaceholder(v)
		}
		return v, true
	case []any:
		list := []any{}
		for _, one := range v {
			if filled, ok := e.fill(one); ok {
				list = append(list, filled)
			}
		}
		return list, len(list) > 0
	case map[string]any:
		object := map[string]any{}
		for _, key := range sortedKeys(v) {
			filled, ok := e.fill(v[key])
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
	return v, true
}

// fillPlaceholder returns the value of {a|b=x#form}.
func (e *env) fillPlaceholder(text string) (any, bool) {
	text, form, _ := strings.Cut(strings.Trim(text, "{}"), "#")
	names, fallback, has := strings.Cut(text, "=")
	for name := range strings.SplitSeq(names, "|") {
		raw := e.u.params[name]
		if strings.Contains(name, ".") {
			raw = e.u.p.at(name)
		}
		if e.u.p.at(name) == nil || e.u.p.at(name) == "" {
			continue
		}
		return e.formatParameter(form, raw)
	}
	switch {
	case has && form != "":
		return e.formatParameter(form, fallback)
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
func (e *env) formatParameter(form string, raw any) (any, bool) {
	v := unlocated(raw)
	text, isText := v.(string)
	if pattern := ids[form]; pattern != nil && isText {
		if m := pattern().FindStringSubmatch(text); m != nil && !strings.Contains(text, "{{") {
			return m[1], true
		}
		return e.value(v), true
	}
	form, argument, _ := strings.Cut(form, ":")
	switch form {
	case "sheet":
		return e.sheet(raw), true
	case "row":
		return e.row(v)
	case "columns":
		return e.columns(v)
	case "drive":
		return "name contains '" + strings.ReplaceAll(fmt.Sprint(e.value(v)), "'", `\'`) + "'", true
	case "json":
		return e.json(v), true
	case "list":
		list := []any{}
		all, _ := v.([]any)
		for _, one := range all {
			if object, ok := one.(map[string]any); ok {
				list = append(list, e.value(object[argument]))
			}
		}
		return list, len(list) > 0
	case "recipients":
		list := []any{}
		for _, address := range words(text) {
			list = append(list, map[string]any{"emailAddress": map[string]any{"address": e.value(address)}})
		}
		return list, true
	case "fields", "postgrest", "equal":
		return e.rowFields(form, v)
	}
	if make := forms[form]; make != nil {
		return make(e, v, argument)
	}
	return e.value(v), true
}

// sheet returns the name of a sheet, which is also the range of the whole sheet.
func (e *env) sheet(raw any) any {
	if object, ok := raw.(map[string]any); ok {
		if name := params(object).text("cachedResultName"); name != "" && object["mode"] == "list" {
			return name
		}
		if object["mode"] != "name" {
			e.u.approximate("SHEET", "The sheet is known by its number only: put its name into the URL.")
		}
		return e.value(object["value"])
	}
	return e.value(raw)
}

// columns returns the object of a resource mapper, or the whole item.
func (e *env) columns(v any) (any, bool) {
	mapper, _ := v.(map[string]any)
	if params(mapper).or("mappingMode", "defineBelow") != "defineBelow" {
		return e.wholeItem(), true
	}
	value, _ := mapper["value"].(map[string]any)
	object := map[string]any{}
	for name, one := range value {
		if one != nil && name != "id" {
			object[name] = e.value(one)
		}
	}
	return object, true
}

// row returns a row of a spreadsheet, in the order of its columns.
func (e *env) row(v any) (any, bool) {
	mapper, _ := v.(map[string]any)
	value, _ := mapper["value"].(map[string]any)
	if params(mapper).or("mappingMode", "defineBelow") != "defineBelow" || value == nil {
		e.u.approximate(
			"ORDER",
			"The values are in alphabetical order of their names: fields of items keep no order. Write them out "+
				"in the order of the sheet.",
		)
		return []any{e.compute("Object.values(" + e.currentItemJS() + ")")}, true
	}
	cells, seen := []any{}, map[string]bool{}
	for _, column := range params(mapper).objects("schema") {
		if id := column.text("id"); id != "" && !column.flag("removed") {
			seen[id] = true
			cell := e.value(value[id])
			if cell == nil {
				cell = ""
			}
			cells = append(cells, cell)
		}
	}
	for _, name := range sortedKeys(value) {
		if !seen[name] {
			cells = append(cells, e.value(value[name]))
		}
	}
	return []any{cells}, true
}

// rowFields converts a list of fields to an object, or to conditions of PostgREST.
func (e *env) rowFields(form string, v any) (any, bool) {
	object := map[string]any{}
	list, _ := v.([]any)
	for _, one := range list {
		p, _ := one.(map[string]any)
		switch name := cmp.Or(
			params(p).text("keyName"),
			params(p).text("fieldId"),
			params(p).text("fieldName"),
			params(p).text("name"),
		); {
		case name == "":
		case form == "fields":
			value := p["fieldValue"]
			if value == nil {
				value = p["value"]
			}
			object[name] = e.value(value)
		default:
			condition := "eq"
			if form == "postgrest" {
				condition = params(p).or("condition", "eq")
			}
			object[name] = condition + "." + fmt.Sprint(e.value(p["keyValue"]))
		}
	}
	return object, len(object) > 0
}
