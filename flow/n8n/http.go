package n8n

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
)

// request is an http-request node under construction.
type request struct {
	e       *env
	data    map[string]any
	headers map[string]any
	query   map[string]any
}

func convertHTTP(c *converter, u *unit) {
	e := c.each(u)
	r := &request{
		e:       e,
		data:    map[string]any{},
		headers: map[string]any{},
		query:   map[string]any{},
	}
	method := strings.ToUpper(u.p.or("method", u.p.or("requestMethod", "GET")))
	if strings.HasPrefix(method, "=") {
		method = strings.ToUpper(fmt.Sprint(e.value(u.p.or("method", u.p.text("requestMethod")))))
	} else if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}, method) {
		u.fail("METHOD", "Requests with the method "+clip(method, 20)+" cannot be sent.")
	}
	r.data["method"] = method
	r.address(u.p.text("url"))
	if u.version >= 3 {
		r.parts()
	} else {
		r.legacyParts()
	}
	r.authorize()
	r.options()
	r.send(method)
}

var secretQuery = agent.Pattern(
	`(?i)([?&])(api[-_]?key|apikey|key|token|access[-_]token|secret|password|auth)=([^&{}\s]+)`,
)

// address sets the URL, without secrets in it.
func (r *request) address(address string) {
	for _, m := range secretQuery().FindAllStringSubmatch(address, -1) {
		r.secret("query", m[2])
		address = strings.Replace(address, m[0], m[1], 1)
	}
	source := strings.TrimPrefix(address, "=")
	if u, err := url.Parse(strings.ReplaceAll(
		strings.ReplaceAll(source, "{", ""),
		"}",
		"",
	)); err == nil && u.User != nil {
		r.secret("basic", "user and password in the URL")
		if scheme, rest, ok := strings.Cut(address, "://"); ok {
			if _, after, ok := strings.Cut(rest, "@"); ok {
				address = scheme + "://" + after
			}
		}
	}
	if source != "" && !strings.Contains(source, "://") && !strings.HasPrefix(source, "{{") {
		address = strings.Replace(address, source, "http://"+source, 1)
	}
	r.data["url"] = strings.TrimRight(fmt.Sprint(r.e.text(address)), "?&")
}

// secret reports that a secret was omitted, and adds a credential to create instead.
func (r *request) secret(kind, name string) {
	u := r.e.u
	u.approximate(
		"SECRET",
		fmt.Sprintf(
			"The value of %s was a secret in the workflow; it is not imported. "+
				"Make the credential that this node names.",
			clip(name, 60),
		),
	)
	if r.data["credential"] == nil {
		r.data["credential"] = r.e.c.out.addCredential(
			hostOf(u.p.text("url"))+" "+name,
			kind,
			"",
			u.name,
		)
	}
}

func hostOf(address string) string {
	if u, err := url.Parse(strings.TrimPrefix(address, "=")); err == nil &&
		u.Hostname() != "" &&
		!strings.ContainsAny(u.Hostname(), "{}$ ") {
		return u.Hostname()
	}
	return "HTTP"
}

// pairs adds names and values to headers or the query.
func (r *request) pairs(list []params, to map[string]any, kind string) {
	for _, p := range list {
		name, v := p.text("name"), p["value"]
		text, isText := v.(string)
		if name == "" || strings.HasPrefix(name, "=") {
			if name != "" {
				r.e.u.approximate("NAME", "The name of a "+kind+" is computed; it is left out.")
			}
			continue
		}
		if isText &&
			text != "" &&
			secretName().MatchString(name) &&
			!hasExpression(text) {
			r.secret(kind, name)
			continue
		}
		value := r.e.value(v)
		if before, twice := to[name]; twice && kind == "query" {
			list, _ := before.([]any)
			if list == nil {
				list = []any{before}
			}
			value = append(list, value)
		}
		to[name] = value
	}
}

// object adds names and values given as JSON.
func (r *request) object(v any, to map[string]any, kind string) {
	text, _ := v.(string)
	if text == "" && v == nil {
		return
	}
	object, ok := r.e.json(v).(map[string]any)
	if !ok {
		r.e.u.fail("PARAMETER", "The "+kind+" parameters are computed as a whole.")
		return
	}
	for _, name := range sortedKeys(object) {
		if text, isText := object[name].(string); isText &&
			secretName().MatchString(name) &&
			!strings.Contains(text, "{{") &&
			text != "" {
			r.secret(kind, name)
			continue
		}
		to[name] = object[name]
	}
}

func (r *request) parts() {
	p := r.e.u.p
	if p.flag("sendQuery") {
		if p.text("specifyQuery") == "json" {
			r.object(p.at("jsonQuery"), r.query, "query")
		} else {
			r.pairs(p.objects("queryParameters.parameters"), r.query, "query")
		}
	}
	if p.flag("sendHeaders") {
		if p.text("specifyHeaders") == "json" {
			r.object(p.at("jsonHeaders"), r.headers, "header")
		} else {
			r.pairs(p.objects("headerParameters.parameters"), r.headers, "header")
		}
	}
	if p.flag("sendBody") {
		r.body(
			p.or("contentType", "json"),
			p.or("specifyBody", "keypair") != "keypair",
			p.objects("bodyParameters.parameters"),
			p.at("jsonBody"),
		)
	}
}

