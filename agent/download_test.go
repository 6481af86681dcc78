package agent

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzFileName checks that any suggested name becomes a plain file name.
func FuzzFileName(f *testing.F) {
	for _, seed := range []string{
		"", "a.txt", "../../etc/passwd", `C:\x\y.exe`, "...", "a\x00b", "\xff", "/", strings.Repeat("é", 300) + ".pdf",
		"a\nb", `x"y`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, suggested string) {
		name := FileName(suggested)
		if name == "" ||
			len(name) > 200 ||
			!utf8.ValidString(name) ||
			strings.ContainsAny(name, "/\\\x00\n\"") ||
			strings.HasPrefix(name, ".") {
			t.Errorf("%q becomes %q", suggested, name)
		}
	})
}
