package openapi

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"satchel/agent"
)

// Values are encoded as in the tables of the specification:
// https://spec.openapis.org/oas/v3.1.1.html#style-values
func TestStyles(t *testing.T) {
	const list, object = `{"color":["blue","black","bro wn"]}`, `{"color":{"R":100,"G":200}}`
	for _, c := range []struct {
		in, style string
		explode   bool
		value     string
		want      string
	}{
		{"path", "", false, list, "/blue,black,bro%20wn"},
		{"path", "simple", true, object, "/G=200,R=100"},
		{"path", "label", false, list, "/.blue,black,bro%20wn"},
		{"path", "label", true, object, "/.G=200.R=100"},
		{"path", "matrix", false, `{"color":"blue"}`, "/;color=blue"},
		{"path", "matrix", true, list, "/;color=blue;color=black;color=bro%20wn"},
		{"path", "matrix", true, object, "/;G=200;R=100"},
		{"path", "", false, `{"color":"a/../b?c#d"}`, "/a%2F..%2Fb%3Fc%23d"},
		{"query", "form", true, list, "/?color=blue&color=black&color=bro%20wn"},
		{"query", "form", false, list, "/?color=blue,black,bro%20wn"},
		{"query", "form", true, object, "/?G=200&R=100"},
		{"query", "form", false, object, "/?color=G,200,R,100"},
		{"query", "spaceDelimited", false, list, "/?color=blue%20black%20bro%20wn"},
		{"query", "pipeDelimited", false, list, "/?color=blue%7Cblack%7Cbro%20wn"},
		{"query", "tabDelimited", false, list, "/?color=blue%09black%09bro%20wn"},
		{
			"query",
			"deepObject",
			true,
			`{"color":{"R":100,"in":{"a":[true]}}}`,
			"/?color%5BR%5D=100&color%5Bin%5D%5Ba%5D%5B0%5D=true",
		},
		{"query", "form", true, `{"color":"a&b=c+d/e"}`, "/?color=a%26b%3Dc%2Bd%2Fe"},
		{"query", "form", true, `{"color":12345678901234567890}`, "/?color=12345678901234567890"},
		{"query", "form", true, `{"color":null}`, "/"},
	} {
		o := agent.OperationDefinition{
			Operation: agent.Operation{Method: "GET", Path: "/"},
			Params: []agent.OperationParam{{
				Property:          "color",
				Name:              "color",
				In:                c.in,
				OperationEncoding: agent.OperationEncoding{Style: c.style, Explode: c.explode},
			}},
		}
		if c.in == "path" {
			o.Path = "/{color}"
		}
		call, err := Request("https://a.test", &o, arguments(t, c.value))
		if err != nil || call.URL.String() != "https://a.test"+c.want {
			t.Errorf("%s %s %v %s: %v %v, want %s", c.in, c.style, c.explode, c.value, call, err, c.want)
		}
	}
}