// legacyParts reads the parameters of versions 1 and 2.
func (r *request) legacyParts() {
	p := r.e.u.p
	kind := p.or("options.bodyContentType", "json")
	if p.flag("jsonParameters") {
		r.object(p.at("queryParametersJson"), r.query, "query")
		r.object(p.at("headerParametersJson"), r.headers, "header")
		if p.flag("sendBinaryData") && kind != "multipart-form-data" {
			kind = "binaryData"
		}
		if kind == "multipart-form-data" {
			object, _ := r.e.json(p.at("bodyParametersJson")).(map[string]any)
			r.multipart(nil)
			r.data["body"] = object
			return
		}
		if p.has("bodyParametersJson") || kind == "binaryData" {
			r.body(kind, true, nil, p.at("bodyParametersJson"))
		}
		return
	}
	r.pairs(p.objects("queryParametersUi.parameter"), r.query, "query")
	r.pairs(p.objects("headerParametersUi.parameter"), r.headers, "header")
	if list := p.objects("bodyParametersUi.parameter"); len(list) > 0 ||
		kind == "multipart-form-data" && p.flag("sendBinaryData") {
		r.body(kind, false, list, nil)
	}
}

// body sets the body for a content type: from one text if written is set, or else
// from pairs.
func (r *request) body(kind string, written bool, pairs []params, text any) {
	e, p := r.e, r.e.u.p
	switch kind {
	case "json":
		if written {
			r.data["body"] = e.json(text)
			return
		}
		r.data["body"] = e.object(pairs)
	case "form-urlencoded":
		if written {
			r.raw("application/x-www-form-urlencoded", p.at("body"))
			return
		}
		r.data["body"], r.data["body_type"] = e.object(pairs), "form"
	case "multipart-form-data":
		r.multipart(pairs)
	case "binaryData":
		r.data["body"], r.data["body_type"] =
			r.e.file(p.or("inputDataFieldName", p.or("binaryPropertyName", "data"))), "file"
	case "raw":
		media, source := p.or("rawContentType", p.or("options.bodyContentCustomMimeType", "text/plain")), p.at("body")
		if source == nil {
			source = text
		}
		r.raw(media, source)
	default:
		e.u.fail("BODY", "Bodies of the type "+clip(kind, 40)+" cannot be sent.")
	}
}

// multipart sets a body of fields and files: in versions 1 and 2 files are a list
// of fields of the item, each with the name of its part before a colon.
func (r *request) multipart(pairs []params) {
	fields, files := []params{}, map[string]any{}
	for _, p := range pairs {
		name := strings.TrimPrefix(p.text("name"), "=")
		switch {
		case p.text("parameterType") != "formBinaryData":
			fields = append(fields, p)
		case name != "":
			files[name] = r.e.file(p.text("inputDataFieldName"))
		}
	}
	if old := r.e.u.p; r.e.u.version < 3 && old.flag("sendBinaryData") {
		for _, one := range words(old.or("binaryPropertyName", "data")) {
			name, field, named := strings.Cut(one, ":")
			if !named {
				name, field = one, one
			}
			files[name] = r.e.file(field)
		}
	}
	r.data["body"], r.data["body_type"] = r.e.object(fields), "multipart"
	if len(files) > 0 {
		r.data["files"] = files
	}
}

// file returns the file in a field of the item.
func (e *env) file(field string) any {
	e.u.approximate("FILE", filesAreFields)
	if strings.HasPrefix(field, "=") {
		e.u.fail("PARAMETER", "The name of the field is computed.")
	}
	f := map[string]any{"data": e.value("={{ $json[" + quote(field) + "] }}")}
	if !e.in.ref.closed {
		f["name"], f["mime_type"] = e.value("={{ $json.fileName }}"), e.value("={{ $json.mimeType }}")
	}
	return f
}

func (r *request) raw(media string, text any) {
	r.data["body"], r.data["body_type"] = r.e.value(text), "text"
	r.headers["Content-Type"] = r.e.value(media)
}

// object returns an object of names and values.
func (e *env) object(pairs []params) map[string]any {
	object := map[string]any{}
	for _, p := range pairs {
		if name := p.text("name"); name != "" {
			object[strings.TrimPrefix(name, "=")] = e.value(p["value"])
		}
	}
	return object
}

// authorize names the credential of the request.
func (r *request) authorize() {
	u := r.e.u
	kind := u.p.or("authentication", "none")
	switch kind {
	case "none", "":
		return
	case "predefinedCredentialType":
		kind = u.p.text("nodeCredentialType")
	case "genericCredentialType":
		kind = u.p.text("genericAuthType")
	}
	r.e.attach(r.data, kind)
}

