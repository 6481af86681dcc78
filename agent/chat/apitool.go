package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"satchel/agent"
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
func (b *Toolbox) request(ctx context.Context, c agent.ToolConfig, arguments map[string]any, credential egress.Credential) (any, error) {
	timeout := apiTimeout
	if c.TimeoutMS > 0 {
		timeout = time.Duration(c.TimeoutMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	call, err := b.buildCall(ctx, c, arguments)
	if err != nil {
		return nil, err
	}
	call.Credential = credential
	req, err := call.Request(ctx)
	if err != nil {
		return nil, err
	}
	return b.send(ctx, req, c.ResponsePath)
}

// send sends the request of a tool and returns the response's body, or what is at
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
	var body any
	if json.Unmarshal(raw, &body) != nil {
		body = strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	if resp.StatusCode >= 400 {
		text, _ := json.Marshal(body) // it was JSON or is a string
		return nil, agent.Errorf(agent.CodeUpstream, "the server responded with status %d: %s", resp.StatusCode, agent.Clip(string(text), 500)).With("status", resp.StatusCode)
	}
	found, ok := path.Walk(body)
	if !ok {
		return nil, agent.Errorf(agent.CodeUpstream, "the response has no value at %s", responsePath)
	}
	return found, nil
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
func (b *Toolbox) buildCall(ctx context.Context, c agent.ToolConfig, arguments map[string]any) (*egress.Call, error) {
	path, query, hasQuery := strings.Cut(c.URL, "?")
	address := fill(path, arguments, url.PathEscape)
	if hasQuery {
		address += "?" + fill(query, arguments, url.QueryEscape)
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, agent.Invalid("arguments", "do not result in a valid URL")
	}
	values := target.Query()
	for name, v := range c.Query {
		if filled := fillAny(v, arguments); filled != nil {
			values.Set(name, plain(filled))
		}
	}
	call := &egress.Call{Method: c.Method, URL: target, Query: values, Headers: map[string]string{},
		UserAgent: "Satchel/" + b.options.Version, IdempotencyKey: keyOf(ctx)}
	if c.Body != nil {
		call.MediaType = "application/json"
		if call.Body, err = json.Marshal(fillAny(c.Body, arguments)); err != nil {
			return nil, err
		}
	}
	for name, value := range c.Headers {
		call.Headers[name] = fill(value, arguments, func(s string) string { return s })
	}
	if c.Auth != nil {
		call.Auth = *c.Auth
	}
	return call, nil
}

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.\-]+)\s*\}\}`)

// fill inserts arguments into a text, each passed through escape.
func fill(text string, arguments map[string]any, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return escape(plain(argument(arguments, placeholder.FindStringSubmatch(found)[1])))
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

// plain returns a value as text: strings as they are, anything else as JSON.
func plain(v any) string {
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
