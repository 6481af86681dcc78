package unigram

import (
	"cmp"
	"slices"
	"strings"
)

// trie is a prefix tree over bytes. Nodes are numbered breadth first, so the
// edges of a node are adjacent and edge e leads to node e+1.
type trie struct {
	labels string  // the byte of each edge
	first  []int32 // each node's first edge; its last one is before first[node+1]
	id     []int32 // the text that ends at each node, or -1
}

// root is the node that every search starts at.
const root int32 = 0

// newTrie indexes texts by their index in the list. Empty ones are skipped; of
// equal ones the last counts.
func newTrie(texts []string) trie {
	order := make([]int32, 0, len(texts))
	for id, text := range texts {
		if text != "" {
			order = append(order, int32(id))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(strings.Compare(texts[a], texts[b]), cmp.Compare(a, b))
	})
	type span struct{ from, to, depth int } // the texts of order that share a prefix
	var (
		t      trie
		labels []byte
		queue  = []span{{0, len(order), 0}}
	)
	for node := 0; node < len(queue); node++ {
		s := queue[node]
		t.first = append(t.first, int32(len(labels)))
		t.id = append(t.id, -1)
		for ; s.from < s.to && len(texts[order[s.from]]) == s.depth; s.from++ {
			t.id[node] = order[s.from]
		}
		for s.from < s.to {
			label, to := texts[order[s.from]][s.depth], s.from
			for to < s.to && texts[order[to]][s.depth] == label {
				to++
			}
			labels = append(labels, label)
			queue = append(queue, span{s.from, to, s.depth + 1})
			s.from = to
		}
	}
	t.first = append(t.first, int32(len(labels)))
	t.labels = string(labels)
	return t
}

// child returns the node for a byte, or -1.
func (t *trie) child(node int32, label byte) int32 {
	first := t.first[node]
	at := strings.IndexByte(t.labels[first:t.first[node+1]], label)
	if at < 0 {
		return -1
	}
	return first + int32(at) + 1
}
