package chunk

import (
	"reflect"
	"strings"
	"testing"
)

func TestChunkPositions(t *testing.T) {
	cases := []struct {
		name, file, text string
		method           string
		lines            [][2]int
		headings         [][]string
	}{
		{"text", "a.txt", "one two three\nfour five six\n\nseven eight nine\nten\n", Recursive,
			[][2]int{{1, 2}, {4, 5}}, [][]string{{""}, {""}}},
		{"words that were joined", "a.txt", "the refrig-\nerator in the shop\n\nhums all day long\n", Recursive,
			[][2]int{{1, 2}, {4, 4}}, [][]string{{""}, {""}}},
		{"text as Markdown", "a.txt", "# A\nthe refrig-\nerator\n# B\nhums\n", Markdown,
			[][2]int{{1, 3}, {4, 5}}, [][]string{{"A"}, {"B"}}},
		{"front matter", "a.md", "---\ntitle: x\n---\n# A\n\n## B\n\none\n", Markdown,
			[][2]int{{2, 2}, {4, 8}}, [][]string{{""}, {"A > B"}}},
		{"several headings", "a.md", "# A\n\n## B\n\none\n\n## C\n\ntwo\n\n# D\n\n## E\nx\n", Sentence,
			[][2]int{{1, 9}, {11, 14}}, [][]string{{"A > B", "A > C"}, {"D > E"}}},
		{"no lines of the file", "a.csv", "id,name\n1,Ada\n", Recursive, [][2]int{{0, 0}}, [][]string{{""}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var lines [][2]int
			var headings [][]string
			for _, found := range split(t, read(t, c.file, c.text), Config{Size: 35, Method: c.method}) {
				lines = append(lines, [2]int{found.Line, found.LastLine})
				headings = append(headings, append([]string{found.Heading}, found.LaterHeadings...))
			}
			if !reflect.DeepEqual(lines, c.lines) || !reflect.DeepEqual(headings, c.headings) {
				t.Errorf("got %v, %q, want %v, %q", lines, headings, c.lines, c.headings)
			}
		})
	}
}

func TestChunksBeginAtASentence(t *testing.T) {
	long := strings.Repeat("word ", 18)
	for _, text := range []string{
		strings.Repeat("A "+long+"end. ", 30),
		strings.Repeat("A "+long+"end.  ", 30), // two spaces
		strings.Repeat("A short one. A "+long+long+"\nend.\n", 30),
	} {
		for _, m := range []string{Sentence, Recursive, Markdown} {
			for i, c := range split(t, read(t, "a.txt", text), Config{Size: 600, Overlap: 120, Method: m}) {
				if !strings.HasPrefix(c.Content, "A ") {
					t.Fatalf("%s: chunk %d begins with %.20q", m, i, c.Content)
				}
			}
		}
	}
}

// In text without headings, a single line that ends no sentence stays with the text
// that follows it.
func TestChunksDoNotEndWithATitle(t *testing.T) {
	text := strings.Repeat("Wear glasses and no gloves at all. ", 9) + "\n\nLaser cutter\n\n" +
		strings.Repeat("Never cut acrylic without the fan. ", 9)
	for _, m := range []string{Sentence, Recursive} {
		for _, size := range []int{340, 360, 400} {
			for i, c := range split(t, read(t, "a.txt", text), Config{Size: size, Method: m}) {
				if strings.HasSuffix(c.Content, "Laser cutter") {
					t.Errorf("%s, %d: chunk %d ends with the title: %q", m, size, i, c.Content)
				}
			}
		}
	}
	for i, c := range split(t, read(t, "a.txt", strings.Repeat("Laser cutter\n\n", 30)), Config{
		Size:   60,
		Method: Recursive,
	}) {
		if len(c.Content) < 40 && i < 6 {
			t.Errorf("chunk %d of a text of titles is %q", i, c.Content)
		}
	}
}
