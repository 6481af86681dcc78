package chunk

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// topicEmbed is an embedder that distinguishes two topics by their words.
func topicEmbed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		cats, stars := strings.Count(text, "cat"), strings.Count(text, "star")
		out[i] = []float32{float32(cats), float32(stars), 0.2}
	}
	return out, nil
}

func TestSemanticCutsWhereTheTopicChanges(t *testing.T) {
	cats := strings.Repeat("The cat sleeps on the mat. A cat hunts mice. ", 5)
	stars := strings.Repeat("A star burns hydrogen. The star ends as a dwarf. ", 5)
	doc := read(t, "a.txt", cats+stars+cats)
	got := contents(split(t, doc, Config{Size: 1000, Overlap: 100, Method: Semantic, Embed: topicEmbed}))
	want := []string{strings.TrimSpace(cats), strings.TrimSpace(stars), strings.TrimSpace(cats)}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestSemanticLeavesOneTopicWhole(t *testing.T) {
	doc := read(t, "a.txt", strings.Repeat("The cat sleeps on the mat. A cat hunts mice. ", 20))
	if got := split(t, doc, Config{Size: 2000, Method: Semantic, Embed: topicEmbed}); len(got) != 1 {
		t.Errorf("got %d chunks: %q", len(got), contents(got))
	}
}

func TestSemanticEmbedsSentencesInBatches(t *testing.T) {
	var sizes []int
	embed := func(ctx context.Context, texts []string) ([][]float32, error) {
		sizes = append(sizes, len(texts))
		for _, text := range texts {
			if len(text) > maxEmbedText {
				t.Errorf("a text of %d bytes", len(text))
			}
		}
		return topicEmbed(ctx, texts)
	}
	doc := read(t, "a.txt", strings.Repeat("A cat. ", 39)+strings.Repeat("X", 5000)+".")
	split(t, doc, Config{Size: 1000, Method: Semantic, Embed: embed})
	if len(sizes) != 2 || sizes[0] != embedBatch || sizes[1] != 40-embedBatch {
		t.Errorf("got batches of %v", sizes)
	}
}

func TestSemanticEmbedFails(t *testing.T) {
	unavailable := errors.New("unavailable")
	doc := read(t, "a.txt", "One. Two. Three.")
	for name, embed := range map[string]Embed{
		"error":   func(context.Context, []string) ([][]float32, error) { return nil, unavailable },
		"too few": func(context.Context, []string) ([][]float32, error) { return [][]float32{{1}}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Split(context.Background(), doc, Config{Size: 100, Method: Semantic, Embed: embed})
			if err == nil || name == "error" && !errors.Is(err, unavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSemanticAcceptsOddVectors(t *testing.T) {
	doc := read(t, "a.txt", strings.Repeat("One thing. Two things. ", 20))
	n := 0
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		out := make([][]float32, len(texts))
		for i := range out {
			switch n++; n % 4 {
			case 0:
				out[i] = []float32{float32(math.NaN()), 1}
			case 1:
				out[i] = []float32{0, 0}
			case 2:
				out[i] = []float32{1}
			}
		}
		return out, nil
	}
	checkInvariants(t, doc, Config{Size: 50, Method: Semantic, Embed: embed})
}

func TestDepths(t *testing.T) {
	got := dipDepths([]float64{1, 0.5, 0.75, 0.25, 1})
	want := []float64{0, 0.75, 0, 1.25, 0}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestEndsSentence(t *testing.T) {
	// ¦ marks the space that is tested.
	cases := map[string]bool{
		"It ends.¦Next":         true,
		"It ends!¦Next":         true,
		"Really?”¦Next":         true,
		"\"Stop!\"¦he cried":    false,
		"Mr.¦Smith":             false,
		"J.¦Smith":              false,
		"(J.¦Smith)":            false,
		"z.B.¦Hunde":            false,
		"U.S.¦Army":             false,
		"about 3.5¦percent":     false,
		"in 1999.¦Then":         true,
		"1.¦First":              false,
		"text\n2.¦Second":       false,
		"chapter 2.¦Second":     true,
		"see no.¦Five":          false,
		"version two.¦it goes":  false,
		"Ende.¦Über":            true,
		"Wait…¦What":            true,
		"क्या है।¦अब":           true,
		"**Bold.**¦Next":        true,
		"end.¦":                 true,
		"a comma,¦And":          false,
		"....¦And":              true,
		"Unwahrscheinlich.¦Und": true,
	}
	for marked, want := range cases {
		before, after, _ := strings.Cut(marked, "¦")
		if got := endsSentence(before+" "+after, len(before), len(before)+1); got != want {
			t.Errorf("%s: got %v", marked, got)
		}
	}
}
