package template

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	value := plain(
		t,
		`{"a":{"b":[{"c":1},{"c":"two"}]},"__proto__":null,"odd key":[[5]],"a.b":6,"@type":"x",`+
			`"numbers":{"0":"nought"},"":7}`,
	)
	for path, want := range map[string]string{
		"a.b[1].c": `"two"`, "a.b.1.c": `"two"`, "a.b[0]": `{"c":1}`, "odd key[0][0]": "5", "odd key.0.0": "5",
		"__proto__": "null", "@type": `"x"`, `["a.b"]`: "6", `['a'].b[0]["c"]`: "1", "numbers[0]": `"nought"`,
		"numbers.0": `"nought"`, `[""]`: "7", "a.b[2]": "-", "a.x": "-", "a.b.c": "-", "a[0]": "-", "a.b.-1": "-",
		"constructor": "-", "a.b[0].c.d": "-", "__proto__.x": "-", "[0]": "-",
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got := "-"
		if found, ok := p.Walk(value); ok {
			raw, _ := json.Marshal(found)
			got = string(raw)
		}
		if got != want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	list := plain(t, `[{"id":1},{"id":2}]`)
	for _, path := range []string{"[1].id", "1.id"} {
		if p, err := ParsePath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		} else if found, _ := p.Walk(list); found != 2.0 {
			t.Errorf("%s leads to %v", path, found)
		}
	}
	if p, err := ParsePath(""); err != nil || len(p) != 0 {
		t.Errorf("the empty path: %v, %v", p, err)
	}
}

func TestBadPaths(t *testing.T) {
	for _, bad := range []string{
		"a..b", ".a", "a.", "a[", "a[]", "a[x]", "a[-1]", "a[1]b", "[0]x", "a]", `a["b]`, "a[99999999999]",
		strings.Repeat("a", maxPath+1), strings.Repeat("a.", maxSegments) + "a",
	} {
		if p, err := ParsePath(bad); err == nil || !strings.HasPrefix(err.Error(), "must ") {
			t.Errorf("%q is the path %v, %v", bad, p, err)
		}
	}
	_, err := ParsePath("a[x]")
	if want := "must be a path such as data.items[0].title; at character 3, expected an index " +
		"or a quoted key, found 'x'"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "a.b[0].c", "a[", "[0][1]", "a..b", `["\u0000"]`, "\x00"} {
		f.Add(seed, `{"a":{"b":[{"c":1}]}}`)
	}
	f.Fuzz(func(t *testing.T, path, raw string) {
		var value any
		if json.Unmarshal([]byte(raw), &value) != nil {
			value = raw
		}
		if p, err := ParsePath(path); err == nil {
			p.Walk(value)
		}
	})
}
