package httpapi

import (
	"bytes"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"satchel/httpapi/rest"
)

// described is the description of the interface, parsed again.
type described struct {
	raw      []byte
	document map[string]any
	mu       sync.Mutex // the compiler is not safe for concurrent use
	schemas  *jsonschema.Compiler
}

func describe(tb testing.TB) *described {
	tb.Helper()
	d, err := readDescription()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// readDescription creates the description once: it takes longer than most tests.
var readDescription = sync.OnceValues(func() (*described, error) {
	raw, err := Describe("1.2.3")
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	d := &described{raw: raw, document: document.(map[string]any), schemas: jsonschema.NewCompiler()}
	d.schemas.DefaultDraft(jsonschema.Draft2020)
	d.schemas.AssertFormat()
	return d, d.schemas.AddResource("openapi.json", document)
})

// pointerEscapes escapes a key in a JSON pointer.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// find follows keys in the document, and references on the way; it also returns the place
// where it ended, as a JSON pointer.
func (d *described) find(keys ...string) (any, string) {
	var value any = d.document
	var place string
	for _, key := range keys {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, place
		}
		value = object[key]
		place += "/" + pointerEscapes.Replace(key)
		if object, ok := value.(map[string]any); ok {
			if ref, ok := object["$ref"].(string); ok && key != "schema" {
				return d.find(append(
					strings.Split(strings.TrimPrefix(ref, "#/"), "/"),
					keys[slices.Index(keys, key)+1:]...,
				)...)
			}
		}
	}
	return value, place
}

func (d *described) operation(r *rest.Route) map[string]any {
	op, _ := d.find("paths", r.Path, strings.ToLower(r.Method))
	object, _ := op.(map[string]any)
	return object
}

// schema returns the schema at a place of the document.
func (d *described) schema(place string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.schemas.Compile("openapi.json#" + place)
}

// check validates a value against the schema at a place of the document.
func (d *described) check(tb testing.TB, what, place string, value any) {
	tb.Helper()
	schema, err := d.schema(place)
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	if err := schema.Validate(value); err != nil {
		tb.Errorf("%s does not match its schema: %v\n%v", what, err, value)
	}
}

func table() []*rest.Route { return new(Server).api() }

func TestDescriptionHasEveryRoute(t *testing.T) {
	d := describe(t)
	operations := 0
	for _, methods := range d.document["paths"].(map[string]any) {
		operations += len(methods.(map[string]any))
	}
	if operations != len(table()) {
		t.Errorf("%d operations for %d routes", operations, len(table()))
	}
	ids := map[string]string{}
	for _, r := range table() {
		name := r.Method + " " + r.Path
		op := d.operation(r)
		if op == nil {
			t.Errorf("%s is not described", name)
			continue
		}
		id, _ := op["operationId"].(string)
		if !regexp.MustCompile(`^[a-z][A-Za-z]+$`).MatchString(id) || ids[id] != "" {
			t.Errorf("%s: operation id %q, also of %q", name, id, ids[id])
		}
		ids[id] = name
		if op["summary"] != r.Summary || op["description"] == "" {
			t.Errorf("%s: summary %q, description %q", name, op["summary"], op["description"])
		}
		checkParameters(t, d, r, op)
		checkBody(t, r, op)
		checkStatuses(t, d, r, op)
	}
}

