package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"satchel/agent"
)

func read(t *testing.T, document, base string) agent.APIDocument {
	t.Helper()
	doc, err := parse([]byte(document), base)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range doc.Operations {
		if err := compiles(o.Parameters); err != nil {
			t.Errorf("%s: %v\n%s", o.ID, err, o.Parameters)
		}
	}
	return doc
}

// compiles returns the error of compiling a schema as JSON Schema 2020-12.
func compiles(schema []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", v); err != nil {
		return err
	}
	_, err = c.Compile("schema.json")
	return err
}

func operation(t *testing.T, doc agent.APIDocument, id string) *agent.OperationDefinition {
	t.Helper()
	for i := range doc.Operations {
		if doc.Operations[i].ID == id {
			return &doc.Operations[i]
		}
	}
	t.Fatalf("no operation %s", id)
	return nil
}

func is(t *testing.T, what string, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(want)); err != nil {
		t.Fatal(err)
	}
	if string(raw) != buf.String() {
		t.Errorf("%s:\n got %s\nwant %s", what, raw, buf.String())
	}
}

const shop30 = `
openapi: 3.0.3
info: {title: Shop, version: 2020-01-02}
servers:
  - url: https://{region}.shop.test/{base}/
    variables:
      region: {default: eu, enum: [eu, us]}
      base: {default: v2}
security: [{key: [], secret: []}]
paths:
  x-extension: {get: {}}
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
      - $ref: '#/components/parameters/Trace'
    get:
      operationId: orders/get
      summary: Read  an
        order
      description: First line.
      tags: [orders]
      deprecated: true
      parameters:
        - {name: id, in: query, schema: {type: string, nullable: true}}
        - {name: body, in: query, schema: {type: number, minimum: 0, exclusiveMinimum: true}}
        - {name: 'filter[name]', in: query, style: deepObject, explode: true, schema: {type: object}}
        - {name: Accept, in: header, schema: {type: string}}
        - {name: where, in: query, content: {application/json: {schema: {type: object}}}}
      responses: {200: {content: {application/json: {}}}}
    put:
      operationId: orders/get
      requestBody:
        required: true
        content:
          text/plain: {schema: {type: string}}
          application/json: {schema: {$ref: '#/components/schemas/Order'}}
  /pictures:
    servers: [{url: https://upload.shop.test}]
    post:
      requestBody:
        content:
          multipart/form-data:
            schema:
              allOf:
                - {properties: {title: {type: string}}}
                - {properties: {file: {type: string, format: binary}, more: {type: array, items: {type: string, format: binary}}}, required: [file]}
components:
  parameters:
    Trace: {name: id, in: header, schema: {type: string}}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    secret: {type: apiKey, in: header, name: X-Secret, description: From the settings.}
  schemas:
    Order:
      type: object
      required: [id, lines]
      properties:
        id: {type: integer, readOnly: true}
        total: {$ref: '#/components/schemas/Total'}
        lines: {type: array, items: {$ref: '#/components/schemas/Line'}}
        status: {type: string, enum: [new, new, done], nullable: true}
    Total: {type: number, readOnly: true}
    Line:
      type: object
      properties:
        part: {$ref: '#/components/schemas/Line'}
        kind: {oneOf: [{type: string}, {$ref: other.yaml}]}
        code: {type: string, pattern: '^(?!x)'}
`

