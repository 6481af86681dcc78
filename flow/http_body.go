package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/template"
	"satchel/store"
)

// body returns the request's body and media type. Without body_type a string is
// sent as it is, and anything else as JSON; with files, the body's fields
// become parts of the same form.
func (c *Call) body(ctx context.Context) (body []byte, media string, err error) {
	item, kind := c.Data["body"], c.Text("body_type")
	if files := c.Data["files"]; files != nil || kind == "multipart" {
		return c.multipart(ctx, item, files)
	}
	if item == nil {
		return nil, "", nil
	}
	if kind == "file" {
		f, err := c.file(ctx, "body", item, c.Node.Data["body"])
		return f.Data, f.Media(), err
	}
	if text, ok := item.(string); ok && kind != "json" && kind != "form" {
		media = "text/plain; charset=utf-8"
		if kind == "" && json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "{[") {
			media = "application/json"
		}
		return []byte(text), media, nil
	}
	switch kind {
	case "form":
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, "", agent.Errorf(
				agent.CodeExecution,
				"body must be an object to be sent as a form",
			).With("field", "body")
		}
		form := url.Values{}
		for name, value := range fields {
			for _, one := range listOf(value) {
				form.Add(name, template.Text(one))
			}
		}
		return []byte(form.Encode()), "application/x-www-form-urlencoded", nil
	case "text":
		return []byte(template.Text(item)), "text/plain; charset=utf-8", nil
	}
	body, err = json.Marshal(item)
	return body, "application/json", err
}

// multipart returns a multipart/form-data body of fields and files, ordered by name.
func (c *Call) multipart(ctx context.Context, fields, files any) (body []byte, media string, err error) {
	values, isObject := fields.(map[string]any)
	if fields != nil && !isObject {
		return nil, "", agent.Errorf(
			agent.CodeExecution,
			"body must be an object to be sent with files",
		).With("field", "body")
	}
	var parts []egress.Part
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, one := range listOf(values[name]) {
			p := egress.Part{Name: name, Text: template.Text(one)}
			if object(one) != nil {
				p.MediaType = "application/json"
			}
			parts = append(parts, p)
		}
	}
	size := 0
	given := object(c.Node.Data["files"])
	for _, name := range slices.Sorted(maps.Keys(object(files))) {
		for i, one := range listOf(object(files)[name]) {
			var raw any // as the graph has it
			if all := listOf(given[name]); i < len(all) {
				raw = all[i]
			}
			f, err := c.file(ctx, "files."+name, one, raw)
			if size += len(f.Data); err == nil && size > egress.MaxUpload {
				err = tooLarge("files")
			}
			if err != nil {
				return nil, "", err
			}
			parts = append(parts, egress.Part{Name: name, File: &f})
		}
	}
	return egress.Multipart(parts)
}

// file returns a file to send, given by its content or as a reference to a stored
// file. raw is the value as written in the graph. Only a reference that is written
// there counts, since untrusted input could name any file.
func (c *Call) file(ctx context.Context, field string, value, raw any) (egress.File, error) {
	for key, find := range map[string]func(context.Context, string) (store.File, error){
		"download_id": c.DB.DownloadFile,
		"source_id":   c.DB.SourceFile,
	} {
		if object(raw)[key] == nil {
			continue
		}
		id, _ := object(value)[key].(string)
		stored, err := find(ctx, id)
		if err != nil {
			return egress.File{}, agent.Errorf(agent.CodeExecution, "%s.%s names no stored file", field, key).
				With("field", field).
				Because(err)
		}
		return readStored(ctx, field, stored, object(value))
	}
	f, ok := egress.ReadFile(value)
	switch {
	case !ok:
		return f, agent.Errorf(
			agent.CodeExecution,
			"%s must be a file: base64, a data URL, or {name, mime_type, data}",
			field,
		).With("field", field)
	case len(f.Data) > egress.MaxUpload:
		return f, tooLarge(field)
	}
	return f, nil
}

// readStored reads a stored file. v may override its name and media type.
func readStored(ctx context.Context, field string, stored store.File, v map[string]any) (egress.File, error) {
	f := egress.File{Name: stored.Name, MediaType: stored.MediaType}
	if name, _ := v["name"].(string); name != "" {
		f.Name = name
	}
	if media, _ := v["mime_type"].(string); media != "" {
		f.MediaType = media
	}
	if stored.Size > egress.MaxUpload {
		return f, tooLarge(field)
	}
	var data bytes.Buffer
	err := stored.WriteTo(ctx, &data)
	f.Data = data.Bytes()
	return f, err
}

func tooLarge(field string) error {
	return agent.Errorf(agent.CodeExecution, "%s is larger than %d MB", field, egress.MaxUpload>>20).
		With("field", field).
		With("limit_bytes", egress.MaxUpload)
}
