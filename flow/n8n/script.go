package n8n

import (
	"embed"
	"strings"
	"sync"
)

//go:embed js/*.js
var scripts embed.FS

// section is a part of the JavaScript that generated code may need, by the name
// that it defines: $get, DateTime, or .sum for a method.
type section struct {
	name, code string
}

// sections are all sections, each before those that need it where that matters.
var sections = sync.OnceValue(func() (all []section) {
	for _, file := range []string{"js/items.js", "js/bytes.js", "js/markup.js", "js/datetime.js", "js/extensions.js"} {
		raw, err := scripts.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		for part := range strings.SplitSeq(string(raw), "//@ ") {
			if name, code, ok := strings.Cut(part, "\n"); ok && name != "" {
				all = append(all, section{strings.TrimSpace(name), code})
			}
		}
	}
	return all
})

// withSections returns code preceded by the sections that it uses.
func withSections(code string) string {
	used := map[string]bool{}
	for text := code; ; {
		more := ""
		for _, s := range sections() {
			if !used[s.name] && containsName(text, s.name) {
				used[s.name] = true
				more += s.code
			}
		}
		if more == "" {
			break
		}
		text = more
	}
	var out strings.Builder
	for _, s := range sections() {
		if used[s.name] {
			out.WriteString(s.code)
		}
	}
	return out.String() + code
}

// containsName reports whether code contains a name as a separate word. A method,
// written with its dot, must be called.
func containsName(code, name string) bool {
	for at := 0; ; {
		index := strings.Index(code[at:], name)
		if index < 0 {
			return false
		}
		index += at
		at = index + len(name)
		end := byte(0)
		if at < len(code) {
			end = code[at]
		}
		switch {
		case name[0] == '.':
			if end == '(' && index > 0 {
				return true
			}
		case (index == 0 ||
			!isWord(code[index-1]) && (code[index-1] != '.' || strings.HasSuffix(code[:index], "..."))) &&
			!isWord(end):
			return true
		}
	}
}
