package agent

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Clip shortens s to at most n characters, marking the cut with an ellipsis.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}

// Pattern returns a regular expression that is compiled when it is first needed: most
// processes of the program never use it.
//
//go:noinline // the code of sync.OnceValue would be repeated for each pattern
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(text)
	})
}

// checkText adds an issue if a text is too long or contains NUL.
func (i *Issues) checkText(field, value string, max int) {
	if strings.ContainsRune(value, 0) {
		i.Add(field, "must not contain NUL characters")
	}
	if utf8.RuneCountInString(value) > max {
		i.Add(field, fmt.Sprintf("must have at most %d characters", max))
	}
}

// CheckText returns an error if a text cannot be stored: it is longer than max
// characters, or contains NUL.
func CheckText(field, text string, max int) error {
	var is Issues
	is.checkText(field, text, max)
	return is.Err()
}

// Optional is a field of a change: omitted, null, or set to a value. The zero
// Optional is omitted.
type Optional[T any] struct {
	Given bool
	Null  bool
	Value T
}

// Some returns an Optional that is set to a value.
func Some[T any](v T) Optional[T] {
	return Optional[T]{Given: true, Value: v}
}

// Into stores the value in dst if the field was given; null clears dst.
func (o Optional[T]) Into(dst *T) {
	if o.Given {
		*dst = o.Value
	}
}

// UnmarshalJSON records that the field was given.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{Given: true}
	if string(data) == "null" {
		o.Null = true
		return nil
	}
	return unmarshal(data, &o.Value)
}

// MarshalJSON encodes the value, or null if there is none.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Given || o.Null {
		return []byte("null"), nil
	}
	return marshal(o.Value)
}
