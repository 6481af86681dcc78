package encoder

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/internal/modelfile"
)

func TestVectorsHaveLengthOne(t *testing.T) {
	m := shared(t)
	for _, text := range []string{"", " ", "\x00", "\xff\xff", "hello", "日本語", chunk(1000), strings.Repeat("a", 3000)} {
		v := embed(t, m, text)
		if length := math.Sqrt(cosine(v, v)); math.Abs(length-1) > 1e-6 {
			t.Errorf("%.20q: length %v", text, length)
		}
	}
}

func TestMeaningIsNear(t *testing.T) {
	m := shared(t)
	question := embed(t, m, "Where can I get my money back?")
	near := cosine(question, embed(t, m, "A refund is paid within thirty days."))
	far := cosine(question, embed(t, m, "The ferry does not sail on Sundays."))
	if near < far+0.1 {
		t.Errorf("the cosine of the answer is %.3f, of an unrelated text %.3f", near, far)
	}
}

func TestWindows(t *testing.T) {
	for n, want := range map[int][]int{
		0:    {0},
		1:    {1},
		127:  {127},
		128:  {128},
		129:  {64, 65},
		256:  {128, 128},
		257:  {85, 86, 86},
		1000: {125, 125, 125, 125, 125, 125, 125, 125},
	} {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i)
		}
		var sizes []int
		var joined []int32
		for _, part := range windows(ids) {
			sizes = append(sizes, len(part))
			joined = append(joined, part...)
		}
		if !slices.Equal(sizes, want) || !slices.Equal(joined, ids) {
			t.Errorf("%d ids: windows of %v, want %v", n, sizes, want)
		}
	}
}

func TestLongTextIsTheMeanOfItsWindows(t *testing.T) {
	m := shared(t)
	text := chunk(1700)
	want := make([]float32, Dims)
	s := newScratch(gemm.Kernels()[0])
	parts := windows(m.Tokens(text))
	if len(parts) < 3 {
		t.Fatalf("%d windows, want at least 3", len(parts))
	}
	for _, part := range parts {
		one := make([]float32, Dims)
		m.network.run(s, part, one)
		for i, v := range one {
			want[i] += v / float32(len(parts))
		}
	}
	normalizeLength(want)
	checkClose(t, "mean", embed(t, m, text), want)
}

// TestScratchIsNotCarriedOver runs a short text after long ones in the same
// working memory.
func TestScratchIsNotCarriedOver(t *testing.T) {
	for _, kernel := range gemm.Kernels() {
		m, s := load(t, kernel), newScratch(kernel)
		want, got := make([]float32, Dims), make([]float32, Dims)
		short, long := m.Tokens("hello"), m.Tokens(chunk(150))
		m.network.run(s, short, want)
		m.network.run(s, long, got)
		m.network.run(s, short, got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the vector changed after a longer text", kernel.Name())
		}
	}
}

func TestEmbedAtOnce(t *testing.T) {
	m := shared(t)
	texts := []string{"hello", "", chunk(150), "How do I reset my password?", chunk(700)}
	want := make([][]float32, len(texts))
	for i, text := range texts {
		want[i] = embed(t, m, text)
	}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for n := range 10 {
				i := (worker + n) % len(texts)
				got, err := m.Embed(context.Background(), texts[i])
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("%.20q: the vector differs from the one computed alone, %v", texts[i], err)
				}
			}
		})
	}
	wait.Wait()
}

// countdown is a context that is cancelled after Err was called left times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

func TestEmbedEndsWithItsContext(t *testing.T) {
	m := shared(t)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, text := range []string{"", "hello"} {
		if v, err := m.Embed(ended, text); !errors.Is(err, context.Canceled) || v != nil {
			t.Errorf("%q: got %d numbers and %v", text, len(v), err)
		}
	}
	ctx := &countdown{context.Background(), 2}
	if _, err := m.Embed(ctx, chunk(MaxText)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled after two windows: got %v", err)
	}
}

func TestLoadSharesOneModel(t *testing.T) {
	models := make([]*Model, 8)
	var wait sync.WaitGroup
	for i := range models {
		wait.Go(func() { models[i] = shared(t) })
	}
	wait.Wait()
	for _, m := range models {
		if m != models[0] {
			t.Fatal("two callers got different models")
		}
	}
	if models[0].ID == "" {
		t.Error("the model has no ID")
	}
}

// heap returns the memory in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// loadAndForget loads a model without keeping a reference. It returns a weak pointer
// to the model, and the memory that it used.
func loadAndForget(t *testing.T) (weak.Pointer[Model], uint64) {
	m := shared(t)
	embed(t, m, "hello")
	size := heap()
	runtime.KeepAlive(m)
	return weak.Make(m), size
}

func TestMemoryIsBoundedAndReleased(t *testing.T) {
	before := heap()
	forgotten, during := loadAndForget(t)
	after := heap()
	if forgotten.Value() != nil || after > before+1<<20 {
		t.Errorf("%d bytes are in use after the model was released, %d before", after, before)
	}
	if held := int64(during) - int64(before); held > 23<<20 {
		t.Errorf("a loaded model uses %d bytes", held)
	} else {
		t.Logf("a loaded model uses %.1f MB", float64(held)/1e6)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	file, err := modelfile.Decode(content())
	if err != nil {
		t.Fatal(err)
	}
	whole := file.Matrices
	for i, m := range whole {
		file.Matrices = slices.Delete(slices.Clone(whole), i, i+1)
		if _, err := New(file); err == nil || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("without %s: got %v", m.Name, err)
		}
	}
	file.Matrices = whole
	file.Pieces = make([]modelfile.Piece, vocabularyRows+1)
	if _, err := New(file); err == nil {
		t.Error("a vocabulary larger than the embedding was accepted")
	}
}
