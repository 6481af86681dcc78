package openapi

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	notToolName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	notProperty = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

const maxToolName = 64

// toolName returns a name that language models accept for a tool.
func toolName(id string) string {
	if method, path, ok := strings.Cut(id, " /"); ok {
		id = strings.ToLower(method) + "_" + path
	}
	return cleanName(notToolName, id, maxToolName, "operation")
}

// propertyName returns a name that language models accept for an argument.
func propertyName(name string) string { return cleanName(notProperty, name, maxToolName, "value") }

func cleanName(not *regexp.Regexp, name string, most int, fallback string) string {
	name = strings.Trim(not.ReplaceAllString(name, "_"), "_")
	if len(name) > most {
		name = strings.TrimRight(name[:most], "_")
	}
	if name == "" {
		return fallback
	}
	return name
}

// unique returns the name, with a number if it is taken, and takes it.
func unique(name string, taken map[string]bool) string {
	for n := 1; ; n++ {
		candidate := name
		if n > 1 {
			suffix := "_" + strconv.Itoa(n)
			candidate = name[:min(len(name), maxToolName-len(suffix))] + suffix
		}
		if !taken[candidate] {
			taken[candidate] = true
			return candidate
		}
	}
}
