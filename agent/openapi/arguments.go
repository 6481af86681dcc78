package openapi

import (
	"encoding/json"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"

	"satchel/agent"
)

// bodyProperty is the argument with the body of a request.
const bodyProperty = "body"

// builder collects the arguments of one operation.
type builder struct {
	schemas
	path       string
	properties map[string]any
	required   []any
	params     []agent.OperationParam
	body       *agent.OperationBody
}

func newBuilder(r *reader, d detail, path string) *builder {
	return &builder{
		schemas: schemas{
			r:         r,
			detail:    d,
			remaining: agent.MaxOperationSchema * 5 / 4,
		},
		path:       path,
		properties: map[string]any{},
	}
}

// schema returns the schema of the arguments, without the definitions that it refers
// to.
func (b *builder) schema() (*form, error) {
	if b.remaining < 0 {
		return nil, errSchemaSize
	}
	out := map[string]any{
		"type":                 "object",
		"properties":           b.properties,
		"additionalProperties": false,
	}
	if len(b.required) > 0 {
		out["required"] = b.required
	}
	raw, err := json.Marshal(out)
	if err == nil && len(raw) > agent.MaxOperationSchema {
		err = errSchemaSize
	}
	return &form{
		raw:  raw,
		refs: b.refs,
		cut:  b.cut,
	}, err
}

// places are where parameters go, in the order in which they get their names.
var places = []string{"path", "query", "header", "cookie"}

// reservedHeaders are the headers that parameters do not set, as the specification
// says.
var reservedHeaders = []string{"accept", "content-type", "authorization", "host", "content-length"}

// parameters reads the parameters of an operation and of its path.
func (b *builder) parameters(item, op map[string]any) {
	found := map[string]map[string]any{} // by place and name
	var order []string
	for _, v := range append(list(item["parameters"]), list(op["parameters"])...) {
		p := b.r.resolve(v)
		key := text(p["in"]) + "\x00" + text(p["name"])
		if _, again := found[key]; !again {
			order = append(order, key)
		}
		found[key] = p
	}
	for _, in := range places {
		for _, key := range order {
			if p := found[key]; text(p["in"]) == in {
				b.parameter(in, p)
			}
		}
	}
	b.pathParameters()
	if b.r.format == agent.FormatSwagger2 {
		b.swaggerBody(order, found, op)
	}
}

var placeholder = regexp.MustCompile(`\{([^{}/]+)\}`)

// pathParameters adds parameters of the path that the description does not declare.
func (b *builder) pathParameters() {
	for _, m := range placeholder.FindAllStringSubmatch(b.path, -1) {
		if !slices.ContainsFunc(b.params, func(p agent.OperationParam) bool {
			return p.In == "path" && p.Name == m[1]
		}) {
			b.add(
				agent.OperationParam{Name: m[1], In: "path"},
				map[string]any{"type": "string"},
				true,
			)
		}
	}
}

func (b *builder) parameter(in string, values map[string]any) {
	name := text(values["name"])
	if name == "" ||
		len(name) > maxName ||
		in == "path" && !strings.Contains(b.path, "{"+name+"}") ||
		in == "header" && slices.Contains(reservedHeaders, strings.ToLower(name)) {
		return
	}
	param := agent.OperationParam{
		Name:              name,
		In:                in,
		OperationEncoding: encodingOf(in, values),
	}
	schema := values["schema"]
	for media, content := range object(values["content"]) {
		schema = object(content)["schema"]
		if isJSON(media) {
			param.Media = media
		}
	}
	if b.r.format == agent.FormatSwagger2 {
		schema = swaggerSchema(values)
	}
	converted := object(b.convert(schema, 1))
	if converted == nil {
		converted = map[string]any{}
	}
	b.texts(
		map[string]any{
			"description": values["description"],
			"deprecated":  values["deprecated"],
			"example":     values["example"],
		},
		converted,
	)
	b.add(param, converted, isTrue(values["required"]) || in == "path")
}

