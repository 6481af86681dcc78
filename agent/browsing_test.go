package agent

import (
	"strings"
	"testing"
)

func TestVariablesInText(t *testing.T) {
	long := strings.Repeat("n", 64)
	v := Variables{"name": "Ada", "_2": "two", long: "long"}
	if err := v.Validate(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"%name% and %_2%":    "Ada and two",
		"%" + long + "%":     "long",
		"%" + long + "n%":    "%" + long + "n%",
		"100%name%":          "100Ada",
		"%other% %na me% %%": "%other% %na me% %%",
		"%2% name%":          "%2% name%",
	} {
		if got := v.Expand(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if used := v.UsedIn(text); used != (text != want) {
			t.Errorf("%q uses a variable: %v", text, used)
		}
	}
}
