package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"satchel/httpapi/rest"
)

// contract checks the requests and responses of this package's tests against the OpenAPI
// description.
type contract struct {
	*described
	routes []*rest.Route
	valid  sync.Map // JSON texts that match their schemas, each after the schema's place
}

var theContract = sync.OnceValues(func() (*contract, error) {
	d, err := readDescription()
	return &contract{described: d, routes: table()}, err
})

// routeOf returns the route that serves a path below /api; one without parameters is
// preferred.
func routeOf(routes []*rest.Route, method, path string) *rest.Route {
	var found *rest.Route
	for _, r := range routes {
		if r.Method == method && matches(r.Path, path) &&
			(found == nil || strings.Count(r.Path, "{") < strings.Count(found.Path, "{")) {
			found = r
		}
	}
	return found
}

func matches(pattern, path string) bool {
	for more := true; more; {
		var want, part string
		var longer bool
		want, pattern, more = strings.Cut(pattern, "/")
		part, path, longer = strings.Cut(path, "/")
		if more != longer || want != part && (!strings.HasPrefix(want, "{") || part == "") {
			return false
		}
	}
	return true
}

// checkContract reports what is not described in a request and its response.
func checkContract(tb testing.TB, req *http.Request, body []byte, a answer) {
	tb.Helper()
	c, err := theContract()
	if err != nil {
		tb.Fatal(err)
	}
	path, ok := strings.CutPrefix(req.URL.EscapedPath(), "/api")
	r := routeOf(c.routes, req.Method, path)
	if !ok || r == nil {
		return
	}
	if _, described := c.operation(r)["requestBody"]; !described && req.ContentLength != 0 {
		return // a body where none is described
	}
	name := req.Method + " " + r.Path
	if issue := c.answerIssue(r, a); issue != "" {
		tb.Errorf("%s answers %d: %s\n%.600s", name, a.StatusCode, issue, a.text)
	}
	if issue := c.requestIssue(r, req, body, a.StatusCode); issue != "" {
		tb.Errorf("%s accepts a request that does not match: %s\n%.600s", name, issue, body)
	}
}

func (c *contract) answerIssue(r *rest.Route, a answer) string {
	keys := []string{"paths", r.Path, strings.ToLower(r.Method), "responses", strconv.Itoa(a.StatusCode)}
	described, _ := c.find(keys...)
	if described == nil {
		keys[len(keys)-1] = "default"
		if described, _ = c.find(keys...); described == nil {
			return "the status is not described"
		}
	}
	content, sent := objectAt(described, "content"), mediaOf(a.Header)
	switch {
	case a.text == "" && len(content) == 0, a.StatusCode == http.StatusNotModified:
		return ""
	case content[sent] == nil && content["*/*"] == nil && a.text != "":
		return fmt.Sprintf("the type %q is not described", sent)
	case content[sent] == nil || sent != "application/json" || a.Header.Get("Content-Encoding") != "":
		return ""
	}
	_, place := c.find(append(keys, "content", sent, "schema")...)
	return c.issue(place, []byte(a.text), true)
}

// requestIssue checks JSON that a route accepted: the description must not require more
// than the server does.
func (c *contract) requestIssue(r *rest.Route, req *http.Request, body []byte, status int) string {
	content, _ := c.find("paths", r.Path, strings.ToLower(r.Method), "requestBody", "content")
	if status >= 300 ||
		len(body) == 0 ||
		mediaOf(req.Header) != "application/json" ||
		objectAt(content)["application/json"] == nil {
		return ""
	}
	_, place := c.find(
		"paths",
		r.Path,
		strings.ToLower(r.Method),
		"requestBody", "content", "application/json", "schema",
	)
	return c.issue(place, body, false)
}

// issue returns how JSON differs from the schema at a place. With whole, fields that the
// schema does not name count too.
func (c *contract) issue(place string, raw []byte, whole bool) string {
	text := place + " " + string(raw)
	if _, known := c.valid.Load(text); known {
		return ""
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err.Error()
	}
	schema, err := c.schema(place)
	if err != nil {
		return err.Error()
	}
	if err := schema.Validate(value); err != nil {
		return err.Error()
	}
	if extra := extraFields(schema, value, ""); whole && len(extra) > 0 {
		return "not described: " + strings.Join(extra, ", ")
	}
	if whole && len(raw) < 1000 { // most are errors, of which tests of whole tables get thousands
		c.valid.Store(text, true)
	}
	return ""
}

// extraFields lists the fields of a value that its schema does not name.
func extraFields(schema *jsonschema.Schema, value any, at string) []string {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	if len(schema.AnyOf) > 0 {
		return leastExtra(schema.AnyOf, value, at)
	}
	var extra []string
	switch v := value.(type) {
	case map[string]any:
		if schema.AdditionalProperties != nil || len(schema.Properties) == 0 {
			return nil // an object with any fields
		}
		for name, inner := range v {
			if property := schema.Properties[name]; property == nil {
				extra = append(extra, at+"."+name)
			} else {
				extra = append(extra, extraFields(property, inner, at+"."+name)...)
			}
		}
	case []any:
		items := schema.Items2020
		for i := 0; items != nil && i < len(v); i++ {
			extra = append(extra, extraFields(items, v[i], at+"[]")...)
		}
	}
	slices.Sort(extra)
	return slices.Compact(extra)
}

// leastExtra is extraFields with the best matching one of several schemas.
func leastExtra(schemas []*jsonschema.Schema, value any, at string) []string {
	var least []string
	found := false
	for _, s := range schemas {
		if s.Validate(value) != nil {
			continue
		}
		if extra := extraFields(s, value, at); !found || len(extra) < len(least) {
			least, found = extra, true
		}
	}
	return least
}

func mediaOf(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

// TestContractFindsDifferences checks the check itself.
func TestContractFindsDifferences(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	const record = `"id":"agent-x","name":"x","description":"","owner_email":"",` +
		`"created_at":"2026-01-31T09:00:00.000Z","updated_at":"2026-01-31T09:00:00.000Z"`
	for _, tc := range []struct {
		name, media, body string
		status            int
		want              string
	}{
		{"as described", "application/json", `{` + record + `,"status":"active"}`, 201, ""},
		{"another status", "application/json", `{` + record + `,"status":"active"}`, 202, "status is not described"},
		{"another type", "text/html", `<p>`, 201, "type \"text/html\""},
		{"an additional field", "application/json", `{` + record + `,"status":"active","secret":1}`, 201, ".secret"},
		{"a missing field", "application/json", `{` + record + `}`, 201, "missing property 'status'"},
		{
			"a value not in the enum",
			"application/json",
			`{` + record + `,"status":"asleep"}`,
			201,
			"value must be one of",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := answer{
				Response: &http.Response{StatusCode: tc.status, Header: http.Header{"Content-Type": {tc.media}}},
				text:     tc.body,
			}
			got := c.answerIssue(routeOf(c.routes, "POST", "/agents"), a)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
