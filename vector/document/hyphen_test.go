package document

import "testing"

func TestJoinLines(t *testing.T) {
	for text, want := range map[string]string{
		"the refrig-\nerator hums":               "the refrigerator hums",
		"Kündi-\n    gungsfrist":                 "Kündigungsfrist",
		"a well-\nknown and well-known thing":    "a well-known and well-known thing",
		"soft\u00adhyphen and so\u00ad\nft":      "softhyphen and soft",
		"- item\n- item":                         "- item\n- item",
		"usage: -\nfoo, MX-\n200, Anglo-\nSaxon": "usage: -\nfoo, MX-\n200, Anglo-\nSaxon",
		"no hyphen\nhere":                        "no hyphen\nhere",
	} {
		if got, _ := joinLines(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