// add adds a parameter under a name that is free.
func (b *builder) add(p agent.OperationParam, schema any, required bool) {
	p.Property = propertyName(p.Name)
	if _, taken := b.properties[p.Property]; taken || p.Property == bodyProperty {
		p.Property = propertyName(p.Name + "_" + p.In)
	}
	used := map[string]bool{bodyProperty: true}
	for name := range b.properties {
		used[name] = true
	}
	p.Property = unique(p.Property, used)
	b.properties[p.Property] = schema
	if required {
		b.required = append(b.required, p.Property)
	}
	b.params = append(b.params, p)
}

// swaggerSchema returns the schema that a parameter of Swagger 2 contains among
// its other fields.
func swaggerSchema(p map[string]any) map[string]any {
	schema := maps.Clone(p)
	for _, key := range []string{
		"name", "in", "required", "description", "schema", "collectionFormat", "allowEmptyValue",
	} {
		delete(schema, key)
	}
	return schema
}

// encodingOf returns how a parameter is serialized.
func encodingOf(in string, object map[string]any) agent.OperationEncoding {
	switch text(object["collectionFormat"]) {
	case "multi":
		return agent.OperationEncoding{Style: "form", Explode: true}
	case "ssv":
		return agent.OperationEncoding{Style: "spaceDelimited"}
	case "tsv":
		return agent.OperationEncoding{Style: "tabDelimited"}
	case "pipes":
		return agent.OperationEncoding{Style: "pipeDelimited"}
	}
	e := agent.OperationEncoding{Style: text(object["style"]), AllowReserved: object["allowReserved"] == true}
	if e.Style == "" {
		e.Style = map[string]string{"query": "form", "cookie": "form"}[in]
	}
	explode, given := object["explode"].(bool)
	e.Explode = explode || !given && e.Style == "form" && (object["schema"] != nil || in == "")
	return e
}

// mediaRank returns the rank by which the media type of a body is chosen.
func mediaRank(media string) int {
	kind := mediaType(media)
	switch {
	case kind == "application/json":
		return 0
	case isJSON(media):
		return 1
	case kind == formMedia:
		return 2
	case kind == multipartMedia:
		return 3
	case kind == "text/plain":
		return 4
	case strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "xml"):
		return 5
	}
	return 6
}

const (
	formMedia      = "application/x-www-form-urlencoded"
	multipartMedia = "multipart/form-data"
	octetMedia     = "application/octet-stream"
)

