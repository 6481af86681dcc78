// Package encoder turns text into vectors with a model that is part of the
// binary, so that search by meaning works without a network or a key.
//
// The model is Google's Universal Sentence Encoder lite for English, a
// transformer of two layers over the pieces of a SentencePiece vocabulary. Its
// weights are stored as 8-bit blocks in model.bin; MODEL_CARD.md tells where
// they come from, what they are good for and how to build the file again.
package encoder
