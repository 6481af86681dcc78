package browser

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Limits of what a session hides.
const (
	maxHidden = 100 // values; the oldest are forgotten
	// minHidden is the minimum length in bytes of a value that is hidden wherever it
	// occurs. A shorter one is hidden only if it is the whole value of a field.
	minHidden = 4
)

// hiddenValue is a value in all its forms, the longest first.
type hiddenValue struct {
	name, value string
	forms       []string
	alone       *regexp.Regexp // for a short value: matches it as the value of a field in a snapshot
}

// Hide makes the session show %name% in place of each value, in addresses, titles and
// the results of Hidden, while the session is open. The values are only kept in memory.
func (session *Session) Hide(values map[string]string) {
	session.hiding.Lock()
	defer session.hiding.Unlock()
	for name, value := range values {
		known := slices.ContainsFunc(session.hidden, func(h hiddenValue) bool {
			return h.name == name && h.value == value
		})
		if value != "" && !known {
			session.hidden = append(session.hidden, newHidden(name, value))
		}
	}
	if surplus := len(session.hidden) - maxHidden; surplus > 0 {
		session.hidden = slices.Delete(session.hidden, 0, surplus)
	}
}

func newHidden(name, value string) hiddenValue {
	h := hiddenValue{name: name, value: value}
	if len(value) < minHidden {
		h.alone = regexp.MustCompile(`(?m)(: "?)` + regexp.QuoteMeta(value) + `("?)$`)
		return h
	}
	quoted, _ := json.Marshal(value) // a string can always be encoded
	h.forms = []string{
		value,
		url.QueryEscape(value),
		url.PathEscape(value),
		strings.Trim(string(quoted), `"`),
		strings.Join(strings.Fields(value), " "),
		strings.ReplaceAll(value, "'", "''"),
	}
	slices.SortFunc(h.forms, func(a, b string) int {
		return len(b) - len(a)
	})
	h.forms = slices.DeleteFunc(slices.Compact(h.forms), func(form string) bool {
		return len(form) < minHidden
	})
	return h
}

// Hidden returns a text in which hidden values are replaced by their names.
func (session *Session) Hidden(text string) string {
	session.hiding.Lock()
	defer session.hiding.Unlock()
	for _, h := range session.hidden {
		for _, form := range h.forms {
			text = strings.ReplaceAll(text, form, "%"+h.name+"%")
		}
		if h.alone != nil {
			text = h.alone.ReplaceAllString(text, "${1}%"+h.name+"%${2}")
		}
	}
	return text
}
