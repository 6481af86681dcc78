// Package encoder converts text to vectors with a model that is part of the
// binary, so that semantic search works without a network or an API key.
//
// The model is Google's Universal Sentence Encoder lite for English, a
// transformer of two layers over the pieces of a SentencePiece vocabulary. Its
// weights are stored as 8-bit blocks in model.bin; MODEL_CARD.md describes its
// origin and qualities, and how to build the file.
package encoder
