package document

import (
	"context"
	"strings"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	unit := map[string]string{
		"a.txt":  "A line of plain text, nothing more.\n\n",
		"a.md":   "# Heading\n\nA paragraph with *some* words.\n\n- item\n- item\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
		"a.json": `{"id": 12345, "name": "Ada Lovelace", "tags": ["a", "b"], "sub": {"x": 1.5, "y": null}}` + "\n",
		"a.csv":  "12345,Ada Lovelace,London,\"a \"\"quoted\"\" one\"\n",
	}
	for _, name := range []string{"a.txt", "a.md", "a.json", "a.csv"} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"10KB", 10 << 10}, {"1MB", 1 << 20}, {"25MB", 25 << 20}} {
			data := []byte(strings.Repeat(unit[name], size.bytes/len(unit[name])))
			b.Run(name[2:]+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Read(context.Background(), name, "", data, Limits{Text: 256 << 20}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
