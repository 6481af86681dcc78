package openapi

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"satchel/agent"
)

// collection reads a Postman collection, format 2.1:
// https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html
type collection struct {
	*reader
	variables map[string]string
	auth      map[string]any // the first that is found
}

func (r *reader) postman() {
	info := object(r.root["info"])
	r.doc.Title, r.doc.Version = agent.Clip(text(info["name"]), maxLine), agent.Clip(text(info["version"]), maxLine)
	c := collection{
		reader:    r,
		variables: map[string]string{},
		auth:      object(r.root["auth"]),
	}
	for _, v := range list(r.root["variable"]) {
		if name := text(object(v)["key"]); name != "" && !isTrue(object(v)["disabled"]) {
			c.variables[name] = text(object(v)["value"])
		}
	}
	c.items(list(r.root["item"]), "", 0)
	c.chooseServer()
	c.security()
}

// items reads a folder. Requests are tagged with its name.
func (c *collection) items(items []any, folder string, depth int) {
	for _, value := range items {
		item := object(value)
		if inner := list(item["item"]); inner != nil && depth < maxHops {
			if auth := object(item["auth"]); c.auth == nil {
				c.auth = auth
			}
			c.items(inner, text(item["name"]), depth+1)
			continue
		}
		if len(c.doc.Operations) == agent.MaxAPIOperations {
			c.warn("only the first %d operations are read", agent.MaxAPIOperations)
			return
		}
		request := object(item["request"])
		if address, ok := item["request"].(string); ok {
			request = map[string]any{"url": address}
		}
		if request != nil {
			c.request(text(item["name"]), folder, request)
		}
	}
}

// request reads one request.
func (c *collection) request(name, folder string, request map[string]any) {
	address := object(request["url"])
	raw := text(request["url"])
	if address != nil {
		raw = text(address["raw"])
	}
	raw, fragment, _ := strings.Cut(raw, "#")
	_ = fragment // never sent
	raw, query, _ := strings.Cut(raw, "?")
	server, path := c.split(raw)
	if len(path) > maxPathBytes {
		c.warn("a request has an address that is too long: %s", name)
		return
	}
	if auth := object(request["auth"]); c.auth == nil {
		c.auth = auth
	}
	method := strings.ToUpper(text(request["method"]))
	if method == "" {
		method = "GET"
	}
	op := map[string]any{"summary": name, "description": description(request["description"])}
	if folder != "" {
		op["tags"] = []any{folder}
	}
	o := c.newOperation(name, method, path, op)
	o.Server, o.Accept = server, "*/*"
	c.add(o, func(b *builder) {
		c.pathArguments(b, list(address["variable"]))
		c.queryArguments(b, address, query)
		c.headerArguments(b, request["header"])
		c.bodyArguments(b, object(request["body"]))
	})
}

// description returns the text of a description, which may be in an object.
func description(v any) string {
	if m := object(v); m != nil {
		return text(m["content"])
	}
	return text(v)
}

