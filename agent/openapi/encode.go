package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

func unescaped(s string) string { return s }

// queryEscape escapes a name or a value of a query.
func queryEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// reserved undoes the escaping of characters that end nothing in a query.
var reserved = strings.NewReplacer(
	"%3A", ":", "%2F", "/", "%3F", "?", "%40", "@", "%21", "!", "%24", "$", "%27", "'", "%28", "(", "%29", ")", "%2A",
	"*", "%2C", ",", "%3B", ";", "%3D", "=",
)

func reservedEscape(s string) string { return reserved.Replace(queryEscape(s)) }

// scalarText returns a value as text: objects and lists as JSON.
func scalarText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any, []any:
		return jsonText(v)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

func jsonText(v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it was decoded from JSON
	return strings.TrimSpace(out.String())
}

// simpleStyle writes a value in style simple: parts with a separator between them.
func simpleStyle(value any, separator string, explode bool, escape func(string) string) string {
	var parts []string
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			parts = append(parts, escape(scalarText(entry)))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if explode {
				parts = append(parts, escape(name)+"="+escape(scalarText(v[name])))
			} else {
				parts = append(parts, escape(name), escape(scalarText(v[name])))
			}
		}
	default:
		return escape(scalarText(v))
	}
	return strings.Join(parts, separator)
}

// segment writes an argument into a path.
func segment(p agent.OperationParam, v any) string {
	switch p.Style {
	case "label":
		if p.Explode {
			return "." + simpleStyle(v, ".", true, url.PathEscape)
		}
		return "." + simpleStyle(v, ",", false, url.PathEscape)
	case "matrix":
		return matrix(p, v)
	}
	return simpleStyle(v, ",", p.Explode, url.PathEscape)
}

func matrix(p agent.OperationParam, v any) string {
	name := ";" + url.PathEscape(p.Name) + "="
	entries, isList := v.([]any)
	switch _, isObject := v.(map[string]any); {
	case p.Explode && isList:
		var out strings.Builder
		for _, entry := range entries {
			out.WriteString(name + url.PathEscape(scalarText(entry)))
		}
		return out.String()
	case p.Explode && isObject:
		return ";" + simpleStyle(v, ";", true, url.PathEscape)
	}
	return name + simpleStyle(v, ",", false, url.PathEscape)
}

// separators are the separators between values by style.
var separators = map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}

// pairs writes a value as name=value pairs of a query, a cookie or a form.
func pairs(name string, value any, encoding agent.OperationEncoding) []string {
	escape := queryEscape
	if encoding.AllowReserved {
		escape = reservedEscape
	}
	if encoding.Style == "deepObject" {
		return deepObject(name, value, escape, nil)
	}
	separator := separators[encoding.Style]
	if separator == "" {
		separator = ","
	}
	switch item := value.(type) {
	case []any:
		if !encoding.Explode {
			break
		}
		var out []string
		for _, entry := range item {
			out = append(out, queryEscape(name)+"="+escape(scalarText(entry)))
		}
		return out
	case map[string]any:
		if !encoding.Explode {
			break
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(item)) {
			out = append(out, queryEscape(key)+"="+escape(scalarText(item[key])))
		}
		return out
	}
	return []string{queryEscape(name) + "=" + simpleStyle(value, separator, false, escape)}
}

// deepObject writes name[key]=value, and name[key][inner]=value below that.
func deepObject(name string, v any, escape func(string) string, out []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = deepObject(name+"["+key+"]", v[key], escape, out)
		}
		return out
	case []any:
		for i, entry := range v {
			out = deepObject(name+"["+strconv.Itoa(i)+"]", entry, escape, out)
		}
		return out
	}
	return append(out, queryEscape(name)+"="+escape(scalarText(v)))
}

// body writes the body of a request.
func body(body *agent.OperationBody, value any) (raw []byte, media string, err error) {
	switch kind := mediaType(body.Media); {
	case isJSON(body.Media):
		return []byte(jsonText(value)), body.Media, nil
	case kind == formMedia:
		var all []string
		fields := maps.Clone(object(value))
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			e, given := body.Encoding[name]
			if !given {
				e = agent.OperationEncoding{Style: "form", Explode: true}
				if m := object(fields[name]); m != nil {
					fields[name] = jsonText(m)
				}
			}
			all = append(all, pairs(name, fields[name], e)...)
		}
		return []byte(strings.Join(all, "&")), formMedia, nil
	case kind == multipartMedia:
		return multipartBody(body, object(value))
	case mediaRank(body.Media) < 6:
		return []byte(scalarText(value)), body.Media, nil
	}
	f, err := fileOf(value)
	return f.Data, fileMedia(body, f.MediaType), err
}

// fileMedia returns the media type of a body that is a file: the file's own if the
// description allows it, otherwise the one in the description.
func fileMedia(b *agent.OperationBody, own string) string {
	for _, allowed := range append([]string{b.Media}, b.Others...) {
		if matches, err := path.Match(mediaType(allowed), mediaType(own)); err == nil && matches {
			return own
		}
	}
	if strings.Contains(b.Media, "*") { // a range is not a media type
		return cmp.Or(own, octetMedia)
	}
	return b.Media
}

func multipartBody(body *agent.OperationBody, fields map[string]any) ([]byte, string, error) {
	var parts []egress.Part
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		entries, isList := fields[name].([]any)
		if !isList {
			entries = []any{fields[name]}
		}
		for _, entry := range entries {
			p, err := part(name, entry, slices.Contains(body.Files, name))
			if err != nil {
				return nil, "", err
			}
			parts = append(parts, p)
		}
	}
	return egress.Multipart(parts)
}

// part returns one part of a multipart body. Objects are JSON.
func part(name string, v any, isFile bool) (egress.Part, error) {
	p := egress.Part{Name: name}
	if isFile {
		f, err := fileOf(v)
		p.File = &f
		return p, err
	}
	if p.Text = scalarText(v); object(v) != nil {
		p.MediaType = "application/json"
	}
	return p, nil
}

// fileOf reads a file: {name, mime_type, data}, its data in base64 or a data URL.
func fileOf(v any) (egress.File, error) {
	f, ok := egress.ReadFile(v)
	if !ok || object(v) == nil {
		return f, agent.Invalid("arguments", "has a file that is not {name, mime_type, data} with its data in base64")
	}
	return f, nil
}