func TestRequestParts(t *testing.T) {
	o := agent.OperationDefinition{
		Operation: agent.Operation{Method: "POST", Path: "/a b/{id}"},
		Query:     "v=1",
		Accept:    "application/json",
		Params: []agent.OperationParam{
			{Property: "id", Name: "id", In: "path"},
			{Property: "n", Name: "X-N", In: "header"},
			{Property: "s", Name: "sid", In: "cookie", OperationEncoding: agent.OperationEncoding{Style: "form"}},
			{Property: "w", Name: "w", In: "query", Media: "application/json"},
			{
				Property:          "u",
				Name:              "u",
				In:                "query",
				OperationEncoding: agent.OperationEncoding{Style: "form", AllowReserved: true},
			},
		},
		Body: &agent.OperationBody{
			Media:    formMedia,
			Encoding: map[string]agent.OperationEncoding{"m": {Style: "deepObject", Explode: true}},
		},
	}
	call, err := Request(
		"https://a.test/v1/",
		&o,
		arguments(
			t,
			`{"id":"x","n":[1,2],"s":"q","w":{"k":"<"},"u":"https://b.test/?c&d","body":{"m":{"k":1},`+
				`"l":[1,2],"o":{"k":true}}}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := call.URL.String(); got != "https://a.test/v1/a%20b/x?v=1&"+
		"w=%7B%22k%22%3A%22%3C%22%7D&u=https://b.test/?c%26d" {
		t.Error(got)
	}
	if call.Headers["X-N"] != "1,2" ||
		call.Headers["Cookie"] != "sid=q" ||
		call.MediaType != formMedia ||
		string(call.Body) != "l=1&l=2&m%5Bk%5D=1&o=%7B%22k%22%3Atrue%7D" {
		t.Errorf("got %v %s %s", call.Headers, call.MediaType, call.Body)
	}
	for _, id := range []string{`""`, `"."`, `".."`, `null`} {
		if _, err := Request(
			"https://a.test",
			&o,
			arguments(t, `{"id":`+id+`}`),
		); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestMultipartBody(t *testing.T) {
	o := agent.OperationDefinition{
		Operation: agent.Operation{Method: "POST", Path: "/"},
		Body:      &agent.OperationBody{Media: multipartMedia, Files: []string{"file"}},
	}
	call, err := Request(
		"https://a.test",
		&o,
		arguments(
			t,
			`{"body":{"file":{"name":"a\"\r\n.png","mime_type":"image/png","data":"aGk="},`+
				`"note":{"a":1},"tag":["x","y"]}}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(call.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := multipart.NewReader(strings.NewReader(string(call.Body)), params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(p) // in memory
		got = append(
			got,
			strings.Join([]string{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(raw)}, "|"),
		)
	}
	if want := `file|a"%0D%0A.png|image/png|hi ` +
		`note||application/json|{"a":1} tag|||x tag|||y`; strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
	if _, err := Request(
		"https://a.test",
		&o,
		arguments(t, `{"body":{"file":{"data":"?"}}}`),
	); agent.ErrorCode(err) != agent.CodeValidation {
		t.Error(err)
	}
}

// TestFileBodies sends files with a media type that the description allows.
func TestFileBodies(t *testing.T) {
	content := func(types string) string {
		return `{"openapi":"3.1.0","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.test"}],` +
			`"paths":{"/":{"put":{"requestBody":{"content":{` + types + `}}}}}}`
	}
	collection := `{"info":{"name":"T","schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},"item":[{"name":"PUT /",
		"request":{"method":"PUT","url":{"raw":"https://a.test/"},"body":{"mode":"file"}}}]}`
	swagger := `{"swagger":"2.0","info":{"title":"T","version":"1"},"host":"a.test","consumes":["image/gif","image/png"],
		"paths":{"/":{"put":{"parameters":[{"name":"b","in":"body","schema":{}}]}}}}`
	for _, c := range []struct{ name, document, own, want string }{
		{"another type", content(`"application/octet-stream":{}`), "image/png", "application/octet-stream"},
		{"no type", content(`"image/png":{}`), "", "image/png"},
		{"parameters", content(`"image/png":{}`), "IMAGE/PNG; x=1", "IMAGE/PNG; x=1"},
		{"range", content(`"image/*":{}`), "image/png", "image/png"},
		{"range and no type", content(`"image/*":{}`), "", "application/octet-stream"},
		{"one of two", content(`"image/gif":{},"image/png":{}`), "image/png", "image/png"},
		{"none of two", content(`"image/gif":{},"image/png":{}`), "text/csv", "image/gif"},
		{"Swagger 2", swagger, "image/png", "image/png"},
		{"Postman", collection, "image/png", "image/png"},
		{"Postman without a type", collection, "", "application/octet-stream"},
	} {
		doc := read(t, c.document, "")
		call, err := Request("https://a.test", &doc.Operations[0], map[string]any{
			"body": map[string]any{"data": "aGk=", "mime_type": c.own},
		})
		if err != nil || call.MediaType != c.want || string(call.Body) != "hi" {
			t.Errorf("%s: %+v %v", c.name, call, err)
		}
	}
}
