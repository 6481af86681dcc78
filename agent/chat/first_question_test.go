package chat

import (
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

// squash replaces each run of white space by a blank.
func squash(text string) string { return strings.Join(strings.Fields(text), " ") }

// contain reports whether one of the passages contains a text.
func contain(passages []Citation, text string) bool {
	return slices.ContainsFunc(passages, func(p Citation) bool { return strings.Contains(squash(p.Content), text) })
}

// answerWithPassages answers a first question without a model.
func answerWithPassages(t *testing.T, c *Chat, db *store.DB, text string, sources ...string) Answer {
	t.Helper()
	x := Request{Messages: []llm.Message{{Role: agent.MessageUser, Content: text}}, Sources: Choice{IDs: sources}}
	a, err := c.passages(t.Context(), db, x, agent.Invalid("llm_provider", "is required"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFirstQuestion asks the first questions of small teams about documents as they have
// them, with an agent that has one of the documents and with one that has all: what
// answers is shown, and in the model's request, whatever its score. Where nothing
// answers, the text claims nothing.
func TestFirstQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	index, db, sources := thresholdSources(t, "small_team")
	c := New(Options{Index: index})
	for _, where := range []struct {
		name             string
		shown, offDenied float64 // the least shares
		first3           float64 // of the answers, in the first three results of a search
	}{{"alone", 1, 0.9, 1}, {"together", 0.95, 0.8, 0.77}} {
		t.Run(where.name, func(t *testing.T) {
			got, all := map[string]float64{}, map[string]float64{}
			count := func(name string, is bool) {
				if all[name]++; is {
					got[name]++
				}
			}
			for _, q := range readThresholdQuestions(t, "small_team") {
				var ids []string
				if where.name == "alone" {
					ids = []string{sources[q.document]}
				}
				a := answerWithPassages(t, c, db, q.text, ids...)
				denied := strings.HasPrefix(a.Text, "I do not know")
				if !denied && !strings.Contains(a.Text, "they may not answer the question") {
					t.Errorf("%s: %q claims to answer", q.text, a.Text)
				}
				if len(a.Sources) == 0 || len(a.Sources) > maxPassages {
					t.Errorf("%s: %d passages", q.text, len(a.Sources))
				}
				if q.class != "answered" {
					count(q.class+" denied", denied)
					continue
				}
				count("shown", contain(a.Sources, q.answer))
				prompt := systemPrompt(db.Agent(), store.Settings{}, Request{}, time.Now(), a.Sources)
				count("in the request", strings.Contains(squash(prompt), q.answer))
				count("answered, denied", denied)
				first := vector.Query{Text: q.text, Limit: 3, SourceID: strings.Join(ids, "")}
				found, err := index.Search(t.Context(), db, first)
				if err != nil {
					t.Fatal(err)
				}
				has := func(r vector.Result) bool { return strings.Contains(squash(r.Content), q.answer) }
				count("first three", slices.ContainsFunc(found, has))
			}
			for name := range all {
				got[name] /= all[name]
			}
			t.Log(got)
			for name, least := range map[string]float64{
				"shown":            where.shown,
				"in the request":   where.shown,
				"unrelated denied": where.offDenied,
				"first three":      where.first3,
			} {
				if got[name] < least {
					t.Errorf("%s: %.3f, want at least %.3f", name, got[name], least)
				}
			}
		})
	}
}

// TestFirstHandbook asks about the handbook of the README with the defaults.
func TestFirstHandbook(t *testing.T) {
	index, db, _ := thresholdSources(t, "readme")
	c := New(Options{Index: index})
	for question, section := range map[string]string{
		"can I get a refund?":                          "Handbook > Returns",
		"do you give refunds?":                         "Handbook > Returns",
		"when do you open?":                            "Handbook > Opening hours",
		"WHEN DO YOU OPEN?":                            "Handbook > Opening hours",
		"can I get a refund for bread I did not enjoy": "Handbook > Returns",
	} {
		a := answerWithPassages(t, c, db, question)
		if a.Weak || a.Sources[0].Metadata.Section != section {
			t.Errorf(
				"%s: weak %v, %.2f %q, want %s",
				question,
				a.Weak,
				a.Sources[0].Score,
				a.Sources[0].Metadata.Section,
				section,
			)
		}
	}
	a := answerWithPassages(t, c, db, "what is the capital of Peru?")
	if !a.Weak || len(a.Sources) == 0 {
		t.Errorf("off topic: weak %v, %d passages, want all of them as weak", a.Weak, len(a.Sources))
	}
}

// TestPassagesWithinBytes: the passages of an answer fit into their limit, but for the
// first.
func TestPassagesWithinBytes(t *testing.T) {
	result := func(n int) vector.Result { return vector.Result{Content: strings.Repeat("x", n)} }
	for _, c := range []struct {
		sizes []int
		want  int
	}{
		{nil, 0},
		{[]int{20_000}, 1},
		{[]int{20_000, 1}, 1},
		{[]int{6000, 6000}, 2},
		{[]int{6000, 6000, 1}, 2},
		{[]int{1, 2, 3}, 3},
	} {
		var found []vector.Result
		for _, n := range c.sizes {
			found = append(found, result(n))
		}
		if got := withinBytes(found, maxPassageBytes); len(got) != c.want {
			t.Errorf("%d: %d passages, want %d", c.sizes, len(got), c.want)
		}
	}
}
