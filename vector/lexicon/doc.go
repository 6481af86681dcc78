// Package lexicon tells how alike texts are by what their words mean, one by
// one: a vector for each of the 40,000 most used words of WordNet, added up.
// It knows that a couch is a sofa and that a merlot is a wine, which the
// encoder's sentences often miss, and it reads megabytes a second. By itself it
// is a poor search; it is good for ordering what another search found.
//
// The table comes from WordNet alone and is made by the command in the folder
// train; MODEL_CARD.md says how.
package lexicon
