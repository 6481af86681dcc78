package vector

import (
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestRelate checks that the lexicon affects the order of hybrid searches with the
// built-in model, and of no others.
func TestRelate(t *testing.T) {
	for _, c := range []struct {
		name     string
		embedder Embedder
		mode     Mode
		related  bool
	}{
		{"hybrid", Local(), Hybrid, true},
		{"by meaning", Local(), Vector, false},
		{"by words", Local(), Keyword, false},
		{"another model", &fake{model: "fake"}, Hybrid, false},
	} {
		list := []candidate{
			{FoundChunk: found(1, "A carrot from the field"), cosine: 0.52, hasCosine: true},
			{FoundChunk: found(2, "A sofa with two cushions"), cosine: 0.5, hasCosine: true},
		}
		ix := &Index{embedder: c.embedder}
		q := Query{Text: "couch", Mode: c.mode}
		r := ix.ranking(model{to: agent.Embedding{Provider: agent.LocalEmbedding}}, q)
		if err := addRelatedness(list, r, q); err != nil {
			t.Fatal(c.name, err)
		}
		if got := list[1].related > 0.2; got != c.related {
			t.Errorf("%s: the relatedness of sofa and couch is %v", c.name, list[1].related)
		}
		r.order(list)
		if got := list[0].Seq == 2; c.mode != Keyword && got != c.related {
			t.Errorf("%s: the sofa is first: %t", c.name, got)
		}
		if r.score(&list[0]) < r.score(&list[1]) {
			t.Errorf("%s: the scores are %v and %v", c.name, r.score(&list[0]), r.score(&list[1]))
		}
	}
}

func found(seq int64, content string) store.FoundChunk {
	return store.FoundChunk{Chunk: agent.Chunk{Content: content}, Seq: seq}
}

// Markup around a question does not lower the trust in the model much.
func TestMarkupKeepsTrust(t *testing.T) {
	plain := trustOf(Local(), "How long may I return bread?")
	if got := trustOf(
		Local(),
		`How long may I return bread? "><img src=x onerror="hit=1"><script>hit=1</script>`,
	); got < 0.8*plain {
		t.Errorf("with markup %.2f, without %.2f", got, plain)
	}
	if got := trustOf(Local(), "QX-7731-B2/09"); got > 0.5*plain {
		t.Errorf("a code has a trust of %.2f", got)
	}
}

// A chunk that clearly leads by words comes before one that is slightly closer in
// meaning. If two have the same words, neither is raised.
func TestLeadByWords(t *testing.T) {
	near := candidate{FoundChunk: found(1, ""), cosine: 0.5, words: 0.2, hasCosine: true}
	lead := candidate{FoundChunk: found(2, ""), cosine: 0.38, words: 0.3, hasCosine: true}
	alike := candidate{FoundChunk: found(3, ""), cosine: 0.1, words: 0.3, hasCosine: true}
	for _, c := range []struct {
		list  []candidate
		first int64
	}{{[]candidate{near, lead}, 2}, {[]candidate{near, lead, alike}, 1}} {
		r := ranking{mode: Hybrid, trust: 1, local: true}
		r.findLeader(c.list)
		if r.order(c.list); c.list[0].Seq != c.first {
			t.Errorf("chunk %d of %d is first, want %d", c.list[0].Seq, len(c.list), c.first)
		}
		r.rate(c.list)
		alone := ranking{mode: Hybrid, trust: 1, local: true}
		alone.rate([]candidate{near})
		if first, second := r.score(&c.list[0]), r.score(&c.list[1]); first < second || first != alone.score(&near) {
			t.Errorf(
				"the scores are %v and %v, want none that the lead raises above %v",
				first,
				second,
				alone.score(&near),
			)
		}
	}
}