var variable = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}`)

// expandVariables fills in the variables whose values the collection has.
func (c *collection) expandVariables(s string) string {
	for range 3 { // values may have variables
		s = variable.ReplaceAllStringFunc(s, func(found string) string {
			if value := c.variables[variable.FindStringSubmatch(found)[1]]; value != "" {
				return value
			}
			return found
		})
	}
	return s
}

var pathVariable = regexp.MustCompile(`(^|/):([^/]+)`)

// split splits a URL into its server and its path, whose variables are in
// braces. The server is "" if it is a variable without a value.
func (c *collection) split(raw string) (server, path string) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok {
		scheme, rest = "", scheme
	}
	host, path, _ := strings.Cut(rest, "/")
	if host = c.expandVariables(host); strings.Contains(host, "://") { // the variable is a whole address
		var base string
		scheme, host, _ = strings.Cut(host, "://")
		host, base, _ = strings.Cut(host, "/")
		path = strings.Trim(base, "/") + "/" + path
	}
	path = variable.ReplaceAllString(path, "{$1}")
	path = "/" + strings.TrimLeft(pathVariable.ReplaceAllString(path, "$1{$2}"), "/")
	switch {
	case host == "" || strings.HasPrefix(host, "{{") && scheme == "":
		return "", path
	case scheme == "":
		scheme = "http"
	}
	return strings.ToLower(scheme) + "://" + variable.ReplaceAllString(host, "{$1}"), path
}

// chooseServer makes the server of most requests the server of the API.
func (c *collection) chooseServer() {
	counts, best := map[string]int{}, ""
	for i := range c.doc.Operations {
		server := c.doc.Operations[i].Server
		if counts[server]++; server != "" && (best == "" || counts[server] > counts[best]) {
			best = server
		}
	}
	if best != "" {
		c.addServer(best, "")
	}
	for i := range c.doc.Operations {
		o := &c.doc.Operations[i]
		if o.Server == best || strings.Contains(o.Server, "{") {
			o.Server = ""
		}
		if o.Server != "" {
			c.addServer(o.Server, "")
		}
	}
}

// textSchema returns the schema of an argument that is sent as text.
func textSchema(about string) map[string]any {
	m := map[string]any{"type": []any{"string", "number", "boolean"}}
	if about != "" {
		m["description"] = agent.Clip(about, maxText)
	}
	return m
}

// argument adds an argument that is sent as text, with its value in the collection
// as the default.
func (c *collection) argument(builder *builder, in string, object map[string]any) {
	name, value := variable.ReplaceAllString(text(object["key"]), "$1"), c.expandVariables(text(object["value"]))
	if name == "" || len(name) > maxName {
		return
	}
	p := agent.OperationParam{Name: name, In: in}
	off := isTrue(object["disabled"])
	if !off && !variable.MatchString(value) {
		p.Default = value
	}
	if in == "query" {
		p.OperationEncoding = agent.OperationEncoding{Style: "form", Explode: true}
	}
	schema := textSchema(description(object["description"]))
	if p.Default != "" {
		schema["default"] = p.Default
	}
	builder.add(p, schema, p.Default == "" && !off && (in == "path" || value != ""))
}

func (c *collection) pathArguments(builder *builder, given []any) {
	known := map[string]map[string]any{}
	for _, v := range given {
		known[text(object(v)["key"])] = object(v)
	}
	for _, m := range placeholder.FindAllStringSubmatch(builder.path, -1) {
		v := known[m[1]]
		if v == nil {
			v = map[string]any{"value": c.variables[m[1]]}
		}
		c.argument(builder, "path", map[string]any{
			"key":         m[1],
			"value":       v["value"],
			"description": v["description"],
		})
		delete(known, m[1])
	}
}

func (c *collection) queryArguments(b *builder, address map[string]any, raw string) {
	if entries := list(address["query"]); entries != nil {
		for _, v := range entries {
			c.argument(b, "query", object(v))
		}
		return
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); err == nil && !variable.MatchString(value) {
			value = plain
		}
		c.argument(b, "query", map[string]any{"key": name, "value": value})
	}
}

func (c *collection) headerArguments(b *builder, v any) {
	for _, entry := range list(v) {
		m := object(entry)
		name := strings.ToLower(text(m["key"]))
		own := false
		for _, header := range reservedHeaders {
			own = own || header == name
		}
		if !own && !isTrue(m["disabled"]) {
			c.argument(b, "header", m)
		}
	}
}

// bodyArguments reads the body of a request; its sample shows the schema.
func (c *collection) bodyArguments(builder *builder, body map[string]any) {
	switch text(body["mode"]) {
	case "raw":
		c.rawBody(
			builder,
			text(body["raw"]),
			text(object(object(body["options"])["raw"])["language"]),
		)
	case "urlencoded":
		c.formBody(builder, formMedia, list(body["urlencoded"]))
	case "formdata":
		c.formBody(builder, multipartMedia, list(body["formdata"]))
	case "file":
		builder.setBody(octetMedia, nil, nil, "")
		builder.body.Others = []string{"*/*"} // a collection does not say which
	case "graphql":
		builder.setBody(
			"application/json",
			map[string]any{
				"type":     "object",
				"required": []any{"query"},
				"properties": map[string]any{
					"query":     map[string]any{"type": "string", "example": text(object(body["graphql"])["query"])},
					"variables": map[string]any{"type": "object"},
				},
			},
			nil,
			"",
		)
	}
	if builder.body != nil {
		builder.required = append(builder.required, bodyProperty)
	}
}

func (c *collection) rawBody(builder *builder, raw, language string) {
	if strings.TrimSpace(raw) == "" {
		return
	}
	sample := c.expandVariables(raw)
	for _, try := range []string{sample, variable.ReplaceAllString(sample, `"$0"`)} {
		var v any
		dec := json.NewDecoder(strings.NewReader(try))
		dec.UseNumber()
		if dec.Decode(&v) == nil {
			builder.setBody("application/json", sampleSchema(v, 0), nil, "")
			return
		}
	}
	media := map[string]string{
		"json":       "application/json",
		"xml":        "application/xml",
		"html":       "text/html",
		"javascript": "application/javascript",
	}[language]
	if media == "application/json" {
		builder.setBody(media, map[string]any{}, nil, "")
		return
	}
	if mediaRank(media) >= 6 {
		media = "text/plain"
	}
	builder.setBody(media, nil, nil, "For example: "+agent.Clip(sample, maxText-20))
}

// sampleSchema returns a schema that matches a sample.
func sampleSchema(value any, depth int) map[string]any {
	switch item := value.(type) {
	case map[string]any:
		if depth > maxHops {
			return map[string]any{}
		}
		properties := map[string]any{}
		for name, inner := range item {
			properties[name] = sampleSchema(inner, depth+1)
		}
		return map[string]any{"type": "object", "properties": properties}
	case []any:
		schema := map[string]any{"type": "array"}
		if len(item) > 0 {
			schema["items"] = sampleSchema(item[0], depth+1)
		}
		return schema
	case string:
		if variable.MatchString(item) {
			return map[string]any{"description": item}
		}
		return map[string]any{"type": "string", "example": item}
	case json.Number:
		return map[string]any{"type": "number", "example": item}
	case bool:
		return map[string]any{"type": "boolean", "example": item}
	}
	return map[string]any{}
}

func (c *collection) formBody(builder *builder, media string, entries []any) {
	properties, required := map[string]any{}, []any{}
	for _, item := range entries {
		values := object(item)
		name, value := text(values["key"]), c.expandVariables(text(values["value"]))
		if name == "" || len(name) > maxName {
			continue
		}
		schema := map[string]any{
			"type":        []any{"string", "number", "boolean"},
			"description": description(values["description"]),
		}
		switch {
		case text(values["type"]) == "file":
			schema = map[string]any{"type": "string", "format": "binary"}
		case variable.MatchString(value):
		case value != "":
			schema["default"] = value
		}
		properties[name] = schema
		if !isTrue(values["disabled"]) && value != "" {
			required = append(required, name)
		}
	}
	builder.setBody(media, map[string]any{"type": "object", "properties": properties, "required": required}, nil, "")
}

// security makes a credential draft from the collection's authorization.
func (c *collection) security() {
	kind := text(c.auth["type"])
	values := map[string]string{}
	for _, v := range list(c.auth[kind]) {
		values[text(object(v)["key"])] = text(object(v)["value"])
	}
	scheme := map[string]any{"type": kind}
	switch kind {
	case "", "noauth":
		return
	case "bearer":
		scheme = map[string]any{"type": "http", "scheme": "bearer"}
	case "apikey":
		scheme = map[string]any{
			"type": "apiKey",
			"name": values["key"],
			"in":   "header",
		}
		if values["in"] == "query" {
			scheme["in"] = "query"
		}
	case "oauth2":
		flow := map[string]any{
			"tokenUrl":         values["accessTokenUrl"],
			"authorizationUrl": values["authUrl"],
			"scopes":           map[string]any{values["scope"]: ""},
		}
		name := "authorizationCode"
		if values["grant_type"] == "client_credentials" {
			name = "clientCredentials"
		}
		scheme["flows"] = map[string]any{name: flow}
	}
	if d, ok := c.draft([]string{kind}, map[string]any{kind: scheme}); ok {
		c.doc.Security = append(c.doc.Security, d)
	}
}
