package registry

import (
	"strings"
	"testing"
)

func TestCredentialName(t *testing.T) {
	for name, want := range map[string]string{
		"Möbel & Söhne №5":                "Möbel Söhne 5",
		"  ..a/b\x00\xffc\t(test)+@x-y_z": "a b c (test)+@x-y_z",
		"仓库 ²":                            "仓库 ²",
		"<>":                              "MCP server",
		"":                                "MCP server",
		"credential-1":                    "MCP server",
		strings.Repeat("a", 80):           strings.Repeat("a", 59),
	} {
		if got := credentialName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