func TestOpenAPI30(t *testing.T) {
	doc := read(t, shop30, "")
	is(t, "servers", doc.Servers, `[{"url":"https://eu.shop.test/v2"},{"url":"https://us.shop.test/v2"}]`)
	if doc.Title != "Shop" || doc.Version != "2020-01-02" || len(doc.Operations) != 3 || len(doc.Warnings) != 1 {
		t.Errorf("%q %q, %d operations, warnings %q", doc.Title, doc.Version, len(doc.Operations), doc.Warnings)
	}
	get := operation(t, doc, "orders/get")
	if get.Name != "orders_get" ||
		get.Summary != "Read an order" ||
		!get.Deprecated ||
		get.Accept != "application/json" {
		t.Errorf("got %+v", get)
	}
	is(t, "arguments", get.Parameters, `{"additionalProperties":false,"properties":{
		"body_query":{"exclusiveMinimum":0,"type":"number"},"filter_name":{"type":"object"},"id":{"type":"integer"},"id_header":{"type":"string"},
		"id_query":{"type":["string","null"]},"where":{"type":"object"}},"required":["id"],"type":"object"}`)
	put := operation(t, doc, "PUT /orders/{id}") // the id is used by the other operation
	is(t, "body", put.Parameters, `{"$defs":{
		"Line":{"properties":{"code":{"type":"string"},"kind":{"anyOf":[{"type":"string"},{}]},"part":{"$ref":"#/$defs/Line"}},"type":"object"},
		"Order":{"properties":{"lines":{"items":{"$ref":"#/$defs/Line"},"type":"array"},"status":{"enum":["new","done",null],"type":["string","null"]}},"required":["lines"],"type":"object"}},
		"additionalProperties":false,"properties":{"body":{"$ref":"#/$defs/Order"},"id":{"type":"integer"},"id_header":{"type":"string"}},"required":["id","body"],"type":"object"}`)
	is(t, "security", doc.Security, `[{"name":"key + secret","schemes":["key","secret"],"type":"header","hosts":["eu.shop.test"],"config":{},
		"fields":[{"name":"X-Key"},{"name":"X-Secret","description":"From the settings."}]}]`)
	pictures := operation(t, doc, "POST /pictures")
	if pictures.Server != "https://upload.shop.test" || pictures.Name != "post_pictures" {
		t.Errorf("got %+v", pictures)
	}
	is(t, "files", pictures.Body, `{"media":"multipart/form-data","files":["file","more"]}`)
}

func TestOpenAPI31AndSwagger(t *testing.T) {
	doc := read(t, `{"openapi":"3.1.0","info":{"title":"T","version":"1"},"servers":[{"url":"../api"}],"security":[{"a":[]}],
		"paths":{"/x":{"post":{"requestBody":{"content":{"application/octet-stream":{}}}},
			"get":{"parameters":[{"name":"v","in":"query","schema":{"$ref":"#/components/schemas/V","description":"Mine","type":["string","null"]}}]}}},
		"components":{"schemas":{"V":{"$ref":"#/components/schemas/W"},"W":{"const":1,"$defs":{}}},
			"securitySchemes":{"a":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"/auth","tokenUrl":"https://id.test/token","scopes":{"b":"","a":""}}}}}}}`, "https://docs.test/v1/openapi.json")
	is(t, "servers", doc.Servers, `[{"url":"https://docs.test/api"}]`)
	is(
		t,
		"security",
		doc.Security[0].Config,
		`{"grant":"authorization_code","auth_url":"https://docs.test/auth",`+
			`"token_url":"https://id.test/token","scope":"a b"}`,
	)
	is(t, "siblings", operation(t, doc, "GET /x").Parameters, `{"$defs":{"V":{"const":1}},"additionalProperties":false,
		"properties":{"v":{"$ref":"#/$defs/V","description":"Mine","type":["string","null"]}},"type":"object"}`)
	doc = read(t, `
swagger: "2.0"
info: {title: Old}
host: old.test
basePath: /api/
schemes: [http, https]
consumes: [application/xml, application/vnd.x+json]
produces: [application/json]
securityDefinitions: {b: {type: basic}}
paths:
  /pets/{id}:
    post:
      operationId: add
      parameters:
        - {name: ids, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: body, in: body, required: true, schema: {x-nullable: true, type: object}}
  /upload:
    post:
      operationId: upload
      parameters:
        - {name: file, in: formData, type: file, required: true}
        - {name: note, in: formData, type: string, description: A note.}
`, "")
	is(t, "servers", doc.Servers, `[{"url":"https://old.test/api"},{"url":"http://old.test/api"}]`)
	add := operation(t, doc, "add")
	is(
		t,
		"arguments",
		add.Parameters,
		`{"additionalProperties":false,"properties":{"body":{"type":["object","null"]},"id":{"type":"string"},`+
			`"ids":{"items":{"type":"string"},"type":"array"}},"required":["id","body"],"type":"object"}`,
	)
	is(
		t,
		"params",
		add.Params,
		`[{"property":"ids","name":"ids","in":"query","style":"pipeDelimited"},{"property":"id",`+
			`"name":"id","in":"path"}]`,
	)
	if add.Body.Media != "application/vnd.x+json" || doc.Security[0].Type != agent.CredentialBasic {
		t.Errorf("got %+v %+v", add.Body, doc.Security)
	}
	if upload := operation(t, doc, "upload"); upload.Body.Media != multipartMedia || upload.Body.Files[0] != "file" {
		t.Errorf("got %+v", upload.Body)
	}
}

