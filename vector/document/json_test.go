package document

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"satchel/agent"
)

func TestJSON(t *testing.T) {
	cases := []struct{ name, data, want string }{
		{"scalar", `"hello"`, `row "hello"`},
		{"number", ` 12345678901234567890.10e+400 `, `row "12345678901234567890.10e+400"`},
		{"object", `{"a":1,"b":null,"c":true,"d":"x"}`, `row "a: 1\nb: null\nc: true\nd: x"`},
		{"paths", `{"order":{"id":7,"items":[{"name":"pen"},{"name":"ink","tags":["a","b"]}],"paid":false}}`, `
row "order.id: 7"
row "order.items[0].name: pen"
row "order.items[1].name: ink\norder.items[1].tags: a, b"
row "order.paid: false"`},
		{"root array", `[{"a":1},{"a":2,"sub":[{"b":1},{"b":2}]},3]`, `
row "[0].a: 1"
row "[1].a: 2\n[1].sub[0].b: 1\n[1].sub[1].b: 2"
row "[2]: 3"`},
		{"objects under the root", `{"x":1,"ada":{"age":36},"bob":{"age":40},"y":2}`, `
row "x: 1"
row "ada.age: 36"
row "bob.age: 40"
row "y: 2"`},
		{"empty ones", `{"a":{},"b":[],"c":[[]],"d":""}`, `
row "a: {}"
row "b: []"
row "c[0]: []"
row "d:"`},
		{"odd names", `{"":1,"a.b":2,"c: d":3,"e\nf":4,"g h":5}`,
			`row "[\"\"]: 1\n[\"a.b\"]: 2\n[\"c: d\"]: 3\n[\"e\\nf\"]: 4\ng h: 5"`},
		{"a duplicate name", `{"a":1,"a":2}`, `row "a: 1\na: 2"`},
		{"escapes", `{"a":"\u00e9\n\"\ud83d\ude00\ud800 \u0000 \r\n."}`, `row "a: é\n\"😀� ` + "  " + `\n."`},
		{"lines", "{\"a\":1}\n\n{\"a\":[{\"b\":2}]}\n[3]\n", `
row "a: 1"
row "a[0].b: 2"
row "3"`},
		{"a byte order mark", "\xef\xbb\xbf[1, 2]", `row "1, 2"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			compare(t, outlineOf(mustRead(t, "a.json", c.data)), c.want)
		})
	}
}

// Long names that are repeated for many values make a text far longer than the file.
func TestJSONThatExpands(t *testing.T) {
	data := `{"` + strings.Repeat("k", 1<<20) + `":{"x":[` + strings.Repeat(`{"a":1},`, 1<<17) + `0]}}`
	_, err := Read(context.Background(), "a.json", "", []byte(data), Limits{})
	if agent.ErrorCode(err) != CodeTooComplex {
		t.Errorf("got %v", err)
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,{"b":"c"}],"d":{"e":[[],{}]}}`,
		"[1,2]\n[3]", `"\u0000\ud800"`, `[[[[1]]]]`, `{"a":1,}`, `[1 , 2 ]`, "1e5",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Read(context.Background(), "a.json", "", data, Limits{Depth: 20, Blocks: 50})
		if err != nil {
			checkError(t, err)
			return
		}
		checkDocument(t, doc)
		checkScalars(t, doc, data)
	})
}

// checkScalars looks for each plain string value of a JSON text in doc.
func checkScalars(t *testing.T, doc *Document, data []byte) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, bomUTF8)))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		var want string
		switch v := token.(type) {
		case json.Number:
			want = v.String()
		case string:
			want = v
		}
		if !strings.ContainsAny(want, ".[]:\"\n\r\t\x00") && !strings.Contains(doc.Text, want) {
			t.Fatalf("%q is not in %q", want, doc.Text)
		}
	}
}