func mediaType(media string) string {
	kind, _, err := mime.ParseMediaType(media)
	if err != nil {
		kind, _, _ = strings.Cut(media, ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

func isJSON(media string) bool {
	kind := mediaType(media)
	return kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "*/*"
}

// requestBody reads the body of an operation in OpenAPI 3.
func (b *builder) requestBody(op map[string]any) {
	body := b.r.resolve(op["requestBody"])
	content := object(body["content"])
	if len(content) == 0 {
		return
	}
	all := slices.Sorted(maps.Keys(content))
	media := slices.MinFunc(all, func(x, y string) int {
		return mediaRank(x) - mediaRank(y)
	})
	chosen := b.r.resolve(content[media])
	b.setBody(media, chosen["schema"], object(chosen["encoding"]), text(body["description"]))
	b.otherMedia(all)
	if isTrue(body["required"]) {
		b.required = append(b.required, bodyProperty)
	}
}

// setBody sets the body of the request.
func (b *builder) setBody(media string, schema any, encoding map[string]any, description string) {
	if mediaType(media) == "*/*" || mediaType(media) == "" {
		media = "application/json"
	}
	b.body = &agent.OperationBody{Media: media}
	var converted any
	switch kind := mediaType(media); {
	case isJSON(media):
		converted = b.convert(schema, 1)
	case kind == formMedia || kind == multipartMedia:
		converted = b.form(schema, kind == multipartMedia)
		b.body.Encoding = encodings(encoding)
	case mediaRank(media) < 6:
		converted = map[string]any{"type": "string"}
	default:
		converted = file()
	}
	if m := object(converted); m != nil && m["description"] == nil {
		b.texts(map[string]any{"description": description}, m)
	}
	b.properties[bodyProperty] = converted
}

// otherMedia keeps all the media types of a body that is a file, because the
// file determines which of them is sent.
func (b *builder) otherMedia(all []string) {
	if len(all) > 1 && mediaRank(b.body.Media) == 6 {
		b.body.Others = all
	}
}

// encodings reads how the properties of a form are serialized.
func encodings(given map[string]any) map[string]agent.OperationEncoding {
	out := map[string]agent.OperationEncoding{}
	for name, v := range given {
		if e := object(v); e["style"] != nil || e["explode"] != nil {
			out[name] = encodingOf("", e)
		}
	}
	return out
}

// file returns the schema of a file.
func file() map[string]any {
	property := func(description string) any {
		return map[string]any{"type": "string", "description": description}
	}
	return map[string]any{"type": "object", "properties": map[string]any{
		"name":      property("Name of the file."),
		"mime_type": property("Media type, such as image/png."),
		"data":      property("The content in base64."),
	}, "required": []any{"data"}, "additionalProperties": false}
}

// form converts the schema of a form. Its files become objects.
func (b *builder) form(schema any, multipart bool) any {
	flat := map[string]any{"type": "object"}
	properties := map[string]any{}
	b.flatten(schema, flat, properties, 0)
	converted := object(b.convert(flat, 1))
	kept := object(converted["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v := properties[name]
		target := b.r.resolve(v)
		switch {
		case !multipart || kept[name] == nil:
		case isBinary(target):
			kept[name] = file()
			b.body.Files = append(b.body.Files, name)
		case isBinary(b.r.resolve(target["items"])):
			kept[name] = map[string]any{"type": "array", "items": file()}
			b.body.Files = append(b.body.Files, name)
		}
	}
	return converted
}

// flatten joins the properties of a schema and of those in allOf.
func (b *builder) flatten(v any, flat, properties map[string]any, depth int) {
	m := b.r.resolve(v)
	if depth > maxHops {
		return
	}
	maps.Copy(properties, object(m["properties"]))
	flat["properties"] = properties
	flat["required"] = append(list(flat["required"]), list(m["required"])...)
	if extra, given := m["additionalProperties"]; given {
		flat["additionalProperties"] = extra
	}
	for _, part := range list(m["allOf"]) {
		b.flatten(part, flat, properties, depth+1)
	}
}

// isBinary reports whether a part of a multipart body is a file.
func isBinary(m map[string]any) bool {
	media := text(m["contentMediaType"])
	return text(m["format"]) == "binary" ||
		text(m["type"]) == "file" ||
		media != "" && !strings.HasPrefix(media, "text/") && !isJSON(media)
}

// swaggerBody reads the parameters of Swagger 2 that form the body.
func (b *builder) swaggerBody(order []string, found map[string]map[string]any, op map[string]any) {
	consumes := append(list(op["consumes"]), list(b.r.root["consumes"])...)
	if op["consumes"] != nil {
		consumes = list(op["consumes"])
	}
	properties, encoding, required, media := map[string]any{}, map[string]any{}, []any{}, formMedia
	for _, key := range order {
		object := found[key]
		switch text(object["in"]) {
		case "body":
			b.setBody(bodyMedia(consumes), object["schema"], nil, text(object["description"]))
			var all []string
			for _, media := range consumes {
				all = append(all, text(media))
			}
			b.otherMedia(all)
			if isTrue(object["required"]) {
				b.required = append(b.required, bodyProperty)
			}
			return
		case "formData":
			name := text(object["name"])
			schema := swaggerSchema(object)
			schema["description"] = object["description"]
			properties[name], encoding[name] = schema, map[string]any{
				"collectionFormat": object["collectionFormat"],
				"style":            "form",
			}
			if isTrue(object["required"]) {
				required = append(required, name)
			}
			if text(object["type"]) == "file" || len(consumes) > 0 && mediaType(text(consumes[0])) == multipartMedia {
				media = multipartMedia
			}
		}
	}
	if len(properties) == 0 {
		return
	}
	b.setBody(media, map[string]any{"type": "object", "properties": properties, "required": required}, encoding, "")
	if len(required) > 0 {
		b.required = append(b.required, bodyProperty)
	}
}

// bodyMedia chooses the media type of a body in Swagger 2.
func bodyMedia(consumes []any) string {
	best := "application/json"
	for i, v := range consumes {
		if media := text(v); i == 0 || mediaRank(media) < mediaRank(best) {
			best = media
		}
	}
	return best
}