func TestPostman(t *testing.T) {
	doc := read(t, `{"info":{"name":"Crm","schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		"variable":[{"key":"base","value":"https://crm.test/v1"},{"key":"team","value":"a team"}],
		"auth":{"type":"apikey","apikey":[{"key":"key","value":"X-Key"}]},
		"item":[{"name":"People","item":[
			{"name":"Read","request":{"method":"GET","url":{"raw":"{{base}}/teams/{{team}}/people/:id?full=true&sort={{sort}}",
				"query":[{"key":"full","value":"true"},{"key":"sort","value":"{{sort}}"},{"key":"off","value":"1","disabled":true}],
				"variable":[{"key":"id","value":"","description":"Whose"}]}}},
			{"name":"Add","request":{"method":"POST","header":[{"key":"X-Team","value":"{{team}}"},{"key":"Content-Type","value":"application/json"}],
				"body":{"mode":"raw","raw":"{\"name\":\"Ada\",\"age\":{{age}}}"},"url":"{{base}}/people"}},
			{"name":"Other","request":"https://files.test/x"}]}]}`, "")
	is(t, "servers", doc.Servers, `[{"url":"https://crm.test"},{"url":"https://files.test"}]`)
	is(t, "security", doc.Security[0].Fields, `[{"name":"X-Key"}]`)
	get := operation(t, doc, "Read")
	is(t, "arguments", get.Parameters, `{"additionalProperties":false,"properties":{"full":{"default":"true","type":["string","number","boolean"]},
		"id":{"description":"Whose","type":["string","number","boolean"]},"off":{"type":["string","number","boolean"]},"sort":{"type":["string","number","boolean"]},
		"team":{"default":"a team","type":["string","number","boolean"]}},"required":["id","sort"],"type":"object"}`)
	call, err := Request("https://crm.test", get, arguments(t, `{"id":7,"sort":"name"}`))
	if err != nil || call.URL.String() != "https://crm.test/v1/teams/a%20team/people/7?full=true&sort=name" {
		t.Errorf("got %v %v", call, err)
	}
	add := operation(t, doc, "Add")
	if !strings.Contains(string(add.Parameters), `"age":{"description":"{{age}}"}`) || get.Tags[0] != "People" {
		t.Errorf("got %s %v", add.Parameters, get.Tags)
	}
	if other := operation(t, doc, "Other"); other.Server != "https://files.test" || other.Path != "/x" {
		t.Errorf("got %+v", other)
	}
}

func arguments(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A schema that is too large is reduced: first its texts are removed, then its deeper
// levels.
func TestLargeSchemas(t *testing.T) {
	document := func(properties int, about string) string {
		var schemas []string
		for i := range properties {
			schemas = append(schemas, fmt.Sprintf(`"p%d":{"type":"string","description":%q,"x":{}}`, i, about))
		}
		return `{"openapi":"3.0.0","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.test"}],"paths":{"/x":{"post":{"operationId":"x",
			"requestBody":{"content":{"application/json":{"schema":{"properties":{"in":{"$ref":"#/components/schemas/S"}}}}}}}}},"components":{"schemas":{"S":{"properties":{` + strings.Join(schemas, ",") + `}}}}}`
	}
	for _, c := range []struct {
		properties int
		about      string
		texts      bool
		most       int
	}{
		{20, strings.Repeat("x", 2000), true, 30 << 10},
		{100, strings.Repeat("x", 900), false, 30 << 10},
		{10000, "y", false, 1 << 10},
	} {
		doc := read(t, document(c.properties, c.about), "")
		schema := string(doc.Operations[0].Parameters)
		if len(schema) > c.most ||
			strings.Contains(schema, "description") != c.texts ||
			strings.Contains(schema, strings.Repeat("x", 1001)) ||
			(len(doc.Warnings) > 0) == c.texts {
			t.Errorf("%d properties: %d bytes, %v", c.properties, len(schema), doc.Warnings)
		}
	}
}

func TestRefusedDescriptions(t *testing.T) {
	for document, want := range map[string]string{
		"":                              "must not be empty",
		"{":                             "neither JSON nor YAML",
		"a: [":                          "neither JSON nor YAML",
		"[]":                            "must be OpenAPI",
		`{"openapi":"3.0.0"}`:           "describes no operation",
		`{"openapi":"4.0.0"}`:           "must be OpenAPI",
		strings.Repeat("[", 300):        "nested too deep",
		"a: &a [*a, *a]":                "nested too deep",
		"swagger: '2.0'\npaths: {x: 1}": "describes no operation",
		"a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n" + aliases(8): "too many values",
	} {
		if _, err := parse([]byte(document), ""); err == nil ||
			!strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "neither JSON nor YAML") {
			t.Errorf("%.40q: %v, want %s", document, err, want)
		}
	}
}