// legacyAuth are names of version 1 for types of credentials.
var legacyAuth = map[string]string{
	"basicAuth":  "httpBasicAuth",
	"headerAuth": "httpHeaderAuth",
	"queryAuth":  "httpQueryAuth",
	"digestAuth": "httpDigestAuth",
	"oAuth1":     "oAuth1Api",
	"oAuth2":     "oAuth2Api",
}

// attach names a credential of a type of n8n in a node's data.
func (e *env) attach(data map[string]any, kind string) {
	if old, ok := legacyAuth[kind]; ok {
		kind = old
	}
	switch kind {
	case "oAuth1Api", "httpDigestAuth", "httpSslAuth":
		e.u.fail("AUTH", "Credentials of the type "+kind+" are not supported.")
		return
	}
	name := e.u.credentials[kind]
	if name == "" {
		name = kind
	}
	if name == "" {
		return
	}
	if current, ok := data["credential"].(string); ok {
		e.u.approximate(
			"CREDENTIAL",
			fmt.Sprintf("A node has one credential: %q is to hold what %q held too.", current, clip(name, 60)),
		)
		return
	}
	data["credential"] = e.c.out.addCredential(name, kind, presetOf(kind), e.u.name)
}

// options applies the options of the node.
func (r *request) options() {
	u, p := r.e.u, r.e.u.p
	if ms := p.number("options.timeout", 0); ms >= 1 {
		r.data["timeout_ms"] = min(ms, 3_600_000)
	}
	if p.flag("options.response.response.neverError") || p.flag("options.ignoreResponseCode") {
		r.data["fail_on_status"] = false
	}
	for path, words := range map[string]string{
		"options.pagination":        "Pages are not followed: only the first request is sent.",
		"options.batching":          "Batches and their intervals are not kept.",
		"options.batchSize":         "Batches and their intervals are not kept.",
		"options.proxy":             "The proxy is the server's own.",
		"options.redirect.redirect": "Redirects are followed as the server does.",
	} {
		if p.has(path) {
			u.approximate(strings.ToUpper(path[strings.LastIndexByte(path, '.')+1:]), words)
		}
	}
	if p.flag("options.allowUnauthorizedCerts") || p.flag("allowUnauthorizedCerts") {
		u.approximate("CERTIFICATES", "Certificates are always checked.")
	}
	agent.Sort(u.problems, func(a, b problem) int {
		return strings.Compare(a.code+a.message, b.code+b.message)
	})
}

// send adds the node and says how its response becomes items.
func (r *request) send(method string) {
	e, u := r.e, r.e.u
	for name, values := range map[string]map[string]any{"headers": r.headers, "query": r.query} {
		if len(values) > 0 {
			r.data[name] = values
		}
	}
	format := u.p.or("options.response.response.responseFormat", u.p.or("responseFormat", "autodetect"))
	switch format {
	case "text", "string":
		r.data["response_type"] = "text"
	case "file":
		r.data["response_type"] = "base64"
		u.approximate("BINARY", "The file is in body as base64; items have no files here.")
	}
	s := e.emit("http-request", r.data)
	if u.unsupported {
		return
	}
	out := "nodes." + u.id
	at := fmt.Sprintf("nodes[%q]", u.id)
	field := u.p.or("options.response.response.outputPropertyName", u.p.or("dataPropertyName", "data"))
	switch {
	case u.p.flag("options.response.response.fullResponse") || u.p.flag("options.fullResponse"):
		s.ref = ref{
			fields: map[string]string{
				"body":       out + ".body",
				"headers":    out + ".headers",
				"statusCode": out + ".status",
			},
			closed: true,
			js:     fmt.Sprintf("({ body: %s?.body, headers: %s?.headers, statusCode: %s?.status })", at, at, at),
		}
	case format == "text" || format == "string" || format == "file":
		s.ref = ref{
			fields: map[string]string{field: out + ".body"},
			closed: true,
			js:     fmt.Sprintf("({ [%s]: %s?.body })", quote(field), at),
		}
	case e.at != e.at.context():
		if method == "GET" {
			u.approximate(
				"LIST_RESPONSE",
				"If the response is a list, n8n makes an item of each entry; here it stays one item within the loop.",
			)
		}
		s.ref = e.responseRef(out, at)
	case method == "GET":
		list := *s
		list.list, list.taken = true, ""
		list.ref = ref{js: fmt.Sprintf("(%s in nodes ? $list(%s.body) : [])", quote(u.id), at)}
		u.outputs[0] = &list
	default:
		s.ref = e.responseRef(out, at)
	}
}

// responseRef returns the ref to the body of a response as an item.
func (e *env) responseRef(out, at string) ref {
	return ref{
		path:   out + ".body",
		js:     fmt.Sprintf("$list(%s?.body)[0]", at),
		fields: map[string]string{"data": out + ".body.data"},
	}
}
