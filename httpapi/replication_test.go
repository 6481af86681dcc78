package httpapi

import (
	"errors"
	"log/slog"
	"testing"

	"satchel/store/replica"
)

// Health reports the state of the replicas, and nothing about replicas where there are
// none.
func TestHealthOfReplicas(t *testing.T) {
	t.Parallel()
	target, err := replica.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	r := replica.New(replica.Options{Target: target, Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	s := &Server{options: Options{Parts: Parts{Replicas: r}}}
	steps := []struct {
		do   func()
		want string
	}{{func() {}, "ok"}, {func() { r.Lost("a", errors.New("new")) }, "behind"}}
	for _, step := range steps {
		step.do()
		if h, err := s.health(nil, nil); err != nil || h.Status != "ok" || h.Replication != step.want {
			t.Errorf("%+v, %v, want %s", h, err, step.want)
		}
	}
	if h, _ := (&Server{}).health(nil, nil); h.Replication != "" {
		t.Errorf("%+v without replicas", h)
	}
}