// aliases returns YAML in which each list has ten aliases of the previous list.
func aliases(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(
			&out, "a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","),
		)
	}
	return out.String()
}

// A description is read in a child process, so that a hostile one cannot exhaust the
// server.
func TestReadInChild(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	doc, err := Read(t.Context(), []byte(shop30), "https://shop.test/openapi.yaml")
	if err != nil || len(doc.Operations) != 3 {
		t.Errorf("got %+v %v", doc, err)
	}
	_, err = Read(t.Context(), []byte("swagger: 3"), "")
	if agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), "must be OpenAPI") {
		t.Errorf("got error %v", err)
	}
	large := `{"openapi":"3.0.0","paths":{"/a":{"get":{}}},"x":[` +
		strings.TrimSuffix(strings.Repeat(`{"a":[{}]},`, 1_700_000), ",") + `]}`
	if _, err = Read(t.Context(), []byte(large), ""); agent.ErrorCode(err) != agent.CodeInvalidFile {
		t.Errorf("got error %v", err)
	}
}

// Reading a description is given up after a limit of processor time, which does not
// depend on how busy the machine is.
func TestReadTakesTooLong(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip()
	}
	var paths []string
	for i := range 4000 { // each pattern takes a millisecond or two
		paths = append(
			paths,
			fmt.Sprintf(
				`"/%d":{"get":{"parameters":[{"name":"q","in":"query","schema":{"pattern":"%s"}}]}}`,
				i,
				strings.Repeat(`[\\pL\\pN]`, 100),
			),
		)
	}
	_, err := readWithin(
		t.Context(),
		[]byte(`{"openapi":"3.0.0","paths":{`+strings.Join(paths, ",")+`}}`),
		"",
		time.Second,
	)
	if agent.ErrorCode(err) != agent.CodeInvalidFile || !strings.Contains(err.Error(), "processor time") {
		t.Errorf("got error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(shop30))
	f.Add(
		[]byte(`{"swagger":"2.0","host":"a.test","paths":{"/a/{b}":{"get":{"parameters":[{"in":"formData",` +
			`"name":"f","type":"file"}]}}}}`),
	)
	f.Add(
		[]byte(`{"info":{"schema":"/v2."},"item":[{"name":"a","request":{"url":{"raw":"{{b}}/:c?d={{e}}"},` +
			`"body":{"mode":"raw","raw":"{\"a\":{{b}}}"}}}]}`),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parse(data, "https://docs.test/a/b")
		if err != nil {
			return
		}
		names := map[string]bool{}
		for i := range doc.Operations {
			o := &doc.Operations[i]
			if err := compiles(o.Parameters); err != nil {
				t.Fatalf("%v: %s", err, o.Parameters)
			}
			if names[o.Name] ||
				len(o.Name) > maxToolName ||
				notToolName.MatchString(o.Name) ||
				len(o.Parameters) > agent.MaxOperationSchema {
				t.Fatalf("name %q, %d bytes", o.Name, len(o.Parameters))
			}
			names[o.Name] = true
			given := map[string]any{}
			for _, p := range o.Params {
				given[p.Property] = "../x?y#z"
			}
			call, err := Request("https://api.test/base", o, given)
			if err == nil &&
				o.Server == "" &&
				(call.URL.Host != "api.test" || !strings.HasPrefix(call.URL.EscapedPath(), "/base/")) {
				t.Fatalf("got %s", call.URL)
			}
		}
	})
}
