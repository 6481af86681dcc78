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

func convertHTTP(converter *converter, unit *unit) {
	env := converter.each(unit)
	r := &request{
		e:       env,
		data:    map[string]any{},
		headers: map[string]any{},
		query:   map[string]any{},
	}
	method := strings.ToUpper(unit.p.or("method", unit.p.or("requestMethod", "GET")))
	if strings.HasPrefix(method, "=") {
		method = strings.ToUpper(fmt.Sprint(env.value(unit.p.or("method", unit.p.text("requestMethod")))))
	} else if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}, method) {
		unit.fail("METHOD", "Requests with the method "+clip(method, 20)+" cannot be sent.")
	}
	r.data["method"] = method
	r.address(unit.p.text("url"))
	if unit.version >= 3 {
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
func (request *request) address(address string) {
	for _, m := range secretQuery().FindAllStringSubmatch(address, -1) {
		request.secret("query", m[2])
		address = strings.Replace(address, m[0], m[1], 1)
	}
	source := strings.TrimPrefix(address, "=")
	if u, err := url.Parse(strings.ReplaceAll(
		strings.ReplaceAll(source, "{", ""),
		"}",
		"",
	)); err == nil && u.User != nil {
		request.secret("basic", "user and password in the URL")
		if scheme, rest, ok := strings.Cut(address, "://"); ok {
			if _, after, ok := strings.Cut(rest, "@"); ok {
				address = scheme + "://" + after
			}
		}
	}
	if source != "" && !strings.Contains(source, "://") && !strings.HasPrefix(source, "{{") {
		address = strings.Replace(address, source, "http://"+source, 1)
	}
	request.data["url"] = strings.TrimRight(fmt.Sprint(request.e.text(address)), "?&")
}

// secret reports that a secret was omitted, and adds a credential to create instead.
func (request *request) secret(kind, name string) {
	unit := request.e.u
	unit.approximate(
		"SECRET",
		fmt.Sprintf(
			"The value of %s was a secret in the workflow; it is not imported. "+
				"Make the credential that this node names.",
			clip(name, 60),
		),
	)
	if request.data["credential"] == nil {
		request.data["credential"] = request.e.c.out.addCredential(
			hostOf(unit.p.text("url"))+" "+name,
			kind,
			"",
			unit.name,
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
func (request *request) pairs(list []params, to map[string]any, kind string) {
	for _, params := range list {
		name, item := params.text("name"), params["value"]
		text, isText := item.(string)
		if name == "" || strings.HasPrefix(name, "=") {
			if name != "" {
				request.e.u.approximate("NAME", "The name of a "+kind+" is computed; it is left out.")
			}
			continue
		}
		if isText &&
			text != "" &&
			secretName().MatchString(name) &&
			!hasExpression(text) {
			request.secret(kind, name)
			continue
		}
		value := request.e.value(item)
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
func (request *request) object(value any, to map[string]any, kind string) {
	text, _ := value.(string)
	if text == "" && value == nil {
		return
	}
	object, ok := request.e.json(value).(map[string]any)
	if !ok {
		request.e.u.fail("PARAMETER", "The "+kind+" parameters are computed as a whole.")
		return
	}
	for _, name := range sortedKeys(object) {
		if text, isText := object[name].(string); isText &&
			secretName().MatchString(name) &&
			!strings.Contains(text, "{{") &&
			text != "" {
			request.secret(kind, name)
			continue
		}
		to[name] = object[name]
	}
}

func (request *request) parts() {
	params := request.e.u.p
	if params.flag("sendQuery") {
		if params.text("specifyQuery") == "json" {
			request.object(params.at("jsonQuery"), request.query, "query")
		} else {
			request.pairs(params.objects("queryParameters.parameters"), request.query, "query")
		}
	}
	if params.flag("sendHeaders") {
		if params.text("specifyHeaders") == "json" {
			request.object(params.at("jsonHeaders"), request.headers, "header")
		} else {
			request.pairs(params.objects("headerParameters.parameters"), request.headers, "header")
		}
	}
	if params.flag("sendBody") {
		request.body(
			params.or("contentType", "json"),
			params.or("specifyBody", "keypair") != "keypair",
			params.objects("bodyParameters.parameters"),
			params.at("jsonBody"),
		)
	}
}

// legacyParts reads the parameters of versions 1 and 2.
func (request *request) legacyParts() {
	params := request.e.u.p
	kind := params.or("options.bodyContentType", "json")
	if params.flag("jsonParameters") {
		request.object(params.at("queryParametersJson"), request.query, "query")
		request.object(params.at("headerParametersJson"), request.headers, "header")
		if params.flag("sendBinaryData") && kind != "multipart-form-data" {
			kind = "binaryData"
		}
		if kind == "multipart-form-data" {
			object, _ := request.e.json(params.at("bodyParametersJson")).(map[string]any)
			request.multipart(nil)
			request.data["body"] = object
			return
		}
		if params.has("bodyParametersJson") || kind == "binaryData" {
			request.body(kind, true, nil, params.at("bodyParametersJson"))
		}
		return
	}
	request.pairs(params.objects("queryParametersUi.parameter"), request.query, "query")
	request.pairs(params.objects("headerParametersUi.parameter"), request.headers, "header")
	if list := params.objects("bodyParametersUi.parameter"); len(list) > 0 ||
		kind == "multipart-form-data" && params.flag("sendBinaryData") {
		request.body(kind, false, list, nil)
	}
}

// body sets the body for a content type: from one text if written is set, or else
// from pairs.
func (request *request) body(kind string, written bool, pairs []params, text any) {
	env, p := request.e, request.e.u.p
	switch kind {
	case "json":
		if written {
			request.data["body"] = env.json(text)
			return
		}
		request.data["body"] = env.object(pairs)
	case "form-urlencoded":
		if written {
			request.raw("application/x-www-form-urlencoded", p.at("body"))
			return
		}
		request.data["body"], request.data["body_type"] = env.object(pairs), "form"
	case "multipart-form-data":
		request.multipart(pairs)
	case "binaryData":
		request.data["body"], request.data["body_type"] =
			request.e.file(p.or("inputDataFieldName", p.or("binaryPropertyName", "data"))), "file"
	case "raw":
		media, source := p.or("rawContentType", p.or("options.bodyContentCustomMimeType", "text/plain")), p.at("body")
		if source == nil {
			source = text
		}
		request.raw(media, source)
	default:
		env.u.fail("BODY", "Bodies of the type "+clip(kind, 40)+" cannot be sent.")
	}
}

// multipart sets a body of fields and files: in versions 1 and 2 files are a list
// of fields of the item, each with the name of its part before a colon.
func (request *request) multipart(pairs []params) {
	fields, files := []params{}, map[string]any{}
	for _, p := range pairs {
		name := strings.TrimPrefix(p.text("name"), "=")
		switch {
		case p.text("parameterType") != "formBinaryData":
			fields = append(fields, p)
		case name != "":
			files[name] = request.e.file(p.text("inputDataFieldName"))
		}
	}
	if old := request.e.u.p; request.e.u.version < 3 && old.flag("sendBinaryData") {
		for _, one := range words(old.or("binaryPropertyName", "data")) {
			name, field, named := strings.Cut(one, ":")
			if !named {
				name, field = one, one
			}
			files[name] = request.e.file(field)
		}
	}
	request.data["body"], request.data["body_type"] = request.e.object(fields), "multipart"
	if len(files) > 0 {
		request.data["files"] = files
	}
}

// file returns the file in a field of the item.
func (env *env) file(field string) any {
	env.u.approximate("FILE", filesAreFields)
	if strings.HasPrefix(field, "=") {
		env.u.fail("PARAMETER", "The name of the field is computed.")
	}
	f := map[string]any{"data": env.value("={{ $json[" + quote(field) + "] }}")}
	if !env.in.ref.closed {
		f["name"], f["mime_type"] = env.value("={{ $json.fileName }}"), env.value("={{ $json.mimeType }}")
	}
	return f
}

func (request *request) raw(media string, text any) {
	request.data["body"], request.data["body_type"] = request.e.value(text), "text"
	request.headers["Content-Type"] = request.e.value(media)
}

// object returns an object of names and values.
func (env *env) object(pairs []params) map[string]any {
	object := map[string]any{}
	for _, p := range pairs {
		if name := p.text("name"); name != "" {
			object[strings.TrimPrefix(name, "=")] = env.value(p["value"])
		}
	}
	return object
}

// authorize names the credential of the request.
func (request *request) authorize() {
	u := request.e.u
	kind := u.p.or("authentication", "none")
	switch kind {
	case "none", "":
		return
	case "predefinedCredentialType":
		kind = u.p.text("nodeCredentialType")
	case "genericCredentialType":
		kind = u.p.text("genericAuthType")
	}
	request.e.attach(request.data, kind)
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
func (env *env) attach(data map[string]any, kind string) {
	if old, ok := legacyAuth[kind]; ok {
		kind = old
	}
	switch kind {
	case "oAuth1Api", "httpDigestAuth", "httpSslAuth":
		env.u.fail("AUTH", "Credentials of the type "+kind+" are not supported.")
		return
	}
	name := env.u.credentials[kind]
	if name == "" {
		name = kind
	}
	if name == "" {
		return
	}
	if current, ok := data["credential"].(string); ok {
		env.u.approximate(
			"CREDENTIAL",
			fmt.Sprintf("A node has one credential: %q is to hold what %q held too.", current, clip(name, 60)),
		)
		return
	}
	data["credential"] = env.c.out.addCredential(name, kind, presetOf(kind), env.u.name)
}

// options applies the options of the node.
func (request *request) options() {
	unit, params := request.e.u, request.e.u.p
	if ms := params.number("options.timeout", 0); ms >= 1 {
		request.data["timeout_ms"] = min(ms, 3_600_000)
	}
	if params.flag("options.response.response.neverError") || params.flag("options.ignoreResponseCode") {
		request.data["fail_on_status"] = false
	}
	for path, words := range map[string]string{
		"options.pagination":        "Pages are not followed: only the first request is sent.",
		"options.batching":          "Batches and their intervals are not kept.",
		"options.batchSize":         "Batches and their intervals are not kept.",
		"options.proxy":             "The proxy is the server's own.",
		"options.redirect.redirect": "Redirects are followed as the server does.",
	} {
		if params.has(path) {
			unit.approximate(strings.ToUpper(path[strings.LastIndexByte(path, '.')+1:]), words)
		}
	}
	if params.flag("options.allowUnauthorizedCerts") || params.flag("allowUnauthorizedCerts") {
		unit.approximate("CERTIFICATES", "Certificates are always checked.")
	}
	agent.Sort(unit.problems, func(a, b problem) int {
		return strings.Compare(a.code+a.message, b.code+b.message)
	})
}

// send adds the node and says how its response becomes items.
func (request *request) send(method string) {
	env, unit := request.e, request.e.u
	for name, values := range map[string]map[string]any{"headers": request.headers, "query": request.query} {
		if len(values) > 0 {
			request.data[name] = values
		}
	}
	format := unit.p.or("options.response.response.responseFormat", unit.p.or("responseFormat", "autodetect"))
	switch format {
	case "text", "string":
		request.data["response_type"] = "text"
	case "file":
		request.data["response_type"] = "base64"
		unit.approximate("BINARY", "The file is in body as base64; items have no files here.")
	}
	stream := env.emit("http-request", request.data)
	if unit.unsupported {
		return
	}
	out := "nodes." + unit.id
	at := fmt.Sprintf("nodes[%q]", unit.id)
	field := unit.p.or("options.response.response.outputPropertyName", unit.p.or("dataPropertyName", "data"))
	switch {
	case unit.p.flag("options.response.response.fullResponse") || unit.p.flag("options.fullResponse"):
		stream.ref = ref{
			fields: map[string]string{
				"body":       out + ".body",
				"headers":    out + ".headers",
				"statusCode": out + ".status",
			},
			closed: true,
			js:     fmt.Sprintf("({ body: %s?.body, headers: %s?.headers, statusCode: %s?.status })", at, at, at),
		}
	case format == "text" || format == "string" || format == "file":
		stream.ref = ref{
			fields: map[string]string{field: out + ".body"},
			closed: true,
			js:     fmt.Sprintf("({ [%s]: %s?.body })", quote(field), at),
		}
	case env.at != env.at.context():
		if method == "GET" {
			unit.approximate(
				"LIST_RESPONSE",
				"If the response is a list, n8n makes an item of each entry; here it stays one item within the loop.",
			)
		}
		stream.ref = env.responseRef(out, at)
	case method == "GET":
		list := *stream
		list.list, list.taken = true, ""
		list.ref = ref{js: fmt.Sprintf("(%s in nodes ? $list(%s.body) : [])", quote(unit.id), at)}
		unit.outputs[0] = &list
	default:
		stream.ref = env.responseRef(out, at)
	}
}

// responseRef returns the ref to the body of a response as an item.
func (env *env) responseRef(out, at string) ref {
	return ref{
		path:   out + ".body",
		js:     fmt.Sprintf("$list(%s?.body)[0]", at),
		fields: map[string]string{"data": out + ".body.data"},
	}
}
