package search

import (
	"cmp"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"sync"

	"satchel/store/search/bitcode"
)

// Shortlist returns how many candidates Index.Nearest should return for the n
// nearest chunks among total; their vectors decide. For 40,000 texts and the
// built-in model, √total candidates contain 994 of 1,000 of the ten nearest, and
// 2√total contain 999; four times as many texts need less than twice as many.
func Shortlist(n, total int) int {
	return max(4*n, int(math.Sqrt(float64(total))))
}

// ListJSON encodes a list so that it can be a single parameter of a statement.
func ListJSON(seqs []int64) string {
	if len(seqs) == 0 {
		return "[]"
	}
	list, _ := json.Marshal(seqs) // a list of integers cannot fail
	return string(list)
}

// Best returns the n with the highest scores.
func Best(scores map[int64]float64, n int) map[int64]float64 {
	if len(scores) <= n {
		return scores
	}
	seqs := make([]int64, 0, len(scores))
	for seq := range scores {
		seqs = append(seqs, seq)
	}
	slices.SortFunc(seqs, func(a, b int64) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	for _, seq := range seqs[n:] {
		delete(scores, seq)
	}
	return scores
}

// scan estimates the similarity of a query to all records of some sources.
type scan struct {
	query   *bitcode.Query
	sources map[uint32]bool // nil: all
	keep    int             // how many of the best are kept
}

// scanPart is how many records justify one more processor.
const scanPart = 64 << 10

// run returns the chunks that are estimated to be nearest, best first. Segments that
// are nil are loaded, one at a time.
func (s *scan) run(segments []*segment, load func(i int) (*segment, error)) ([]int64, error) {
	total := 0
	for _, seg := range segments {
		if seg != nil {
			total += len(seg.seqs)
		}
	}
	tops := make([]top, min(max(total/scanPart, 1), runtime.GOMAXPROCS(0)))
	var running sync.WaitGroup
	for i := range tops {
		tops[i].keep = s.keep
		running.Go(func() {
			for j := i; j < len(segments); j += len(tops) {
				if segments[j] != nil {
					s.segment(segments[j], &tops[i])
				}
			}
		})
	}
	running.Wait()
	for i, seg := range segments {
		if seg == nil {
			seg, err := load(i)
			if err != nil {
				return nil, err
			}
			s.segment(seg, &tops[0])
		}
	}
	for _, other := range tops[1:] {
		for _, e := range other.heap {
			tops[0].offer(e)
		}
	}
	return tops[0].seqs(), nil
}

// segment offers the records of one segment.
func (s *scan) segment(seg *segment, top *top) {
	var sums [256]int32
	for from := 0; from < len(seg.seqs); from += len(sums) {
		to := min(from+len(sums), len(seg.seqs))
		if s.sources != nil &&
			!slices.ContainsFunc(seg.sources[from:to], func(source uint32) bool {
				return s.sources[source]
			}) {
			continue
		}
		part := sums[:to-from]
		s.query.Sums(seg.codes, from, part)
		for i, sum := range part {
			score := s.query.Estimate(seg.codes, from+i, sum)
			if top.accepts(score) && (s.sources == nil || s.sources[seg.sources[from+i]]) {
				top.offer(estimate{seg.seqs[from+i], score})
			}
		}
	}
}

// estimate is a chunk with its estimated similarity.
type estimate struct {
	seq   int64
	score float32
}

// top keeps the highest estimates, in a heap with the lowest at its root.
type top struct {
	keep int
	heap []estimate
}

// accepts reports whether offer would keep an estimate.
func (t *top) accepts(score float32) bool {
	return len(t.heap) < t.keep || score > t.heap[0].score
}

func (t *top) offer(e estimate) {
	switch {
	case len(t.heap) < t.keep:
		t.heap = append(t.heap, e)
		for i := len(t.heap) - 1; i > 0 && t.heap[i].score < t.heap[(i-1)/2].score; i = (i - 1) / 2 {
			t.heap[i], t.heap[(i-1)/2] = t.heap[(i-1)/2], t.heap[i]
		}
	case e.score > t.heap[0].score:
		t.heap[0] = e
		t.siftDown()
	}
}

// siftDown moves the root down to its place.
func (t *top) siftDown() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[child].score < t.heap[least].score {
				least = child
			}
		}
		if least == i {
			return
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}

// seqs returns what was kept, highest first.
func (t *top) seqs() []int64 {
	slices.SortFunc(t.heap, func(a, b estimate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seq, b.seq))
	})
	list := make([]int64, len(t.heap))
	for i, e := range t.heap {
		list[i] = e.seq
	}
	return list
}
