package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/charset"
	"satchel/agent/egress"
	"satchel/agent/template"
)

// Limits of an API call.
const (
	apiTimeout  = 30 * time.Second
	maxAPIReply = 2 << 20 // bytes
)

// request calls the API of a tool. Arguments fill {{name}} in its URL, query,
// headers and body; inserted values are not filled again.
func (b *Toolbox) request(
	ctx context.Context,
	config agent.ToolConfig,
	arguments map[string]any,
	credential egress.Credential,
) (any, error) {
	ctx, cancel := withinLimit(ctx, config, apiTimeout)
	defer cancel()
	call, err := b.buildCall(ctx, config, arguments)
	if err != nil {
		return nil, err
	}
	call.Credential = credential
	req, err := call.Request(ctx)
	if err != nil {
		return nil, err
	}
	return b.send(ctx, req, config.ResponsePath)
}

// send sends the request of a tool and returns the response's body, or the value at
// a path in it.
func (b *Toolbox) send(ctx context.Context, req *http.Request, responsePath string) (any, error) {
	path, err := template.ParsePath(responsePath)
	if err != nil {
		return nil, agent.Invalid("config.response_path", err.Error())
	}
	resp, err := b.options.HTTP.Do(req)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAPIReply+1))
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if len(raw) > maxAPIReply {
		return nil, agent.Errorf(agent.CodeUpstream, "the server's response is longer than %d bytes", maxAPIReply)
	}
	body := decodeReply(charset.Decode(raw, resp.Header.Get("Content-Type")))
	if resp.StatusCode >= 400 {
		text, _ := json.Marshal(body) // it was JSON or is a string
		return nil, agent.Errorf(
			agent.CodeUpstream,
			"the server responded with status %d: %s",
			resp.StatusCode,
			agent.Clip(string(text), 500),
		).With("status", resp.StatusCode)
	}
	found, ok := path.Walk(body)
	if !ok {
		return nil, agent.Errorf(agent.CodeUpstream, "the response has no value at %s", responsePath)
	}
	return found, nil
}

// decodeReply decodes a reply that is JSON, with all digits of its numbers. Anything else
// is text.
func decodeReply(text []byte) any {
	var body any
	if agent.DecodeJSON(text, &body) != nil {
		return string(text)
	}
	return body
}

// requestError returns the error of a tool whose request got no complete
// response.
func requestError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return egress.Explain(err)
}

// buildCall fills the arguments into the request.
func (b *Toolbox) buildCall(
	ctx context.Context,
	config agent.ToolConfig,
	arguments map[string]any,
) (*egress.Call, error) {
	path, query, hasQuery := strings.Cut(config.URL, "?")
	address := fill(path, arguments, url.PathEscape)
	if hasQuery {
		address += "?" + fill(query, arguments, url.QueryEscape)
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, agent.Invalid("arguments", "do not result in a valid URL")
	}
	values := target.Query()
	for name, v := range config.Query {
		if filled := fillAny(v, arguments); filled != nil {
			values.Set(name, plainText(filled))
		}
	}
	call := &egress.Call{
		Method:         config.Method,
		URL:            target,
		Query:          values,
		Headers:        map[string]string{},
		UserAgent:      "Satchel/" + b.options.Version,
		IdempotencyKey: keyOf(ctx),
	}
	if call.Body, call.MediaType, err = bodyOf(config, arguments); err != nil {
		return nil, err
	}
	for name, value := range config.Headers {
		call.Headers[name] = fill(value, arguments, func(s string) string { return s })
	}
	if config.Auth != nil {
		call.Auth = *config.Auth
	}
	return call, nil
}

// bodyOf fills the arguments into the body of a request.
func bodyOf(config agent.ToolConfig, arguments map[string]any) (body []byte, mediaType string, err error) {
	filled := fillAny(config.Body, arguments)
	fields, _ := filled.(map[string]any)
	switch {
	case config.BodyType == "multipart":
		return multipartOf(fields, config.Files, arguments)
	case config.Body == nil:
		return nil, "", nil
	case config.BodyType == "form":
		form := url.Values{}
		for name, v := range fields {
			for _, one := range listOf(v) {
				form.Add(name, plainText(one))
			}
		}
		return []byte(form.Encode()), "application/x-www-form-urlencoded", nil
	}
	body, err = json.Marshal(filled)
	return body, "application/json", err
}

// multipartOf returns a body of fields and files. A field or a file whose argument
// is missing is left out.
func multipartOf(
	fields map[string]any,
	files map[string]string,
	arguments map[string]any,
) (body []byte, mediaType string, err error) {
	var parts []egress.Part
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, one := range listOf(fields[name]) {
			if one != nil {
				parts = append(parts, egress.Part{Name: name, Text: plainText(one)})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, one := range listOf(fillAny(files[name], arguments)) {
			if one == nil {
				continue
			}
			f, ok := egress.ReadFile(one)
			if !ok {
				return nil, "", agent.Invalid(
					"arguments",
					"give no file for "+agent.Clip(name, 60)+
						": it must be base64, a data URL, or {name, mime_type, data}",
				)
			}
			parts = append(parts, egress.Part{Name: name, File: &f})
		}
	}
	if body, mediaType, err = egress.Multipart(parts); len(body) > egress.MaxUpload {
		err = agent.Invalid("arguments", fmt.Sprintf("have files of more than %d MB", egress.MaxUpload>>20))
	}
	return body, mediaType, err
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.\-]+)\s*\}\}`)

// fill inserts arguments into a text, each passed through escape.
func fill(text string, arguments map[string]any, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return escape(plainText(argument(arguments, placeholder.FindStringSubmatch(found)[1])))
	})
}

// argument returns the argument at a path, or nil if there is none.
func argument(arguments map[string]any, path string) any {
	p, err := template.ParsePath(path)
	if err != nil {
		return nil
	}
	found, _ := p.Walk(arguments)
	return found
}

// fillAny inserts arguments into the strings of a JSON value. A string that is
// a single placeholder becomes the argument itself, or nil if there is none.
func fillAny(v any, arguments map[string]any) any {
	return agent.MapStrings(v, func(text string) any {
		if m := placeholder.FindStringSubmatch(text); m != nil && m[0] == text {
			return argument(arguments, m[1])
		}
		return fill(text, arguments, func(s string) string { return s })
	})
}

// plainText returns a value as text: strings as they are, anything else as JSON.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
