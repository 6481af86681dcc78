package chunk

import (
	"slices"
	"strings"
	"testing"
)

// TestShortDocumentsSplitAtHeadings: a document that fits into one chunk is split at its
// headings by the default method, unless a section would be too short.
func TestShortDocumentsSplitAtHeadings(t *testing.T) {
	long := strings.Repeat("Something that is worth a sentence. ", 4)
	for name, c := range map[string]struct {
		text, method string
		want         []string // the headings of the chunks
	}{
		"two sections": {
			"# Handbook\n## Returns\n" + long + "\n## Hours\n" + long,
			Recursive,
			[]string{"Handbook > Returns", "Handbook > Hours"},
		},
		"a short last": {"# Handbook\n" + long + "\n## Hours\nNine to five.", Recursive, []string{"Handbook"}},
		"a short first": {
			"# Handbook\n## Returns\nNo.\n## Hours\n" + long,
			Recursive,
			[]string{"Handbook > Returns"},
		},
		"no heading":          {long + "\n\n" + long, Recursive, []string{""}},
		"another method":      {"# A\n" + long + "\n# B\n" + long, Sentence, []string{"A"}},
		"more than one chunk": {"# A\n" + long + "\n# B\n" + strings.Repeat(long, 8), Recursive, nil},
	} {
		t.Run(name, func(t *testing.T) {
			doc := read(t, "a.md", c.text)
			chunks, err := Split(t.Context(), doc, Config{Size: 1000, Overlap: 200, Method: c.method})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, part := range chunks {
				got = append(got, part.Heading)
			}
			if c.want == nil && len(got) > 1 {
				return
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("chunks of %q, want %q", got, c.want)
			}
		})
	}
}