func checkParameters(t *testing.T, d *described, r *rest.Route, op map[string]any) {
	t.Helper()
	type place struct{ in, name string } // a name may be in both path and query
	want := map[place]bool{}             // whether it is required
	for part := range strings.SplitSeq(r.Path, "/") {
		if strings.HasPrefix(part, "{") {
			want[place{"path", strings.Trim(part, "{}")}] = true
		}
	}
	for _, p := range r.Parameters() {
		if p.In != "path" {
			want[place{p.In, p.Name}] = p.Field.Tag.Get("required") == "true"
		} else if !want[place{"path", p.Name}] {
			t.Errorf("%s %s binds %s, which is not in the path", r.Method, r.Path, p.Name)
		}
	}
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		param := p.(map[string]any)
		if ref, ok := param["$ref"].(string); ok {
			found, _ := d.find(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			param = found.(map[string]any)
		}
		at := place{param["in"].(string), param["name"].(string)}
		required, known := want[at]
		if !known {
			t.Errorf("%s %s: parameter %s in %s is not bound", r.Method, r.Path, at.name, at.in)
		}
		if param["description"] == nil || param["schema"] == nil || required != (param["required"] == true) {
			t.Errorf("%s %s: parameter %v", r.Method, r.Path, param)
		}
		delete(want, at)
	}
	if len(want) > 0 {
		t.Errorf("%s %s: parameters %v are not described", r.Method, r.Path, want)
	}
}

func checkBody(t *testing.T, r *rest.Route, op map[string]any) {
	t.Helper()
	body, _ := op["requestBody"].(map[string]any)
	want := ""
	if r.HasBody() {
		want = "application/json"
	} else if r.Form != nil {
		want = "multipart/form-data"
	} else if r.Accepted != nil {
		want = r.Accepted[0]
	}
	if (body != nil) != (want != "") {
		t.Errorf("%s %s: body %v, want %q", r.Method, r.Path, body, want)
	} else if body != nil && objectAt(body, "content")[want] == nil {
		t.Errorf("%s %s: the body is not %s", r.Method, r.Path, want)
	}
}

func checkStatuses(t *testing.T, d *described, r *rest.Route, op map[string]any) {
	t.Helper()
	answers := op["responses"].(map[string]any)
	if answers[strconv.Itoa(r.Status)] == nil {
		t.Errorf("%s %s: no response %d", r.Method, r.Path, r.Status)
	}
	for _, status := range []int{401, 403, 500} {
		if answers[strconv.Itoa(status)] == nil {
			t.Errorf("%s %s: no response %d", r.Method, r.Path, status)
		}
	}
	if r.UnderAgent() && answers["404"] == nil || r.Class != rest.Unlimited && answers["429"] == nil {
		t.Errorf("%s %s: 404 or 429 is missing", r.Method, r.Path)
	}
	for _, code := range r.Errors {
		examples, _ := d.find(
			"paths",
			r.Path,
			strings.ToLower(r.Method),
			"responses",
			strconv.Itoa(rest.StatusOf(code)),
			"content",
			"application/json",
			"examples",
		)
		if byCode, _ := examples.(map[string]any); byCode[string(code)] == nil {
			t.Errorf("%s %s: the response %d shows no %s", r.Method, r.Path, rest.StatusOf(code), code)
		}
	}
	if _, made := objectAt(answers, "201", "headers")["Location"]; made != (r.Status == http.StatusCreated) {
		t.Errorf("%s %s: Location with status %d: %v", r.Method, r.Path, r.Status, made)
	}
}

// objectAt follows keys in an object; what is missing is empty.
func objectAt(value any, keys ...string) map[string]any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	object, _ := value.(map[string]any)
	return object
}

