package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"äöüß", 3, "äö…"},
		{"äöü", 3, "äöü"},
		{"ab", 1, "…"},
		{"ab", 0, ""},
		{"", 0, ""},
		{"\xff\xfe\xfd", 2, "\ufffd…"},
	} {
		got := Clip(c.in, c.n)
		if got != c.want || utf8.RuneCountInString(got) > c.n {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestCleanTags(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{nil, []string{}},
		{[]string{" vip ", "", "vip", "  ", "VIP", "new"}, []string{"vip", "VIP", "new"}},
	} {
		if got := CleanTags(c.in); got == nil || !slices.Equal(got, c.want) {
			t.Errorf("CleanTags(%q) = %q", c.in, got)
		}
	}
}

func TestOptional(t *testing.T) {
	var in struct {
		Missing, Null, Text, Empty Optional[string]
		List                       Optional[[]string]
		Number                     Optional[int]
	}
	if err := json.Unmarshal([]byte(`{"Null":null,"Text":"x","Empty":"","List":["a"],"Number":7}`), &in); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  Optional[string]
		want Optional[string]
		into string
		json string
	}{
		"missing": {in.Missing, Optional[string]{}, "before", "null"},
		"null":    {in.Null, Optional[string]{Given: true, Null: true}, "", "null"},
		"text":    {in.Text, Some("x"), "x", `"x"`},
		"empty":   {in.Empty, Some(""), "", `""`},
	} {
		dst := "before"
		c.got.Into(&dst)
		raw, err := json.Marshal(c.got)
		if c.got != c.want || dst != c.into || err != nil || string(raw) != c.json {
			t.Errorf("%s: %+v, into %q, JSON %s, %v", name, c.got, dst, raw, err)
		}
	}
	if !slices.Equal(in.List.Value, []string{"a"}) || in.Number.Value != 7 {
		t.Errorf("values: %+v %+v", in.List, in.Number)
	}
	var wrong Optional[int]
	if json.Unmarshal([]byte(`"seven"`), &wrong) == nil {
		t.Error("a text was read as a number")
	}
}

func TestIssues(t *testing.T) {
	var is Issues
	if is.Err() != nil {
		t.Fatal("no issues are an error")
	}
	is.Check(true, "a", "is fine")
	is.Check(false, "name", "is required")
	var one *Error
	if err := is.Err(); !errors.As(err, &one) || one.Code != CodeValidation || one.Message != "name is required" ||
		one.Details["field"] != "name" || one.Details["issue"] != "is required" || one.Details["errors"] != nil {
		t.Errorf("one issue: %+v", one)
	}
	is.Add("email", "must be an email address")
	var two *Error
	if err := is.Err(); !errors.As(err, &two) ||
		two.Message != "name is required, and 1 more" ||
		len(two.Details["errors"].([]Issue)) != 2 {
		t.Errorf("two issues: %+v", two)
	}
	for range 10 * maxIssues {
		is.Add("tags", "is bad")
	}
	if len(is) != maxIssues {
		t.Errorf("%d issues were kept", len(is))
	}
}

func TestErrorKeepsItsCauseForTheLog(t *testing.T) {
	cause := errors.New("disk on fire")
	err := error(Errorf(CodeConflict, "cannot do %s", "that").Because(cause).With("status", 3))
	if !errors.Is(err, cause) || ErrorCode(err) != CodeConflict || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("got error %v", err)
	}
	if e, _ := errors.AsType[*Error](err); e.Message != "cannot do that" || e.Details["status"] != 3 {
		t.Errorf("the error for clients: %+v", e)
	}
	if ErrorCode(nil) != "" || ErrorCode(cause) != CodeInternal || ErrorCode(errors.Join(cause, err)) != CodeConflict {
		t.Error("the code of another kind of error")
	}
	if e := NotFound("contact", strings.Repeat("x", 500)); utf8.RuneCountInString(e.Details["id"].(string)) != 100 {
		t.Errorf("a long id is not truncated: %v", e.Details)
	}
}
