package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestResultPath(t *testing.T) {
	for path, want := range map[string]struct {
		iteration int
		path      string
	}{"0": {0, ""}, "12": {12, ""}, "3.1": {1, "3.1"}, "2.0.7": {7, "2.0.7"}} {
		var r NodeResult
		r.SetPath(path)
		if *r.Iteration != want.iteration || r.Path != want.path || r.FullPath() != path {
			t.Errorf("%s: iteration %d, path %q, at %q", path, *r.Iteration, r.Path, r.FullPath())
		}
	}
	var r NodeResult
	if r.SetPath(""); r.Iteration != nil || r.FullPath() != "" {
		t.Errorf("outside of loops: %+v", r)
	}
}

func TestLargeOutputIsOmitted(t *testing.T) {
	r := NodeResult{Output: []byte(strings.Repeat("x", maxListedOutput))}
	if r.OmitLargeOutput(); len(r.Output) != maxListedOutput || r.OutputBytes != 0 {
		t.Error("an output of exactly the limit was omitted")
	}
	r.Output = append(r.Output, 'x')
	if r.OmitLargeOutput(); r.Output != nil || r.OutputBytes != maxListedOutput+1 {
		t.Errorf("output of %d bytes, output_bytes is %d", len(r.Output), r.OutputBytes)
	}
}

func TestListedEventPatternsMatch(t *testing.T) {
	patterns := []string{"*", "a", "a.*", "a.b", "a.b.*", "a.b.c", "b.*", "a*", ".*"}
	for _, name := range []string{"a", "a.b", "a.b.c"} {
		listed := EventPatterns(name)
		for _, p := range patterns {
			if slices.Contains(listed, p) != MatchEvent(p, name) {
				t.Errorf(
					"pattern %s for %s: listed %v, matches %v",
					p,
					name,
					slices.Contains(listed, p),
					MatchEvent(p, name),
				)
			}
		}
	}
}
