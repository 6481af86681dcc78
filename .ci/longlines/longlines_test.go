package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestReformat(t *testing.T) {
	before, after := read(t, "testdata/before.txt"), read(t, "testdata/after.txt")
	broken, err := reformat("sample.go", before)
	if err != nil {
		t.Fatal(err)
	}
	if string(broken) != string(after) {
		t.Errorf("it became\n%s", broken)
	}
	if err := sameCode(before, broken); err != nil {
		t.Error(err)
	}
	if again, err := reformat("sample.go", broken); err != nil || string(again) != string(broken) {
		t.Errorf("again, it became\n%s\n%v", again, err)
	}
	if long, err := longLines("sample.go", broken); err != nil || len(long) > 0 {
		t.Errorf("long lines are left: %v, %v", long, err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSameCode(t *testing.T) {
	const before = "package p\n\nvar a = f(1, \"b c\") // a note\n"
	for after, same := range map[string]bool{
		"package p\n\n// a note\nvar a = f(\n1,\n\"b \" +\n\"c\",\n)\n": true,
		"package p\n\nvar a = f(1, `b c`) // a note\n":                  true,
		"package p\n\nvar a = f(2, \"b c\") // a note\n":                false,
		"package p\n\nvar a = f(1, \"b \" + \"d\") // a note\n":         false,
		"package p\n\nvar a = f(1, \"b \", \"c\") // a note\n":          false,
		"package p\n\nvar a = f(1); \"b c\" // a note\n":                false,
		"package p\n\nvar a = f(1, \"b c\") // another note\n":          false,
		"package p\n\nvar a = f(1, \"b c\")\n":                          false,
	} {
		if err := sameCode([]byte(before), []byte(after)); (err == nil) != same {
			t.Errorf("%q: %v", after, err)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		file, text string
		want       []int
	}{
		"120 columns": {"a.go", "package p\n\n// " + long + strings.Repeat("ä", 17) + "\n", nil},
		"121 columns": {"a.go", "package p\n\n// " + long + strings.Repeat("ä", 18) + "\n", []int{2}},
		"a tab": {
			"a.go",
			"package p\n\nfunc f() {\n\t//" + long + strings.Repeat("x", 15) + "\n}\n",
			[]int{3},
		},
		"a tag":            {"a.go", "package p\n\ntype t struct {\n\ta int `" + long + long + "`\n}\n", nil},
		"a text of a line": {"a.go", "package p\n\nvar a = `" + long + long + "`\n", []int{2}},
		"a text of two":    {"a.go", "package p\n\nvar a = `" + long + "\n" + long + long + "`\n", nil},
		"a row":            {"httpapi/routes.go", rows(long + strings.Repeat("x", 50)), nil},
		"a row of 161":     {"httpapi/routes.go", rows(long + strings.Repeat("x", 54)), []int{3}},
		"a row elsewhere":  {"httpapi/other.go", rows(long + strings.Repeat("x", 50)), []int{3}},
		"a template": {
			"a.ts",
			"const a = `" + long + "\n" + long + long + "${`b`}`;\n// " + long + long,
			[]int{2},
		},
		"no template":        {"a.ts", "const a = /`/; // `\nconst b = '`" + long + long + "';\n", []int{1}},
		"a template of one":  {"a.ts", "const a = `" + long + long + "`;\n", []int{0}},
		"an escaped grave":   {"a.ts", "const a = `\\``;\nconst b = \"" + long + long + "\";\n", []int{1}},
		"an object in a ${}": {"a.ts", "const a = `${f({ b: 1 })}`;\nconst c = \"" + long + long + "\";\n", []int{1}},
	} {
		if got, err := longLines(c.file, []byte(c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// rows returns a Go file with a list that has one row.
func rows(row string) string { return "package p\n\nvar a = []string{\n\t\"" + row + "\",\n}\n" }

func TestWrapScript(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", 30))
	first, second := strings.Repeat(" word", 23), strings.Repeat(" word", 7)
	for before, after := range map[string]string{
		"  /** " + words + " */\n":            "  /**\n   *" + first + "\n   *" + second + "\n   */\n",
		"  // " + words + "\n":                "  //" + first + "\n  //" + second + "\n",
		"const a = `\n// " + words + "\n`;\n": "const a = `\n// " + words + "\n`;\n",
	} {
		if got := string(wrapScript([]byte(before))); got != after {
			t.Errorf("%q became %q", before, got)
		}
	}
}