func TestDescribedExamplesMatchTheirSchemas(t *testing.T) {
	d := describe(t)
	checked := 0
	var walk func(value any, place string)
	walk = func(value any, place string) {
		switch v := value.(type) {
		case map[string]any:
			if example, ok := v["example"]; ok && v["schema"] != nil {
				d.check(t, "example at "+place, place+"/schema", example)
				checked++
			}
			if examples, ok := v["examples"].(map[string]any); ok && v["schema"] != nil {
				for name, example := range examples {
					d.check(t, name+" at "+place, place+"/schema", example.(map[string]any)["value"])
					checked++
				}
			}
			if examples, ok := v["examples"].([]any); ok {
				for _, example := range examples {
					d.check(t, "example at "+place, place, example)
					checked++
				}
			}
			for key, inner := range v {
				walk(inner, place+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
			}
		case []any:
			for i, inner := range v {
				walk(inner, place+"/"+strconv.Itoa(i))
			}
		}
	}
	walk(d.document, "")
	if checked < 2*len(table()) {
		t.Errorf("only %d examples were found", checked)
	}
}

// TestSamplesHaveTexts checks that the samples of requests in the reference have no empty
// texts, which are invalid in most fields.
func TestSamplesHaveTexts(t *testing.T) {
	empty := []string{"command"} // in place of url
	var walk func(value any, place string)
	walk = func(value any, place string) {
		switch v := value.(type) {
		case string:
			if v == "" && !slices.Contains(empty, path.Base(place)) {
				t.Errorf("%s is empty", place)
			}
		case map[string]any:
			for key, inner := range v {
				walk(inner, place+"/"+key)
			}
		case []any:
			for _, inner := range v {
				walk(inner, place)
			}
		}
	}
	checked := 0
	for address, methods := range describe(t).document["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			body, _ := operation.(map[string]any)["requestBody"].(map[string]any)
			content, _ := body["content"].(map[string]any)
			if media, ok := content["application/json"].(map[string]any); ok {
				walk(media["example"], method+" "+address)
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("no request has a body")
	}
}

func TestDescriptionIsTheSameEachTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	first := describe(t)
	for range 5 {
		if again, err := Describe("1.2.3"); err != nil || !bytes.Equal(first.raw, again) {
			t.Fatal("two descriptions of one version differ:", err)
		}
	}
}

func TestDescribedNamesAreClean(t *testing.T) {
	d := describe(t)
	for name := range objectAt(d.document, "components", "schemas") {
		if !regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(name) ||
			strings.HasSuffix(name, "Out") ||
			strings.HasSuffix(name, "In") {
			t.Errorf("the component %s needs a name in componentNames", name)
		}
	}
	described := map[string]bool{}
	for _, tag := range d.document["tags"].([]any) {
		described[objectAt(tag)["name"].(string)] = true
	}
	api := new(Server).description()
	for _, r := range table() {
		if !described[api.Area(r)] {
			t.Errorf("%s %s: the area %s needs a line in areasOf", r.Method, r.Path, api.Area(r))
		}
	}
}

func TestDescriptionOfOptionalFields(t *testing.T) {
	d := describe(t)
	place := "/components/schemas/ContactChange"
	for _, good := range []string{
		`{}`,
		`{"name":null}`,
		`{"email":"a@b.c","tags":["x"],"metadata":{"a":[1]}}`,
		`{"tags":null,"metadata":null}`,
		`{"shoe_size":44}`,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		d.check(t, good, place, value)
	}
	schema, err := d.schema(place)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"name":5}`, `{"tags":"x"}`, `{"tags":[1]}`, `{"metadata":[]}`, `[]`} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(value) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}

func TestDescriptionOverHTTP(t *testing.T) {
	c := newTestClient(t)
	a := c.send(t, "GET", "/api/openapi.json", "")
	if a.StatusCode != 200 || a.Header.Get("ETag") == "" || a.json["openapi"] != "3.1.0" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	for _, tag := range []string{
		a.Header.Get("ETag"),
		strings.TrimPrefix(a.Header.Get("ETag"), "W/"),
		`"other", ` + a.Header.Get("ETag"),
		"*",
	} {
		if again := c.with("If-None-Match", tag).send(t, "GET", "/api/openapi.json", ""); again.StatusCode != 304 ||
			again.text != "" {
			t.Errorf("If-None-Match %s: %d with %d bytes", tag, again.StatusCode, len(again.text))
		}
	}
	if again := c.with("If-None-Match", `"other"`).send(t, "GET", "/api/openapi.json", ""); again.StatusCode != 200 {
		t.Errorf("another tag: %d", again.StatusCode)
	}
}

func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		if _, err := Describe("1.2.3"); err != nil {
			b.Fatal(err)
		}
	}
}
