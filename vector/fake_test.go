package vector

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"

	"satchel/vector/encoder"
)

// fake is a fast Embedder: equal texts have equal vectors, and different texts have
// nearly orthogonal ones.
type fake struct {
	model  string
	before func(ctx context.Context, text string) error // may be nil
}

func (f *fake) Model() string { return f.model }

func (f *fake) Embed(ctx context.Context, text string) ([]float32, error) {
	if f.before != nil {
		if err := f.before(ctx, text); err != nil {
			return nil, err
		}
	}
	h := fnv.New64a()
	h.Write([]byte(f.model + text))
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	v := make([]float32, encoder.Dims)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v, nil
}

// gate blocks calls until a test opens it.
type gate struct {
	arrived chan string
	open    chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{arrived: make(chan string, 1), open: make(chan struct{})} }

// pass reports the first arrival and waits until the gate is opened.
func (g *gate) pass(ctx context.Context, what string) error {
	g.once.Do(func() { g.arrived <- what })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lines returns a text of n short paragraphs, each of which is one chunk with
// chunk_size 60.
func lines(word string, n int) []byte {
	var b strings.Builder
	for i := range n {
		b.WriteString(word + " number ")
		b.WriteString(strings.Repeat("i", i%7+1))
		b.WriteString(" of a long enough row of them\n\n")
	}
	return []byte(b.String())
}

// errorLog collects the errors that are logged.
type errorLog struct {
	slog.Handler
	mu     sync.Mutex
	errors []string
}

func newErrorLog() *errorLog { return &errorLog{Handler: slog.DiscardHandler} }

func (l *errorLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += " " + a.String()
			return true
		})
		l.mu.Lock()
		l.errors = append(l.errors, text)
		l.mu.Unlock()
	}
	return nil
}

func (l *errorLog) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors
}
