package flow

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/charset"
	"satchel/agent/egress"
	"satchel/agent/template"
)

// maxBody limits the response to an http-request, in bytes, so that it still
// fits an output as base64.
const maxBody = 10 << 20

// httpAuth maps the types of data.auth to the fields that each requires.
var httpAuth = map[string][]string{
	"none":   nil,
	"":       nil,
	"bearer": {"token"},
	"basic":  {"username", "password"},
	"header": {"name", "value"},
}

func checkHTTP(data map[string]any) (field, issue string) {
	if _, issue := agent.CredentialRef(data); issue != "" {
		return "data.credential", issue
	}
	auth, ok := data["auth"].(map[string]any)
	if !ok {
		return "", ""
	}
	kind, ok := auth["type"].(string)
	if !ok && auth["type"] != nil {
		return "data.auth.type", "must be none, bearer, basic, or header"
	}
	fields, known := httpAuth[kind]
	if !known && !strings.Contains(kind, "{{") {
		return "data.auth.type", "must be none, bearer, basic, or header"
	}
	for _, name := range fields {
		if _, ok := auth[name].(string); !ok {
			return "data.auth." + name, "is required and must be a string"
		}
	}
	return "", ""
}

// userInURL matches a URL with a user name or password, which would be shown to everyone.
var userInURL = agent.Pattern(`^\s*[A-Za-z][A-Za-z0-9+.-]*://[^/?#"{}]*@`)

func checkAddress(data map[string]any) (field, issue string) {
	if address, _ := data["url"].(string); userInURL().MatchString(address) {
		return "data.url", "must not contain a user name or password"
	}
	return "", ""
}

// runHTTP makes a request. The Idempotency-Key header is the same for each
// attempt of this run of the node, unless the data sets its own.
func (engine *Engine) runHTTP(ctx context.Context, c *Call) (Outcome, error) {
	var err error
	address := agent.NodeAddress(c.Data)
	c.Data, err = agent.PutNodeSecrets(
		c.Node.ID,
		c.Data,
		func(name string) (string, error) {
			return c.DB.NodeSecret(ctx, c.Program.ID, name, address)
		},
	)
	if err == nil {
		c.Data, err = c.fillLinks(ctx)
	}
	if err != nil {
		return Outcome{}, err
	}
	call, err := c.request(ctx, "Satchel/"+engine.options.Version)
	if err == nil {
		call.Credential, err = c.credential(ctx)
	}
	if err != nil {
		return Outcome{}, err
	}
	req, err := call.Request(ctx)
	if err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	resp, err := engine.client.Do(req)
	if err != nil {
		return Outcome{}, requestError(ctx, err)
	}
	return c.answer(ctx, resp, began)
}

// answer reads a response and returns the output of the node.
func (c *Call) answer(ctx context.Context, resp *http.Response, began time.Time) (Outcome, error) {
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Outcome{}, requestError(ctx, err)
	}
	raw = c.DB.HideLinksIn(raw)
	body, warning := readAnswer(resp.Header.Get("Content-Type"), c.Text("response_type"), raw)
	if resp.StatusCode >= 400 && c.Bool("fail_on_status", true) {
		return Outcome{}, agent.Errorf(agent.CodeUpstream, "the server answered with status %d", resp.StatusCode).
			With("status", resp.StatusCode).With("body", agent.Clip(template.Text(body), 2000))
	}
	headers := map[string]any{}
	for name, values := range resp.Header {
		headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	o := Outcome{
		Output: map[string]any{
			"status":      resp.StatusCode,
			"headers":     headers,
			"body":        body,
			"duration_ms": elapsedMilliseconds(began),
		},
	}
	if warning != "" {
		o.Warnings = []string{warning}
	}
	return o, nil
}

// requestError returns the error of a node whose request got no complete
// response.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return egress.Explain(err)
}

// credential finds the credential that the node names. The name is read from the
// graph itself, so a template cannot choose it.
func (c *Call) credential(ctx context.Context) (egress.Credential, error) {
	ref, issue := agent.CredentialRef(c.Node.Data)
	if issue != "" {
		return nil, agent.Invalid("credential", issue)
	}
	return c.engine.options.Credentials.Find(ctx, c.DB, ref)
}

// request builds the request from a node's data.
func (c *Call) request(ctx context.Context, userAgent string) (*egress.Call, error) {
	target, err := url.Parse(strings.TrimSpace(c.Text("url")))
	if err != nil || target.Host == "" {
		return nil, agent.Errorf(agent.CodeExecution, "url must be an http or https URL").With("field", "url")
	}
	query := url.Values{}
	for name, v := range object(c.Data["query"]) {
		for _, one := range listOf(v) {
			query.Add(name, template.Text(one))
		}
	}
	if len(query) > 0 {
		for name, values := range target.Query() {
			query[name] = append(values, query[name]...)
		}
	}
	body, media, err := c.body(ctx)
	if err != nil {
		return nil, err
	}
	call := &egress.Call{
		Method:         strings.ToUpper(c.Text("method")),
		URL:            target,
		Query:          query,
		Headers:        map[string]string{},
		UserAgent:      userAgent,
		IdempotencyKey: c.Key,
		Body:           body,
		MediaType:      media,
	}
	for name, v := range object(c.Data["headers"]) {
		if strings.EqualFold(name, "Host") {
			call.Host = template.Text(v)
		} else {
			call.Headers[name] = template.Text(v)
		}
	}
	auth := object(c.Data["auth"])
	text := func(key string) string { return template.Text(auth[key]) }
	call.Auth = agent.APIAuth{
		Type:     text("type"),
		Token:    text("token"),
		Username: text("username"),
		Password: text("password"),
		Name:     text("name"),
		Value:    text("value"),
	}
	return call, nil
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// readers read the response types that are neither JSON nor text.
var readers = map[string]func([]byte) (any, error){"xml": readXML, "csv": readCSV}

// maxBodyValues is how many JSON values a response's body may have. Decoded, a value of two
// bytes needs a hundred.
const maxBodyValues = 1 << 20

// readAnswer decodes a response's body as JSON, XML, CSV or text, or encodes it as
// base64.
func readAnswer(contentType, want string, raw []byte) (body any, warning string) {
	media, _, _ := mime.ParseMediaType(contentType)
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	if want == "base64" {
		return base64.StdEncoding.EncodeToString(raw), ""
	}
	binary := !utf8.Valid(raw) && !charset.IsText(contentType)
	text := charset.Decode(raw, contentType)
	if read := readers[want]; read != nil {
		v, err := read(text)
		if err == nil {
			return v, ""
		}
		warning = "the body is not valid " + strings.ToUpper(want) + " and is returned as text: " +
			agent.Clip(strings.ToValidUTF8(err.Error(), "\uFFFD"), 200)
	}
	if want == "json" || (want == "" || want == "auto") && isJSON {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil, ""
		}
		switch {
		case agent.CountValues(text) > maxBodyValues:
			warning = fmt.Sprintf("the body has more than %d values and is returned as text", maxBodyValues)
		case agent.CheckNesting("body", text) == nil && json.Valid(text):
			return decodeOr(text), ""
		default:
			warning = "the body is not valid JSON and is returned as text"
		}
	}
	if !binary || want == "text" || warning != "" {
		return string(text), warning
	}
	return base64.StdEncoding.EncodeToString(raw), "the body is binary and is returned as base64"
}
