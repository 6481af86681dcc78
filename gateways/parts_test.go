package gateways

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  []string
	}{
		"empty":         {" \n ", 10, nil},
		"short":         {" hello ", 10, []string{"hello"}},
		"exact":         {"0123456789", 10, []string{"0123456789"}},
		"one over":      {"0123456789a", 10, []string{"0123456789", "a"}},
		"at a line":     {"one two\nthree four", 12, []string{"one two", "three four"}},
		"at a space":    {"one two three", 12, []string{"one two", "three"}},
		"no early line": {"a\nbcdefghijklmnop", 10, []string{"a\nbcdefghi", "jklmnop"}},
		"two units":     {"🙂🙂🙂", 4, []string{"🙂🙂", "🙂"}},
		"below one":     {"🙂🙂", 1, []string{"🙂", "🙂"}},
	} {
		if got := split(c.text, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestInParts(t *testing.T) {
	var texts, keys []string
	parts := []string{"aa", "bb", "cc", "dd"}
	cut := errors.New("cut")
	fails := ""
	send := func(text, key string) (Sent, error) {
		if text == fails {
			return Sent{}, cut
		}
		texts, keys = append(texts, text), append(keys, key)
		return Sent{ID: "id-" + text, Channel: "c"}, nil
	}
	fails = "cc"
	sent, err := sendParts(Message{Key: "k"}, parts, send)
	if !errors.Is(err, cut) || sent != (Sent{ID: "id-aa", Channel: "c", Parts: 2}) {
		t.Errorf("cut: %+v, %v", sent, err)
	}
	fails = ""
	sent, err = sendParts(Message{Key: "k", Skip: sent.Parts}, parts, send)
	if err != nil || sent.Parts != 4 {
		t.Errorf("the rest: %+v, %v", sent, err)
	}
	if !slices.Equal(texts, []string{"aa", "bb", "cc", "dd"}) ||
		!slices.Equal(keys, []string{"k", "k#1", "k#2", "k#3"}) {
		t.Errorf("sent %q with the keys %q", texts, keys)
	}
	if _, err := sendParts(Message{}, make([]string, maxParts+1), send); err == nil || len(texts) != 4 {
		t.Errorf("a text of too many parts: %v, %d sent", err, len(texts))
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("one two\nthree", 5)
	f.Add("🙂\xff\x00", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 2 || limit > 5000 {
			return
		}
		var kept strings.Builder
		for _, part := range split(text, limit) {
			if part == "" || len(utf16.Encode([]rune(part))) > limit {
				t.Fatalf("a part of %d characters: %q", len(utf16.Encode([]rune(part))), part)
			}
			if utf8.ValidString(text) && !utf8.ValidString(part) {
				t.Fatalf("a character was cut: %q", part)
			}
			kept.WriteString(part)
		}
		bare := strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "")
		if got, want := bare.Replace(kept.String()), bare.Replace(text); utf8.ValidString(text) && got != want {
			t.Fatalf("%q became %q", want, got)
		}
	})
}
