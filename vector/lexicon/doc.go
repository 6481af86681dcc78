// Package lexicon measures the similarity of texts by the meaning of their
// words: it adds up a vector for each of the 40,000 most used words of WordNet.
// It knows that a couch is a sofa and that a merlot is a wine, which the
// encoder's sentences often miss, and it processes megabytes per second. On its
// own it searches poorly; it is useful for ordering what another search found.
//
// The table is derived from WordNet alone by the command in the folder train;
// MODEL_CARD.md describes how.
package lexicon
