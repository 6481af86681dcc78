// Package lexicon measures the similarity of texts by the meaning of their
// words: it adds up word vectors, one for each of the 40,000 most frequent
// words of WordNet. It knows that a couch is a sofa and that a merlot is a
// wine, which sentence embeddings often miss, and it processes megabytes per
// second. It is too weak to search with; it is useful for reranking the
// results of another search.
//
// The table is derived from WordNet alone by the command in vector/lab/train;
// MODEL_CARD.md describes how.
package lexicon
