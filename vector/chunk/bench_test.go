package chunk

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"satchel/vector/document"
)

const prose = "The quick brown fox jumps over the lazy dog, and then it rests. " +
	"Nobody knows why it jumped; perhaps the dog was in the way.\n\n"

// shapes are texts that a naive splitter is slow on.
var shapes = map[string]func(n int) *document.Document{
	"prose": func(n int) *document.Document {
		return document.Markdown(repeat(prose, n), document.Limits{})
	},
	"one line": func(n int) *document.Document {
		return document.Markdown(repeat(strings.TrimSpace(prose)+" ", n), document.Limits{})
	},
	"no space": func(n int) *document.Document {
		return document.Markdown(repeat("abcdefghij", n), document.Limits{})
	},
	"Chinese": func(n int) *document.Document {
		return document.Markdown(repeat("我们今天去学校读书写字。", n), document.Limits{})
	},
	"spaces": func(n int) *document.Document {
		return document.Markdown("x"+repeat(" ", n)+"x", document.Limits{})
	},
	"headings": func(n int) *document.Document {
		return document.Markdown(repeat("# a\nb\n## c\nd\n", n), document.Limits{})
	},
	"one fence": func(n int) *document.Document {
		return document.Markdown("```go\n"+repeat("x := 1\n", n)+"```\n", document.Limits{})
	},
	"one table": func(n int) *document.Document {
		return document.Markdown("|a|b|\n|-|-|\n"+repeat("|1|2|\n", n), document.Limits{})
	},
	"one value": func(n int) *document.Document {
		text := "name: " + repeat("word ", n)
		return &document.Document{Text: text, Blocks: []document.Block{
			{Kind: document.KindRow, Parent: -1, End: uint32(len(text))}}}
	},
	"marks": func(n int) *document.Document {
		return document.Markdown(repeat("\u0301", n), document.Limits{})
	},
	"flags": func(n int) *document.Document {
		return document.Markdown(repeat("🇩🇪", n), document.Limits{})
	},
}

func repeat(s string, n int) string { return strings.Repeat(s, max(n/len(s), 1)) }

var sizes = []struct {
	name  string
	bytes int
}{{"10KB", 10 << 10}, {"1MB", 1 << 20}, {"25MB", 25 << 20}}

func BenchmarkSplit(b *testing.B) {
	for _, method := range []string{Fixed, Sentence, Recursive, Markdown} {
		for _, size := range sizes {
			doc := shapes["prose"](size.bytes)
			b.Run(method+"/"+size.name, func(b *testing.B) {
				benchmark(b, doc, Config{Size: 1000, Overlap: 200, Method: method})
			})
		}
	}
}

func BenchmarkSplitShapes(b *testing.B) {
	for name, shape := range shapes {
		for _, size := range sizes {
			doc := shape(size.bytes)
			b.Run(name+"/"+size.name, func(b *testing.B) {
				benchmark(b, doc, Config{Size: 1000, Overlap: 200, Method: Recursive})
			})
		}
	}
}

func benchmark(b *testing.B, doc *document.Document, c Config) {
	b.SetBytes(int64(len(doc.Text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Split(context.Background(), doc, c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplitSemantic(b *testing.B) {
	for _, size := range sizes {
		doc := shapes["prose"](size.bytes)
		b.Run(size.name, func(b *testing.B) {
			benchmark(b, doc, Config{Size: 1000, Method: Semantic, Embed: fakeEmbed})
		})
	}
}

func TestChunksAreSlicesOfTheText(t *testing.T) {
	doc := shapes["prose"](8 << 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunks := split(t, doc, Config{Size: 1000, Overlap: 200, Method: Recursive})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d chunks of 8 MB of text allocated %d MB", len(chunks), grown>>20)
	}
	runtime.KeepAlive(doc)
}
